"""The rows of the calls of this process, written by Python where there is no shim."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from pathlib import Path
from threading import get_ident
from time import monotonic_ns, thread_time_ns
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
    PART,
    PARTS,
    RAISED,
    READ_AFTER_NS,
    RankWriter,
)

_ROWS_OF_A_CHUNK = 1000
_WRITE_AFTER_NS = 300_000_000
_POLL_GAP_NS = 20_000
_pack = struct.Struct("<HHiiiiqqqqqqqqq").pack_into
"""Writes a row of EVENT."""
_ROW_BYTES = EVENT.itemsize


class Call:
    """A call that has begun. There is one at a time, so that calls share one object."""

    __slots__ = (
        *("number", "flags", "comm", "stack", "partner", "tag", "object", "bytes_out", "bytes_in"),
        *("enter", "leave", "cpu", "cpu_leave", "ready", "ready_leave"),
    )
    number: int
    flags: int
    comm: int
    stack: int
    partner: int
    tag: int
    object: int
    bytes_out: int
    bytes_in: int
    enter: int
    leave: int
    cpu: int
    cpu_leave: int
    ready: int
    ready_leave: int


class PythonRows:
    """Collects rows and writes them in chunks.

    Args:
        path: the file of the rank.
        failed: is called once if nothing more can be written.
    """

    def __init__(
        self,
        path: Path,
        failed: Callable[[OSError], None],
    ) -> None:
        self._writer: RankWriter | None = RankWriter(path)
        self._failed = failed
        self._events = bytearray(_ROWS_OF_A_CHUNK * EVENT.itemsize)
        self._count = 0
        """Rows in it."""
        self._parts: list[tuple[int, ...]] = []
        self._dones: list[tuple[int, ...]] = []
        self._written = 0
        self._comms: list[tuple[int, int, list[int]]] = []
        self.last_number = 0
        """Of the requests."""
        self._last_write = 0
        self.last_reading = 0
        """When the CPU time was read."""
        self._call = Call()
        self._last_poll: Call | None = None
        self._thread = get_ident()
        self._busy = False
        self.other_threads = 0
        self.stacks = frames.Stacks(lambda number, found: self.line("stack", [number, found]))
        self._stack_number = self.stacks.number
        try:
            self._schedstat = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
        except OSError:
            self._schedstat = -1

    # -- calls ------------------------------------------------------------------------------------

    def begin(self, number: int, comm: int) -> Call | None:
        """Begin a call of this number in CALLS; None if it is not recorded.

        The function that calls this is no part of the stack.
        """
        if self._busy or self._writer is None or get_ident() != self._thread:
            self.other_threads += get_ident() != self._thread
            return None
        stack = self._stack_number(2)
        self._busy = True
        call = self._call
        call.number = number
        call.comm = comm
        call.stack = stack
        call.partner = NOBODY
        call.tag = ANY_TAG
        call.flags = call.object = call.bytes_out = call.bytes_in = call.enter = 0
        call.cpu = call.cpu_leave = call.ready = call.ready_leave = NOT_READ
        return call

    def read_before(self, call: Call) -> None:
        """Read the CPU time before a call, where READ_AFTER_NS have passed since it was read."""
        call.cpu, call.ready = thread_time_ns(), self._ready()
        call.enter = self.last_reading = monotonic_ns()

    def read_after(self, call: Call) -> None:
        """Read the CPU time after a call that took longer than READ_AFTER_NS."""
        call.cpu_leave, call.ready_leave = thread_time_ns(), self._ready()
        self.last_reading = call.leave

    def failed(self, call: Call) -> None:
        """End a call that has raised an error."""
        call.leave = monotonic_ns()
        call.enter = call.enter or call.leave
        if call.leave - call.enter > READ_AFTER_NS:
            self.read_after(call)
        call.flags |= RAISED
        try:
            self.finish(call)
        except struct.error:  # the error of the call is about these arguments
            call.partner, call.tag = NOBODY, ANY_TAG
            self.finish(call)

    def finish(self, call: Call) -> None:
        """Add the row of a call."""
        self._busy = False
        self._last_poll = None
        self._put(call, self._count)
        self._count = count = self._count + 1
        if count == _ROWS_OF_A_CHUNK or call.leave - self._last_write > _WRITE_AFTER_NS:
            self.write()
            self._last_write = call.leave

    def finish_poll(self, call: Call, *, found: bool) -> None:
        """Add the row of a call that may have found nothing; several such in a row are one."""
        before = self._last_poll
        if not found and before is not None and _continues(before, call):
            self._busy = False
            before.leave = call.leave
            self._put(before, self._count - 1)
            return
        count = self._count
        self.finish(call)
        if not found and self._count > count:  # else its row has been written to the file
            self._last_poll, self._call = call, Call()

    def _put(self, call: Call, row: int) -> None:
        """Write the row of a call into memory."""
        # The values are passed one by one: to make tuples of them would take as long as the rest.
        _pack(
            self._events,
            row * _ROW_BYTES,
            call.number,
            call.flags,
            call.comm,
            call.stack,
            call.partner,
            call.tag,
            call.object,
            call.bytes_out,
            call.bytes_in,
            call.enter,
            call.leave,
            call.cpu,
            call.cpu_leave,
            call.ready,
            call.ready_leave,
        )

    def add_part(self, partner: int, out: int, into: int) -> None:
        """Add the bytes of a partner of the call that is not finished yet."""
        if out or into:
            self._parts.append((self._written + self._count, partner, out, into))

    def add_done(self, request: int, source: int, tag: int, size: int) -> None:
        """Add a request that the call which is not finished yet has completed."""
        self._dones.append((self._written + self._count, request, source, tag, size))

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
        events = np.frombuffer(self._events, EVENT, self._count).copy()
        parts, dones = self._parts, self._dones
        self._written += self._count
        self._count, self._parts, self._dones = 0, [], []
        self._last_poll = None

        def all_rows(writer: RankWriter) -> None:
            writer.rows(EVENTS, events)
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
