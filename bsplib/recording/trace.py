"""The trace file: the records of a program's runs, in a form that is safe to read.

A trace is a zip archive of uncompressed members, which are exactly these:

``trace.json``
    UTF-8, at most 64 MiB::

        {"format": "bsplib trace", "version": 2, "runs": [RUN, ...]}

        RUN = {"nprocs": P,              1 .. 65536
               "complete": true/false,   false where the run ended in an error
               "meta": {...},            any JSON object, nested at most 32 deep
               "groups": [[parent, superstep, ordinal, index, MEMBERS], ...],
               "frames": [[file, function, first_line, line, library], ...],
               "stacks": [[position in frames, ...], ...],
               "records": N,             length of the arrays
               "traffic": M}

        MEMBERS = [pid, ...]             in root numbering, each process once
                | {"first": pid, "count": N, "step": number other than 0}

    Numbers are finite. Texts outside meta have at most 4096 characters, and stacks have
    at most 1000 frames.

``run-0/records.npy``, ``run-0/traffic.npy``, ``run-1/records.npy``, ...
    numpy's npy format 1.0, one-dimensional, of dtypes ``bsplib.recording.records.RECORD`` and
    ``TRAFFIC`` in little-endian order. The header is exactly the text that ``_npy_header``
    returns; a reader compares it and does not parse it. Times, sizes and numbers are at
    most 2**53, so that floats represent them exactly. ``cpu`` is -1 where CPU time was
    not measured.

``bsplib.recording.records`` describes the fields. A reader checks ranges, positions and
order, so that the profiler need not check a Trace that was read. Since nothing is
compressed, reading takes memory in proportion to the size of the file.

A change of the format changes the version; a reader accepts only its own version.
Version 2 stores the list of members of a group, marks the frames of bsplib itself, and
has CPU time.
"""

from __future__ import annotations

import functools
import json
import math
import os
import reprlib
import struct
import zipfile
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO, NamedTuple, TypeVar

import numpy as np

from bsplib.backends.members import Members, as_members
from bsplib.errors import TraceError
from bsplib.recording.output_file import special_kind, written_whole
from bsplib.recording.records import (
    MAX_NUMBER,
    RECORD,
    TRAFFIC,
    Frame,
    GroupInfo,
    Run,
    Stack,
    Trace,
)
from bsplib.recording.sound import check_records, check_traffic
from bsplib.recording.stacks import MAX_STACK, MAX_TEXT, shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

FORMAT = "bsplib trace"
FORMAT_VERSION = 2

MAX_JSON_BYTES = 64 * 2**20
MAX_META_NESTING = 32
MAX_NPROCS = 2**16

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


class RunHead(NamedTuple):
    """What a trace says of a run, apart from its records; the fields are those of ``Run``."""

    nprocs: int
    complete: bool
    meta: dict[str, Any]


class TooLongError(TraceError):
    """A trace has too many groups, stacks or runs to be read."""


def write_trace(path: str | os.PathLike[str], trace: Trace, *, scratch: Path | None = None) -> None:
    """Write a trace completely or not at all; an earlier file is replaced at the end.

    The file is read again before it gets its name, so that every trace that exists can be
    read. Where the JSON of the stacks would be too long, the middles of stacks are left out.

    Args:
        path: file to write; its folder must exist. Of a symbolic link, the file that it
            points to is replaced; only regular files are replaced.
        trace: the runs to write.
        scratch: folder on the same file system for the file until it is complete.

    Raises:
        TooLongError: the trace has too many groups, stacks or runs to be read.
        TraceError: the metadata has no form in JSON, or the trace is not well formed.
        OSError: the file cannot be written.
    """
    with written_whole(path, scratch=scratch) as temporary:
        try:
            write_archive(temporary, trace)
            _read(temporary)
        except (TypeError, TraceError) as error:
            kind = TooLongError if isinstance(error, TooLongError) else TraceError
            raise kind(f"{path}: was not written: {error}.") from error


def write_archive(path: Path, trace: Trace) -> None:
    """Write a trace without any check of its content.

    Raises:
        TraceError: the document has no form in JSON, or is longer than allowed.
        OSError: the file cannot be written.
    """
    document = _json(trace)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo("trace.json"), document)
        for number, run in enumerate(trace.runs):
            for name, array in (("records", run.records), ("traffic", run.traffic)):
                _write_array(archive, f"run-{number}/{name}.npy", array)


def _write_array(archive: zipfile.ZipFile, name: str, array: NDArray[np.void]) -> None:
    """Write an array as a member, without a copy of it."""
    header = _npy_header(array.dtype, len(array))
    stored = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    member = zipfile.ZipInfo(name)
    member.file_size = len(header) + stored.nbytes  # beyond 2 GiB, zip has another header
    with archive.open(member, "w") as file:
        file.write(header)
        file.write(stored.view(np.uint8).data)


def _json(trace: Trace) -> str:
    """Return the document in JSON, with shorter stacks if it would be too long."""
    for most in (MAX_STACK, 100, 10, 3):
        try:
            document = json.dumps(_document(trace, most), allow_nan=False)
        except (TypeError, ValueError) as error:
            raise TraceError(f"cannot be written as JSON: {error}") from error
        if len(document) <= MAX_JSON_BYTES:
            return document
    raise TooLongError(f"trace.json would have {len(document)} bytes, more than {MAX_JSON_BYTES}")


def read_trace(
    path: str | os.PathLike[str], *, progress: Callable[[float], object] | None = None
) -> Trace:
    """Read a trace.

    Whatever the file contains, this returns a well-formed trace or raises TraceError. It
    unpickles nothing, writes nothing, and takes memory in proportion to the file only.

    Args:
        path: the file.
        progress: called now and then with the part of the file that has been read and
            checked, from 0 to 1.

    Returns:
        The trace; its arrays are read-only.

    Raises:
        TraceError: the file does not exist, is no trace, is damaged, or has another version.
    """
    try:
        return _read(Path(path), progress or (lambda _: None))
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


def _read(path: Path, progress: Callable[[float], object] = lambda _: None) -> Trace:
    """Read a trace; the texts of errors continue a sentence that begins with the path."""
    with _reader(path, progress) as reader:
        return reader.trace()


@contextmanager
def _reader(path: Path, progress: Callable[[float], object] = lambda _: None) -> Iterator[_Reader]:
    """Open a trace; whatever is wrong with the file becomes a TraceError."""
    try:
        with _opened(path) as file, zipfile.ZipFile(file) as archive:
            yield _Reader(archive, os.fstat(file.fileno()).st_size, progress)
    except OSError as error:
        raise TraceError(f"cannot be read: {error.strerror or error}") from error
    except TraceError:
        raise
    except _DAMAGE as error:
        raise TraceError(f"is no trace, or not a complete one: {error}") from error


def _opened(path: Path) -> BinaryIO:
    kind = special_kind(path)
    if kind and not path.is_dir():  # opening a pipe would wait for ever
        raise TraceError(f"cannot be read: it is {kind}")
    return path.open("rb")


def _document(trace: Trace, most: int) -> dict[str, Any]:
    """Return a trace without its arrays, for JSON, with stacks of at most ``most`` frames."""
    runs = []
    for run in trace.runs:
        frames: dict[Frame, int] = {}
        stacks = [
            [frames.setdefault(frame, len(frames)) for frame in shortened(stack, most)]
            for stack in run.stacks
        ]
        runs.append(
            {
                "nprocs": run.nprocs,
                "complete": run.complete,
                "meta": run.meta,
                "groups": [group.to_json() for group in run.groups],
                "frames": list(frames),
                "stacks": stacks,
                "records": len(run.records),
                "traffic": len(run.traffic),
            }
        )
    return {"format": FORMAT, "version": FORMAT_VERSION, "runs": runs}


def _npy_header(dtype: np.dtype[np.void], count: int) -> bytes:
    """Return the header of an npy file of ``count`` elements, padded to 64 bytes."""
    descr = dtype.newbyteorder("<").descr
    text = repr({"descr": descr, "fortran_order": False, "shape": (count,)})
    magic = b"\x93NUMPY\x01\x00"
    text += " " * (-(len(magic) + 2 + len(text) + 1) % 64) + "\n"
    return magic + struct.pack("<H", len(text)) + text.encode("ascii")


class _Reader:
    """Reads the members of an archive, after a check that their sizes fit the file."""

    def __init__(
        self, archive: zipfile.ZipFile, file_bytes: int, progress: Callable[[float], object]
    ) -> None:
        self._archive = archive
        self._progress = progress
        self._done = 0
        self._members = {info.filename: info for info in archive.infolist()}
        if len(self._members) != len(archive.infolist()):
            raise TraceError("has two members of the same name")
        for info in self._members.values():
            if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
                raise TraceError(f"member {reprlib.repr(info.filename)} is compressed")
        total = sum(info.file_size for info in self._members.values())
        self._work = 2 * total  # each byte is read and checked
        if total > file_bytes:
            raise TraceError(f"declares {total} bytes of content in a file of {file_bytes} bytes")

    def trace(self) -> Trace:
        """Return the trace after all checks."""
        return Trace(tuple(self._each_run(self._run)))

    def heads(self) -> tuple[RunHead, ...]:
        """Return what the trace says of its runs."""
        return tuple(self._each_run(lambda _, entry: _head(entry)))

    def _each_run(self, read: Callable[[str, dict[str, Any]], _Part]) -> Iterator[_Part]:
        """Yield what is read of each run, from the name of its folder and its entry."""
        document = _parse(self._content("trace.json", MAX_JSON_BYTES))
        self._advance(2 * self._member("trace.json").file_size)
        entries = _list(document.get("runs"), "runs")
        if len(self._members) != 1 + 2 * len(entries):
            raise TraceError(f"has {len(self._members)} members for {len(entries)} runs")
        for number, entry in enumerate(entries):
            try:
                yield read(f"run-{number}", _entry(entry))
            except TraceError as error:
                raise TraceError(f"run {number}: {error}") from error

    def _run(self, folder: str, entry: dict[str, Any]) -> Run:
        """Return one run after all checks."""
        nprocs, complete, meta = _head(entry)
        run = Run(
            nprocs=nprocs,
            groups=_groups(entry.get("groups"), nprocs),
            stacks=_stacks(entry.get("stacks"), _frames(entry.get("frames"))),
            records=self._array(f"{folder}/records.npy", RECORD, entry.get("records")),
            traffic=self._array(f"{folder}/traffic.npy", TRAFFIC, entry.get("traffic")),
            complete=complete,
            meta=meta,
        )
        check_records(run, self._advance)
        check_traffic(run, self._advance)
        return run

    def _advance(self, size_bytes: int) -> None:
        """Tell that so many bytes more have been read, or checked."""
        self._done += size_bytes
        self._progress(self._done / self._work)

    def _array(self, name: str, dtype: np.dtype[np.void], length: object) -> NDArray[np.void]:
        """Return the array of one npy member, of the length that the document declares."""
        count = _int(length, f"length of {name}", 0, MAX_NUMBER)
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


def _entry(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TraceError(f"its entry is {reprlib.repr(value)}, not an object")
    return value


def _head(entry: dict[str, Any]) -> RunHead:
    """Return what the entry of a run says of it."""
    complete, meta = entry.get("complete"), entry.get("meta")
    if not isinstance(complete, bool):
        raise TraceError(f"complete is {reprlib.repr(complete)}, not true or false")
    if not isinstance(meta, dict) or _nesting(meta) > MAX_META_NESTING:
        raise TraceError(f"meta is {reprlib.repr(meta)}, not an object or nested too deeply")
    return RunHead(_int(entry.get("nprocs"), "nprocs", 1, MAX_NPROCS), complete, meta)


def _parse(content: bytes) -> dict[str, Any]:
    """Return the JSON document after a check of its format and version."""

    def finite(text: str) -> float:
        if not math.isfinite(number := float(text)):
            raise TraceError(f"trace.json contains the number {text[:40]}, which is not finite")
        return number

    document = json.loads(content.decode("utf-8"), parse_constant=finite, parse_float=finite)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise TraceError(f"trace.json does not declare the format {FORMAT!r}")
    version = document.get("version")
    if type(version) is not int or version != FORMAT_VERSION:
        shown = reprlib.repr(version)
        raise TraceError(f"has version {shown}, and this bsplib reads version {FORMAT_VERSION}")
    return document


def _groups(value: object, nprocs: int) -> tuple[GroupInfo, ...]:
    """Return the groups; the root must be first, and each sub-group inside an earlier group."""
    groups: list[GroupInfo] = []
    contains = functools.cache(lambda position: _membership(groups[position].members))
    for position, row in enumerate(_list(value, "groups")):
        what = f"group {position}"
        *fields, members = _list(row, what, len(GroupInfo._fields))
        parent, superstep, ordinal, index = (_int(field, what, -1, MAX_NUMBER) for field in fields)
        group = GroupInfo(parent, superstep, ordinal, index, _members(members, what, nprocs))
        if position == 0:
            sound = (group.parent, group.members) == (-1, range(nprocs))
        else:
            sound = min(group[:4]) >= 0 and group.parent < position
            sound = sound and contains(group.parent)(group.members)
        if not sound:
            shown = reprlib.repr(tuple(group))
            raise TraceError(f"{what} is {shown}, which is no group of {nprocs} processes")
        groups.append(group)
    if not groups:
        raise TraceError("the list of groups is empty")
    return tuple(groups)


def _members(value: object, what: str, nprocs: int) -> Members:
    """Return the processes of a group; none may be listed twice."""
    if isinstance(value, dict) and value.keys() == {"first", "count", "step"}:
        first = _int(value["first"], what, 0, nprocs - 1)
        count = _int(value["count"], what, 1, nprocs)
        step = _int(value["step"], what, -nprocs, nprocs)
        if step and 0 <= first + step * (count - 1) < nprocs:
            return as_members(range(first, first + step * count, step))
    elif isinstance(value, list) and value:
        pids = [_int(pid, what, 0, nprocs - 1) for pid in value]
        if len(set(pids)) == len(pids):
            return as_members(pids)
    raise TraceError(
        f"{what} has the members {reprlib.repr(value)}, which are no processes of {nprocs}"
    )


def _membership(parent: Members) -> Callable[[Members], bool]:
    """Return a function that tells whether all processes of a group belong to its parent."""
    pids = parent if isinstance(parent, range) else frozenset(parent)

    def contains(members: Members) -> bool:
        if isinstance(parent, range) and isinstance(members, range):
            # Both are evenly spaced: if the first two and the last belong to it, all do.
            return all(pid in pids for pid in (*members[:2], members[-1]))
        return len(members) <= len(pids) and all(pid in pids for pid in members)

    return contains


def _frames(value: object) -> list[Frame]:
    """Return the frames to which stacks refer."""
    frames = []
    for position, row in enumerate(_list(value, "frames")):
        what = f"frame {position}"
        file, function, first_line, line, library = _list(row, what, len(Frame._fields))
        for text in (file, function):
            if not isinstance(text, str) or len(text) > MAX_TEXT:
                raise TraceError(f"{what} has the name {reprlib.repr(text)}, no text or too long")
        if not isinstance(library, bool):
            raise TraceError(f"{what} has {reprlib.repr(library)}, not true or false")
        first_line, line = (_int(number, what, 0, 2**31 - 1) for number in (first_line, line))
        frames.append(Frame(file, function, first_line, line, library))
    return frames


def _stacks(value: object, frames: list[Frame]) -> tuple[Stack, ...]:
    """Return the stacks; none may be empty."""
    stacks = []
    for number, row in enumerate(_list(value, "stacks")):
        what = f"stack {number}"
        if len(_list(row, what)) > MAX_STACK:
            raise TraceError(f"{what} has {len(row)} frames, more than {MAX_STACK}")
        positions = [_int(position, what, 0, len(frames) - 1) for position in row]
        if not positions:
            raise TraceError(f"{what} is empty")
        stacks.append(tuple(frames[position] for position in positions))
    return tuple(stacks)


def _list(value: object, what: str, length: int | None = None) -> list[Any]:
    """Check that a value is a JSON array, of this length if one is given; return it."""
    if not isinstance(value, list) or length not in (None, len(value)):
        expected = "an array" if length is None else f"an array of {length}"
        raise TraceError(f"{what} is {reprlib.repr(value)}, not {expected}")
    return value


def _int(value: object, what: str, low: int, high: int) -> int:
    """Check that a value is a whole number in range; return it."""
    if type(value) is not int or not low <= value <= high:
        raise TraceError(f"{what} has {reprlib.repr(value)}, no whole number in {low} .. {high}")
    return value


def _nesting(value: object) -> int:
    """Return the greatest number of containers that are nested in one another."""
    depth = 0
    level = [value]
    while level := [item for item in level if isinstance(item, dict | list)]:
        depth += 1
        level = [
            inner for item in level for inner in (item.values() if isinstance(item, dict) else item)
        ]
    return depth
