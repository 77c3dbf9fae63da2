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
    """A call that has begun."""

    # Most calls set few of these.
    partner, tag, object, flags, bytes_out, bytes_in = NOBODY, ANY_TAG, 0, 0, 0, 0
    enter = leave = 0
    cpu = cpu_leave = ready = ready_leave = NOT_READ

    def __init__(self, number: int, comm: int, stack: int) -> None:
        self.number, self.comm, self.stack = number, comm, stack


class PythonRows:
    """Collects rows and writes them in chunks.

    Args:
        path: the file of the rank.
        moved: how many bytes of objects were sent and received; set to zero before each call.
        failed: is called once if nothing more can be written.
    """

    def __init__(
        self,
        path: Path,
        moved: list[int],
        failed: Callable[[OSError], None],
    ) -> None:
        self._writer: RankWriter | None = RankWriter(path)
        self._moved, self._failed = moved, failed
        self._events = bytearray(_ROWS_OF_A_CHUNK * EVENT.itemsize)
        self._count = 0
        """Rows in it."""
        self._parts: list[tuple[int, ...]] = []
        self._dones: list[tuple[int, ...]] = []
        self._written = 0
        self._comms: list[tuple[int, int, list[int]]] = []
        self._last_number = 0
        self._last_reading = self._last_write = 0
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
        if get_ident() != self._thread:
            self.other_threads += 1
            return None
        if self._busy or self._writer is None:
            return None
        self._busy = True
        moved = self._moved
        moved[0] = moved[1] = 0
        return Call(number, comm, self._stack_number(2))

    def enter(self, call: Call) -> None:
        """Note when MPI is called."""
        call.enter = enter = monotonic_ns()
        if enter - self._last_reading > READ_AFTER_NS:
            call.cpu, call.ready = thread_time_ns(), self._ready()
            call.enter = self._last_reading = monotonic_ns()

    def leave(self, call: Call) -> None:
        """Note when MPI has returned."""
        call.leave = leave = monotonic_ns()
        if leave - call.enter > READ_AFTER_NS:
            call.cpu_leave, call.ready_leave = thread_time_ns(), self._ready()
            self._last_reading = leave
        out, into = self._moved
        if out:
            call.bytes_out += out
        if into:
            call.bytes_in = into

    def failed(self, call: Call) -> None:
        """End a call that has raised an error."""
        call.enter = call.enter or monotonic_ns()
        self.leave(call)
        call.flags |= RAISED
        self.finish(call)

    def finish(self, call: Call, *, polled: bool = False) -> None:
        """Add the row of a call. polled: it found nothing; several in a row are one."""
        self._busy = False
        if polled or self._last_poll is not None:
            before, self._last_poll = self._last_poll, call if polled else None
            if polled and before is not None and _continues(before, call):
                before.leave = call.leave
                self._last_poll = before
                self._put(before, self._count - 1)
                return
        self._put(call, self._count)
        self._count += 1
        if self._count == _ROWS_OF_A_CHUNK or call.leave - self._last_write > _WRITE_AFTER_NS:
            self.write()
            self._last_write = call.leave

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
