"""The programs that are run in many orders, and what each process must read.

A **cell** says what process 0 does in one superstep, and what it does next without waiting for the
others: leave the sub-group, for example, and use its memory for something else. The others do the
same as process 0, or get from it, or nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from bsplib.core.kinds import ASK, NOTICE, PLACED, STAGED_ASK, STAGED_PLACED, STRIDED

WAYS = ("plain", "described")
"""How the transfers of a process travel: as entries of values alone, and gets that are read in
place; or as entries that have a description too, such as puts with gaps, gets that their owner
answers in a second meeting, and what a process announces to all."""
DUTIES = ("put", "get", "get_at", "message", "large message", "nothing")
"""A *large message* is so large that its reader may keep its memory."""
EVENTS = ("root", "sub-group", "leaving", "next group", "Pool")
"""What follows the superstep: another superstep of the root group, a superstep of a sub-group, the
end of the sub-group, the next sub-group of other members, the end of the run of a pool."""
ENDS = ("sync", "oblsync")
SIZES = ("inline", "buffer", "staged")
"""Where the values lie: in the cell, in the send buffer, or in memory that the entry names."""
LIVES = ("unread", "dropped", "kept")
"""What the reader of a large message does: it never takes it; its array dies in the superstep; or
it lives until the one after it has come, or the end of the last run."""
PARTNERS = ("same", "gets", "nothing")

_DESCRIBED = frozenset((STRIDED, PLACED, STAGED_PLACED, ASK, STAGED_ASK, NOTICE))

ARRAYS = {"x": 4, "y": 4, "large": 2000, "gaps": 8}
"""Elements of the registered arrays; every second element of ``gaps`` is written."""
WORDS = {"x": [1, 2], "y": [0, 2], "large": [*range(500, 1000)]}
"""Which words a ``get_at`` reads."""


class Cell(NamedTuple):
    """What process 0 does."""

    way: str
    duty: str
    event: str
    end: str

    def why_impossible(self) -> str:
        """Return why no program comes to this cell; empty if some do."""
        if self.end == "oblsync" and self.duty in ("get", "get_at"):
            return "an oblsync with a get raises PendingTransferError"
        if self.way == "plain" and self.duty == "get_at":
            return "the words of a get_at are asked for, and their owner answers"
        if (self.way, self.duty, self.end) == ("described", "nothing", "oblsync"):
            return "an oblsync announces nothing: registrations wait for the next sync"
        return ""


ALL = [Cell(*each) for each in product(WAYS, DUTIES, EVENTS, ENDS)]
CELLS = [cell for cell in ALL if not cell.why_impossible()]


class Case(NamedTuple):
    """A program."""

    cell: Cell
    size: str
    """One of SIZES, or of LIVES."""
    partner: str

    @property
    def runs(self) -> int:
        """How often the same processes run it."""
        return 1 + (self.cell.event == "Pool")

    @property
    def name(self) -> str:
        """All that tells it from others."""
        return " ".join((*self.cell, self.size, self.partner))

    def arrays(self) -> list[str]:
        """Return the names of the arrays that it needs; ``x`` is the first."""
        more = {"buffer": ["y"], "staged": ["large"]}.get(self.size, [])
        sends = self.cell.duty in ("put", "message", "large message")
        return ["x", *more, *(["gaps"] if sends and self.cell.way == "described" else [])]


def cases() -> list[Case]:
    """Return all programs that differ."""
    found = []
    for cell, size, partner in product(CELLS, SIZES + LIVES, PARTNERS):
        if (size in LIVES) != (cell.duty == "large message"):
            continue
        has_no_values = cell.duty == "nothing" or cell[:2] == ("plain", "get")
        if size in ("buffer", "staged") and has_no_values:
            continue  # there are no values, or they are read where they lie
        if cell.end == "oblsync" and partner == "gets":
            continue
        found.append(Case(cell, size, partner))
    return found


class Transfer(NamedTuple):
    """One call of a process in a superstep."""

    kind: str
    to: int
    where: str = ""
    values: Any = None


def values_of(pid: int, turn: int, nth: int, size: int) -> Any:
    """Return values that no other transfer has."""
    return np.arange(size) + 100_000 * (turn + 1) + 20_000 * nth + 5_000 * pid


def role(case: Case, pid: int) -> tuple[str, str]:
    """Return the way and the duty of a process in the superstep of the cell."""
    if pid == 0 or case.partner == "same":
        return case.cell.way, case.cell.duty
    return ("described", "get_at") if case.partner == "gets" else (case.cell.way, "nothing")


def transfers(case: Case, pid: int, nprocs: int, turn: int) -> list[Transfer]:
    """Return what a process transfers in the superstep of a scene."""
    way, duty = role(case, pid)
    to = (pid + 1) % nprocs
    found = []
    is_large = case.size == "staged" or duty == "large message"
    where = ["large"] if is_large else ["x", "y"][: 1 + (case.size == "buffer")]
    if duty in ("put", "message", "large message"):
        kinds = {("described", "put"): "put_at", (way, "large message"): "message"}
        kind = kinds.get((way, duty), duty)
        for nth, name in enumerate(where):
            found.append(Transfer(kind, to, name, values_of(pid, turn, nth, ARRAYS[name])))
        if way == "described":
            found.append(Transfer("put", to, "gaps", values_of(pid, turn, 2, 4)))
    elif duty in ("get", "get_at"):
        kind = "get with gaps" if (way, duty) == ("described", "get") else duty
        of_partner = pid and case.partner == "gets"
        whom = 0 if of_partner else to
        found += [Transfer(kind, whom, name) for name in (["x"] if of_partner else where)]
    return found


def shared_array(arrays: dict[str, Any], name: str) -> Any:
    """Return what a put names: an array, or its elements with gaps between them."""
    return arrays[name][::2] if name == "gaps" else arrays[name]


def rounds(case: Case, turn: int) -> list[int]:
    """Return the numbers of the supersteps that follow each other in a scene."""
    return [turn, turn + 10] if case.cell.event == "root" and turn % 3 == 0 else [turn]


def begin(case: Case, arrays: dict[str, Any], pid: int, turn: int) -> None:
    """Fill those arrays of a process into which nobody puts, and that others may get."""
    gets = case.cell.duty in ("get", "get_at")
    for name, array in arrays.items():
        if name == "x" or gets:
            array[:] = values_of(pid, turn, 4, ARRAYS[name])


class Scene(NamedTuple):
    """What a process does in one group."""

    pid: int
    nprocs: int
    turn: int


def scenes(case: Case, pid: int, run: int) -> list[Scene]:
    """Return what a process of the root group does in a run."""
    event, turn = case.cell.event, 3 * run
    found = [Scene(pid, 3, turn)]
    if event == "sub-group":
        found.append(Scene(pid, 3, turn + 1))
    if event == "next group":
        found.append(Scene(max(pid - 1, 0), 2 if pid else 1, turn + 1))
    return found + [Scene(pid, 3, turn + 2)] * (event != "Pool")


def coming(case: Case, pid: int, nprocs: int, turn: int) -> list[tuple[int, Transfer]]:
    """Return what others transfer to a process in the superstep of a scene, and their pids."""
    return [
        (source, each)
        for source in range(nprocs)
        for each in transfers(case, source, nprocs, turn)
        if each.to == pid
    ]


def messages(case: Case, pid: int, nprocs: int, turn: int) -> list[tuple[int, Any]]:
    """Return the messages that a process reads after the superstep of a scene."""
    if case.size == "unread":
        return []
    found = coming(case, pid, nprocs, turn)
    return [(source, each.values) for source, each in found if each.kind == "message"]


def expected(case: Case, pid: int, nprocs: int, turn: int) -> list[Any]:
    """Return what a process must have read after a scene, as the program returns it."""
    arrays = {name: np.zeros(ARRAYS[name], int) for name in case.arrays()}
    begin(case, arrays, pid, turn)
    seen = []
    for each_round in rounds(case, turn):
        got = []
        for _, each in coming(case, pid, nprocs, each_round):
            if each.kind.startswith("put"):
                shared_array(arrays, each.where)[:] = each.values
        came = messages(case, pid, nprocs, each_round)
        for each in transfers(case, pid, nprocs, each_round):
            if each.kind.startswith("get"):  # nobody puts into an array that others get
                values = values_of(each.to, turn, 4, ARRAYS[each.where])
                got.append(
                    (values[WORDS[each.where]] if each.kind == "get_at" else values).tolist()
                )
        read = [(source, payload.tolist()) for source, payload in came]
        seen.append([[each.tolist() for each in arrays.values()], got, read])
    return seen


def perform(group: Any, each: Transfer, arrays: dict[str, Any]) -> Any:
    """Make one call; return the array into which it gets, if it is a get."""
    if each.kind == "put_at":
        indices = np.arange(len(each.values))
        group.put_at([each.to] * len(indices), indices, each.values, arrays[each.where])
    elif each.kind == "put":
        group.put(each.to, each.values, shared_array(arrays, each.where))
    elif each.kind == "message":
        group.send(each.to, each.values)
    elif each.kind == "get_at":
        where = WORDS[each.where]
        return group.get_at([each.to] * len(where), where, arrays[each.where])
    else:
        gaps = 2 if each.kind == "get with gaps" else 1
        destination = np.zeros(gaps * ARRAYS[each.where], int)[::gaps]
        return group.get(each.to, arrays[each.where], destination)
    return None


class Program:
    """A program, as each process runs it; it counts the cells to which it comes.

    Args:
        case: which one.
        entered: counts the cells.
        begins: called by each process where the superstep of the cell begins.
        kinds: returns the kinds of the entries that a process has made since the last call.
    """

    def __init__(
        self,
        case: Case,
        entered: Counter[Cell],
        begins: Callable[[], None],
        kinds: Callable[[], set[int]],
    ) -> None:
        self._begins = begins
        self._kinds = kinds
        self._case = case
        self._entered = entered
        self._kept: dict[int, list[Any]] = {}
        """By process of the root group: the arrays of its messages that live."""
        self._looked_at: dict[int, list[Any]] = {}
        """What each of them had when it died."""

    def main(self, bsp: Any, run: int) -> list[Any]:
        """Come to the cell, go on, and use memory again; return what was read."""
        event, root = self._case.cell.event, bsp.pid
        if event in ("leaving", "next group"):
            with bsp.partition([bsp.nprocs]) as sub:
                seen = self._scene(sub, 3 * run, root)
        else:
            seen = self._scene(bsp, 3 * run, root)
        if event in ("sub-group", "next group"):
            ends = [1, bsp.nprocs] if event == "next group" else [bsp.nprocs]
            with bsp.partition(ends) as sub:
                seen += self._scene(sub, 3 * run + 1, root)
        if event != "Pool":
            seen += self._scene(bsp, 3 * run + 2, root)
        if run == self._case.runs - 1 and root in self._kept:
            self._let_die(root, 0)
            seen.append(self._looked_at[root])
        return seen

    def expected(self, pid: int, run: int) -> list[Any]:
        """Return what :meth:`main` must return."""
        case, found = self._case, []
        for scene in scenes(case, pid, run):
            found += expected(case, *scene)
        if run == case.runs - 1 and case.size == "kept":
            every = [scene for each in range(case.runs) for scene in scenes(case, pid, each)]
            kept = [
                (payload + 1).tolist()
                for scene in every
                for turn in rounds(case, scene.turn)
                for _, payload in messages(case, scene.pid, scene.nprocs, turn)
            ]
            found += [kept] if kept else []
        return found

    def _scene(self, group: Any, turn: int, root: int) -> list[Any]:
        """Make arrays, do the duty of this process, and return what it finds afterwards."""
        arrays = {name: group.zeros(ARRAYS[name], int) for name in self._case.arrays()}
        begin(self._case, arrays, group.pid, turn)
        group.sync()
        self._begins()
        seen = []
        for each_round in rounds(self._case, turn):
            gets = self._transfer(group, each_round, arrays)
            self._end(group, each_round)
            values = [each.tolist() for each in arrays.values()]
            read = self._read(group, root)
            seen.append([values, [each.tolist() for each in gets], read])
        return seen

    def _read(self, group: Any, root: int) -> list[tuple[int, Any]]:
        """Read the messages of this process, and keep their arrays if it has to."""
        read = []
        for source, _, payload in group.messages() if self._case.size != "unread" else ():
            read.append((source, payload.tolist()))
            if self._case.size == "kept":
                payload[:] += 1  # it is this process's own
                self._let_die(root, 1)
                self._kept.setdefault(root, []).append(payload)
            del payload
        return read

    def _let_die(self, root: int, left: int) -> None:
        """Look at the arrays that this process keeps, and drop all but the latest of them."""
        kept, looked_at = self._kept.get(root, []), self._looked_at.setdefault(root, [])
        while len(kept) > left:
            looked_at.append(kept.pop(0).tolist())

    def _transfer(self, group: Any, turn: int, arrays: dict[str, Any]) -> list[Any]:
        """Make the transfers of this process; return the arrays into which it gets."""
        case = self._case
        self._kinds()
        made = [
            perform(group, each, arrays) for each in transfers(case, group.pid, group.nprocs, turn)
        ]
        if any(role(case, each) == ("described", "nothing") for each in range(group.nprocs)):
            group.zeros(1)  # a registration, which is announced to all
        return [found for found in made if found is not None]

    def _end(self, group: Any, turn: int) -> None:
        case = self._case
        if case.cell.end == "sync":
            group.sync()
        else:
            group.oblsync(len(coming(case, group.pid, group.nprocs, turn)))
        way = WAYS[not _DESCRIBED.isdisjoint(self._kinds())]
        if turn % 3 == 0:  # what follows is the event
            _, duty = role(case, group.pid)
            self._entered[Cell(way, duty, case.cell.event, case.cell.end)] += 1
