"""Tables whose rows are chunks in files, from which they are read when they are asked for."""

from __future__ import annotations

import io
import os
import weakref
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from bsplib.errors import TraceError
from bsplib.recording.packing import (
    HEADER,
    MAGIC,
    ChunkHead,
    head_of,
    packed,
    payload_of,
    unpacked_columns,
)
from bsplib.recording.tables import ROWS, ArrayTable, Columns, RunTable

Numbering = dict[str, NDArray[np.int32]]
"""The positions in the run of the ``group`` and ``stack`` of a chunk, by the numbers in it."""


class TraceFile:
    """A file of a trace, open as long as a table needs it; a new file in its place is another."""

    def __init__(self, file: BinaryIO, path: str) -> None:
        self.file = file
        self._path = path
        weakref.finalize(self, file.close)

    def size(self) -> int:
        """Return the number of its bytes."""
        return os.fstat(self.file.fileno()).st_size

    def peek(self, at: int, nbytes: int) -> bytes:
        """Return some bytes of the file, wherever another reader of it is."""
        return os.pread(self.file.fileno(), nbytes, at)

    def read(self, chunk: StoredChunk) -> bytes:
        """Return the payload of a chunk.

        Raises:
            TraceError: it is no longer what it was.
        """
        try:
            payload = self.peek(chunk.at, chunk.head.nbytes)
        except OSError as error:
            raise TraceError(f"{self._path} cannot be read: {error.strerror}.") from error
        if crc32(payload) != chunk.checksum:
            raise TraceError(f"{self._path} was changed while it was read: read it again.")
        return payload


class HeldFile(TraceFile):
    """The content of a file in memory, which keeps no descriptor open."""

    def __init__(self, content: bytes, path: str) -> None:
        super().__init__(io.BytesIO(content), path)
        self._content = content

    def size(self) -> int:
        return len(self._content)

    def peek(self, at: int, nbytes: int) -> bytes:
        return self._content[at : at + nbytes]


class StoredChunk(NamedTuple):
    """Where the payload of a chunk is in a file, and what it must be."""

    file: TraceFile
    at: int
    checksum: int
    head: ChunkHead


def stored_chunks(
    file: TraceFile, content: IO[bytes], at: int, nbytes: int, *, may_be_cut: bool = False
) -> Iterator[StoredChunk]:
    """Yield the chunks of a part of a file.

    Args:
        file: in which they are.
        content: reads that part from its beginning.
        at: where it begins in the file.
        nbytes: its length.
        may_be_cut: the last chunk may be there in part; it is left out.

    Raises:
        TraceError: something else than chunks is there.
    """
    end = at + nbytes
    while at < end:
        left = end - at - HEADER.size
        if left < 0 or (head := head_of(content.read(HEADER.size))).nbytes > left:
            if may_be_cut:
                return
            raise TraceError("a chunk has an impossible header")
        at += HEADER.size
        yield StoredChunk(file, at, crc32(content.read(head.nbytes)), head)
        at += head.nbytes


def spooled_chunks(path: Path) -> list[StoredChunk]:
    """Return the chunks that a process has written to a file, which may not be there.

    They have the numbering of the process.
    """
    content = path.read_bytes() if path.exists() else b""
    file = HeldFile(content, str(path))
    found = stored_chunks(file, file.file, 0, len(content), may_be_cut=True)
    return [chunk._replace(head=chunk.head._replace(numbering=0, base=0)) for chunk in found]


def chunk_of(rows: NDArray[np.void], numbering: int = 0, base: int = 0) -> StoredChunk:
    """Return rows as a chunk in memory; at most ``ROWS``, and at least one."""
    payload = payload_of(rows)
    head = ChunkHead(len(rows), numbering, len(payload), base)
    return StoredChunk(HeldFile(payload, "memory"), 0, crc32(payload), head)


class StoredTable(RunTable):
    """A table whose rows stay in files.

    Args:
        dtype: of the rows.
        chunks: where they are.
        numberings: those of the chunks, from 1 on.
    """

    def __init__(
        self,
        dtype: np.dtype[np.void],
        chunks: list[StoredChunk],
        numberings: list[Numbering] | None = None,
    ) -> None:
        self._chunks = chunks
        self.dtype = dtype
        self.numberings = numberings or []
        self.bounds = np.cumsum([0, *(chunk.head.rows for chunk in chunks)]).tolist()

    def __reduce__(self) -> tuple[type[ArrayTable], tuple[NDArray[np.void]]]:
        return ArrayTable, (self.whole(),)

    def read(self, number: int, names: Iterable[str] | None = None) -> Columns:
        """See :meth:`RunTable.read`; groups, stacks and records have their positions in the run."""
        chunk = self._chunks[number]
        head = chunk.head
        fields = unpacked_columns(chunk.file.read(chunk), head.rows, self.dtype, names)
        if head.base and "record" in fields:
            fields["record"] += head.base
        if head.numbering:
            for name, positions in self.numberings[head.numbering - 1].items():
                if name in fields:
                    fields[name] = _renumbered(name, fields[name], positions)
        return Columns(fields, head.rows)

    def whole(self) -> NDArray[np.void]:
        rows = np.empty(len(self), self.dtype)
        for first, columns in self.chunks():
            part = rows[first : first + len(columns)]
            for name, values in columns.fields.items():
                part[name] = values
        rows.setflags(write=False)
        return rows

    def pieces(self) -> Iterator[bytes]:
        """Yield the headers and the payloads of the chunks."""
        for chunk in self._chunks:
            yield HEADER.pack(MAGIC, *chunk.head)
            yield chunk.file.read(chunk)


def _renumbered(name: str, values: NDArray[Any], positions: NDArray[np.int32]) -> NDArray[np.int32]:
    if values.min() < 0 or values.max() >= len(positions):
        raise TraceError(f"a chunk has a {name} that its numbering does not have")
    found: NDArray[np.int32] = positions[values]
    return found


def pieces_of(table: RunTable) -> Iterator[bytes]:
    """Yield the bytes of the chunks of a table; those that are stored stay as they are."""
    if isinstance(table, StoredTable):
        yield from table.pieces()
        return
    rows = table.whole()
    for first in range(0, len(rows), ROWS):
        yield packed(rows[first : first + ROWS])


def numberings_in(table: RunTable) -> list[list[list[int]]]:
    """Return the numberings of the chunks of a table for JSON: positions of groups and stacks."""
    numberings = table.numberings if isinstance(table, StoredTable) else []
    return [[of["group"].tolist(), of["stack"].tolist()] for of in numberings]
