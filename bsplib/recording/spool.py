"""Where a process keeps its records while the program runs.

Rows are written straight into mapped files, so that they outlive a process that
is killed; ``bsplib.collect`` reads them when the run has ended, however it has ended.

Room in a file is allocated before it is mapped: a full disk is an error at that moment,
and no SIGBUS later. Where it happens, or a file cannot be made, the process records
nothing any more, and the program goes on.
"""

from __future__ import annotations

import contextlib
import errno
import json
import mmap
import os
import struct
from collections.abc import Callable
from pathlib import Path
from struct import Struct
from typing import Any, TextIO

import numpy as np

from bsplib.recording.records import RECORD, TRAFFIC, GroupInfo, Stack
from bsplib.recording.stacks import bearable

HEADER = Struct("<QQ")
"""A table begins with the number of rows that are whole, and with the number of the
system's error (``errno``) that ended the recording, 0 for none."""
ROWS_AT_FIRST = 1024
_COUNT = Struct("<Q")
_OFFSET = HEADER.size
_pack_count = _COUNT.pack_into

_Stop = Callable[[BaseException], None]


class Table:
    """Rows of one dtype, appended one by one to a mapped file.

    Args:
        path: the file.
        dtype: of the rows.
        stop: is called where a row finds no room; it has to make this table discard
            its rows.

    Raises:
        OSError: there is no room for a file.
    """

    def __init__(self, path: Path, dtype: np.dtype[Any], stop: _Stop) -> None:
        # Little-endian and packed, as the dtypes of bsplib.records are.
        codes = "".join(dtype[name].char for name in dtype.names or ())
        row = Struct("<" + codes.replace("l", "q"))
        assert row.size == dtype.itemsize
        self._pack, self._size = row.pack_into, row.size
        self._stop = stop
        self._discards = False
        self._capacity = 0
        self.count = 0
        self._file = path.open("w+b")
        try:
            self._map = self._grown()
        except BaseException:
            self._file.close()
            raise

    def append(self, *values: int) -> None:
        """Add a row, which counts once it is whole."""
        count = self.count
        if count == self._capacity:
            count = self._make_room()
        room = self._map
        try:
            self._pack(room, _OFFSET + count * self._size, *values)
        except struct.error:  # a virtual time beyond 2**63 ns
            self._stop(OSError(errno.ERANGE, os.strerror(errno.ERANGE)))
            return
        self.count = count = count + 1
        _pack_count(room, 0, count)

    def discard(self, reason: int) -> None:
        """Keep the rows that are in the file, note why, and forget all that come."""
        if self._discards:
            return
        HEADER.pack_into(self._map, 0, self.count, reason)
        self._map.close()
        self._discards, self._capacity, self.count = True, ROWS_AT_FIRST, 0
        self._map = mmap.mmap(-1, _OFFSET + self._capacity * self._size)

    def close(self) -> None:
        """Close the file; its rows stay."""
        self._map.close()
        self._file.close()

    def _make_room(self) -> int:
        """Return the number of the next row, for which there is room."""
        if not self._discards:
            try:
                self._map = self._grown()
            except (OSError, MemoryError) as error:
                self._stop(error)
        if self._discards:
            self.count = 0
        return self.count

    def _grown(self) -> mmap.mmap:
        capacity = max(2 * self._capacity, ROWS_AT_FIRST)
        nbytes = _OFFSET + capacity * self._size
        os.posix_fallocate(self._file.fileno(), 0, nbytes)  # a full disk is an error here
        grown = mmap.mmap(self._file.fileno(), nbytes)
        self._capacity = capacity
        return grown


class _NoTable:
    """Stands for the tables of a process that cannot record."""

    count = 0

    def append(self, *_: int) -> None:
        """Forget a row."""

    def discard(self, _: int) -> None:
        """Do nothing: it does."""

    def close(self) -> None:
        """Do nothing."""


class Spool:
    """Records, traffic and definitions of one process, in files of a folder."""

    records: Table | _NoTable
    traffic: Table | _NoTable
    _definitions: TextIO | None

    def __init__(self, folder: Path, pid: int) -> None:
        self.records = self.traffic = _NoTable()
        self._definitions = None
        try:
            self.records = Table(folder / f"{pid}.records", RECORD, self._stop)
            self.traffic = Table(folder / f"{pid}.traffic", TRAFFIC, self._stop)
            self._definitions = (folder / f"{pid}.definitions").open("w", encoding="utf-8")
        except (OSError, MemoryError) as error:
            self._stop(error)

    def close(self) -> None:
        """Close the files; what was written stays."""
        self.records.close()
        self.traffic.close()
        self._close_definitions()

    def define_stack(self, stack: Stack) -> None:
        """Give a call stack the next number."""
        self._define("stack", bearable(stack))

    def define_group(self, group: GroupInfo) -> None:
        """Give a group the next number; its parent is a number of this process."""
        self._define("group", group.to_json())

    def _define(self, what: str, value: Any) -> None:
        if self._definitions is None:
            return
        try:
            json.dump([what, value], self._definitions)
            self._definitions.write("\n")
            self._definitions.flush()
        except OSError as error:
            self._stop(error)

    def _stop(self, error: BaseException) -> None:
        """Record nothing any more; what was recorded stays as it is."""
        reason = (error.errno if isinstance(error, OSError) else None) or errno.ENOMEM
        self.records.discard(reason)
        self.traffic.discard(reason)
        self._close_definitions()

    def _close_definitions(self) -> None:
        definitions, self._definitions = self._definitions, None
        if definitions is not None:
            with contextlib.suppress(OSError):  # what could not be written is tried once more
                definitions.close()
