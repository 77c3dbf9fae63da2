"""Draws programs with a single fault.

The fault is a step that the interpreter refuses, or one that is wrong always; the
superstep that has it is the last one of its group.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from .generator import Builder
from .interpreter import Group, WrongError
from .steps import Get, Handle, Literal, Misuse, Oblsync, Pop, Program, Put, Read, Send, Sync

FAULTS = {
    "raise": "ZeroDivisionError",
    "move": "MessageError",
    "read-only": "RegistrationError",
    "partition": "PartitionError",
    "partition falls": "PartitionError",
    "parent": "PartitionError",
    "done": "PendingTransferError",
    "number": "PlaceError",
    "unregistered": "RegistrationError",
    "pop": "RegistrationError",
    "object": "DtypeError",
    "negative size": "ShapeError",
    "lambda": "MessageError",
    "abort": "AbortError",
    "exit": "ProcessDiedError",
}
"""Calls that are always wrong, and the error they raise."""

FAULTS_OF_PLACES = {"list": "PlaceError", "both": "PlaceError", "get both": "PlaceError"}
"""The same with an array."""


def wrong_programs() -> st.SearchStrategy[Program]:
    """Programs with a fault; ``fault`` is the name of the error."""
    return st.composite(lambda draw: Breaker(draw).build())()


class Breaker(Builder):
    """Draws one program with a fault."""

    def breaks(self, group: Group, block: list[Any], kind: type, *, surely: bool) -> bool:
        if not (surely or self.chance(50)):
            return False
        self.break_it(group, block, kind)
        return True

    # -- faults -----------------------------------------------------------------------------

    def break_it(self, group: Group, block: list[Any], kind: type) -> None:
        """End the block with a superstep that is wrong."""
        kinds = (
            self.misuse,
            self.misuse_of_place,
            self.wrong_call,
            self.wrong_call,
            self.wrong_call,
            self.wrong_call,
            self.wrong_registration,
            self.wrong_registration,
            self.wrong_sync,
            self.wrong_sync,
            self.wrong_count,
            self.wrong_count,
            self.left_pending,
        )
        while self._fault is None:
            self.choose(*kinds)(group, block, kind)

    def blame(self, group: Group, pid: int) -> None:
        self._where = self._run.root.superstep, group.members[pid]

    def misuse(self, group: Group, block: list[Any], kind: type) -> None:
        what = self.choose(*FAULTS)
        pid = self.number(0, group.size - 1)
        if what == "move":
            block.append(Read(pid, ("rest",)))
        block.append(Misuse(pid, what))
        self._fault = FAULTS[what]
        self.blame(group, pid)
        self.close_with_any(group, block, kind)

    def close_with_any(self, group: Group, block: list[Any], kind: type) -> None:
        """Let the others come to an end of the superstep."""
        gets = any(group.gets.values())
        block.append(Sync() if kind is Sync or gets else Oblsync(self.counts(group)))

    def misuse_of_place(self, group: Group, block: list[Any], kind: type) -> None:
        pid = self.number(0, group.size - 1)
        place = self.place(group, pid, pid)
        if place is None or 0 in self.shape_of(group, pid, place):
            return
        what = self.choose(*FAULTS_OF_PLACES)
        block.append(Misuse(pid, what, place))
        self._fault = FAULTS_OF_PLACES[what]
        self.blame(group, pid)
        self.close_with_any(group, block, kind)

    def wrong_call(self, group: Group, block: list[Any], kind: type) -> None:
        """A transfer with one argument changed."""
        call = self.choose(self.put, self.put, self.get, self.send)(group)
        if call is None or (isinstance(call, Get) and kind is Oblsync):
            return
        changed = self.altered(group, call)
        run, there = copy.deepcopy((self._run, group))
        try:
            run.apply(there, changed)
        except WrongError as error:
            self._fault = error.kind
            self.blame(group, changed.pid)
            block.append(changed)
            self.close_with_any(group, block, Sync)

    def altered(self, group: Group, call: Any) -> Any:
        where = "of" if isinstance(call, Get) else "to"
        what = self.number(0, 4)
        if what == 0 or isinstance(call, Send):
            wrong = self.choose(-1, group.size, group.size + 1, 1 << 40)
            return replace(call, **{where: wrong})
        if what == 1:
            return self.recast(call)
        if call.offset is not None:
            return replace(call, offset=self.choose(-1, call.offset + self.number(1, 9), 1 << 40))
        if call.at is not None and what <= 3:
            return replace(call, at=(*call.at[:-1], self.choose(9, 300, -9)))
        return replace(call, **{where: self.number(0, group.size - 1)})

    @staticmethod
    def recast(call: Any) -> Any:
        """Give it values, or a destination, of another kind."""
        if isinstance(call, Put) and isinstance(call.source, Literal):
            return replace(call, source=replace(call.source, dtype="c16", plain=False))
        if isinstance(call, Get) and isinstance(call.into, Literal):
            return replace(call, into=replace(call.into, dtype="?"))
        return call

    def wrong_registration(self, group: Group, block: list[Any], kind: type) -> None:
        """A push or a pop on some processes only."""
        if group.size == 1:
            return
        pid = self.number(0, group.size - 1)
        push = self.push(group)
        if push is not None and self.chance(60):
            block.append(replace(push, absent=pid))
        else:
            ref = next((one for one in group.registrations if one not in group.popped), None)
            if ref is None:
                return
            block.append(Pop(tuple(Handle(ref.name) for _ in range(group.size)), pid))
        for _ in range(self.number(0, 1) if not any(group.gets.values()) else 0):
            block.append(Oblsync(self.counts(group)))
            self._run.apply(group, block[-1])
        block.append(Sync())
        self._fault = "SyncMismatchError"

    def wrong_sync(self, group: Group, block: list[Any], kind: type) -> None:
        """One process ends the superstep by another kind of sync, or not at all."""
        if group.size == 1:
            return
        pid = self.number(0, group.size - 1)
        if self.chance(50):
            if group.gets[pid] or self.outstanding(group, pid):
                return
            if kind is Oblsync and group.path:
                return  # all leave the sub-group, and nobody asks how many supersteps it had
            block.append(self.odd_sync(group, kind, (pid, "nothing")))
        elif kind is Oblsync and not any(group.gets.values()):
            block.append(Oblsync(self.counts(group), odd=(pid, "sync")))
        elif not group.gets[pid]:
            block.append(Sync(odd=(pid, "oblsync")))
        else:
            return
        self._fault = "SyncMismatchError"

    def odd_sync(self, group: Group, kind: type, odd: tuple[int, str]) -> Sync | Oblsync:
        if kind is Sync or any(group.gets.values()):
            return Sync(odd=odd)
        return Oblsync(self.counts(group), odd=odd)

    @staticmethod
    def outstanding(group: Group, pid: int) -> bool:
        """Tell whether a process has transfers pending."""
        sent = [one[0] for by in (group.puts, group.sends) for many in by.values() for one in many]
        return pid in sent

    def wrong_count(self, group: Group, block: list[Any], kind: type) -> None:
        """An oblsync that waits for one message too many, or one too few, or with a get."""
        counts = list(self.counts(group))
        pid = self.number(0, group.size - 1)
        if any(group.gets.values()):
            if len([pid for pid in group.gets if group.gets[pid]]) != 1:
                return
            block.append(Oblsync(tuple(counts)))
            self._fault = "PendingTransferError"
            return
        counts[pid] += self.choose(1, -1)
        if counts[pid] < 0:
            return
        block.append(Oblsync(tuple(counts)))
        self._fault = "SyncMismatchError"

    def left_pending(self, group: Group, block: list[Any], kind: type) -> None:
        """A transfer that nothing delivers."""
        if self._scopes:
            return  # the superstep around the scope delivers it
        self.end(group, block, kind)
        step = self.choose(self.put, self.get, self.send)(group)
        if self.emit(group, block, step) and group.pending():
            self._fault = "PendingTransferError"
