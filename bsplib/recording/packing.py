"""Chunks: successive rows of a table in few bytes, for files of records and traces; tables of them.

A chunk is a header and a payload. The header is ``<4sIIIQ``: ``BSPC``; the number of rows;
which numbering the rows have (0: that of the run; see ``bsplib.recording.trace``); the bytes of
the payload; and what is to be added to the field ``record`` of traffic.

The payload is one frame of Zstandard with the size of its content. The content has, for each
field of the dtype in order, a byte for the form and a byte for the width, and the **residues**
of the field: the differences from what :func:`_residues` predicts of it, as unsigned numbers (0,
-1, 1, -2, ... become 0, 1, 2, 3, ...). If all of them are equal, the width is 0 and one number of
eight bytes follows; otherwise as many planes follow as the greatest residue has bytes: first
the lowest byte of all rows, then the next one. Planes of small numbers have few different
bytes, which is what the codec makes short. The form is 1 where the prediction of
``comp_cpu`` and ``comm_cpu`` is the elapsed time of the part, and 0 where it is nothing.

Reading checks every length before memory is used; damage is a TraceError. Zstandard has no
checksum here: in a trace, zip has one, and all values are checked when they have been read.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsplib.errors import TraceError
from bsplib.recording.tables import ROWS, ArrayTable, Columns, RunTable, constant, values_of

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

HEADER = Struct("<4sIIIQ")
MAGIC = b"BSPC"
_LEVEL = 1
"""The fastest level of zstd: the process that is recorded waits while it packs a chunk."""
_WORD = np.dtype(np.int64).itemsize

_Column = NDArray[np.int64]
_Columns = dict[str, _Column]


Numbering = dict[str, NDArray[np.int32]]
"""The positions in the run of the ``group`` and ``stack`` of a chunk, by the numbers in it."""


class Chunk(NamedTuple):
    """Rows as they stand in a file."""

    rows: int
    """How many."""
    numbering: int
    base: int
    """To be added to the field ``record`` of traffic."""
    payload: bytes | memoryview

    def whole(self) -> bytes:
        """Return the header and the payload."""
        header = HEADER.pack(MAGIC, self.rows, self.numbering, len(self.payload), self.base)
        return b"".join((header, self.payload))


def chunks_in(content: bytes, *, may_be_cut: bool = False) -> Iterator[Chunk]:
    """Yield the chunks of a file, or of a member of one.

    Args:
        content: of the file.
        may_be_cut: the last chunk may be there in part; it is left out.

    Raises:
        TraceError: something else than chunks is there.
    """
    left = memoryview(content)
    while left:
        is_whole = len(left) >= HEADER.size
        if is_whole:
            magic, rows, numbering, nbytes, base = HEADER.unpack_from(left)
            if magic != MAGIC or not 1 <= rows <= ROWS:
                raise TraceError("a chunk has an impossible header")
            left = left[HEADER.size :]
            is_whole = nbytes <= len(left)
        if not is_whole:
            if may_be_cut:
                return
            raise TraceError("a chunk has an impossible header")
        yield Chunk(rows, numbering, base, left[:nbytes])
        left = left[nbytes:]


def chunk_of(rows: NDArray[np.void], numbering: int = 0, base: int = 0) -> Chunk:
    """Return rows as a chunk; at most ``ROWS``, and at least one."""
    content: list[bytes] = []
    columns = {name: rows[name].astype(np.int64) for name in rows.dtype.names or ()}
    for form, residues in _residues(columns):
        if (residues == residues[0]).all():
            content += [bytes((form, 0)), _unsigned(residues[:1]).astype("<u8").tobytes()]
            continue
        unsigned = _unsigned(residues)
        greatest = int(unsigned.max())
        width = (greatest.bit_length() + 7) // 8
        planes = unsigned.astype("<u8", copy=False).view(np.uint8).reshape(-1, _WORD)
        content += [bytes((form, width)), planes[:, :width].T.tobytes()]
    whole, compressor = b"".join(content), _compressor()
    compressor.set_pledged_input_size(len(whole))
    payload = compressor.compress(whole, compressor.FLUSH_FRAME)
    return Chunk(len(rows), numbering, base, payload)


def packed(rows: NDArray[np.void]) -> bytes:
    """Return rows as one chunk with the numbering of the run; see :func:`chunk_of`."""
    return chunk_of(rows).whole()


_of_thread = threading.local()


def _compressor() -> zstd.ZstdCompressor:
    """Return the compressor of this thread: to make one takes as long as to compress a chunk."""
    if not hasattr(_of_thread, "compressor"):
        _of_thread.compressor = zstd.ZstdCompressor(_LEVEL)
    compressor: zstd.ZstdCompressor = _of_thread.compressor
    return compressor


def _unsigned(residues: _Column) -> NDArray[np.uint64]:
    """Return 0, 1, 2, 3, ... for 0, -1, 1, -2, ..."""
    return ((residues << 1) ^ (residues >> 63)).view(np.uint64)


def unpacked_columns(
    payload: bytes | memoryview,
    count: int,
    dtype: np.dtype[Any],
    names: Iterable[str] | None = None,
) -> dict[str, NDArray[Any]]:
    """Return the fields of the rows of a payload, each in its own type.

    Args:
        payload: that of a chunk.
        count: number of its rows, at most ``ROWS``.
        dtype: that of the rows.
        names: the fields that are wanted; default: all.

    Raises:
        TraceError: it is not the payload of ``count`` rows of that dtype.
    """
    wanted = list(dtype.names or () if names is None else names)
    needed = set(wanted).union(*(_NEEDS.get(name, ()) for name in wanted))
    content = _content(payload, count, dtype)
    columns: _Columns = {}
    forms: dict[str, int] = {}
    at = 0
    for name in dtype.names or ():
        forms[name], width, at = _read_form(content, at, count)
        if name in needed:
            columns[name] = _read_residues(content, at, width, count)
        at += width * count if width else _WORD
    if at != len(content):
        raise TraceError("a chunk is longer than its rows")
    _restore(columns, forms)
    return {name: _narrowed(name, columns[name], dtype[name]) for name in wanted}


def _narrowed(name: str, column: _Column, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return a column in the type of its field."""
    if dtype.itemsize == _WORD:
        return column
    values = values_of(column)
    narrow = values.astype(dtype)
    if not (narrow == values).all():
        raise TraceError(f"a chunk has a {name} that is too great for its field")
    return constant(narrow[0], len(column), dtype) if len(narrow) < len(column) else narrow


def _content(payload: bytes | memoryview, count: int, dtype: np.dtype[Any]) -> memoryview:
    """Return the content of the frame, no longer than ``count`` rows can be."""
    most = len(dtype.names or ()) * (2 + _WORD * max(count, 1))
    try:
        size = zstd.get_frame_info(payload).decompressed_size
        if size is None or size > most:
            raise TraceError(f"a chunk of {count} rows declares a content of {size} bytes")
        content = zstd.ZstdDecompressor().decompress(payload, max_length=most)
    except zstd.ZstdError as error:
        raise TraceError(f"a chunk is damaged: {error}") from None
    if len(content) != size:
        raise TraceError(f"a chunk is damaged: {len(content)} of {size} bytes are there")
    return memoryview(content)


def _read_form(content: memoryview, at: int, count: int) -> tuple[int, int, int]:
    """Return the form and the width of a field, and where its residues begin."""
    if len(content) < at + 2 or content[at] > 1 or content[at + 1] > _WORD:
        raise TraceError("a chunk is shorter than its rows, or has an unknown form")
    form, width = content[at], content[at + 1]
    at += 2
    if len(content) < at + (width * count if width else _WORD):
        raise TraceError("a chunk is shorter than its rows")
    return form, width, at


def _read_residues(content: memoryview, at: int, width: int, count: int) -> _Column:
    """Return the residues of a field from their planes, the lowest byte first."""
    if width == 0:
        residue = int.from_bytes(content[at : at + _WORD], "little")
        return constant((residue >> 1) ^ -(residue & 1), count)
    word = np.min_scalar_type(256**width - 1)  # short words take fewer steps of the processor
    words = np.zeros((count, word.itemsize), np.uint8)
    for number in range(width):  # faster than all at once
        words[:, number] = np.frombuffer(content, np.uint8, count, at + number * count)
    unsigned = words.view(word.newbyteorder("<")).ravel().astype(word, copy=False)
    sign = unsigned & 1
    np.negative(sign, out=sign)
    unsigned >>= 1
    unsigned ^= sign
    return unsigned.view(f"i{word.itemsize}").astype(np.int64, copy=False)


# -- what is predicted of a field -----------------------------------------------------------------

_RUNNING = ("superstep", "record", "time")
"""Fields that rise from row to row: what is predicted is the value of the row before."""
_USED = ("comp_cpu", "comm_cpu")
_TIMES = ("start", "arrive", "released", "end")
_NEEDS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys((*_TIMES, "recording"), _TIMES),
    **dict.fromkeys(_USED, (*_TIMES, "comm_calls", "sub")),
}
"""The fields without which a field cannot be restored."""


def _residues(columns: _Columns) -> Iterator[tuple[int, _Column]]:
    """Yield the form and the residues of each field.

    A time of a superstep is predicted to be the time before it in the row, the start of a
    superstep to be the end of the row before, and ``recording`` the time between both.
    """
    found = dict(columns)
    for name in _RUNNING:
        if name in columns:
            found[name] = np.diff(columns[name], prepend=0)
    forms = dict.fromkeys(columns, 0)
    if "start" in columns:
        found["arrive"] = columns["arrive"] - columns["start"]
        found["released"] = columns["released"] - columns["arrive"]
        found["end"] = columns["end"] - columns["released"]
        found["start"] = columns["start"] - np.append(0, columns["end"][:-1])
        found["recording"] = found["start"] - columns["recording"]
        for name, elapsed in zip(_USED, _elapsed(found), strict=True):
            if int(columns[name].max()) >= 0:
                found[name], forms[name] = elapsed - columns[name], 1
    return ((forms[name], column) for name, column in found.items())


def _restore(found: _Columns, forms: dict[str, int]) -> None:
    """Make values of the residues of all fields that are there."""
    for name in _RUNNING:
        if name in found:
            found[name] = np.cumsum(found[name])
    if "start" not in found:
        return
    used = [name for name in _USED if name in found and forms[name]]
    if used:
        elapsed = dict(zip(_USED, _elapsed(found), strict=True))
        for name in used:
            found[name] = elapsed[name] - found[name]
    if "recording" in found:
        found["recording"] = found["start"] - found["recording"]
    lasts = found["arrive"] + found["released"] + found["end"]
    ends = np.cumsum(found["start"] + lasts)
    found["start"] = ends - lasts
    found["arrive"] = found["start"] + found["arrive"]
    found["released"] = found["arrive"] + found["released"]
    found["end"] = ends


def _elapsed(found: _Columns) -> tuple[_Column, _Column]:
    """Return the elapsed times of computing and communicating, from residues of times."""
    calls = found["comm_calls"]
    return found["arrive"] - calls - found["sub"], calls + found["released"] + found["end"]


# -- tables of chunks -----------------------------------------------------------------------------


class StoredTable(RunTable):
    """A table whose rows stay packed until they are asked for.

    Args:
        dtype: of the rows.
        chunks: that have them.
        numberings: those of the chunks, from 1 on.
    """

    def __init__(
        self,
        dtype: np.dtype[np.void],
        chunks: list[Chunk],
        numberings: list[Numbering] | None = None,
    ) -> None:
        self._chunks = chunks
        self.dtype = dtype
        self.numberings = numberings or []
        self.bounds = np.cumsum([0, *(chunk.rows for chunk in chunks)]).tolist()

    def __reduce__(self) -> tuple[type[ArrayTable], tuple[NDArray[np.void]]]:
        return ArrayTable, (self.whole(),)

    def read(self, number: int, names: Iterable[str] | None = None) -> Columns:
        """See :meth:`RunTable.read`; groups, stacks and records have their positions in the run."""
        chunk = self._chunks[number]
        fields = unpacked_columns(chunk.payload, chunk.rows, self.dtype, names)
        if chunk.base and "record" in fields:
            fields["record"] += chunk.base
        if chunk.numbering:
            for name, positions in self.numberings[chunk.numbering - 1].items():
                if name in fields:
                    fields[name] = _renumbered(name, fields[name], positions)
        return Columns(fields, chunk.rows)

    def whole(self) -> NDArray[np.void]:
        rows = np.empty(len(self), self.dtype)
        for first, columns in self.chunks():
            part = rows[first : first + len(columns)]
            for name, values in columns.fields.items():
                part[name] = values
        rows.setflags(write=False)
        return rows

    def pieces(self) -> Iterator[bytes]:
        """Yield the chunks as they stand in a file."""
        return (chunk.whole() for chunk in self._chunks)


def _renumbered(name: str, values: NDArray[Any], positions: NDArray[np.int32]) -> NDArray[np.int32]:
    different = values_of(values)
    if different.min() < 0 or different.max() >= len(positions):
        raise TraceError(f"a chunk has a {name} that its numbering does not have")
    if len(different) < len(values):
        return constant(positions[different[0]], len(values), np.int32)
    found: NDArray[np.int32] = positions[values]
    return found


def pieces_of(table: RunTable) -> Iterator[bytes]:
    """Yield the bytes of the chunks of a table; those that are stored stay as they are."""
    if isinstance(table, StoredTable):
        return table.pieces()
    rows = table.whole()
    return (packed(rows[first : first + ROWS]) for first in range(0, len(rows), ROWS))


def numberings_in(table: RunTable) -> list[list[list[int]]]:
    """Return the numberings of the chunks of a table for JSON: positions of groups and stacks."""
    numberings = table.numberings if isinstance(table, StoredTable) else []
    return [[of["group"].tolist(), of["stack"].tolist()] for of in numberings]
