"""A program as data: what each process of a group does, step by step.

Pids are those of the group that a step belongs to. Steps without a ``pid`` are
taken by all processes of the group; what may differ between them is a tuple by pid.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Index = tuple[Any, ...]
Shape = tuple[int, ...]
Array = NDArray[Any]


LARGE_MESSAGE = 1 << 15
"""Numbers of a message that is never part of an entry."""
_MOST_LISTED = 1 << 12
"""A larger array is compared by a digest: lists of a million numbers take too long."""


def values(shape: Shape, dtype: str, seed: int) -> Array:
    """Small numbers that tell where they come from."""
    size = int(np.prod(shape))
    return ((np.arange(size) * 7 + seed * 13) % 100).astype(dtype).reshape(shape)


@dataclass(frozen=True)
class Ref:
    """A view of an array that a process made."""

    name: str
    index: Index = ()
    then: Index = ()
    """Index of the view."""
    read_only: bool = field(default=False, compare=False)
    """The view cannot be written here, and names the same place all the same."""

    def of(self, array: Array) -> Array:
        view = array[self.index] if self.index else array
        view = view[self.then] if self.then else view
        if self.read_only:
            view = view[...]
            view.flags.writeable = False
        return view


@dataclass(frozen=True)
class Handle:
    """What ``push_reg`` or an allocation returned."""

    name: str


Place = Ref | Handle


@dataclass(frozen=True)
class Literal:
    """Values that are made for one call."""

    shape: Shape
    dtype: str
    seed: int
    plain: bool = False
    """As Python numbers, in lists."""

    def make(self) -> Any:
        made = values(self.shape, self.dtype, self.seed)
        return made.tolist() if self.plain else made


@dataclass(frozen=True)
class Thing:
    """A picklable object, with arrays in it."""

    seed: int
    size: int

    def make(self) -> Any:
        array = values((self.size,), "f8", self.seed)
        return {"number": self.seed, "arrays": [array, (self.seed, "x" * self.size)], "none": None}


@dataclass(frozen=True)
class Blob:
    """Bytes."""

    seed: int
    size: int

    def make(self) -> bytes:
        return values((self.size,), "u1", self.seed).tobytes()


Source = Ref | Literal
Payload = Ref | Literal | Thing | Blob


# -- arrays -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Allocate:
    name: str
    how: str
    """``zeros``, ``empty`` (as zeros, then filled) or ``array``."""
    dtype: str
    shapes: tuple[Shape, ...]
    seed: int


@dataclass(frozen=True)
class Make:
    """An array outside of shared memory, which nobody has registered."""

    name: str
    dtype: str
    shapes: tuple[Shape, ...]
    seed: int
    order: str = "C"


@dataclass(frozen=True)
class Push:
    name: str
    refs: tuple[Ref | None, ...]
    absent: int | None = None
    """A process that forgets it: a fault."""


@dataclass(frozen=True)
class Pop:
    place: tuple[Place, ...]
    pid: int | None = None
    """The only process that does it: a fault."""


@dataclass(frozen=True)
class TagSize:
    size: int


@dataclass(frozen=True)
class Scope:
    """A stretch at whose end its allocations are freed."""

    block: list[Any]


# -- what one process does ---------------------------------------------------------------


@dataclass(frozen=True)
class Put:
    pid: int
    to: int
    source: Source
    place: Place
    offset: int | None = None
    at: Index | None = None
    hp: bool = False


@dataclass(frozen=True)
class Get:
    pid: int
    of: int
    place: Place
    into: Source | None = None
    """A literal is a new array; None leaves that to get."""
    offset: int | None = None
    at: Index | None = None
    hp: bool = False


@dataclass(frozen=True)
class PutAt:
    pid: int
    pids: Any
    indices: Any
    source: Source
    place: Place
    op: str | None = None
    """Name of a ufunc that combines values."""


@dataclass(frozen=True)
class GetAt:
    pid: int
    pids: Any
    indices: Any
    place: Place
    into: Literal | None = None
    """A new array; None leaves that to get_at."""


@dataclass(frozen=True)
class Send:
    pid: int
    to: int
    payload: Payload
    tag: Any = None


@dataclass(frozen=True)
class Read:
    pid: int
    actions: tuple[str, ...]
    """``qsize``, ``get_tag``, ``move``, ``hpmove``, ``hold`` (hpmove, and look at it when the
    superstep ends), ``first`` (of messages()), ``rest``."""


@dataclass(frozen=True)
class Pause:
    """Let the others run ahead."""

    pid: int
    milliseconds: int


@dataclass(frozen=True)
class Change:
    """Assign to a view of an array of one's own."""

    pid: int
    ref: Ref
    value: int


@dataclass(frozen=True)
class Misuse:
    """A call that nothing in the other steps can say: a fault."""

    pid: int
    what: str
    place: Place | None = None


# -- groups and supersteps ---------------------------------------------------------------


@dataclass(frozen=True)
class Partition:
    ends: tuple[int, ...]
    blocks: tuple[list[Any], ...]
    """By sub-group; empty for those without processes."""


@dataclass(frozen=True)
class Split:
    colours: tuple[int | None, ...]
    keys: tuple[int, ...]
    blocks: tuple[list[Any], ...]
    """By sub-group."""
    hidden: list[tuple[int, str]] = field(default_factory=list)
    """As of the sync that it is, too."""
    freed: list[str] = field(default_factory=list)

    def members(self) -> list[list[int]]:
        """Return the processes of each sub-group."""
        colours = list(dict.fromkeys(one for one in self.colours if one is not None))
        return [
            sorted(
                (pid for pid, other in enumerate(self.colours) if other == colour),
                key=lambda pid: (self.keys[pid], pid),
            )
            for colour in colours
        ]

    def nbytes(self, pid: int) -> int:
        """Return the payload that a process sends to each other one."""
        return len(pickle.dumps((self.colours[pid], self.keys[pid]), 5))


@dataclass(frozen=True)
class Sync:
    hidden: list[tuple[int, str]] = field(default_factory=list)
    """(pid, array) that an hp-transfer of the next superstep may write at any time."""
    freed: list[str] = field(default_factory=list)
    """Arrays that cease to exist."""
    odd: tuple[int, str] | None = None
    """Process that does ``oblsync`` or ``nothing`` instead: a fault."""


@dataclass(frozen=True)
class Oblsync:
    counts: tuple[int, ...]
    hidden: list[tuple[int, str]] = field(default_factory=list)
    odd: tuple[int, str] | None = None
    """Process that does ``sync`` instead: a fault."""


@dataclass(frozen=True)
class Program:
    nprocs: int
    block: list[Any]
    fault: str | None = None
    """Name of the error that it raises; None if it is right."""
    where: tuple[int, int] | None = None
    """Superstep and process of the root group that raise it, where one call is to blame."""

    def __repr__(self) -> str:
        lines = [f"Program(nprocs={self.nprocs}, fault={self.fault!r}, where={self.where}, block=["]
        return "\n".join([*lines, *_lines(self.block, 1), "])"])


def _lines(block: Sequence[Any], depth: int) -> list[str]:
    pad, lines = "    " * depth, []
    for step in block:
        if isinstance(step, Partition | Split):
            how = step.ends if isinstance(step, Partition) else f"{step.colours}, {step.keys}"
            lines.append(f"{pad}{type(step).__name__}({how}, (")
            for inner in step.blocks:
                lines += [f"{pad}  [", *_lines(inner, depth + 1), f"{pad}  ],"]
            more = f", {step.hidden}, {step.freed}" if isinstance(step, Split) else ""
            lines.append(f"{pad}){more}),")
        elif isinstance(step, Scope):
            lines += [f"{pad}Scope([", *_lines(step.block, depth + 1), f"{pad}]),"]
        else:
            lines.append(f"{pad}{step!r},")
    return lines


def drop_oldest(kept: list[Any]) -> list[Any]:
    """Drop the oldest of several large arrays that a process keeps; return what it has."""
    large = [number for number, each in enumerate(kept) if is_large(each)]
    return [plain(kept.pop(large[0]))] if len(large) > 1 else []


def is_large(value: Any) -> bool:
    """Tell whether a value is a large array."""
    return isinstance(value, np.ndarray) and value.size > _MOST_LISTED


def plain(value: Any) -> Any:
    """Return a value as what can be compared: arrays with shape and dtype."""
    if isinstance(value, np.ndarray):
        if is_large(value):
            digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
            return "large array", value.dtype.str, value.shape, digest
        return "array", value.dtype.str, value.shape, value.tolist()
    if isinstance(value, memoryview):
        return value.tobytes()
    if isinstance(value, list | tuple):
        return type(value)(plain(one) for one in value)
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    return value
