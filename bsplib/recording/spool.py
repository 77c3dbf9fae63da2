"""The files to which a process writes its records while the program runs.

Rows are written directly into mapped files, so that they are kept if the process is
killed; ``bsplib.recording.collect`` reads them when the run has ended in any way. When a mapped
file has ``CHUNK_ROWS`` rows, they become a chunk (:mod:`bsplib.recording.packing`) at the end
of another file, and the mapped file is used anew: so the files of a long run are short.

A process may be killed at any moment of that. The chunk is written first, then the number of
rows becomes 0, then the number of chunks in the mapped file is raised. So where there is one whole
chunk more than that number, the mapped rows are either in that chunk or none; a last chunk that is
not whole is left out, and the rows are still mapped.

Disk space is allocated before a file is mapped: so a full disk is an error at that moment,
and no SIGBUS later. After such an error, or if a file cannot be created, the process stops
recording, and the program continues.
"""

from __future__ import annotations

import errno
import json
import mmap
import os
from collections.abc import Callable
from pathlib import Path
from struct import Struct
from typing import Any, BinaryIO

import numpy as np

from bsplib.call_site import is_of_handler
from bsplib.core.log import HEADER_BYTES, Rows
from bsplib.recording.packing import packed
from bsplib.recording.records import RECORD, TRAFFIC

HEADER = Struct("<QQ")
"""Beginning of a table: the number of complete rows; and, in the lower half, the ``errno`` of the
error that ended the recording (0 for none), in the upper half the number of chunks before the
rows."""
_WORD = Struct("<Q")
assert HEADER.size == HEADER_BYTES
ROWS_AT_FIRST = 1024
"""Few, so that a short run has small files; they double up to ``CHUNK_ROWS``."""
CHUNK_ROWS = 8192
CHUNKS = ".chunks"
"""Is added to the name of a table for the file of its chunks."""

_Stop = Callable[[BaseException], None]


def append(file: BinaryIO, content: bytes) -> None:
    """Append to a file without a buffer, by one write, all of the content or nothing.

    Raises:
        OSError: there is no space for it.
    """
    at = file.tell()
    if file.write(content) != len(content):  # the disk is full
        file.truncate(at)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _raise_of_handler(error: BaseException) -> None:
    """Raise an error again if a handler of the program's signals has raised it."""
    if is_of_handler(error):
        raise error


class MappedTable:
    """Rows of one dtype, appended one by one to a mapped file. A new table discards all rows.

    Args:
        dtype: dtype of the rows: ``RECORD`` or ``TRAFFIC``.
        stop: is called if there is no space for a row; it has to call :meth:`discard` of this
            table.
    """

    def __init__(self, dtype: np.dtype[Any], stop: _Stop) -> None:
        self.rows = Rows(dtype, self._make_room)
        """Appends rows; the count in the file is raised after a row is complete."""
        self._dtype = dtype
        self._row_bytes = dtype.itemsize
        self._stop = stop
        self._path = Path()
        self._file: BinaryIO | None = None
        self._chunks: BinaryIO | None = None
        self._written = 0  # chunks
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
        self._file, self._path = file, path

    def discard(self, reason: int) -> None:
        """Keep the rows in the file, store the reason there, and discard all later rows.

        Args:
            reason: the ``errno`` of the error that ended the recording.
        """
        if self._map is not None:
            HEADER.pack_into(self._map, 0, self.rows.count, reason | self._written << 32)
        self.close()

    def close(self) -> None:
        """Close the file; its rows are kept, and later rows are discarded."""
        self.rows.use(None, 0)
        if self._map is not None:
            self._map.close()
        for file in (self._file, self._chunks):
            if file is not None:
                file.close()
        self._map = self._file = self._chunks = None

    def _make_room(self) -> None:
        """Enlarge the file, or make a chunk of its rows."""
        if self._file is not None:
            try:
                if self._capacity < CHUNK_ROWS:
                    self._grow(self._file)
                else:
                    self._turn()
            except (OSError, MemoryError) as error:
                self._stop(error)  # also after an error of a handler: half of it may be done
                _raise_of_handler(error)
        if self._file is None:
            # Memory that is used again and again: so no row is a special case.
            self.rows.use(mmap.mmap(-1, mmap.PAGESIZE), 0)

    def _turn(self) -> None:
        """Make a chunk of the rows, and use their memory anew."""
        assert self._map is not None
        count = self.rows.count
        if self._chunks is None:
            chunks = self._path.with_name(self._path.name + CHUNKS)
            self._chunks = chunks.open("xb", buffering=0)
        # A copy: the map could not be closed while an array refers to it.
        rows = np.frombuffer(bytes(self._map), self._dtype, count, HEADER_BYTES)
        append(self._chunks, packed(rows))
        self._written += 1
        _WORD.pack_into(self._map, 0, 0)
        _WORD.pack_into(self._map, _WORD.size, self._written << 32)
        self.rows.before += count
        self.rows.use(self._map, 0)

    def _grow(self, file: BinaryIO) -> None:
        capacity = max(2 * self._capacity, ROWS_AT_FIRST)
        nbytes = HEADER_BYTES + capacity * self._row_bytes
        _reserve(file.fileno(), nbytes)
        grown = mmap.mmap(file.fileno(), nbytes)
        self.rows.use(grown, self.rows.count if self._capacity else 0)
        self._map, self._capacity = grown, capacity


def _reserve(descriptor: int, nbytes: int) -> None:
    """Make a file longer; a full disk is an error here where the system can tell."""
    if hasattr(os, "posix_fallocate"):  # not on macOS
        os.posix_fallocate(descriptor, 0, nbytes)
    else:
        os.ftruncate(descriptor, nbytes)


class Spool:
    """Records, traffic and definitions of one process, in files of a folder."""

    def __init__(self, folder: Path, pid: int) -> None:
        self.records = MappedTable(RECORD, self.stop)
        self.traffic = MappedTable(TRAFFIC, self.stop)
        self._definitions: BinaryIO | None = None
        try:
            self.records.open(folder / f"{pid}.records")
            self.traffic.open(folder / f"{pid}.traffic")
            self._definitions = (folder / f"{pid}.definitions").open("wb", buffering=0)
        except (OSError, MemoryError) as error:
            self.stop(error)

    def close(self) -> None:
        """Close the files; their content is kept."""
        self.records.close()
        self.traffic.close()
        self._close_definitions()

    def define(self, what: str, value: Any, *, is_needed: bool = True) -> None:
        """Say something of the process that the trace has; see ``collect._Part.define``.

        Args:
            what: ``stack`` or ``group``, whose numbers are the count of those that were defined
                before; ``host``, ``measured``, ``noted``, ``imports``, ``blocks``; or
                ``samples``: a list of stacks, and the fields of ``SAMPLE`` of each, from
                ``time`` on, whose ``stack`` is a position in that list.
            value: in values of JSON.
            is_needed: without space for it, recording stops.
        """
        if self._definitions is None:  # recording has stopped
            return
        try:
            append(self._definitions, (json.dumps([what, value]) + "\n").encode())
        except (OSError, MemoryError) as error:
            if is_needed:
                self.stop(error)  # also after an error of a handler: it may be defined or not
            _raise_of_handler(error)

    def stop(self, error: BaseException) -> None:
        """Stop recording; what has been recorded is kept."""
        reason = (error.errno if isinstance(error, OSError) else None) or errno.ENOMEM
        self.records.discard(reason)
        self.traffic.discard(reason)
        self._close_definitions()

    def _close_definitions(self) -> None:
        definitions, self._definitions = self._definitions, None
        if definitions is not None:
            definitions.close()
