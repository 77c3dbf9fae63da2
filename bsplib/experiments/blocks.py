"""Blocks of a program whose time is measured, with the formula of that time.

Nothing is measured unless the run collects samples: then each process has a
:class:`Samples`, and every passage of a block adds a :class:`BlockSample` to it.
"""

from __future__ import annotations

import functools
import math
import operator
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from bsplib.errors import UsageError

if TYPE_CHECKING:
    from bsplib.experiments.counters import Counters

MEASURED = ("P", "pid")
"""Names in a formula that the runtime measures: the processes of the group, and this one of
them."""
_MOST = 100_000
"""Greatest number of samples that a process keeps in a run."""


class BlockSample(NamedTuple):
    """One passage of a block on one process."""

    name: str
    formula: str
    values: dict[str, float]
    """Values of the names in the formula, and of further names that the program gives."""
    members: Sequence[int]
    """Pids in the root group of the processes of the group."""
    entry: int
    """How often the process had passed this block in this group before."""
    began_s: float
    ended_s: float
    supersteps: int
    """Supersteps of the group that ended inside."""
    counted: dict[str, float]
    """What each counter counted."""

    @property
    def seconds(self) -> float:
        """The time that the passage took."""
        return self.ended_s - self.began_s


def _opened(counters: Sequence[str]) -> Counters:
    # Imported here, as below, since few programs are experiments.
    from bsplib.experiments.counters import Counters  # noqa: PLC0415

    return Counters(counters)


class Samples:
    """What one process measures in a run.

    Args:
        counters: names of counters to be read at both ends of each block.
    """

    def __init__(self, counters: Sequence[str] = ()) -> None:
        self.counters: Counters | None = _opened(counters) if counters else None
        """None once the run has ended."""
        self.kept: list[BlockSample] = []
        self.dropped = 0
        """Samples beyond the greatest number."""
        self._passed: Counter[tuple[str, Sequence[int]]] = Counter()

    def close(self) -> None:
        """Close the counters."""
        if self.counters is not None:
            self.counters.close()
            self.counters = None

    def entry(self, name: str, members: Sequence[int]) -> int:
        """Count a passage of a block; return how many there were before."""
        key = name, members
        self._passed[key] += 1
        return self._passed[key] - 1

    def add(self, sample: BlockSample) -> None:
        """Keep a sample, unless there are too many."""
        if len(self.kept) < _MOST:
            self.kept.append(sample)
        else:
            self.dropped += 1


class _Off:
    """Measures nothing."""

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


OFF = _Off()
"""The block where a run collects no samples."""


class Counted(Protocol):
    """What counts the supersteps of a group."""

    @property
    def superstep(self) -> int:
        """The present one."""


class Timed(Protocol):
    """A group as far as a block needs it."""

    @property
    def _engine(self) -> Counted:
        """Counts its supersteps."""

    def time(self) -> float:
        """Return the seconds since the run began."""


class ExperimentBlock:
    """A passage of a block that is measured; one that an exception leaves does not count."""

    def __init__(
        self,
        samples: Samples,
        group: Timed,
        what: tuple[str, str],
        values: dict[str, float],
        members: Sequence[int],
    ) -> None:
        self._samples = samples
        self._group = group
        self._what = what
        self._values = values
        self._members = members

    def __enter__(self) -> None:
        self._entry = self._samples.entry(self._what[0], self._members)
        self._first = self._group._engine.superstep
        counters = self._samples.counters
        self._counted = {} if counters is None else counters.read()
        self._began_s = self._group.time()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            return
        ended_s = self._group.time()
        counters = self._samples.counters
        counted = {} if counters is None else counters.read()
        self._samples.add(
            BlockSample(
                *self._what,
                self._values,
                self._members,
                self._entry,
                self._began_s,
                ended_s,
                self._group._engine.superstep - self._first,
                {each: value - self._counted[each] for each, value in counted.items()},
            )
        )


_sound: set[tuple[str, ...]] = set()
"""Names with formulas and the names of values that were checked before."""


def check(name: Any, formula: Any, given: Mapping[str, Any]) -> None:
    """Check that a block has a name, and that its formula can be evaluated.

    Args:
        name: of the block.
        formula: of its time.
        given: what the program gives a value; only the names are checked.

    Raises:
        UsageError: the name is no text, the formula cannot be read, or a name in it is
            neither given nor measured; without the place in the program.
    """
    key = (name, formula, *given)
    try:
        if key in _sound:
            return
    except TypeError:  # a list as name
        pass
    if not isinstance(name, str) or not name.strip():
        raise UsageError(f"experiment: {name!r} is no name; write a text such as 'f'")
    if not isinstance(formula, str):
        raise UsageError(
            f"experiment {name}: {formula!r} is no formula; write a text such as 'f[0] + f[1]*N'"
        )
    from bsplib.experiments.formula import FormulaError, read_formula  # noqa: PLC0415  # as above

    try:
        read = read_formula(formula)
    except FormulaError as error:
        raise UsageError(f"experiment {name}: {str(error).removeprefix('formula: ')}") from None
    for each in given:
        if each in MEASURED:
            raise UsageError(f"experiment {name}: {each} is measured; give it no value")
    for each in read.variables:
        if each not in MEASURED and each not in given:
            raise UsageError(
                f"experiment {name}: {each} in the formula {formula!r} has no value; give it one, "
                f"as in experiment(..., {each}=n), or use {' or '.join(MEASURED)}, which are "
                f"measured"
            )
    _sound.add(key)


def values_of(
    name: str, formula: str, given: Mapping[str, Any], measured: Mapping[str, int]
) -> dict[str, float]:
    """Return the values of a passage: those given, P, and of the measured ones what is named.

    Raises:
        UsageError: a value is no finite number.
    """
    found = {each: _number(name, each, value) for each, value in given.items()}
    return found | {each: measured[each] for each in _measured_in(formula)}


@functools.lru_cache
def _measured_in(formula: str) -> tuple[str, ...]:
    """Return what is measured for a formula: P, and the process where it is named."""
    from bsplib.experiments.formula import read_formula  # noqa: PLC0415  # as above

    named = read_formula(formula).variables
    return tuple(each for each in MEASURED if each == "P" or each in named)


def _number(name: str, what: str, value: Any) -> float:
    convert: Callable[[Any], float]
    for convert in (operator.index, float):
        try:
            number = convert(value)
        except (TypeError, ValueError, OverflowError):
            continue
        if not isinstance(value, str) and math.isfinite(number):
            return number
    raise UsageError(f"experiment {name}: {what} is {value!r}; it is a finite number")
