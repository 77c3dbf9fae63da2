"""A Machine: the parameters of a computer in the BSP cost models.

Machines are TOML files, in seconds and bytes, with the source of every figure
(:mod:`bsplib.machine.text` describes the format). Some published Machines have no speed,
or a fitted L below zero: these figures are gaps. An operation that needs such a figure
raises an error that asks for it.
"""

from __future__ import annotations

import functools
import math
import reprlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np

from bsplib.errors import UsageError
from bsplib.machine import text as machine_text
from bsplib.machine.pattern import PATTERNS
from bsplib.visible import visible

if TYPE_CHECKING:
    from bsplib.machine.measured import HRelation, Measured

__all__ = ["PATTERNS", "Level", "Machine", "Pattern", "known_machines", "load_machine"]

_FOLDER = Path(__file__).parent / "library"


@dataclass(frozen=True)
class Pattern:
    """The costs of communication of one pattern.

    Source: Roda et al. 1999, section 3.
    """

    g: float
    """Seconds for each byte of an h-relation."""
    l: float | None = None  # noqa: E741  # the name in the field
    """Seconds to start the communication (L); a gap if None or below zero."""


@dataclass(frozen=True)
class Level:
    """The costs of supersteps among processes of one host."""

    g: float
    """Seconds for each byte of an h-relation."""
    l: float  # noqa: E741  # the name in the field
    """Seconds for the end of a superstep."""


@dataclass(frozen=True)
class Machine:
    """The parameters of a computer; a superstep costs ``max w + h g + l``.

    A Machine of several hosts has two levels: ``g`` and ``l`` are those between hosts, and
    ``inside`` has those inside a host. Where ``nodes`` and ``cores`` describe a cluster, a group
    of at most ``cores`` processes counts as being on one host, and a greater one pays ``g`` and
    ``l``. Otherwise, where it is known on which hosts processes were, a superstep costs::

        max_i w_i + max_i (a_i g_inside + b_i g) + l

    with a_i the h of process i from the bytes that it exchanged with processes of its own
    host, b_i that from all others, and the l of the widest level of the group: l_inside where
    all processes of the group are on one host. Elsewhere ``g`` and ``l`` hold for all bytes.

    The rule ``h`` tells to which h the parameter g was fitted, and therefore which h has
    to be multiplied by it: the greater of the bytes into and out of a process, or their sum.
    """

    name: str
    source: str
    """Where the figures come from."""
    g: float
    """Seconds for each byte of an h-relation."""
    l: float | None = None  # noqa: E741  # the name in the field
    """Seconds for the end of a superstep; a gap if None or below zero."""
    p: int | None = None
    """Number of its processes; None if any number is allowed."""
    h: str = "max"
    """Rule for h, ``max`` or ``sum`` of the bytes in and the bytes out of a process."""
    speed: float | None = None
    """flop/s of one process while all compute; a gap if None."""
    word_bytes: int = 8
    """Bytes of a word; g is shown for a word."""
    patterns: Mapping[str, Pattern] = field(default_factory=dict)
    """g and L of the known patterns, by their names in ``PATTERNS``."""
    inside: Level | None = None
    """g and l inside a host; None where the Machine has one level."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Sources of single figures, by their names; the other figures are from ``source``."""
    host: str = ""
    """Name of the host that was measured; empty where it is not known."""
    cores: int | None = None
    """How many cores the processes can use: of the host that was measured, or of each node."""
    nodes: int | None = None
    """How many hosts a cluster has that a user described; None for other Machines."""
    relative_speed: float | None = None
    """Speed of a process in multiples of that of the computer that recorded a run, for a Machine
    that has no ``speed`` of its own."""
    measured: tuple[Measured, ...] = ()
    """What a probe measured, by number of processes in ascending order; then it prices
    supersteps in place of g and l."""

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Return a Machine from plain values, such as a trace contains.

        Raises:
            ValueError: a value is not valid.
            KeyError: name, source or g is missing.
        """
        machine = _made(cls, values, "", _OF_MACHINE)
        if machine.speed is not None and machine.relative_speed is not None:
            raise ValueError("it has both a speed and a relative_speed; give only one of them")
        if machine.nodes is not None and machine.cores is None:
            raise ValueError("it has nodes but no cores; give the cores of each node")
        if machine.inside is not None and machine.inside.g > 0 == machine.g:
            raise ValueError("g is 0 between hosts; then it has to be 0 inside a host, too")
        return machine

    def text(self) -> str:
        """Return the Machine as the text of a file; :func:`load_machine` reads it."""
        return machine_text.text_of(asdict(self))

    @property
    def label(self) -> str:
        """The name in a form that is safe to print, since it may come from an untrusted trace."""
        return visible(self.name)

    def need(
        self, figure: str, say: str = "after its name, as in NAME:{figure}={example}"
    ) -> float:
        """Return a figure that is required.

        Args:
            figure: ``speed``, ``l``, or the L of a pattern, as in ``l of ping-pong``.
            say: how a user can give the figure, for the text of the error.

        Raises:
            UsageError: the figure is a gap.
        """
        letter, _, pattern = figure.partition(" of ")
        value: float | None = getattr(self.patterns[pattern] if pattern else self, letter)
        if value is not None and value >= 0:
            return value
        source = visible(self.sources.get(pattern or letter, self.source))
        why = "has none" if value is None else f"fits it to {value:g} s, below zero"
        how = say.format(figure=letter, example="1e-5" if letter == "l" else "3e8")
        raise UsageError(f"machine: {self.label} has no {figure} ({source}, {why}); give it {how}")

    def relation(self, h_in: Any, h_out: Any) -> Any:
        """Return the h of a process from its bytes in and out; also for arrays.

        Args:
            h_in: bytes into the process.
            h_out: bytes out of the process.

        Source: Roda et al. 1999, equation 1: in @ out.
        """
        return h_in + h_out if self.h == "sum" else np.maximum(h_in, h_out)

    def share_inside(self) -> float:
        """Return how many bytes between hosts cost as much as one byte inside a host."""
        if self.inside is None:
            return 1.0
        return self.inside.g / self.g if self.g else 0.0

    def of_one_host(self) -> Self:
        """Return the Machine of processes that are all on one host; itself if of one level.

        Its h is still one of bytes between hosts, of which a byte inside a host is
        :meth:`share_inside`.
        """
        return (
            self
            if self.inside is None
            else replace(self, l=self.inside.l, patterns={}, measured=(), nodes=None)
        )

    def for_group(self, nprocs: int) -> Self:
        """Return the Machine of a group of `nprocs` processes: one level if one node has them."""
        if self.nodes is None or self.cores is None or self.inside is None or nprocs > self.cores:
            return self
        near = self.inside
        return replace(self, g=near.g, l=near.l, inside=None, patterns={}, measured=(), nodes=None)

    def costs(self, pattern: str | None = None) -> tuple[float, float]:
        """Return g and l of the Machine, or g and L of a pattern.

        Raises:
            UsageError: l is a gap, or the Machine does not have the pattern.
        """
        if pattern is None:
            return self.g, self.need("l")
        if pattern not in self.patterns:
            known = ", ".join(self.patterns) or "no pattern"
            raise UsageError(
                f"machine: {self.label} has no g and L of {pattern}; it has those of: {known}"
            )
        return self.patterns[pattern].g, self.need(f"l of {pattern}", "in its file")

    def parts(self, h: Any, pattern: str | None = None) -> tuple[Any, float]:
        """Return the seconds of a superstep for communication and for synchronisation.

        This is their definition by g and l. What a probe measured is not used.

        Args:
            h: bytes of the h-relation by the Machine's rule; a number, or an array.
            pattern: pattern whose g and L are used; if None, the Machine's own g and l.

        Raises:
            UsageError: l is a gap, or the Machine does not have the pattern.
        """
        g, latency = self.costs(pattern)
        return g * h, latency

    def parts_of(self, relation: HRelation, pattern: str | None, nprocs: int) -> tuple[Any, Any]:
        """Return the seconds of a superstep for communication and for synchronisation.

        This is the only definition of the price of a superstep: virtual processors and
        all cost models that replay a trace use it. Where a probe has measured the Machine, its
        times count (:mod:`bsplib.machine.measured`), otherwise :meth:`parts`.

        Args:
            relation: what is moved; numbers, or arrays.
            pattern: pattern of the superstep; None if it is not known.
            nprocs: number of processes of the group.

        Raises:
            UsageError: l is a gap, or the Machine does not have the pattern.
        """
        if self.measured:
            from bsplib.machine.measured import price_parts  # noqa: PLC0415  # few were measured

            return price_parts(self.measured, relation, pattern, nprocs)
        near = self.for_group(nprocs)
        return near.parts(relation.h, pattern if near is self else None)

    def slowdown(self, nprocs: int) -> float:
        """Return the time of a computation beside ``nprocs - 1`` others, divided by its time alone.

        It is 1 where no probe measured it. Beyond the greatest number of processes that was
        measured, and that of the cores, it grows with the number of processes for each core.
        """
        if self.all_cores is not None:
            return max(nprocs / self.all_cores, 1.0)
        if not self.measured:
            return 1.0
        from bsplib.machine.measured import slowdown  # noqa: PLC0415  # few were measured

        factor = slowdown(self.measured, nprocs)
        if self.cores is None:
            return factor
        return factor * max(nprocs / max(self.measured[-1].p, self.cores), 1.0)

    @property
    def all_cores(self) -> int | None:
        """The cores of all nodes of a cluster that a user described; None for other Machines."""
        return None if self.nodes is None or self.cores is None else self.nodes * self.cores

    def price(self, h: int, pattern: str | None = None) -> float:
        """Return the seconds of a superstep without computation: the sum of :meth:`parts`."""
        return float(sum(self.parts(h, pattern)))

    def pattern_priced(self, pattern: str | None) -> str | None:
        """Return the pattern if this Machine has its price, otherwise None."""
        if any(pattern in entry.patterns for entry in self.measured):
            return pattern
        known = self.patterns.get(pattern) if pattern is not None else None
        return pattern if known is not None and known.l is not None and known.l >= 0 else None

    def two_stages_pay(self, nbytes: int, nprocs: int) -> bool:
        """Tell whether a broadcast is faster in two stages than in one.

        Args:
            nbytes: size of the value that is broadcast.
            nprocs: number of processes.

        Raises:
            UsageError: l is a gap.

        Source: Jarvis et al. 2002, equation 8: n > l / (p g - 2 g).
        """
        return nprocs > 2 and nbytes * (nprocs * self.g - 2 * self.g) > self.need("l")


# -- checks of the values of a Machine; each error is one sentence ---------------------------------

_Check = Callable[[str, Any], Any]
"""Returns a value in its own type; is told what it is. It raises ValueError for a wrong one."""
_Kind = TypeVar("_Kind")


def _made(kind: type[_Kind], values: object, where: str, checks: Mapping[str, _Check]) -> _Kind:
    """Return a Machine or a part of it; where a Machine lacks a field, a KeyError has its name."""
    given = _table(where or "a Machine", values)
    known = {each.name: each for each in fields(kind)}  # type: ignore[arg-type]  # a dataclass
    if wrong := [name for name in given if name not in known]:
        raise ValueError(f"there is no entry {wrong[0]!r}; choose one of {', '.join(known)}")
    found = {}
    for name, each in known.items():
        is_needed = each.default is MISSING and each.default_factory is MISSING
        if given.get(name) is not None or (is_needed and name in given):
            found[name] = checks[name](f"{name} of {where}" if where else name, given[name])
        elif is_needed and where:
            raise ValueError(f"{where} has no entry {machine_text.NAMES.get(name, name)!r}")
        elif is_needed:
            raise KeyError(name)
    return kind(**found)


def _typed(kind: type | tuple[type, ...], words: str) -> _Check:
    """Return a check of the type of a value."""

    def check(what: str, value: Any) -> Any:
        if not isinstance(value, kind) or isinstance(value, bool):
            sentence = f"{what} is {value!r}; it has to be {words}"
            raise ValueError(sentence)  # noqa: TRY004  # as all errors of a Machine's values
        return value

    return check


_table = _typed(Mapping, "a table")
_list = _typed((list, tuple), "a list")
_text = _typed(str, "a text")
_real = _typed((int, float), "a number")


def _tables(what: str, value: object, names: Sequence[str], check: _Check) -> dict[str, Any]:
    """Return the values of a table whose names are among some."""
    found = _table(what, value)
    if wrong := [name for name in found if name not in names]:
        raise ValueError(f"there is no {wrong[0]!r} in {what}; choose one of {', '.join(names)}")
    return {name: check(name, each) for name, each in found.items()}


def _whole(what: str, value: object, most: int = 2**31) -> int:
    if type(value) is not int or not 1 <= value <= most:
        raise ValueError(f"{what} is {value!r}; it has to be a whole number from 1 to {most}")
    return value


def _number(what: str, value: object) -> float:
    try:
        return float(_real(what, value))
    except OverflowError:
        raise ValueError(f"{what} is {reprlib.repr(value)}, which is beyond all floats") from None


def _seconds(what: str, value: object, most: float = 1) -> float:
    number = _number(what, value)
    if not 0 <= number < most:
        raise ValueError(f"{what} is {number}; it has to be from 0 to {most}")
    return number


def _latency(what: str, value: object) -> float:
    """Return an l; a fitted value may be below zero."""
    number = _number(what, value)
    return number if -1 < number < 0 else _seconds(what, number)


def _positive(what: str, value: object) -> float:
    number = _number(what, value)
    if not 0 < number < math.inf:
        raise ValueError(f"{what} is {number}; it has to be a number greater than 0")
    return number


def _rule(what: str, value: object) -> str:
    if value not in ("max", "sum"):
        raise ValueError(f"{what} is {value!r}; it has to be 'max' or 'sum'")
    return value


_ratio: _Check = functools.partial(_seconds, most=1000)


def _measured(what: str, value: object) -> tuple[Measured, ...]:
    """Return what a probe measured."""
    from bsplib.machine.measured import Curve, Measured  # noqa: PLC0415  # few were measured

    def curve(name: str, value: object) -> Curve:
        of_curve: dict[str, _Check] = {
            "nbytes": lambda name, each: tuple(_whole_or_0(name, one) for one in _list(name, each)),
            "seconds": lambda name, each: tuple(_ratio(name, one) for one in _list(name, each)),
        }
        return _made(Curve, value, name, of_curve)

    checks: dict[str, _Check] = {
        "p": _whole,
        **dict.fromkeys(("empty", "call", "start", "spread"), _ratio),
        "slowdown": _positive,
        "patterns": lambda what, value: _tables(what, value, PATTERNS, curve),
    }
    found = tuple(_made(Measured, entry, what, checks) for entry in _list(what, value))
    if any(one.p >= two.p for one, two in pairwise(found)):
        raise ValueError("the entries of measured have to be in ascending order of p")
    return found


def _whole_or_0(what: str, value: object) -> int:
    number = _number(what, value)
    if not number.is_integer() or number < 0:
        raise ValueError(f"{what} has {value!r}; it has to have whole numbers")
    return int(number)


_SOURCES = ("p", "speed", "g", "l", "h", "inside", *PATTERNS)
_OF_LEVEL: dict[str, _Check] = {"g": _seconds, "l": _seconds}
_OF_PATTERN: dict[str, _Check] = {"g": _seconds, "l": _latency}
_OF_MACHINE: dict[str, _Check] = {
    **dict.fromkeys(("name", "source", "host"), _text),
    **dict.fromkeys(("p", "cores", "nodes"), _whole),
    **dict.fromkeys(("speed", "relative_speed"), _positive),
    "word_bytes": functools.partial(_whole, most=64),
    "h": _rule,
    "g": _seconds,
    "l": _latency,
    "patterns": lambda what, value: _tables(
        what, value, PATTERNS, lambda name, each: _made(Pattern, each, name, _OF_PATTERN)
    ),
    "inside": lambda what, value: _made(Level, value, what, _OF_LEVEL),
    "sources": lambda what, value: _tables(what, value, _SOURCES, _text),
    "measured": _measured,
}


# -- Machines by name -----------------------------------------------------------------------------


def known_machines() -> list[str]:
    """Return the names of the Machines that come with bsplib."""
    return sorted(entry.stem for entry in _FOLDER.iterdir() if entry.name != "README.md")


def load_machine(name: str) -> Machine:
    """Return a Machine by name, or from a TOML file.

    Args:
        name: one of :func:`known_machines`, or the path of a file ending in ``.toml``.
            Figures may follow, which fill gaps or replace figures of the Machine, as in
            ``cray-t3e-mpi:l=2e-5,speed=3e8``.

    Raises:
        UsageError: there is no such Machine, or its file is not valid.
    """
    base, colon, figures = name.rpartition(":")
    if colon and "=" in figures:
        return _with_figures(load_machine(base), figures, name)
    if name.endswith(".toml"):
        path = Path(name)
        if not path.is_file():
            raise UsageError(f"machine: there is no file {name}")
        return _parse(_read(path), name)
    return machine_of_library(name)


@functools.cache  # a run asks for the same one again and again
def machine_of_library(name: str) -> Machine:
    """Return a Machine that comes with bsplib.

    Raises:
        UsageError: there is no such Machine.
    """
    if name not in known_machines():
        raise UsageError(
            f"machine: there is no Machine {name!r}; name a .toml file or one of "
            f"{', '.join(known_machines())}; bsp machine new FILE.toml describes another one"
        )
    return _parse((_FOLDER / f"{name}.toml").read_text(encoding="utf-8"), name)


def _with_figures(machine: Machine, figures: str, where: str) -> Machine:
    """Return a Machine with the figures that are given after its name."""
    known: dict[str, _Check] = dict.fromkeys(("speed", "relative_speed"), _positive)
    known |= {"g": _seconds, "l": _seconds}
    values: dict[str, float] = {}
    for part in figures.split(","):
        figure, _, text = (word.strip() for word in part.partition("="))
        if figure == "speed" and text.endswith("x"):
            figure, text = "relative_speed", text.removesuffix("x")
        if figure not in known:
            raise UsageError(
                f"machine: {where}: {figure!r} cannot be given here; speed, g and l can"
            )
        try:
            values[figure] = known[figure](figure, float(text))
        except ValueError as error:
            raise UsageError(f"machine: {where}: {error}") from None
    given = {figure: "given after its name" for figure in values if figure != "relative_speed"}
    sources = {**machine.sources, **given}
    if "speed" in values or "relative_speed" in values:  # one replaces the other
        machine = replace(machine, speed=None, relative_speed=None)
    if "g" in values or "l" in values:  # they price supersteps in place of what was measured
        machine = replace(machine, measured=())
    return replace(machine, **values, sources=sources)  # type: ignore[arg-type]


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise UsageError(
            f"machine: {path}: it is no text in UTF-8; bsp machine probe writes files of Machines"
        ) from None
    except OSError as error:
        raise UsageError(f"machine: {path} cannot be read: {error.strerror or error}") from None


def _parse(text: str, where: str) -> Machine:
    try:
        return Machine.of(machine_text.parse(text))
    except KeyError as error:
        entry = machine_text.NAMES.get(error.args[0], error.args[0])
        raise UsageError(
            f"machine: {where} has no entry {entry!r}; a Machine needs "
            "name, source and g_s_per_byte, and bsp machine new FILE.toml writes a file with all "
            "entries explained"
        ) from None
    except ValueError as error:
        raise UsageError(f"machine: {where}: {error}") from None
