"""The trace file: the records of a program's runs, in a form that is safe to read.

A trace is a zip archive of uncompressed members, which are exactly these:

``trace.json``
    UTF-8, at most 64 MiB with 3 * 2**20 values: the document that
    ``bsplib.recording.trace_document`` specifies.

``run-0/records``, ``run-0/traffic``, ``run-1/records``, ...
    Rows of dtypes ``bsplib.recording.records.RECORD`` and ``TRAFFIC``, in the chunks that
    ``bsplib.recording.packing`` describes. Times, sizes and numbers are at most 2**53, so that
    floats represent them exactly. What was not measured is -1. Where a chunk has a numbering
    other than 0, its fields ``group`` and ``stack`` are positions in the lists of that numbering
    (1 is the first one in the document), which have the positions in the run.

``run-0/samples``, ``run-0/waits``, ...
    The same of dtype ``SAMPLE``, only of runs that were sampled, and of dtype ``WAIT``, only of
    programs of mpi4py; beyond 2**20 rows, at most 8 in a byte of the file.

``bsplib.recording.records`` describes the fields. A reader checks ranges, positions and
order, so that the profiler need not check a Trace that was read. Zip compresses nothing. The
document declares how many rows there are; a reader refuses more than fit into the memory of the
computer before it takes memory for them.

A change of the format changes the version; a reader accepts the earlier ones, too
(``bsplib.recording.old_formats``).
"""

from __future__ import annotations

import os
import reprlib
import struct
import zipfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO, NamedTuple, TypeVar
from zlib import crc32

import numpy as np

from bsplib.errors import TraceError
from bsplib.output_file import TRACE, special_kind, written_whole
from bsplib.recording.old_formats import RECORDS, renewed_records
from bsplib.recording.packing import (
    HEADER,
    MOST_ROWS,
    ChunkHead,
    packed,
    stored_heads,
    unpacked_columns,
)
from bsplib.recording.plausibility import check_records, check_samples, check_traffic, check_waits
from bsplib.recording.records import MAX_NUMBER, RECORD, SAMPLE, TRAFFIC, WAIT, Run, RunHead, Trace
from bsplib.recording.tables import (
    ArrayTable,
    Columns,
    HeldFile,
    RunTable,
    StoredChunk,
    StoredTable,
    TraceFile,
)
from bsplib.recording.trace_document import (
    MAX_JSON_BYTES,
    TraceTooLongError,
    entry_of,
    groups_of,
    head_of,
    length_of,
    numberings_of,
    parse,
    sources_of,
    stacks_of,
    to_json,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

_MOST_SHORTENED = 2**16
"""More times longer than its chunks no table can be: they have headers."""
_LOCAL_HEADER = struct.Struct("<26sHH")
"""What stands before the name and the content of a member; at the end the lengths of the name
and of further fields."""
OPTIONAL = {"samples": SAMPLE, "waits": WAIT}
"""The tables that a run need not have, and that are read as a whole."""
_MOST_WHOLE = 2**20
_MOST_IN_BYTE = 8
"""Rows of these: up to the first any number, otherwise at most the second for a byte of the member.
Times of samples differ by a byte at least, since a timer is never exact to the nanosecond."""
_PIECE = 2**18
"""Bytes of an array that are read at once: few enough to stay in the cache of a core."""

_DAMAGE = (
    zipfile.BadZipFile,
    EOFError,
    struct.error,
    RuntimeError,  # an encrypted member; also its subclasses NotImplementedError, RecursionError
    ValueError,  # not UTF-8, not JSON, an impossible seek
    OverflowError,
)
"""The errors of zipfile and json for damaged and malicious files."""


_Part = TypeVar("_Part")


@dataclass
class PackedTable:
    """The rows of a table as chunks."""

    rows: int = 0
    content: list[bytes | memoryview] = field(default_factory=list)

    def add(self, rows: int, content: Sequence[bytes | memoryview]) -> None:
        """Add a chunk of ``rows`` rows, in pieces."""
        self.rows += rows
        self.content += content


class PackedRun(NamedTuple):
    """A run whose records are chunks, and are not in its arrays."""

    run: Run
    records: PackedTable
    traffic: PackedTable
    numberings: list[tuple[list[int], list[int]]]
    """The numberings of the chunks, from 1 on; see the document of a trace."""


def write_packed(
    path: str | os.PathLike[str],
    earlier: tuple[Run, ...],
    last: PackedRun,
    scratch: Path | None = None,
) -> None:
    """Write a trace as :func:`write_trace` does, whose last run is packed.

    What the trace says of its runs is read again; the chunks of the last run are not.

    Args:
        path: file to write.
        earlier: the runs before.
        last: the last one.
        scratch: as for :func:`write_trace`.

    Raises:
        TooLongError: the trace has too many groups, stacks or runs to be read.
        TraceError: the metadata has no form in JSON.
        OSError: the file cannot be written.
    """
    with written_whole(path, TRACE, scratch=scratch) as temporary:
        write_archive(temporary, Trace((*earlier, last.run)), last)
        with _reader(temporary) as reader:
            reader.heads()


def write_trace(path: str | os.PathLike[str], trace: Trace, *, scratch: Path | None = None) -> None:
    """Write a trace completely or not at all; an earlier trace is replaced at the end.

    The file is read again before it gets its name, so that every trace that exists can be
    read. Where the JSON of the stacks would be too long, the middles of stacks are left out.

    Args:
        path: file to write; its folder must exist. Of a symbolic link, the file that it
            points to is replaced; nothing but a trace is replaced.
        trace: the runs to write.
        scratch: folder on the same file system for the file until it is complete.

    Raises:
        TooLongError: the trace has too many groups, stacks or runs to be read.
        TraceError: the metadata has no form in JSON, or the trace is not well formed.
        OSError: the file cannot be written.
    """
    with written_whole(path, TRACE, scratch=scratch) as temporary:
        try:
            write_archive(temporary, trace)
            _read(temporary)
        except (TypeError, TraceError) as error:
            kind = TraceTooLongError if isinstance(error, TraceTooLongError) else TraceError
            raise kind(f"{path}: was not written: {error}.") from error


def write_archive(path: Path, trace: Trace, last: PackedRun | None = None) -> None:
    """Write a trace without any check of its content.

    Args:
        path: the file.
        trace: the runs.
        last: the last run of it, where that is packed.

    Raises:
        TraceError: the document has no form in JSON, or is longer than allowed.
        OSError: the file cannot be written.
    """
    document = to_json(trace, None if last is None else _packed_entry(last))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo("trace.json"), document)
        for number, run in enumerate(trace.runs):
            if last is not None and run is last.run:
                for table, chunks in (("records", last.records), ("traffic", last.traffic)):
                    _write_chunks(archive, f"run-{number}/{table}", chunks)
                if run.samples is not None:  # these are in the array
                    _write_rows(archive, f"run-{number}/samples", run.samples)
                continue
            arrays = {"records": run.records, "traffic": run.traffic}
            arrays |= {name: getattr(run, name) for name in OPTIONAL}
            for name, array in arrays.items():
                if array is not None:
                    _write_rows(archive, f"run-{number}/{name}", array)


def _packed_entry(last: PackedRun) -> dict[str, Any]:
    """Return what the entry of a packed run has in place of what its arrays say."""
    rows = {"records": last.records.rows, "traffic": last.traffic.rows}
    return rows | {"numberings": last.numberings}


def _write_chunks(archive: zipfile.ZipFile, name: str, table: PackedTable) -> None:
    member = zipfile.ZipInfo(name)
    member.file_size = sum(map(len, table.content))
    with archive.open(member, "w") as file:
        for piece in table.content:
            file.write(piece)


def _write_rows(archive: zipfile.ZipFile, name: str, rows: NDArray[np.void]) -> None:
    """Write rows as a member, chunk by chunk."""
    member = zipfile.ZipInfo(name)
    member.file_size = rows.nbytes  # roughly the most: beyond 2 GiB, zip has another header
    with archive.open(member, "w") as file:
        for first in range(0, len(rows), MOST_ROWS):
            file.write(packed(rows[first : first + MOST_ROWS]))


def read_trace(
    path: str | os.PathLike[str],
    *,
    progress: Callable[[float], object] | None = None,
    content: bytes | None = None,
) -> Trace:
    """Read a trace.

    Whatever the file contains, this returns a well-formed trace or raises TraceError. It
    unpickles nothing, writes nothing, and takes memory in proportion to the file only.

    Args:
        path: the file.
        progress: called now and then with the part of the file that has been read and
            checked, from 0 to 1.
        content: what the file has, where that is in memory; then nothing is opened.

    Returns:
        The trace; its arrays are read-only. The records stay in the file, which stays open, until
        they are asked for; damage is noticed now.

    Raises:
        TraceError: the file does not exist, is no trace, is damaged, or has another version.
    """
    try:
        return _read(Path(path), progress or (lambda _: None), content)
    except TraceError as error:
        raise TraceError(f"{path}: {error}.") from error


def read_heads(path: str | os.PathLike[str]) -> tuple[RunHead, ...]:
    """Read what a trace says of its runs, without their records, which may be large.

    Raises:
        TraceError: as from :func:`read_trace`; damage of the records is not noticed.
    """
    try:
        with _reader(Path(path)) as reader:
            return reader.heads()
    except TraceError as error:
        raise TraceError(f"{path}: {error}.") from error


def _read(
    path: Path,
    progress: Callable[[float], object] = lambda _: None,
    content: bytes | None = None,
) -> Trace:
    """Read a trace; the texts of errors continue a sentence that begins with the path."""
    with _reader(path, progress, content) as reader:
        return reader.trace()


@contextmanager
def _reader(
    path: Path,
    progress: Callable[[float], object] = lambda _: None,
    content: bytes | None = None,
) -> Iterator[_Reader]:
    """Open a trace; whatever is wrong with the file becomes a TraceError."""
    try:
        if content is None:
            file = TraceFile(_opened(path), str(path))
        else:
            file = HeldFile(content, str(path))
        with zipfile.ZipFile(file.file) as archive:
            yield _Reader(archive, file, progress)
    except OSError as error:
        raise TraceError(f"cannot be read: {error.strerror or error}") from error
    except TraceError:
        raise
    except _DAMAGE as error:
        damaged = f": {error}" if "CRC" in str(error) else ""  # otherwise in words of zipfile
        raise TraceError(f"is no trace, or not a complete one{damaged}") from error


def _opened(path: Path) -> BinaryIO:
    kind = special_kind(path)
    if kind and not path.is_dir():  # opening a pipe would wait for ever
        raise TraceError(f"cannot be read: it is {kind}")
    return path.open("rb")


def _npy_header(dtype: np.dtype[np.void], count: int) -> bytes:
    """Return the header of an npy file of ``count`` elements, padded to 64 bytes."""
    descr = dtype.newbyteorder("<").descr
    text = repr({"descr": descr, "fortran_order": False, "shape": (count,)})
    magic = b"\x93NUMPY\x01\x00"
    text += " " * (-(len(magic) + 2 + len(text) + 1) % 64) + "\n"
    return magic + struct.pack("<H", len(text)) + text.encode("ascii")


def memory_bytes() -> int:
    """Return the size of the memory of this computer."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


class _Reader:
    """Reads the members of an archive, after a check that their sizes fit the file."""

    def __init__(
        self, archive: zipfile.ZipFile, file: TraceFile, progress: Callable[[float], object]
    ) -> None:
        self._archive = archive
        self._file = file
        self._progress = progress
        self._version = 0
        self._done = 0.0
        self._numberings: list[dict[str, NDArray[np.int32]]] = []
        self._members = {info.filename: info for info in archive.infolist()}
        if len(self._members) != len(archive.infolist()):
            raise TraceError("has two members of the same name")
        for info in self._members.values():
            if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
                raise TraceError(f"member {reprlib.repr(info.filename)} is compressed")
        total = sum(info.file_size for info in self._members.values())
        self._work = 2 * total  # each byte is read, and what it says is checked
        if total > (file_bytes := file.size()):
            raise TraceError(f"declares {total} bytes of content in a file of {file_bytes} bytes")

    def trace(self) -> Trace:
        """Return the trace after all checks; its records are read again when they are needed."""
        return Trace(tuple(self._each_run(self._run)))

    def heads(self) -> tuple[RunHead, ...]:
        """Return what the trace says of its runs."""
        return tuple(self._each_run(lambda _, entry: head_of(entry)))

    def _check_members(self, entries: list[Any]) -> None:
        """Check that the archive has the members that its document declares, and no others."""
        every = [entry for entry in entries if isinstance(entry, dict)]
        more = sum(entry.get(name) is not None for entry in every for name in OPTIONAL)
        declared = 1 + 2 * len(entries) + more
        if len(every) == len(entries) and len(self._members) != declared:
            raise TraceError(f"has {len(self._members)} members for {len(entries)} runs")

    def _each_run(self, read: Callable[[str, dict[str, Any]], _Part]) -> Iterator[_Part]:
        """Yield what is read of each run, from the name of its folder and its entry."""
        self._version, entries = parse(self._content("trace.json", MAX_JSON_BYTES))
        self._advance(2 * self._member("trace.json").file_size)
        self._check_members(entries)
        for number, entry in enumerate(entries):
            try:
                yield read(f"run-{number}", entry_of(entry))
            except TraceError as error:
                raise TraceError(f"run {number}: {error}") from error

    def _run(self, folder: str, entry: dict[str, Any]) -> Run:
        """Return one run after all checks."""
        head = head_of(entry)
        groups, stacks = groups_of(entry, head.nprocs), stacks_of(entry)
        self._numberings = numberings_of(entry, len(groups), len(stacks))
        run = Run(
            **head._asdict(),
            groups=groups,
            stacks=stacks,
            records=self._records(folder, entry),
            traffic=self._traffic(folder, entry),
            sources=sources_of(entry),
            samples=self._optional(folder, "samples", entry),
            waits=self._optional(folder, "waits", entry),
        )
        for table, check in (("records", check_records), ("traffic", check_traffic)):
            check(run, self._advance_of(folder, table, len(run.table(table))))
        if run.samples is not None:
            check_samples(run, self._advance_of(folder, "samples", len(run.samples)))
        if run.waits is not None:
            check_waits(run, self._advance_of(folder, "waits", len(run.waits)))
        return run

    def _records(self, folder: str, entry: dict[str, Any]) -> RunTable:
        """Return the records of a run, in the form of this version."""
        if self._version in RECORDS:
            rows = self._array(folder, "records", RECORDS[self._version], entry)
            return ArrayTable(renewed_records(rows))
        return self._table(folder, "records", RECORD, entry)

    def _traffic(self, folder: str, entry: dict[str, Any]) -> RunTable:
        """Return the traffic of a run."""
        if self._version in RECORDS:
            return ArrayTable(self._array(folder, "traffic", TRAFFIC, entry))
        return self._table(folder, "traffic", TRAFFIC, entry)

    def _optional(self, folder: str, table: str, entry: dict[str, Any]) -> NDArray[np.void] | None:
        """Return a table that a run need not have; None if it does not."""
        if entry.get(table) is None:
            return None
        name = self._name(folder, table)
        count, nbytes = length_of(entry, table, name), self._member(name).file_size
        if count > max(_MOST_WHOLE, nbytes * _MOST_IN_BYTE):
            raise TraceError(f"{name} declares {count} rows in {nbytes} bytes")
        return self._table(folder, table, OPTIONAL[table], entry).whole()

    def _advance(self, size_bytes: float) -> None:
        """Tell that ``size_bytes`` more have been read, or checked."""
        if size_bytes:
            self._done += size_bytes
            self._progress(round(self._done / self._work, 9))

    def _advance_of(self, folder: str, table: str, rows: int) -> Callable[[int], None]:
        """Return what is called with the number of rows of a table that have been checked."""
        size = self._member(self._name(folder, table)).file_size
        if not rows:
            self._advance(size)
        return lambda checked: self._advance(checked * size / rows)

    def _name(self, folder: str, table: str) -> str:
        """Return the name of a member; before version 3 it was an array of numpy."""
        return f"{folder}/{table}" + (".npy" if self._version in RECORDS else "")

    def _table(
        self, folder: str, table: str, dtype: np.dtype[np.void], entry: dict[str, Any]
    ) -> StoredTable:
        """Return the table of one member, of as many rows as the document declares.

        The chunks are found, and the checksum of the member is verified; nothing is unpacked.
        """
        name = self._name(folder, table)
        count = length_of(entry, table, name)
        member = self._member(name)
        if count * dtype.itemsize > min(memory_bytes(), member.file_size * _MOST_SHORTENED):
            raise TraceError(f"{name} declares {count} rows in {member.file_size} bytes")
        chunks, at, rows = [], self._content_at(member), 0
        with self._archive.open(member) as content:
            for head, payload in stored_heads(content, member.file_size):
                rows += head.rows
                if rows > count:
                    raise TraceError(f"{name} has more rows than the {count} declared")
                at += HEADER.size
                unpack = partial(_unpacked, head, dtype, self._numbering(head))
                chunks.append(StoredChunk(at, head.nbytes, crc32(payload), head.rows, unpack))
                at += head.nbytes
                self._advance(HEADER.size + head.nbytes)
        if rows != count:
            raise TraceError(f"{name} has {rows} rows, and not the {count} declared")
        return StoredTable(self._file, dtype, chunks)

    def _content_at(self, member: zipfile.ZipInfo) -> int:
        """Return where the content of a member begins in the file."""
        before = self._file.peek(member.header_offset, _LOCAL_HEADER.size)
        _, name, extra = _LOCAL_HEADER.unpack(before)
        return member.header_offset + _LOCAL_HEADER.size + int(name) + int(extra)

    def _numbering(self, head: ChunkHead) -> dict[str, NDArray[np.int32]]:
        """Return the positions in the run of the groups and stacks of a chunk, where it has any."""
        if head.numbering > len(self._numberings) or head.base > MAX_NUMBER:
            raise TraceError(f"a chunk has the numbering {head.numbering}, base {head.base}")
        return self._numberings[head.numbering - 1] if head.numbering else {}

    def _array(
        self, folder: str, array: str, dtype: np.dtype[np.void], entry: dict[str, Any]
    ) -> NDArray[np.void]:
        """Return the array of one npy member, of the length that the document declares."""
        name = self._name(folder, array)
        count = length_of(entry, array, name)
        header = _npy_header(dtype, count)
        member = self._member(name)
        if member.file_size == len(header) + count * dtype.itemsize:
            with self._archive.open(member) as file:
                if file.read(len(header)) == header:
                    self._advance(2 * len(header))
                    return _elements(file, dtype, count, self._advance)
        raise TraceError(f"{name} is not an array of the {count} elements declared")

    def _content(self, name: str, limit: int) -> bytes:
        """Return the bytes of one member; zipfile verifies their checksum."""
        member = self._member(name)
        if member.file_size > limit:
            raise TraceError(f"{name} has {member.file_size} bytes, more than {limit}")
        return self._archive.read(member)

    def _member(self, name: str) -> zipfile.ZipInfo:
        if name not in self._members:
            raise TraceError(f"has no member {name}")
        return self._members[name]


def _unpacked(
    head: ChunkHead,
    dtype: np.dtype[np.void],
    numbering: dict[str, NDArray[np.int32]],
    payload: bytes,
    names: Iterable[str] | None,
) -> Columns:
    """Return the rows of a chunk, with groups, stacks and records by their positions in the run."""
    fields = unpacked_columns(payload, head.rows, dtype, names)
    if head.base and "record" in fields:
        fields["record"] += head.base
    for name, positions in numbering.items():
        if name in fields:
            values = fields[name]
            if values.min() < 0 or values.max() >= len(positions):
                raise TraceError(f"a chunk has a {name} that its numbering does not have")
            fields[name] = positions[values]
    return Columns(fields, head.rows)


def _elements(
    file: IO[bytes], dtype: np.dtype[np.void], count: int, advance: Callable[[int], None]
) -> NDArray[np.void]:
    """Read the rest of a member into an array, in pieces; zipfile verifies the checksum."""
    stored = np.empty(count, dtype.newbyteorder("<"))
    content = stored.view(np.uint8)
    for first in range(0, len(content), _PIECE):
        piece = content[first : first + _PIECE]
        piece[:] = np.frombuffer(file.read(len(piece)), np.uint8)
        advance(len(piece))
    # Of equal dtypes this one itself: numpy's fast paths for ufunc.at compare by identity.
    array = stored.view(dtype) if stored.dtype == dtype else stored.astype(dtype)
    array.setflags(write=False)
    return array
