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
from collections.abc import Callable
from pathlib import Path
from struct import Struct
from typing import Any, BinaryIO, TextIO

import numpy as np

from bsplib.core.rows import HEADER_BYTES, Rows
from bsplib.recording.records import RECORD, TRAFFIC, GroupInfo, Host, Stack
from bsplib.recording.stacks import shortened

HEADER = Struct("<QQ")
"""Beginning of a table: the number of complete rows, and the ``errno`` of the error that
ended the recording (0 for none)."""
assert HEADER.size == HEADER_BYTES
ROWS_AT_FIRST = 1024

_Stop = Callable[[BaseException], None]


class MappedTable:
    """Rows of one dtype, appended one by one to a mapped file. A new table discards all rows.

    Args:
        dtype: dtype of the rows: ``RECORD`` or ``TRAFFIC``.
        stop: is called if there is no space for a row; it has to call :meth:`discard` of this
            table.
    """

    def __init__(self, dtype: np.dtype[Any], stop: _Stop) -> None:
        self.rows = Rows(dtype.itemsize, self._make_room)
        """Appends rows; the count in the file is raised after a row is complete."""
        self._row_bytes = dtype.itemsize
        self._stop = stop
        self._file: BinaryIO | None = None
        self._map: mmap.mmap | None = None
        self._capacity = 0

    def open(self, path: Path) -> None:
        """Append the rows to a new file from now on.

        Raises:
            OSError: the file cannot be created, or there is no space for it.
        """
        file = path.open("w+b")
        try:
            self._grow(file)
        except BaseException:
            file.close()
            raise
        self._file = file

    def discard(self, reason: int) -> None:
        """Keep the rows in the file, store the reason there, and discard all later rows.

        Args:
            reason: the ``errno`` of the error that ended the recording.
        """
        if self._map is not None:
            HEADER.pack_into(self._map, 0, self.rows.count, reason)
        self.close()

    def close(self) -> None:
        """Close the file; its rows are kept, and later rows are discarded."""
        self.rows.use(None, 0)
        if self._map is not None:
            self._map.close()
        if self._file is not None:
            self._file.close()
        self._map = self._file = None

    def _make_room(self) -> None:
        """Enlarge the file if possible."""
        if self._file is not None:
            try:
                self._grow(self._file)
            except (OSError, MemoryError) as error:
                self._stop(error)
        if self._file is None:
            # Memory that is used again and again: so no row is a special case.
            self.rows.use(mmap.mmap(-1, mmap.PAGESIZE), 0)

    def _grow(self, file: BinaryIO) -> None:
        capacity = max(2 * self._capacity, ROWS_AT_FIRST)
        nbytes = HEADER_BYTES + capacity * self._row_bytes
        os.posix_fallocate(file.fileno(), 0, nbytes)  # a full disk is an error here
        grown = mmap.mmap(file.fileno(), nbytes)
        self.rows.use(grown, self.rows.count if self._capacity else 0)
        self._map, self._capacity = grown, capacity


class Spool:
    """Records, traffic and definitions of one process, in files of a folder."""

    def __init__(self, folder: Path, pid: int) -> None:
        self.records = MappedTable(RECORD, self.stop)
        self.traffic = MappedTable(TRAFFIC, self.stop)
        self._definitions: TextIO | None = None
        try:
            self.records.open(folder / f"{pid}.records")
            self.traffic.open(folder / f"{pid}.traffic")
            self._definitions = (folder / f"{pid}.definitions").open("w", encoding="utf-8")
        except (OSError, MemoryError) as error:
            self.stop(error)

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

    def define_host(self, host: Host) -> None:
        """Name the host of this process; a later call replaces what an earlier one said."""
        self._define("host", list(host))

    def define_measured(self, reasons: dict[str, str]) -> None:
        """Say why something is not measured; see ``Run.measured``."""
        self._define("measured", reasons)

    def note(self, **moments: int) -> None:
        """Note moments on the clock of this process; see ``bsplib.recording.lifetimes.Noted``."""
        self._define("noted", moments)

    def _define(self, what: str, value: Any) -> None:
        if self._definitions is None:
            return
        try:
            json.dump([what, value], self._definitions)
            self._definitions.write("\n")
            self._definitions.flush()
        except OSError as error:
            self.stop(error)

    def stop(self, error: BaseException) -> None:
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
