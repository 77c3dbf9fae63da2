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

A change of the format changes the version, and a reader accepts its own only.
"""

from __future__ import annotations

import os
import reprlib
import struct
import zipfile
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from bsplib.errors import TraceError
from bsplib.output_file import TRACE, special_kind, written_whole
from bsplib.recording.packing import Numbering, StoredTable, chunks_in, pieces_of
from bsplib.recording.plausibility import check_records, check_samples, check_traffic, check_waits
from bsplib.recording.records import MAX_NUMBER, RECORD, SAMPLE, TRAFFIC, WAIT, Run, Trace
from bsplib.recording.tables import ArrayTable
from bsplib.recording.trace_document import (
    MAX_JSON_BYTES,
    TraceTooLongError,
    entry_of,
    groups_of,
    head_of,
    numberings_of,
    parse,
    sources_of,
    stacks_of,
    to_json,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy as np
    from numpy.typing import NDArray

OPTIONAL = {"samples": SAMPLE, "waits": WAIT}
"""The tables that a run need not have, and that are read as a whole."""
_MOST_WHOLE = 2**20
_MOST_IN_BYTE = 8
"""Rows of these: up to the first any number, otherwise at most the second for a byte of the member.
Times of samples differ by a byte at least, since a timer is never exact to the nanosecond."""
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


def write_trace(
    path: str | os.PathLike[str],
    trace: Trace,
    *,
    scratch: Path | None = None,
    is_sound: bool = False,
) -> None:
    """Write a trace completely or not at all; an earlier trace is replaced at the end.

    The file is read again before it gets its name, so that every trace that exists can be
    read. Where the JSON of the stacks would be too long, the middles of stacks are left out.
    Tables that are stored as chunks are copied.

    Args:
        path: file to write; its folder must exist. Of a symbolic link, the file that it
            points to is replaced; nothing but a trace is replaced.
        trace: the runs to write.
        scratch: folder on the same file system for the file until it is complete.
        is_sound: the records come from recorders that ended well: they are not read again.

    Raises:
        TooLongError: the trace has too many groups, stacks or runs to be read.
        TraceError: the metadata has no form in JSON, or the trace is not well formed.
        OSError: the file cannot be written.
    """
    with written_whole(path, TRACE, scratch=scratch) as temporary:
        try:
            write_archive(temporary, trace)
            with _reader(temporary) as reader:
                _ = reader.heads() if is_sound else reader.trace()
        except (TypeError, TraceError) as error:
            kind = TraceTooLongError if isinstance(error, TraceTooLongError) else TraceError
            raise kind(f"{path}: was not written: {error}.") from error


def write_archive(path: Path, trace: Trace) -> None:
    """Write a trace without any check of its content.

    Raises:
        TraceError: the document has no form in JSON, or is longer than allowed.
        OSError: the file cannot be written.
    """
    document = to_json(trace)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo("trace.json"), document)
        for number, run in enumerate(trace.runs):
            tables = {name: run.table(name) for name in ("records", "traffic")}
            whole = {name: getattr(run, name) for name in OPTIONAL}
            tables |= {n: ArrayTable(rows) for n, rows in whole.items() if rows is not None}
            for name, table in tables.items():
                member = zipfile.ZipInfo(f"run-{number}/{name}")
                # Roughly the most: beyond 2 GiB, zip has another header.
                member.file_size = len(table) * table.dtype.itemsize
                with archive.open(member, "w") as file:
                    for piece in pieces_of(table):
                        file.write(piece)


def read_trace(path: str | os.PathLike[str]) -> Trace:
    """Read a trace.

    Whatever the file contains, this returns a well-formed trace or raises TraceError. It
    unpickles nothing, writes nothing, and takes memory in proportion to the file only.

    Args:
        path: the file.

    Returns:
        The trace; its arrays are read-only. The records stay packed until they are asked for;
        damage is noticed now.

    Raises:
        TraceError: the file does not exist, is no trace, is damaged, or has another version.
    """
    try:
        with _reader(Path(path)) as reader:
            return reader.trace()
    except TraceError as error:
        raise TraceError(f"{path}: {error}.") from error


def read_heads(path: str | os.PathLike[str]) -> tuple[Run, ...]:
    """Read what a trace says of its runs, without groups, stacks and records, which may be large.

    Raises:
        TraceError: as from :func:`read_trace`; damage of the records is not noticed.
    """
    try:
        with _reader(Path(path)) as reader:
            return reader.heads()
    except TraceError as error:
        raise TraceError(f"{path}: {error}.") from error


@contextmanager
def _reader(path: Path) -> Iterator[_Reader]:
    """Open a trace; whatever is wrong with the file becomes a TraceError.

    The texts of errors continue a sentence that begins with the path.
    """
    try:
        kind = "" if path.is_dir() else special_kind(path)
        if kind:  # opening a pipe would wait for ever
            raise TraceError(f"cannot be read: it is {kind}")  # noqa: TRY301  # as what follows
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            yield _Reader(archive, os.fstat(file.fileno()).st_size)
    except OSError as error:
        raise TraceError(f"cannot be read: {error.strerror or error}") from error
    except TraceError:
        raise
    except _DAMAGE as error:
        damaged = f": {error}" if "CRC" in str(error) else ""  # otherwise in words of zipfile
        raise TraceError(f"is no trace, or not a complete one{damaged}") from error


def memory_bytes() -> int:
    """Return the size of the memory of this computer; a small one where the system has no word."""
    if not hasattr(os, "sysconf"):  # Windows
        return 4 << 30
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


class _Reader:
    """Reads the members of an archive, after a check that their sizes fit the file."""

    def __init__(self, archive: zipfile.ZipFile, file_bytes: int) -> None:
        self._archive = archive
        self._numberings: list[Numbering] = []
        self._members = {info.filename: info for info in archive.infolist()}
        if len(self._members) != len(archive.infolist()):
            raise TraceError("has two members of the same name")
        for info in self._members.values():
            if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
                raise TraceError(f"member {reprlib.repr(info.filename)} is compressed")
        total = sum(info.file_size for info in self._members.values())
        if total > file_bytes:
            raise TraceError(f"declares {total} bytes of content in a file of {file_bytes} bytes")

    def trace(self) -> Trace:
        """Return the trace after all checks; its records are read again when they are needed."""
        return Trace(tuple(self._each_run(self._run)))

    def heads(self) -> tuple[Run, ...]:
        """Return what the trace says of its runs."""
        return tuple(self._each_run(lambda _, entry: head_of(entry)))

    def _each_run(self, read: Callable[[str, dict[str, Any]], _Part]) -> Iterator[_Part]:
        """Yield what is read of each run, from the name of its folder and its entry."""
        document = self._member("trace.json")
        if document.file_size > MAX_JSON_BYTES:
            raise TraceError(
                f"trace.json has {document.file_size} bytes, more than {MAX_JSON_BYTES}"
            )
        entries = parse(self._archive.read(document))
        every = [entry for entry in entries if isinstance(entry, dict)]
        more = sum(entry.get(name) is not None for entry in every for name in OPTIONAL)
        if len(every) == len(entries) and len(self._members) != 1 + 2 * len(entries) + more:
            raise TraceError(f"has {len(self._members)} members for {len(entries)} runs")
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
        run = replace(
            head,
            groups=groups,
            stacks=stacks,
            records=self._table(folder, "records", RECORD, entry),
            traffic=self._table(folder, "traffic", TRAFFIC, entry),
            sources=sources_of(entry),
            samples=self._optional(folder, "samples", entry),
            waits=self._optional(folder, "waits", entry),
        )
        callers = check_records(run)
        check_traffic(run, callers)
        check_samples(run)
        check_waits(run, callers)
        return run

    def _optional(self, folder: str, table: str, entry: dict[str, Any]) -> NDArray[np.void] | None:
        """Return a table that a run need not have; None if it does not."""
        if entry[table] is None:
            return None
        name = f"{folder}/{table}"
        count, nbytes = entry[table], self._member(name).file_size
        if count > max(_MOST_WHOLE, nbytes * _MOST_IN_BYTE):
            raise TraceError(f"{name} declares {count} rows in {nbytes} bytes")
        return self._table(folder, table, OPTIONAL[table], entry).whole()

    def _table(
        self, folder: str, table: str, dtype: np.dtype[np.void], entry: dict[str, Any]
    ) -> StoredTable:
        """Return the table of one member, of as many rows as the document declares.

        The chunks are found, and the checksum of the member is verified; nothing is unpacked.
        """
        name = f"{folder}/{table}"
        count, member = entry[table], self._member(name)
        if count * dtype.itemsize > memory_bytes():
            raise TraceError(f"{name} declares {count} rows in {member.file_size} bytes")
        chunks = []
        rows = 0
        for chunk in chunks_in(self._archive.read(member)):
            rows += chunk.rows
            if rows > count:
                raise TraceError(f"{name} has more rows than the {count} declared")
            if chunk.numbering > len(self._numberings) or chunk.base > MAX_NUMBER:
                raise TraceError(f"a chunk has the numbering {chunk.numbering}, base {chunk.base}")
            chunks.append(chunk)
        if rows != count:
            raise TraceError(f"{name} has {rows} rows, and not the {count} declared")
        return StoredTable(dtype, chunks, self._numberings)

    def _member(self, name: str) -> zipfile.ZipInfo:
        if name not in self._members:
            raise TraceError(f"has no member {name}")
        return self._members[name]
