"""The trace file: what a program's runs left behind, in a form that is safe to read.

A trace is a zip archive whose members are stored, not compressed, and just these:

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

    Numbers are finite, texts outside of meta have at most 4096 characters, and stacks
    at most 1000 frames.

``run-0/records.npy``, ``run-0/traffic.npy``, ``run-1/records.npy``, ...
    numpy's npy format 1.0, one-dimensional, of dtypes ``bsplib.recording.records.RECORD`` and
    ``TRAFFIC`` in little-endian order. The header is the one text that ``_npy_header``
    makes; a reader compares it and parses nothing. Times, sizes and numbers in them
    are at most 2**53, so that floats hold them. ``cpu`` is -1 where it was not measured.

``bsplib.records`` says what the fields mean. A reader checks ranges, positions and
order, so that the profiler may trust a Trace that was read. Since nothing is
compressed, reading takes memory in proportion to the file.

A change of the format gets another version; a reader takes only its own. Version 2
knows a group by the list of its members, marks the frames of bsplib itself, and has
CPU time.
"""

from __future__ import annotations

import functools
import json
import math
import os
import reprlib
import struct
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from bsplib.backends.members import Members, as_members
from bsplib.errors import TraceError
from bsplib.recording.output_file import special_kind, written_whole
from bsplib.recording.records import (
    MAX_NUMBER,
    NO_CPU,
    RECORD,
    TRAFFIC,
    Direction,
    Frame,
    GroupInfo,
    Run,
    Stack,
    Trace,
)
from bsplib.recording.stacks import MAX_STACK, MAX_TEXT, bearable
from bsplib.sync_kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

FORMAT = "bsplib trace"
FORMAT_VERSION = 2

MAX_JSON_BYTES = 64 * 2**20
MAX_META_NESTING = 32
MAX_NPROCS = 2**16

_DAMAGE = (
    zipfile.BadZipFile,
    EOFError,
    struct.error,
    RuntimeError,  # an encrypted member; NotImplementedError, RecursionError (JSON)
    ValueError,  # no UTF-8, no JSON, an impossible seek
    OverflowError,
)
"""What zipfile and json raise on damaged and hostile files."""


class TooLongError(TraceError):
    """A trace has too many groups, stacks or runs for a reader."""


def write_trace(path: str | os.PathLike[str], trace: Trace, *, scratch: Path | None = None) -> None:
    """Write a trace, whole or not at all: a file of that name is replaced at the end.

    It is read back before it gets its name, so that what is written can be read. Stacks
    are shortened, their middle left out, where their JSON would be too long.

    Args:
        path: where to; the folder must exist. Of a symbolic link the file is replaced
            that it points to; what is no regular file is never replaced.
        trace: what was recorded.
        scratch: folder of the same file system for the file until it is whole.

    Raises:
        TooLongError: it has too many groups, stacks or runs for a reader.
        TraceError: the metadata cannot be said in JSON, or no reader would take the trace.
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
    """Write a trace as it is, sound or not.

    Raises:
        TraceError: the document cannot be said in JSON, or not in as much as is allowed.
        OSError: the file cannot be written.
    """
    document = _json(trace)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo("trace.json"), document)
        for number, run in enumerate(trace.runs):
            for name, array in (("records", run.records), ("traffic", run.traffic)):
                member = zipfile.ZipInfo(f"run-{number}/{name}.npy")
                stored = array.astype(array.dtype.newbyteorder("<"), copy=False)
                header = _npy_header(array.dtype, len(array))
                archive.writestr(member, header + stored.tobytes())


def _json(trace: Trace) -> str:
    """The document in JSON; with shorter stacks where it would be too long."""
    for most in (MAX_STACK, 100, 10, 3):
        try:
            document = json.dumps(_document(trace, most), allow_nan=False)
        except (TypeError, ValueError) as error:
            raise TraceError(f"cannot be written as JSON: {error}") from error
        if len(document) <= MAX_JSON_BYTES:
            return document
    raise TooLongError(f"trace.json would have {len(document)} bytes, more than {MAX_JSON_BYTES}")


def read_trace(path: str | os.PathLike[str]) -> Trace:
    """Read a trace.

    Whatever the file holds, this returns a well-formed trace or raises TraceError;
    nothing is unpickled, nothing written, and no memory taken out of proportion.

    Returns:
        The trace; its arrays are read-only.

    Raises:
        TraceError: the file is missing, no trace, damaged, or of another version.
    """
    try:
        return _read(Path(path))
    except TraceError as error:
        raise TraceError(f"{path}: {error}.") from error


def _read(path: Path) -> Trace:
    """Read a trace; errors are the end of a sentence."""
    try:
        with _opened(path) as file, zipfile.ZipFile(file) as archive:
            return _Reader(archive, os.fstat(file.fileno()).st_size).trace()
    except OSError as error:
        raise TraceError(f"cannot be read: {error.strerror or error}") from error
    except TraceError:
        raise
    except _DAMAGE as error:
        raise TraceError(f"is no trace, or not a whole one: {error}") from error


def _opened(path: Path) -> BinaryIO:
    kind = special_kind(path)
    if kind and not path.is_dir():  # to open a pipe would wait for ever
        raise TraceError(f"cannot be read: it is {kind}")
    return path.open("rb")


def _document(trace: Trace, most: int) -> dict[str, Any]:
    """All of a trace but the arrays, for JSON, with so many frames of a stack."""
    runs = []
    for run in trace.runs:
        frames: dict[Frame, int] = {}
        stacks = [
            [frames.setdefault(frame, len(frames)) for frame in bearable(stack, most)]
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
    """What an npy file of so many elements begins with, padded to 64 bytes."""
    descr = dtype.newbyteorder("<").descr
    text = repr({"descr": descr, "fortran_order": False, "shape": (count,)})
    magic = b"\x93NUMPY\x01\x00"
    text += " " * (-(len(magic) + 2 + len(text) + 1) % 64) + "\n"
    return magic + struct.pack("<H", len(text)) + text.encode("ascii")


class _Reader:
    """The members of an archive, read only once it is sure how large they are."""

    def __init__(self, archive: zipfile.ZipFile, file_bytes: int) -> None:
        self._archive = archive
        self._members = {info.filename: info for info in archive.infolist()}
        if len(self._members) != len(archive.infolist()):
            raise TraceError("holds two members of one name")
        for info in self._members.values():
            if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
                raise TraceError(f"member {reprlib.repr(info.filename)} is compressed")
        total = sum(info.file_size for info in self._members.values())
        if total > file_bytes:
            raise TraceError(f"declares {total} bytes in a file of {file_bytes}")

    def trace(self) -> Trace:
        """Everything, checked."""
        document = _parse(self._content("trace.json", MAX_JSON_BYTES))
        entries = _list(document.get("runs"), "runs")
        if len(self._members) != 1 + 2 * len(entries):
            raise TraceError(f"holds {len(self._members)} members for {len(entries)} runs")
        runs = []
        for number, entry in enumerate(entries):
            try:
                runs.append(self._run(f"run-{number}", entry))
            except TraceError as error:
                raise TraceError(f"run {number}: {error}") from error
        return Trace(tuple(runs))

    def _run(self, folder: str, entry: object) -> Run:
        """One run, checked."""
        if not isinstance(entry, dict):
            raise TraceError(f"its entry is {reprlib.repr(entry)}, not an object")
        complete, meta = entry.get("complete"), entry.get("meta")
        if not isinstance(complete, bool):
            raise TraceError(f"complete is {reprlib.repr(complete)}, not true or false")
        if not isinstance(meta, dict) or _nesting(meta) > MAX_META_NESTING:
            raise TraceError(f"meta is {reprlib.repr(meta)}, no object or nested too deep")
        nprocs = _int(entry.get("nprocs"), "nprocs", 1, MAX_NPROCS)
        run = Run(
            nprocs=nprocs,
            groups=_groups(entry.get("groups"), nprocs),
            stacks=_stacks(entry.get("stacks"), _frames(entry.get("frames"))),
            records=self._array(f"{folder}/records.npy", RECORD, entry.get("records")),
            traffic=self._array(f"{folder}/traffic.npy", TRAFFIC, entry.get("traffic")),
            complete=complete,
            meta=meta,
        )
        _check_records(run)
        _check_traffic(run)
        return run

    def _array(self, name: str, dtype: np.dtype[np.void], length: object) -> NDArray[np.void]:
        """One npy member of the length that the document says."""
        count = _int(length, f"length of {name}", 0, MAX_NUMBER)
        header = _npy_header(dtype, count)
        size = len(header) + count * dtype.itemsize
        content = self._content(name, size)
        if len(content) != size or not content.startswith(header):
            raise TraceError(f"{name} is not an array of the {count} elements declared")
        stored = np.frombuffer(content, dtype.newbyteorder("<"), count, len(header))
        return stored.astype(dtype, copy=False)

    def _content(self, name: str, limit: int) -> bytes:
        """The bytes of one member; zipfile compares their checksum."""
        if name not in self._members:
            raise TraceError(f"has no member {name}")
        size = self._members[name].file_size
        if size > limit:
            raise TraceError(f"{name} has {size} bytes, more than {limit}")
        return self._archive.read(self._members[name])


def _parse(content: bytes) -> dict[str, Any]:
    """The JSON document, of this format and version."""

    def finite(text: str) -> float:
        if not math.isfinite(number := float(text)):
            raise TraceError(f"trace.json holds the number {text[:40]}")
        return number

    document = json.loads(content.decode("utf-8"), parse_constant=finite, parse_float=finite)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise TraceError(f"trace.json does not say that it is of format {FORMAT!r}")
    version = document.get("version")
    if type(version) is not int or version != FORMAT_VERSION:
        shown = reprlib.repr(version)
        raise TraceError(f"is of version {shown}, and this bsplib reads {FORMAT_VERSION}")
    return document


def _groups(value: object, nprocs: int) -> tuple[GroupInfo, ...]:
    """The groups: the root first, each sub-group inside an earlier one."""
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
            raise TraceError(f"{what} cannot be {shown} among {nprocs} processes")
        groups.append(group)
    if not groups:
        raise TraceError("there is no group")
    return tuple(groups)


def _members(value: object, what: str, nprocs: int) -> Members:
    """The processes of a group, each of them once."""
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
    raise TraceError(f"{what} has the members {reprlib.repr(value)}, no processes of {nprocs}")


def _membership(parent: Members) -> Callable[[Members], bool]:
    """Return what tells whether all processes of a group are its parent's."""
    pids = parent if isinstance(parent, range) else frozenset(parent)

    def contains(members: Members) -> bool:
        if isinstance(parent, range) and isinstance(members, range):
            # Of evenly spaced ones the first two and the last tell of all.
            return all(pid in pids for pid in (*members[:2], members[-1]))
        return len(members) <= len(pids) and all(pid in pids for pid in members)

    return contains


def _frames(value: object) -> list[Frame]:
    """The calls that stacks are made of."""
    frames = []
    for position, row in enumerate(_list(value, "frames")):
        what = f"frame {position}"
        file, function, first_line, line, library = _list(row, what, len(Frame._fields))
        for text in (file, function):
            if not isinstance(text, str) or len(text) > MAX_TEXT:
                raise TraceError(f"{what} is named {reprlib.repr(text)}, no text or too long")
        if not isinstance(library, bool):
            raise TraceError(f"{what} holds {reprlib.repr(library)}, not true or false")
        first_line, line = (_int(number, what, 0, 2**31 - 1) for number in (first_line, line))
        frames.append(Frame(file, function, first_line, line, library))
    return frames


def _stacks(value: object, frames: list[Frame]) -> tuple[Stack, ...]:
    """The stacks, none of them empty."""
    stacks = []
    for position, row in enumerate(_list(value, "stacks")):
        what = f"stack {position}"
        if len(_list(row, what)) > MAX_STACK:
            raise TraceError(f"{what} has {len(row)} frames, more than {MAX_STACK}")
        places = [_int(place, what, 0, len(frames) - 1) for place in row]
        if not places:
            raise TraceError(f"{what} is empty")
        stacks.append(tuple(frames[place] for place in places))
    return tuple(stacks)


def _check_records(run: Run) -> None:
    """Positions and numbers in range, times in order, each superstep of a process once."""
    records = run.records
    ends = {"pid": run.nprocs, "group": len(run.groups)}
    ends |= {"kind": len(Kind), "stack": len(run.stacks)}
    for name in RECORD.fields or ():
        least = NO_CPU if name == "cpu" else 0
        _check_range("record", records, name, least, ends.get(name, MAX_NUMBER + 1))
    outside = ~_are_members(run, records["group"], records["pid"])
    _refuse("record", records, outside, "a process outside its group")
    start, arrive, end = records["start"], records["arrive"], records["end"]
    disorder = (start > arrive) | (arrive > records["released"]) | (records["released"] > end)
    _refuse("record", records, disorder, "times that are not in order")
    excess = records["comm_calls"] + records["sub"] > arrive - start
    _refuse("record", records, excess, "more time in calls and sub-groups than it lasts")
    waiting = (records["kind"] == Kind.END) & (arrive != end)
    _refuse("record", records, waiting, "an end of main that waits")
    _check_rising(records, ("pid",), "end", 0)
    _check_rising(records, ("pid", "group"), "superstep", 1)


def _check_rising(records: NDArray[np.void], keys: tuple[str, ...], name: str, step: int) -> None:
    """Refuse values that rise by less than a step over the one before of equal keys."""
    order = np.lexsort([records[key] for key in keys])
    same = np.logical_and.reduce([np.diff(records[key][order]) == 0 for key in keys])
    wrong = np.zeros(len(records), bool)
    wrong[order[1:]] = same & (np.diff(records[name][order]) < step)
    _refuse("record", records, wrong, f"a {name} out of order")


def _check_traffic(run: Run) -> None:
    """Each traffic row: its record exists, and its partner is another of the group."""
    traffic = run.traffic
    ends = {"record": len(run.records), "partner": run.nprocs, "direction": len(Direction)}
    for name in TRAFFIC.fields or ():
        _check_range("traffic row", traffic, name, 0, ends.get(name, MAX_NUMBER + 1))
    asker, partner = run.records[traffic["record"]], traffic["partner"]
    wrong = ~_are_members(run, asker["group"], partner) | (partner == asker["pid"])
    _refuse("traffic row", traffic, wrong, "a partner that is not another of its group")


def _are_members(run: Run, groups: NDArray[np.int32], pids: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Whether processes belong to groups, pair by pair."""
    evenly = [_rising(group.members) for group in run.groups]
    first, last, step = np.array(evenly, np.int64)[groups].T
    found: NDArray[np.bool_] = (first <= pids) & (pids <= last) & ((pids - first) % step == 0)
    order = np.argsort(groups, kind="stable")
    bounds = np.searchsorted(groups[order], np.arange(len(run.groups) + 1))
    for position, group in enumerate(run.groups):
        rows = order[bounds[position] : bounds[position + 1]]
        if len(rows) and isinstance(group.members, tuple):
            found[rows] = np.isin(pids[rows], group.members)
    return found


def _rising(members: Members) -> tuple[int, int, int]:
    """First, last and step of a range in rising order; of a list a range around it."""
    if isinstance(members, range):
        return min(members[0], members[-1]), max(members[0], members[-1]), abs(members.step)
    return min(members), max(members), 1


def _check_range(what: str, rows: NDArray[np.void], name: str, least: int, end: int) -> None:
    """Refuse values of a field outside least .. end - 1."""
    values = rows[name]
    fault = f"a {name} outside {least} .. {end - 1}"
    _refuse(what, rows, (values < least) | (values >= end), fault)


def _refuse(what: str, rows: NDArray[np.void], wrong: NDArray[np.bool_], fault: str) -> None:
    """Raise TraceError with the first row that is wrong."""
    if wrong.any():
        position = int(wrong.argmax())
        fields = dict(zip(rows.dtype.names or (), rows[position].item(), strict=True))
        raise TraceError(f"{what} {position} has {fault}: {fields}")


def _list(value: object, what: str, length: int | None = None) -> list[Any]:
    """A JSON array, of this length if one is given."""
    if not isinstance(value, list) or length not in (None, len(value)):
        expected = "an array" if length is None else f"an array of {length}"
        raise TraceError(f"{what} is {reprlib.repr(value)}, not {expected}")
    return value


def _int(value: object, what: str, low: int, high: int) -> int:
    """A JSON number that is whole and in range."""
    if type(value) is not int or not low <= value <= high:
        raise TraceError(f"{what} holds {reprlib.repr(value)}, no whole number in {low} .. {high}")
    return value


def _nesting(value: object) -> int:
    """How many containers are inside one another at most."""
    depth = 0
    level = [value]
    while level := [item for item in level if isinstance(item, dict | list)]:
        depth += 1
        level = [
            inner for item in level for inner in (item.values() if isinstance(item, dict) else item)
        ]
    return depth
