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
    NUMBER,
    PART,
    PARTS,
    RAISED,
    READ_AFTER_NS,
    WORLD,
    RankWriter,
)

_ROWS_OF_A_CHUNK = 1000
WRITE_AFTER_NS = 300_000_000
_POLL_GAP_NS = 20_000
ROW_BYTES = EVENT.itemsize
"""Size of the row of a call."""
_pack = struct.Struct("<HHiiiiqqqqq").pack_into
"""Writes a row of EVENT without the readings at its end, which few calls have."""
_pack_readings = struct.Struct("<qqqq").pack_into
READINGS_AT = int(EVENT.fields["cpu"][1])  # type: ignore[index]  # it has fields
"""Where the readings begin in a row."""
_pack_leave = struct.Struct("<q").pack_into
_LEAVE_AT = int(EVENT.fields["leave"][1])  # type: ignore[index]  # it has fields
_part = struct.Struct("<qiqq").pack
"""Makes a row of PART."""
_both_parts = struct.Struct("<qiqqqiqq").pack
"""Makes two rows of PART."""
_done = struct.Struct("<qqiiq").pack
"""Makes a row of DONE."""


def _empty_rows() -> bytes:
    rows = np.zeros(_ROWS_OF_A_CHUNK, EVENT)
    for name in ("cpu", "cpu_leave", "ready", "ready_leave"):
        rows[name] = NOT_READ
    return rows.tobytes()


_EMPTY_ROWS = _empty_rows()
"""A chunk of rows without readings."""


class PythonRows:
    """Collects rows and writes them in chunks.

    The methods of the proxies write the rows of calls themselves: to call functions that do this
    would take as long as everything else that is recorded of a call. The proxies use the
    attributes without underscore, and :meth:`names_of_methods`.

    Args:
        path: the file of the rank.
        failed: is called once if nothing more can be written.
    """

    def __init__(self, path: Path, failed: Callable[[OSError], None]) -> None:
        self._writer: RankWriter | None = RankWriter(path)
        self._failed = failed
        self.events = bytearray(_EMPTY_ROWS)
        """Rows of EVENT that are not written to the file yet."""
        self.at = 0
        """Where the next row begins."""
        self.last_at = len(self.events) - ROW_BYTES
        """Where the last row begins for which there is room."""
        self._parts, self._dones = bytearray(), bytearray()
        self._written = 0
        self._comms: list[tuple[int, int, list[int]]] = []
        self.last_number = 0
        """Number of the last request that was started."""
        self.last_reading = 0
        """When the CPU time was last read."""
        self.last_write = 0
        """When rows were last written to the file."""
        self.last_poll: list[Any] | None = None
        """The last row, if it is a poll that has found nothing; None otherwise. The list has: the
        values that the next poll must share so that both become one row, the time at which the
        poll returned, and the position of its row."""
        self.thread = get_ident()
        """The thread that is recorded."""
        self.busy = False
        """Whether a call is being recorded: calls inside it are not."""
        self.other_threads = 0
        self.stacks = frames.Stacks(lambda number, found: self.line("stack", [number, found]))
        try:
            self._schedstat = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
        except OSError:
            self._schedstat = -1

    # -- calls ------------------------------------------------------------------------------------

    def names_of_methods(self) -> dict[str, Any]:
        """Return what all methods of the proxies use."""
        return {
            "rows": self,
            "get_ident": get_ident,
            "clock": monotonic_ns,
            "stack_number": self.stacks.number,
            "pack": _pack,
            "pack_readings": _pack_readings,
            "not_recorded": self._not_recorded,
            "read_before": self._read_before,
            "read_after": self._read_after,
            "add_done": self.add_done,
            "add_exchange": self._add_exchange,
            "failed": self._add_failed,
            "continues": self._continues,
            "write_at": self._write_at,
        }

    def add_init(self) -> None:
        """Add the row of Init, which has returned."""
        cpu, ready, enter = self._read_before()
        stack = self.stacks.number()
        row = (NUMBER["Init"], 0, WORLD, stack, NOBODY, ANY_TAG, 0, 0, 0, enter, enter)
        self._add(*row, cpu, NOT_READ, ready, NOT_READ)

    def _not_recorded(self) -> None:
        """Count a call that is not recorded if another thread makes it."""
        self.other_threads += get_ident() != self.thread

    def _read_before(self) -> tuple[int, int, int]:
        """Return ``cpu``, ``ready`` and ``enter`` of a row, read now, before the call.

        This is called where the last reading is longer ago than READ_AFTER_NS.
        """
        cpu, ready = thread_time_ns(), self._ready()
        self.last_reading = monotonic_ns()
        return cpu, ready, self.last_reading

    def _read_after(self, leave: int) -> tuple[int, int]:
        """Return ``cpu_leave`` and ``ready_leave``, after a call longer than READ_AFTER_NS."""
        self.last_reading = leave
        return thread_time_ns(), self._ready()

    def _ready(self) -> int:
        try:
            return int(os.pread(self._schedstat, 100, 0).split()[1])
        except (OSError, IndexError):
            return NOT_READ

    def _add_failed(self, row: tuple[int, ...], cpu: int, ready: int) -> None:
        """Add the row of a call that has raised an error; ``row`` ends with ``enter``."""
        number, flags, comm, stack, partner, tag, *values, enter = row
        leave = monotonic_ns()
        enter = enter or leave
        readings = [cpu, NOT_READ, ready, NOT_READ]
        if leave - enter > READ_AFTER_NS:
            readings[1::2] = self._read_after(leave)
        ends = (*values, enter, leave, *readings)
        try:
            self._add(number, flags | RAISED, comm, stack, partner, tag, *ends)
        except struct.error:  # the error of the call is about these arguments
            self._add(number, flags | RAISED, comm, stack, NOBODY, ANY_TAG, *ends)

    def _add(self, *row: int) -> None:
        """Add the row of a call, and write all rows to the file soon."""
        _pack(self.events, self.at, *row[:-4])
        _pack_readings(self.events, self.at + READINGS_AT, *row[-4:])
        self.at += ROW_BYTES
        self.last_poll = None
        if self.at > self.last_at:
            self.write()

    def _continues(self, poll: tuple[int, ...], enter: int, leave: int) -> bool:
        """Tell whether a poll follows another from the same line at once; if so, add it to its row.

        Both have found nothing.
        """
        last = self.last_poll
        if last is None or last[0] != poll or enter - last[1] >= _POLL_GAP_NS:
            return False
        last[1] = leave
        _pack_leave(self.events, last[2] + _LEAVE_AT, leave)
        return True

    def _add_exchange(self, partner: int, out: int, source: int, tag: int, size: int) -> None:
        """Add what the call that is not finished yet has sent, and what it has received."""
        event = self._written + self.at // ROW_BYTES
        if out and size:
            self._parts += _both_parts(event, partner, out, 0, event, source, 0, size)
        elif out:
            self._parts += _part(event, partner, out, 0)
        elif size:
            self._parts += _part(event, source, 0, size)
        self._dones += _done(event, 0, source, tag, size)

    def add_done(self, request: int, source: int, tag: int, size: int) -> None:
        """Add a request that the call which is not finished yet has completed."""
        self._dones += _done(self._written + self.at // ROW_BYTES, request, source, tag, size)

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

    def _write_at(self, now: int) -> None:
        self.write()
        self.last_write = now

    def write(self) -> None:
        """Write all rows."""
        count = self.at // ROW_BYTES
        events = np.frombuffer(self.events, EVENT, count)
        self.events = bytearray(_EMPTY_ROWS)
        parts, dones = np.frombuffer(self._parts, PART), np.frombuffer(self._dones, DONE)
        self._written += count
        self.at, self._parts, self._dones = 0, bytearray(), bytearray()
        self.last_poll = None

        def all_rows(writer: RankWriter) -> None:
            writer.rows(EVENTS, events)
            writer.rows(PARTS, parts)
            writer.rows(DONES, dones)

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
