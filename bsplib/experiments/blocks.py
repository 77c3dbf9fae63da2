"""Blocks of a program whose time is measured, with the formula of that time.

Nothing is measured unless the run is recorded: then each process has :class:`Passages`, which end
up in its trace.
"""

from __future__ import annotations

import functools
import math
import operator
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from bsplib import call_site
from bsplib.errors import TraceWarning, UsageError

MEASURED = ("P", "pid")
"""Names in a formula that the runtime measures: the processes of the group, and this one of
them."""
_MOST = 100_000
"""Greatest number of passages that a run keeps, all processes together: in the document of a trace
each takes some ten of the values that it may have."""


class Passages:
    """The passages of blocks in one process of a run that is recorded.

    Args:
        nprocs: number of processes of the run.
    """

    def __init__(self, nprocs: int) -> None:
        self._most = -(-_MOST // nprocs)
        self._blocks: dict[tuple[str, str, Sequence[int]], int] = {}
        self._entries: Counter[tuple[str, Sequence[int]]] = Counter()
        self._passed: list[list[Any]] = []

    def enter(self, name: str, members: Sequence[int]) -> int:
        """Count a passage of a block in a group; return how many there were before."""
        key = name, members
        self._entries[key] += 1
        return self._entries[key] - 1

    def add(self, block: tuple[str, str, Sequence[int]], *passage: Any) -> None:
        """Keep a passage; where there are too many, warn instead.

        Args:
            block: its name, its formula and the members of its group.
            passage: as in the document; see :meth:`document`.
        """
        if len(self._passed) < self._most:
            number = self._blocks.setdefault(block, len(self._blocks))
            self._passed.append([number, *passage])
        else:
            call_site.warn(
                f"experiment: the trace keeps the first {self._most} passages of blocks in a "
                f"process; this one and all later ones are left out",
                TraceWarning,
            )

    def document(self) -> dict[str, Any]:
        """Return what the trace keeps, in JSON; empty where no block was passed.

        ``{"blocks": [[name, formula, members], ...], "passed": [[position in blocks, entry, begin
        in ns, end in ns, supersteps, values, counted], ...]}``
        """
        if not self._passed:
            return {}
        blocks = [[name, formula, _listed(members)] for name, formula, members in self._blocks]
        return {"blocks": blocks, "passed": self._passed}


def _listed(members: Sequence[int]) -> list[int] | str:
    """Return the members of a group in JSON; evenly spaced ones as text, which is short."""
    return str(members) if isinstance(members, range) else [*members]


OFF = nullcontext()
"""The block where a run is not recorded."""


class ExperimentBlock:
    """A passage of a block that is measured; one that an exception leaves does not count."""

    def __init__(
        self,
        passages: Passages,
        group: Any,
        block: tuple[str, str, Sequence[int]],
        values: dict[str, float],
    ) -> None:
        self._passages = passages
        self._group = group
        self._block = block
        self._values = values
        self.counted: dict[str, float] = {}
        """What was counted inside, by the name of a counter; for whoever counts."""

    def __enter__(self) -> None:
        name, _, members = self._block
        self._entry = self._passages.enter(name, members)
        self._first = self._group._engine.superstep
        self._began_s = self._group.time()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            return
        ends = (round(each * 1e9) for each in (self._began_s, self._group.time()))
        supersteps = self._group._engine.superstep - self._first
        self._passages.add(self._block, self._entry, *ends, supersteps, self._values, self.counted)


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
            if not isinstance(value, str) and math.isfinite(number):
                return number
        except (TypeError, ValueError, OverflowError):
            continue
    raise UsageError(f"experiment {name}: {what} is {value!r}; it is a finite number")
