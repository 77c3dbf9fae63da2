"""Rows of fixed layout, appended to memory: the records of one process.

The memory begins with a header of 16 bytes, whose first eight bytes are the number of
complete rows. Rows are packed and little-endian. The memory is usually a mapped file, which
another process reads when this one has ended in any way: therefore the number is raised only
after the row is complete.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable
from mmap import mmap
from struct import Struct
from typing import Any

try:
    import cython
except ImportError:
    from bsplib.core import _no_cython as cython

HEADER_BYTES = 16
"""Size of the header. Its second half is left to the user of the memory."""
SUPERSTEP = Struct("<iiqBi17q")
"""Layout of a superstep: the fields of ``bsplib.recording.records.RECORD``."""
TRAFFIC = Struct("<qiBqq")
"""Layout of the traffic with one partner: the fields of ``records.TRAFFIC``."""
_BYTES_BEFORE_USAGE = Struct("<iiqBi8q").size
_USAGE = Struct("<4q")
"""Layout of the fields of a superstep that may be filled in after it was appended."""

if not cython.compiled:
    pack_superstep = SUPERSTEP.pack_into
    pack_traffic = TRAFFIC.pack_into
    publish = Struct("<Q").pack_into

    def add_to_superstep(
        memory: mmap, at: int, comp_cpu: int, comp_ready: int, comm_cpu: int, comm_ready: int
    ) -> None:
        """Add to the fields of a row that begins at this byte."""
        at += _BYTES_BEFORE_USAGE
        before = _USAGE.unpack_from(memory, at)
        more = comp_cpu, comp_ready, comm_cpu, comm_ready
        _USAGE.pack_into(memory, at, *map(operator.add, before, more))

    def start_of(memory: mmap) -> Any:
        """Return what the functions above take for the memory; the compiled ones: an address."""
        return memory


class Rows:
    """Rows of one layout in memory that may be exchanged for larger memory.

    Args:
        row_bytes: size of a row: that of ``SUPERSTEP`` or of ``TRAFFIC``.
        make_room: is called if there is no room for a row. It has to call :meth:`use`.
    """

    def __init__(self, row_bytes: int, make_room: Callable[[], object]) -> None:
        self._row_bytes = row_bytes
        self._make_room = make_room
        self._memory: mmap | None = None
        self._start: Any = 0
        self.count = 0
        """Number of rows in the memory."""
        self.before = 0
        """Number of rows that the memory had before, and that have been stored elsewhere."""
        self._capacity = 0

    def use(self, memory: mmap | None, count: int) -> None:
        """Append the next rows to this memory.

        Args:
            memory: must not be closed before this method is called again; None: there is no
                memory, and ``make_room`` is called for the next row.
            count: number of rows that the memory has already.

        Raises:
            ValueError: the memory has no room for another row.
        """
        capacity = 0
        if memory is not None:
            capacity = (len(memory) - HEADER_BYTES) // self._row_bytes
            if not 0 <= count < capacity:
                raise ValueError(f"no room for row {count} of {capacity}")
        self._start = 0 if memory is None else start_of(memory)
        self._memory = memory
        self.count, self._capacity = count, capacity

    def append_superstep(  # noqa: PLR0913, PLR0917  # the fields of a row
        self,
        pid: int,
        group: int,
        superstep: int,
        kind: int,
        stack: int,
        start: int,
        arrive: int,
        released: int,
        end: int,
        comm_calls: int,
        sub: int,
        self_bytes: int,
        self_messages: int,
        comp_cpu: int,
        comp_ready: int,
        comm_cpu: int,
        comm_ready: int,
        comp_minor: int,
        comp_major: int,
        comm_minor: int,
        comm_major: int,
        recording: int,
    ) -> None:
        """Append a superstep; see ``bsplib.recording.records.RECORD``.

        Raises:
            OverflowError: a number is out of the range of its field; no row was appended.
        """
        if self.count == self._capacity:
            self._extend()
        try:
            pack_superstep(
                self._start,
                HEADER_BYTES + self.count * self._row_bytes,
                pid,
                group,
                superstep,
                kind,
                stack,
                start,
                arrive,
                released,
                end,
                comm_calls,
                sub,
                self_bytes,
                self_messages,
                comp_cpu,
                comp_ready,
                comm_cpu,
                comm_ready,
                comp_minor,
                comp_major,
                comm_minor,
                comm_major,
                recording,
            )
        except struct.error as error:
            raise OverflowError(str(error)) from None
        self.count += 1
        publish(self._start, 0, self.count)

    def is_nearly_full(self) -> bool:
        """Tell whether the memory has room for one more row at most."""
        return self.count + 1 >= self._capacity

    def amend(
        self, row: int, comp_cpu: int, comp_ready: int, comm_cpu: int, comm_ready: int
    ) -> None:
        """Add to fields of a superstep that was appended; those that are gone are left out."""
        if row < self.count:
            at = HEADER_BYTES + row * self._row_bytes
            add_to_superstep(self._start, at, comp_cpu, comp_ready, comm_cpu, comm_ready)

    def append_traffic(
        self, record: int, partner: int, direction: int, nbytes: int, messages: int
    ) -> None:
        """Append the traffic with one partner; see ``bsplib.recording.records.TRAFFIC``.

        Raises:
            OverflowError: a number is out of the range of its field; no row was appended.
        """
        if self.count == self._capacity:
            self._extend()
        at = HEADER_BYTES + self.count * self._row_bytes
        try:
            pack_traffic(self._start, at, record, partner, direction, nbytes, messages)
        except struct.error as error:
            raise OverflowError(str(error)) from None
        self.count += 1
        publish(self._start, 0, self.count)

    def _extend(self) -> None:
        self._make_room()
        if self.count == self._capacity:
            raise ValueError("there is no memory for another row")
