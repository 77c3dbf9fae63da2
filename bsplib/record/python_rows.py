"""The rows of the calls of this process, written by Python where there is no shim."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bsplib.record import frames
from bsplib.record.events import (
    ANY_TAG,
    DONE,
    DONES,
    EVENT,
    EVENTS,
    NOBODY,
    NOT_READ,
    NUMBER,
    PART,
    PARTS,
    RAISED,
    READ_AFTER_NS,
    RankWriter,
)

_ROWS_OF_A_CHUNK = 1000
_WRITE_AFTER_NS = 300_000_000
_POLL_GAP_NS = 20_000


class Call:
    """A call that has begun."""

    __slots__ = (
        *("number", "comm", "stack", "partner", "tag", "object", "flags", "bytes_out", "bytes_in"),
        *("enter", "leave", "cpu", "cpu_leave", "ready", "ready_leave"),
    )

    def __init__(self, number: int, comm: int, stack: int) -> None:
        self.number, self.comm, self.stack = number, comm, stack
        self.partner, self.tag, self.object, self.flags = NOBODY, ANY_TAG, 0, 0
        self.bytes_out = self.bytes_in = 0
        self.enter = self.leave = 0
        self.cpu = self.cpu_leave = self.ready = self.ready_leave = NOT_READ

    def row(self) -> tuple[int, ...]:
        """Return the values of a row of EVENT."""
        return (
            *(self.number, self.flags, self.comm, self.stack, self.partner, self.tag, self.object),
            *(self.bytes_out, self.bytes_in, self.enter, self.leave, self.cpu, self.cpu_leave),
            *(self.ready, self.ready_leave),
        )


class PythonRows:
    """Collects rows and writes them in chunks.

    Args:
        path: the file of the rank.
        moved: returns how many bytes of objects were sent and received since it was asked.
        failed: is called once if nothing more can be written.
    """

    def __init__(
        self,
        path: Path,
        moved: Callable[[], tuple[int, int]],
        failed: Callable[[OSError], None],
    ) -> None:
        self._writer: RankWriter | None = RankWriter(path)
        self._moved, self._failed = moved, failed
        self._events: list[tuple[int, ...]] = []
        self._parts: list[tuple[int, ...]] = []
        self._dones: list[tuple[int, ...]] = []
        self._written = 0
        self._comms: list[tuple[int, int, list[int]]] = []
        self._last_number = 0
        self._last_reading = self._last_write = 0
        self._last_poll: Call | None = None
        self._thread = threading.get_ident()
        self._busy = False
        self.other_threads = 0
        self.stacks = frames.Stacks(lambda number, found: self.line("stack", [number, found]))
        try:
            self._schedstat = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
        except OSError:
            self._schedstat = -1

    # -- calls ------------------------------------------------------------------------------------

    def begin(self, name: str, comm: int) -> Call | None:
        """Begin a call; None if it is not recorded."""
        if threading.get_ident() != self._thread:
            self.other_threads += 1
            return None
        if self._busy or self._writer is None:
            return None
        self._busy = True
        self._moved()
        return Call(NUMBER[name], comm, self.stacks.number())

    def enter(self, call: Call) -> None:
        """Note when MPI is called."""
        call.enter = time.monotonic_ns()
        if call.enter - self._last_reading > READ_AFTER_NS:
            call.cpu, call.ready = time.thread_time_ns(), self._ready()
            call.enter = self._last_reading = time.monotonic_ns()

    def leave(self, call: Call) -> None:
        """Note when MPI has returned."""
        call.leave = time.monotonic_ns()
        if call.leave - call.enter > READ_AFTER_NS:
            call.cpu_leave, call.ready_leave = time.thread_time_ns(), self._ready()
            self._last_reading = call.leave
        out, into = self._moved()
        call.bytes_out += out
        call.bytes_in = into or call.bytes_in

    def failed(self, call: Call) -> None:
        """End a call that has raised an error."""
        call.enter = call.enter or time.monotonic_ns()
        self.leave(call)
        call.flags |= RAISED
        self.finish(call)

    def finish(self, call: Call, *, polled: bool = False) -> None:
        """Add the row of a call. polled: it found nothing; several in a row are one."""
        self._busy = False
        before = self._last_poll
        self._last_poll = call if polled else None
        if polled and before is not None and _continues(before, call):
            before.leave = call.leave
            self._last_poll = before
            self._events[-1] = before.row()
            return
        self._events.append(call.row())
        due = call.leave - self._last_write > _WRITE_AFTER_NS
        if due or len(self._events) >= _ROWS_OF_A_CHUNK:
            self.write()
            self._last_write = call.leave

    def add_part(self, partner: int, out: int, into: int) -> None:
        """Add the bytes of a partner of the call that is not finished yet."""
        if out or into:
            self._parts.append((self._written + len(self._events), partner, out, into))

    def add_done(self, request: int, source: int, tag: int, size: int) -> None:
        """Add a request that the call which is not finished yet has completed."""
        self._dones.append((self._written + len(self._events), request, source, tag, size))

    def new_number(self) -> int:
        """Return a number for a request."""
        self._last_number += 1
        return self._last_number

    def _ready(self) -> int:
        try:
            return int(os.pread(self._schedstat, 100, 0).split()[1])
        except (OSError, IndexError):
            return NOT_READ

    # -- communicators ----------------------------------------------------------------------------

    def add_comm(
        self,
        parent: int,
        ordinal: int,
        kind: str,
        members: list[int],
        sources: list[int] | None = None,
        destinations: list[int] | None = None,
    ) -> int:
        """Write a communicator; return its number."""
        number = len(self._comms)
        self._comms.append((parent, ordinal, members))
        described = {"number": number, "parent": parent, "ordinal": ordinal, "kind": kind}
        lists = {"members": members, "sources": sources or [], "destinations": destinations or []}
        self.line("comm", described | lists)
        return number

    def ordinal_among_same(self, parent: int, members: list[int]) -> int:
        """Return the ordinal of a communicator that not all processes of the parent make."""
        same = (of == parent and ordinal < 0 and who == members for of, ordinal, who in self._comms)
        return -1 - sum(same)

    # -- the file ---------------------------------------------------------------------------------

    def line(self, kind: str, value: Any) -> None:
        """Write a line."""
        self._try(lambda writer: writer.line(kind, value))

    def write(self) -> None:
        """Write all rows."""
        events, parts, dones = self._events, self._parts, self._dones
        self._written += len(events)
        self._events, self._parts, self._dones = [], [], []
        self._last_poll = None

        def all_rows(writer: RankWriter) -> None:
            writer.rows(EVENTS, np.array(events, EVENT))
            writer.rows(PARTS, np.array(parts, PART))
            writer.rows(DONES, np.array(dones, DONE))

        self._try(all_rows)

    def close(self) -> None:
        """Write the rest and close the file."""
        self.write()
        self._try(lambda writer: writer.close())
        self._writer = None

    def _try(self, action: Callable[[RankWriter], None]) -> None:
        if self._writer is None:
            return
        try:
            action(self._writer)
        except OSError as error:
            writer, self._writer = self._writer, None
            writer.stop()
            self._failed(error)


def _continues(before: Call, call: Call) -> bool:
    """Tell whether a poll follows another from the same line at once."""
    same = (before.number, before.stack, before.comm, before.object) == (
        *(call.number, call.stack, call.comm, call.object),
    )
    return same and call.enter - before.leave < _POLL_GAP_NS
