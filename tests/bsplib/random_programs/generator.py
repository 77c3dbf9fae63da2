"""Draws programs.

A step is drawn at random and tried on the interpreter; one that would be wrong is
left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from .interpreter import Group, Interpreter, Registration, WrongError
from .steps import (
    LARGE_MESSAGE,
    Allocate,
    Array,
    Blob,
    Change,
    Get,
    GetAt,
    Handle,
    Index,
    Literal,
    Make,
    Oblsync,
    Partition,
    Pause,
    Payload,
    Place,
    Pop,
    Program,
    Push,
    Put,
    PutAt,
    Read,
    Ref,
    Scope,
    Send,
    Shape,
    Source,
    Split,
    Sync,
    TagSize,
    Thing,
)

DTYPES = ("f8", "f4", "i8", "i4", "u1")
TAGS = (None, 0, 7, "tag", b"\x00b", 2.5, (1, "t"), ["list"])
READS = ("qsize", "get_tag", "move", "hpmove", "hold", "first", "rest", "rest")
OPERATIONS = ("add", "maximum", "minimum")
MEBIBYTE = 1 << 20
DUTIES = (
    *("put", "put at", "get", "get at", "get_at", "put_at"),
    *("message", "large message", "object", "nothing"),
)
SHAPES: tuple[Shape, ...] = ((1,), (2,), (3,), (5,), (8,), (0,), (2, 3), (3, 2), (4, 4), (2, 2, 3))


def programs() -> st.SearchStrategy[Program]:
    """Programs without a fault."""
    return st.composite(lambda draw: Builder(draw).build())()


@dataclass
class _Marks:
    """What the steps of a superstep do with an array, as far as hp-transfers care."""

    read: bool = False
    write: bool = False
    frozen: bool = False
    """An hp-transfer reads it."""
    hp: set[int] = field(default_factory=set)
    """Elements that hp-transfers write."""


def _meets_itself(uses: Sequence[tuple[str, int, str, set[int]]]) -> bool:
    """Whether a step is an hp-transfer within one array: it may change what it has yet to read."""
    written = {(root, name) for how, root, name, _ in uses if how == "hp"}
    return any(how != "hp" and (root, name) in written for how, root, name, _ in uses)


class Builder:
    """Draws one program."""

    MOST_DEPTH = 3
    IS_NARROW = False

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        self._draw = draw
        self._run = Interpreter(1)
        self._names = 0
        self._fault: str | None = None
        self._where: tuple[int, int] | None = None
        self._open: list[Group] = []
        self._scopes = 0
        self._runs_ahead = False
        self._last: dict[Group, Sync | Oblsync | Split] = {}
        self._marks: dict[Group, dict[tuple[int, str], _Marks]] = {}

    def build(self) -> Program:
        nprocs = self.choose(1, 2, 2, 3, 3, 4, 5, 8)
        self._run = Interpreter(nprocs)
        block: list[Any] = []
        self._runs_ahead = self.chance(30)
        self.enter(self._run.root)
        supersteps = self.number(4, 9) if self._runs_ahead else self.number(1, 4)
        self.block(self._run.root, block, 0, supersteps)
        return Program(nprocs, block, self._fault, self._where)

    # -- draws ----------------------------------------------------------------------------

    def number(self, low: int, high: int) -> int:
        drawn: int = self._draw(st.integers(low, high))
        return drawn

    def choose(self, *options: Any) -> Any:
        return options[self.number(0, len(options) - 1)]

    def chance(self, percent: int) -> bool:
        return self.number(1, 100) > 100 - percent

    def may_add(self, percent: int) -> bool:
        """Draw whether to add what narrow programs never have."""
        return not self.IS_NARROW and self._fault is None and self.chance(percent)

    def name(self, letter: str) -> str:
        self._names += 1
        return f"{letter}{self._names}"

    # -- blocks and supersteps ----------------------------------------------------------

    def block(self, group: Group, block: list[Any], depth: int, supersteps: int) -> None:
        ended = False
        for _ in range(self.number(1 if depth and not self.IS_NARROW else 0, 2)):
            self.emit(group, block, self.allocation(group))
            if self.chance(50):
                self.emit(group, block, self.push(group))
        for number in range(supersteps):
            kind = Oblsync if self.chance(80 if self._runs_ahead else 35) else Sync
            if depth < self.MOST_DEPTH and self.may_add(20):
                self.regroup(group, block, depth)
            if self.may_add(50 if depth else 25):
                self.duties(group, block, kind)
            elif self._runs_ahead and self.chance(70):
                self.lazy_superstep(group, block)
            else:
                self.superstep(group, block, depth, kind)
            last = number == supersteps - 1
            if self._fault is None and self.breaks(group, block, kind, surely=last and not depth):
                return
            self.end(group, block, kind)
            ended = True
        if ended:
            for _ in range(self.number(0, 2)):
                self.emit(group, block, self.reading(group))

    def breaks(self, group: Group, block: list[Any], kind: type, *, surely: bool) -> bool:
        """End the block by a fault, and tell so; those of right programs never do."""
        return False

    def superstep(self, group: Group, block: list[Any], depth: int, kind: type) -> None:
        for _ in range(self.choose(0, 2, 3, 4, 5, 6, 9, 12)):
            if self._fault is not None:
                return
            what = self.number(-3, 24)
            if what < 0:
                self.emit(group, block, self.push(group))
            elif what == 0 and depth < self.MOST_DEPTH:
                self.choose(self.partition, self.split, self.scope)(group, block, depth)
            elif what <= 1:
                self.emit(group, block, self.allocation(group))
            elif what <= 2:
                self.emit(group, block, self.making(group))
            elif what <= 4:
                self.emit(group, block, self.push(group))
            elif what == 5:
                self.emit(group, block, self.pop(group))
            elif what == 6 and kind is Sync and self.chance(20):
                self.emit(group, block, TagSize(self.number(0, 3)))
            else:
                for _ in range(self.choose(1, 2, 3, 5)):
                    self.emit(group, block, self.call(group, what, kind))

    def lazy_superstep(self, group: Group, block: list[Any]) -> None:
        """Send what is staged, or fills a box, and read late what has come, or never."""
        for _ in range(self.number(1, 4)):
            pid = self.number(0, group.size - 1)
            to = self.choose(pid, pid, (pid + 1) % group.size, self.number(0, group.size - 1))
            size, seed = self.choose(5, 200, 1500), self.number(0, 9)
            payload = self.choose(Blob(seed, 8 * size), Literal((size,), "f8", seed))
            tag = b"\0" * group.tag_size if group.tag_size is not None else None
            self.emit(group, block, Send(pid, to, payload, tag))
            if self.chance(30):
                self.emit(group, block, self.put(group))
            if self.chance(15):
                self.emit(group, block, Pause(pid, self.number(1, 3)))
        for pid in range(group.size):
            if self.chance(60):
                actions = tuple(self.choose("move", "hold", "rest") for _ in range(2))
                self.emit(group, block, Read(pid, actions))

    def regroup(self, group: Group, block: list[Any], depth: int) -> None:
        """Go from one sub-group to another, and allocate between: memory is used again."""
        for _ in range(self.number(1, 2)):
            if self._fault is None:
                self.choose(self.partition, self.split)(group, block, depth)
        if self.chance(50) and self._fault is None:
            self.emit(group, block, self.allocation(group))

    def duties(self, group: Group, block: list[Any], kind: type) -> None:
        """Give each process one duty; often one process only serves what the others get."""
        if self.chance(50):
            server, duty = self.number(0, group.size - 1), self.choose("get_at", *DUTIES)
            for pid in range(group.size):
                if pid != server:
                    self.emit(group, block, self.duty(group, pid, server, duty, kind))
            return
        for pid in range(group.size):
            other, duty = self.number(0, group.size - 1), self.choose(*DUTIES, "large message")
            self.emit(group, block, self.duty(group, pid, other, duty, kind))
            if duty == "large message" and self.chance(60):
                self.emit(group, block, self.duty(group, pid, other, "put_at", kind))

    def duty(self, group: Group, pid: int, other: int, duty: str, kind: type) -> Any:
        """Draw a step for a process, plain or with a description."""
        if duty in ("message", "large message", "object"):
            tag = b"\0" * group.tag_size if group.tag_size is not None else None
            payloads: dict[str, Payload] = {
                "message": Literal((3,), "f8", pid),
                "large message": Literal((LARGE_MESSAGE + pid,), "f8", pid),
                "object": Thing(pid, 5),
            }
            return Send(pid, other, payloads[duty], tag)
        chosen = self.choose(*group.registrations) if group.registrations else None
        there = chosen and chosen.refs[other]
        if there is None or duty == "nothing" or (kind is Oblsync and duty.startswith("get")):
            return None
        array = self._run.view(group, other, there)
        return self.transfer(pid, other, duty, Handle(chosen.name), array) if array.size else None

    def transfer(self, pid: int, other: int, duty: str, place: Place, there: Array) -> Any:
        """Draw a transfer of one number, or of all of an array."""
        dtype, index = there.dtype.str[1:], self.number(0, there.size - 1)
        one, every = Literal((1,), dtype, pid), Literal(there.shape, dtype, pid)
        made: dict[str, Callable[[], Any]] = {
            "put": lambda: Put(pid, other, one, place, offset=index),
            "put at": lambda: Put(pid, other, every, place, at=(Ellipsis,)),
            "get": lambda: Get(pid, other, place, one, offset=index),
            "get at": lambda: Get(pid, other, place, every, at=(Ellipsis,)),
            "put_at": lambda: PutAt(pid, other, [index], one, place, self.operation()),
            "get_at": lambda: GetAt(pid, other, [index], place),
        }
        return made[duty]()

    def operation(self) -> str | None:
        """Draw what a put_at does with values: it mostly writes them."""
        if not self.chance(40):
            return None
        return "add" if self.IS_NARROW else self.choose(*OPERATIONS)

    def call(self, group: Group, what: int, kind: type) -> Any:
        """Draw what one process does."""
        if what <= 8:
            return self.reading(group)
        if what == 9:
            return self.change(group)
        if what <= 15:
            return self.put(group)
        if what <= 19 and kind is Sync:
            return self.get(group)
        if what <= 21:
            return self.choose(self.put_at, self.get_at)(group, kind)
        return self.send(group)

    def emit(self, group: Group, block: list[Any], step: Any) -> bool:
        """Try a step on the interpreter; add it to the block if it is right."""
        if step is None:
            return False
        try:
            uses = self.uses(group, step)
            if _meets_itself(uses) or not all(self.may(*use) for use in uses):
                return False
            self._run.apply(group, step)
        except WrongError:
            return False
        for use in uses:
            self.mark(group, *use)
        block.append(step)
        return True

    def end(self, group: Group, block: list[Any], kind: type) -> None:
        step: Sync | Oblsync
        if kind is Oblsync and not any(group.gets.values()):
            step = Oblsync(self.counts(group))
        else:
            step = Sync(freed=self.freed(group))
        self.deliver(group, step)
        block.append(step)

    def deliver(self, group: Group, step: Sync | Oblsync | Split) -> None:
        """Let the interpreter end the superstep, and see which arrays can be looked at."""
        self._marks[group] = {}
        self._last[group] = step
        for pid in range(group.size):
            self.watch(group, pid, step)
        self._run.apply(group, step)

    def watch(self, group: Group, pid: int, step: Sync | Oblsync | Split) -> None:
        """All that no hp-transfer of a group around this one writes is looked at."""
        root = group.members[pid]
        for name in self.own(group, pid):
            if self.may("read", root, name, set()):
                self.mark(group, "read", root, name, set())
            else:
                step.hidden.append((pid, name))
        self._marks[group] = {}

    @staticmethod
    def freed(group: Group) -> list[str]:
        return [one.name for one in group.popped if one.allocated]

    @staticmethod
    def counts(group: Group) -> tuple[int, ...]:
        return tuple(group.counts[pid] for pid in range(group.size))

    def partition(self, group: Group, block: list[Any], depth: int) -> None:
        parts = self.number(1, 3)
        ends = sorted(self.number(0, group.size) for _ in range(parts - 1))
        ends.append(group.size)
        blocks: tuple[list[Any], ...] = tuple([] for _ in ends)
        self.fill(self._run.parts(group, ends), blocks, depth)
        block.append(Partition(tuple(ends), blocks))

    def split(self, group: Group, block: list[Any], depth: int) -> None:
        colours = tuple(self.choose(None, 0, 1, 1, 300) for _ in range(group.size))
        keys = tuple(self.number(-2, 2) for _ in range(group.size))
        blocks: tuple[list[Any], ...] = tuple([] for _ in {*colours} - {None})
        step = Split(colours, keys, blocks, freed=self.freed(group))
        self.deliver(group, step)
        self.fill(self._run.groups(group, step.members()), blocks, depth)
        block.append(step)

    def fill(self, groups: list[Group], blocks: tuple[list[Any], ...], depth: int) -> None:
        """Draw what sub-groups do."""
        for sub, inner in zip(groups, blocks, strict=True):
            if sub.size:
                self.enter(sub)
                self.block(sub, inner, depth + 1, self.number(0, 2 if self.IS_NARROW else 3))
                self._open.pop()
                if self._fault is None or not sub.pending():
                    self._run.close(sub)

    def enter(self, group: Group) -> None:
        self._open.append(group)
        self._marks[group] = {}

    def scope(self, group: Group, block: list[Any], depth: int) -> None:
        inner: list[Any] = []
        self._scopes += 1
        self.block(group, inner, depth + 1, self.number(0, 2))
        self._scopes -= 1
        made = [step.name for step in inner if isinstance(step, Allocate)]
        if any(self.in_use(group, name) for name in made):
            block += inner
        else:
            self._run.leave_scope(group, inner)
            block.append(Scope(inner))

    # -- what hp-transfers may meet -----------------------------------------------------------

    def uses(self, group: Group, step: Any) -> list[tuple[str, int, str, set[int]]]:
        """Return which arrays a step reads or writes until the superstep ends, and how."""
        used: list[tuple[str, int, str, set[int]]] = []

        def add(how: str, pid: int, ref: object) -> None:
            if isinstance(ref, Ref):
                elements = set(self._run.numbers(group, pid, ref).flat)
                used.append((how, group.members[pid], ref.name, elements))

        match step:
            case Put():
                there = self._run.find(group, step.pid, step.place).refs[step.to]
                add("frozen" if step.hp else "read", step.pid, step.source)
                add("hp" if step.hp else "write", step.to, there)
            case Get():
                there = self._run.find(group, step.pid, step.place).refs[step.of]
                add("frozen" if step.hp else "read", step.of, there)
                add("hp" if step.hp else "write", step.pid, step.into)
            case PutAt() | GetAt():
                how = "write" if isinstance(step, PutAt) else "read"
                registration = self._run.find(group, step.pid, step.place)
                for pid, ref in enumerate(registration.refs):
                    add(how, pid, ref)
                if isinstance(step, PutAt):
                    add("read", step.pid, step.source)
            case Send():
                add("read", step.pid, step.payload)
            case Change():
                add("write", step.pid, step.ref)
        return used

    def may(self, how: str, root: int, name: str, elements: set[int]) -> bool:
        """Tell whether a use goes together with those of the open supersteps."""
        for group in self._open:
            marks = self._marks[group].get((root, name), _Marks())
            if how == "hp":
                if marks.read or marks.write or marks.frozen or marks.hp & elements:
                    return False
            elif marks.hp or (how == "write" and marks.frozen) or (how == "frozen" and marks.write):
                return False
        return True

    def mark(self, group: Group, how: str, root: int, name: str, elements: set[int]) -> None:
        for one in self._open:
            marks = self._marks[one].setdefault((root, name), _Marks())
            if how != "hp":
                setattr(marks, how, True)
            elif one is group:
                marks.hp |= elements
        last = self._last.get(group)
        if how == "hp" and last is not None:
            last.hidden.append((list(group.members).index(root), name))

    # -- arrays -----------------------------------------------------------------------------

    def shapes(self, group: Group) -> tuple[Shape, ...]:
        usual = self.choose(*SHAPES)
        if self.chance(4):
            usual = (200,)
        if self.chance(60):
            return (usual,) * group.size
        return tuple(self.another(usual) for _ in range(group.size))

    def another(self, shape: Shape) -> Shape:
        what = self.number(0, 5)
        if what == 0:
            return self.choose(*SHAPES)
        axis = self.number(0, len(shape) - 1)
        more = self.number(0, 2) - (what == 1)
        size = max(shape[axis] + more, 0)
        return (*shape[:axis], size, *shape[axis + 1 :])

    def allocation(self, group: Group) -> Allocate:
        how = self.choose("zeros", "empty", "array")
        return Allocate(
            self.name("a"), how, self.choose(*DTYPES), self.shapes(group), self.number(0, 9)
        )

    def making(self, group: Group) -> Make:
        return Make(
            self.name("m"),
            self.choose(*DTYPES),
            self.shapes(group),
            self.number(0, 9),
            self.choose("C", "C", "F"),
        )

    def own(self, group: Group, pid: int) -> list[str]:
        """Return the arrays of a process."""
        return sorted(self._run.here(group, pid))

    def ref(self, group: Group, pid: int, name: str, percent_whole: int = 40) -> Ref:
        if self.chance(percent_whole):
            return Ref(name)
        return Ref(name, self.index(self._run.here(group, pid)[name].shape))

    def index(self, shape: Shape, *, numbers: bool = True, empty: bool = True) -> Index:
        """Draw a basic index that leaves an array an array."""
        parts = [self.part(n, empty=empty, number=numbers and len(shape) > 1) for n in shape]
        if parts and all(isinstance(part, int) for part in parts):
            parts[-1] = slice(None)
        if parts and self.chance(10) and parts[-1] == slice(None):
            parts[-1] = Ellipsis
        return tuple(parts)

    def part(self, n: int, *, empty: bool, number: bool) -> Any:
        what = self.number(0, 8)
        if n == 0 or what <= 1:
            return slice(None)
        low = self.number(0, n - 1)
        high = self.number(low + 1, n)
        if what <= 4:
            return slice(low, high)
        if what == 5:
            return slice(low, high, self.number(2, 3))
        if what == 6:
            return slice(high - 1, low - 1 if low else None, -self.number(1, 2))
        if what == 7 and number:
            return low - n if self.chance(40) else low
        return slice(low, low) if empty and self.chance(30) else slice(None)

    def push(self, group: Group) -> Push | None:
        dying = {one.name for one in group.popped if one.allocated}
        common = [n for n in self.own(group, 0) if self.everywhere(group, n) and n not in dying]
        if not common:
            return None
        known = [n for n in common if self.is_registered(group, n)]
        name = self.choose(*(known if known and self.chance(60) else common))
        index: Index = ()
        if self.chance(70):
            shapes = [self._run.here(group, pid)[name].shape for pid in range(group.size)]
            index = self.index(shapes[self.number(0, group.size - 1)], empty=False)
        refs = tuple(self.part_of(group, pid, name, index) for pid in range(group.size))
        return Push(self.name("r"), refs)

    def part_of(self, group: Group, pid: int, name: str, index: Index) -> Ref | None:
        """Draw what a process registers: the whole array, a part of it or nothing."""
        if self.chance(8):
            return None
        try:
            part = self._run.view(group, pid, Ref(name, index))
        except IndexError:
            return Ref(name)
        return Ref(name, index) if isinstance(part, np.ndarray) and part.size else Ref(name)

    @staticmethod
    def is_registered(group: Group, name: str) -> bool:
        return any(ref and ref.name == name for one in group.registrations for ref in one.refs)

    def everywhere(self, group: Group, name: str) -> bool:
        return all(name in self._run.here(group, pid) for pid in range(group.size))

    def pop(self, group: Group) -> Pop | None:
        candidates = [one for one in group.registrations + group.pushed if one not in group.popped]
        if not candidates:
            return None
        chosen = self.choose(*candidates)
        by_handle = self.chance(50)
        place: tuple[Place, ...] = tuple(
            Handle(chosen.name) if by_handle or ref is None else ref for ref in chosen.refs
        )
        found = [self._run.latest(group, pid, one) for pid, one in enumerate(place)]
        if any(one is None or (one.allocated and self.in_use(group, one.name)) for one in found):
            return None
        return Pop(place)

    def in_use(self, group: Group, name: str) -> bool:
        """Tell whether another registration would outlive the memory that it names."""
        others = [one for one in group.registrations + group.pushed if one not in group.popped]
        return any(
            ref is not None and ref.name == name
            for one in others
            if not (one.allocated and one.name == name)
            for ref in one.refs
        )

    # -- transfers --------------------------------------------------------------------------

    def place(self, group: Group, pid: int, other: int) -> Place | None:
        """Draw a registered array, or a view of one that also lies in the other's."""
        if not group.registrations:
            return None
        chosen = self.choose(*group.registrations)
        mine, theirs = chosen.refs[pid], chosen.refs[other]
        if mine is None or self.chance(20):
            return Handle(chosen.name)
        if self.chance(30):
            return replace(mine, read_only=self.chance(20))
        shape = self._run.view(group, pid, mine).shape
        if theirs is not None and self.chance(80):
            there = self._run.view(group, other, theirs).shape
            if len(there) == len(shape):
                shape = tuple(map(min, shape, there))
        index, read_only = self.index(shape), self.chance(20)
        if not mine.index:
            return Ref(mine.name, index, read_only=read_only)
        return Ref(mine.name, mine.index, index, read_only=read_only)

    def shape_of(self, group: Group, pid: int, place: Place) -> Shape:
        view = self._run._meant(group, pid, place)
        return (0,) if view is None else self._run.view(group, pid, view).shape

    def dtype_of(self, group: Group, pid: int, place: Place) -> str:
        registration = self._run.find(group, pid, place)
        return str(self._run._dtype(group, registration).str[1:])

    def put(self, group: Group) -> Put | None:
        drawn = self.plain_put(group)
        return replace(drawn, hp=True) if drawn is not None and self.chance(25) else drawn

    def get(self, group: Group) -> Get | None:
        drawn = self.plain_get(group)
        return replace(drawn, hp=True) if drawn is not None and self.chance(25) else drawn

    def named(self, group: Group) -> tuple[int, int, Place, Any, Any] | None:
        """Two processes, a place that the first names, its registration, the array there."""
        pid, other = self.number(0, group.size - 1), self.number(0, group.size - 1)
        place = self.place(group, pid, other)
        if place is None:
            return None
        try:
            registration = self._run.find(group, pid, place)
            return pid, other, place, registration, self._run._there(group, registration, other)
        except WrongError:
            return None

    def plain_put(self, group: Group) -> Put | None:
        named = self.named(group)
        if named is None:
            return None
        pid, to, place, _, there = named
        how = self.number(0, 3)
        dtype = self.dtype_of(group, pid, place)
        if how == 0:
            offset = self.number(0, max(there.size - 1, 0))
            size = self.number(0, max(there.size - offset, 0))
            return Put(pid, to, self.source(group, pid, (size,), dtype), place, offset=offset)
        if how == 1:
            at = self.at(there.shape)
            shape = self.broadcastable(np.shape(there[at]))
            return Put(pid, to, self.source(group, pid, shape, dtype), place, at=at)
        shape = self.broadcastable(self.shape_of(group, pid, place))
        return Put(pid, to, self.source(group, pid, shape, dtype), place)

    def at(self, shape: Shape) -> Index:
        if shape and self.chance(15) and 0 not in shape:
            return tuple(self.number(-n, n - 1) for n in shape)
        if self.chance(15):
            return (Ellipsis,)
        return self.index(shape)

    def broadcastable(self, shape: Shape) -> Shape:
        """Draw a shape that broadcasts to another: mostly the same."""
        what = self.number(0, 9)
        if what == 0:
            return ()
        if what == 1 and shape:
            return shape[1:]
        if what == 2 and shape:
            axis = self.number(0, len(shape) - 1)
            return (*shape[:axis], 1, *shape[axis + 1 :])
        return shape

    def source(self, group: Group, pid: int, shape: Shape, dtype: str) -> Source:
        """Draw values for a place: an array of this process, or made for the call."""
        if self.chance(40):
            own = self.fitting(group, pid, shape, dtype, into=False)
            if own:
                return self.choose(*own)
        fitting = [one for one in DTYPES if np.can_cast(one, dtype, "same_kind")]
        chosen = dtype if self.chance(60) else self.choose(*fitting)
        plain = self.chance(25) and np.can_cast(
            "i8" if np.dtype(chosen).kind in "iu" else "f8", dtype, "same_kind"
        )
        return Literal(shape, chosen, self.number(0, 9), plain)

    def fitting(self, group: Group, pid: int, shape: Shape, dtype: str, *, into: bool) -> list[Ref]:
        """Return views of this process's arrays of a shape, to read from or to write into."""
        found = []
        for name in self.own(group, pid):
            array = self._run.here(group, pid)[name]
            given, taken = (dtype, array.dtype) if into else (array.dtype, dtype)
            if array.ndim != len(shape) or not np.can_cast(given, taken, "same_kind"):
                continue
            if array.shape == shape:
                found.append(Ref(name))
            elif all(n <= size for n, size in zip(shape, array.shape, strict=True)):
                found.append(Ref(name, tuple(slice(0, n) for n in shape)))
                found.append(
                    Ref(
                        name,
                        tuple(slice(s - n, s) for n, s in zip(shape, array.shape, strict=True)),
                    )
                )
        return found

    def plain_get(self, group: Group) -> Get | None:
        named = self.named(group)
        if named is None:
            return None
        pid, of, place, registration, there = named
        how = self.number(0, 3)
        dtype = self.dtype_of(group, pid, place)
        if how == 0:
            offset = self.number(0, max(there.size - 1, 0))
            size = self.number(0, max(there.size - offset, 0))
            return Get(pid, of, place, self.destination(group, pid, (size,), dtype), offset=offset)
        if how == 1:
            at = self.at(there.shape)
            new = registration.announced and self.chance(30)
            into = None if new else self.destination(group, pid, np.shape(there[at]), dtype)
            return Get(pid, of, place, into, at=at)
        shape = self.shape_of(group, pid, place)
        into = None if self.chance(40) else self.destination(group, pid, shape, dtype)
        return Get(pid, of, place, into)

    def destination(self, group: Group, pid: int, shape: Shape, dtype: str) -> Source:
        if self.chance(50):
            own = self.fitting(group, pid, shape, dtype, into=True)
            if own:
                return self.choose(*own)
        return Literal(shape, dtype, self.number(0, 9))

    def whole(self, group: Group) -> tuple[int, Registration, Place] | None:
        if not group.registrations:
            return None
        pid, chosen = self.number(0, group.size - 1), self.choose(*group.registrations)
        ref = chosen.refs[pid]
        place = Handle(chosen.name) if ref is None or self.chance(50) else ref
        try:
            return pid, self._run.find(group, pid, place), place
        except WrongError:
            return None

    def put_at(self, group: Group, kind: type) -> PutAt | None:
        drawn = self.whole(group)
        words = drawn and self.words(group, drawn[1])
        if drawn is None or words is None:
            return None
        pid, _, place = drawn
        dtype = self.dtype_of(group, pid, place)
        shape = np.broadcast_shapes(np.shape(words[0]), np.shape(words[1]))
        source: Source = Literal(self.choose(shape, shape, ()), dtype, self.number(0, 9))
        if self.may_add(30):
            own = self.fitting(group, pid, shape, dtype, into=False)
            source = self.choose(*own) if own else source
        return PutAt(pid, *words, source, place, self.operation())

    def get_at(self, group: Group, kind: type) -> GetAt | None:
        drawn = self.whole(group)
        words = drawn and self.words(group, drawn[1])
        if drawn is None or words is None or kind is Oblsync:
            return None
        pid, _, place = drawn
        shape = np.broadcast_shapes(np.shape(words[0]), np.shape(words[1]))
        dtype = self.dtype_of(group, pid, place)
        into = Literal(shape, dtype, self.number(0, 9)) if self.chance(50) else None
        return GetAt(pid, *words, place, into)

    def words(self, group: Group, registration: Registration) -> tuple[Any, Any] | None:
        """Draw pids and indices: lists, or a number for one of them."""
        sizes = [
            0 if ref is None else self._run.view(group, pid, ref).size
            for pid, ref in enumerate(registration.refs)
        ]
        full = [pid for pid, size in enumerate(sizes) if size]
        if not full:
            return None
        count = self.choose(1, 2, 3, 5, 9, 150)
        if self.chance(30):
            one = self.choose(*full)
            return one, [self.number(0, sizes[one] - 1) for _ in range(count)]
        least = min(sizes[pid] for pid in full)
        if self.chance(30):
            return full, self.number(0, least - 1)
        pids = [self.choose(*full) for _ in range(min(count, 9))]
        return pids, [self.number(0, sizes[pid] - 1) for pid in pids]

    def change(self, group: Group) -> Change | None:
        pid = self.number(0, group.size - 1)
        own = self.own(group, pid)
        if not own:
            return None
        return Change(pid, self.ref(group, pid, self.choose(*own)), self.number(0, 99))

    # -- messages ---------------------------------------------------------------------------

    def send(self, group: Group) -> Send:
        pid, to = self.number(0, group.size - 1), self.number(0, group.size - 1)
        if group.tag_size is not None:
            tag: Any = bytes(self.number(0, 255) for _ in range(group.tag_size))
            if not tag and self.chance(50):
                tag = None
        else:
            tag = self.choose(*TAGS)
        return Send(pid, to, self.payload(group, pid), tag)

    def payload(self, group: Group, pid: int) -> Payload:
        what = self.number(0, 5)
        size = self.choose(0, 1, 2, 5, 128, 129, 1500)
        if self.may_add(3):
            return self.choose(
                Blob(size % 10, MEBIBYTE), Literal((MEBIBYTE // 8 + size,), "f8", size % 10)
            )
        if what == 0:
            return Blob(self.number(0, 9), size)
        if what == 1:
            return Thing(self.number(0, 9), size)
        own = self.own(group, pid)
        if what <= 3 and own:
            return self.ref(group, pid, self.choose(*own))
        shape = self.choose((size,), (size,), (), (1, size), (size, 2))
        return Literal(shape, self.choose(*DTYPES), self.number(0, 9))

    def reading(self, group: Group) -> Read:
        actions = tuple(self.choose(*READS) for _ in range(self.number(1, 4)))
        return Read(self.number(0, group.size - 1), actions)


class Narrow(Builder):
    """Draws the programs that seeds stood for before wider ones were drawn."""

    MOST_DEPTH = 2
    IS_NARROW = True
