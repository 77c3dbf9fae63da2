"""The files to which a process writes its records while the program runs.

Rows are written directly into mapped files, so that they are kept if the process is
killed; ``bsplib.recording.collect`` reads them when the run has ended in any way.

Disk space is allocated before a file is mapped: so a full disk is an error at that moment,
and no SIGBUS later. After such an error, or if a file cannot be created, the process stops
recording, and the program continues.
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
from bsplib.recording.stacks import shortened

HEADER = Struct("<QQ")
"""Beginning of a table: the number of complete rows, and the ``errno`` of the error that
ended the recording (0 for none)."""
ROWS_AT_FIRST = 1024
_COUNT = Struct("<Q")
_OFFSET = HEADER.size
_pack_count = _COUNT.pack_into

_Stop = Callable[[BaseException], None]


class Table:
    """Rows of one dtype, appended one by one to a mapped file.

    Args:
        path: the file.
        dtype: dtype of the rows.
        stop: is called if there is no space for a row; it has to call :meth:`discard`
            of this table.

    Raises:
        OSError: the file cannot be created, or there is no space for it.
    """

    def __init__(self, path: Path, dtype: np.dtype[Any], stop: _Stop) -> None:
        # Little-endian and packed, like the dtypes of bsplib.recording.records.
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
        """Add a row; the count in the file is raised after the row is complete."""
        count = self.count
        if count == self._capacity:
            count = self._make_room()
        file = self._map
        try:
            self._pack(file, _OFFSET + count * self._size, *values)
        except struct.error:  # a virtual time beyond 2**63 ns
            self._stop(OSError(errno.ERANGE, os.strerror(errno.ERANGE)))
            return
        self.count = count = count + 1
        _pack_count(file, 0, count)

    def discard(self, reason: int) -> None:
        """Keep the rows in the file, store the reason there, and discard all later rows.

        Later rows go to a small piece of anonymous memory that is used again and again,
        so that :meth:`append` needs no test for this case.

        Args:
            reason: the ``errno`` of the error that ended the recording.
        """
        if self._discards:
            return
        HEADER.pack_into(self._map, 0, self.count, reason)
        self._map.close()
        self._discards, self._capacity, self.count = True, ROWS_AT_FIRST, 0
        self._map = mmap.mmap(-1, _OFFSET + self._capacity * self._size)

    def close(self) -> None:
        """Close the file; its rows are kept."""
        self._map.close()
        self._file.close()

    def _make_room(self) -> int:
        """Enlarge the file if possible; return the number of the next row."""
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
    """Replaces the tables of a process that cannot record: every row is discarded."""

    count = 0

    def append(self, *_: int) -> None:
        """Discard a row."""

    def discard(self, _: int) -> None:
        """Do nothing: rows are discarded already."""

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
        """Close the files; their content is kept."""
        self.records.close()
        self.traffic.close()
        self._close_definitions()

    def define_stack(self, stack: Stack) -> None:
        """Define a call stack; its number is the count of stacks defined before."""
        self._define("stack", shortened(stack))

    def define_group(self, group: GroupInfo) -> None:
        """Define a group; its number is the count of groups defined before.

        Args:
            group: the group; its parent is a number that this process has defined.
        """
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
        """Stop recording; what has been recorded is kept."""
        reason = (error.errno if isinstance(error, OSError) else None) or errno.ENOMEM
        self.records.discard(reason)
        self.traffic.discard(reason)
        self._close_definitions()

    def _close_definitions(self) -> None:
        definitions, self._definitions = self._definitions, None
        if definitions is not None:
            with contextlib.suppress(OSError):  # close tries again to write what write could not
                definitions.close()
