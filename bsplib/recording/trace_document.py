"""The document of a trace, which has all of it but the arrays, in JSON.

``trace.json`` is::

    {"format": "bsplib trace", "version": 4, "runs": [RUN, ...]}

    RUN = {"nprocs": P,              1 .. 65536
           "complete": true/false,   false where the run ended in an error
           "meta": {...},            any JSON object, nested at most 32 deep; its "absent", if
                                     there, lists some, but not all processes: their records
                                     are missing, and each superstep has those of the others;
                                     its "repeat", if there, is [i, N]: repeat i of N
           "lifetime": LIFETIME | null,
           "steal_ns": number,       -1 where it is not known
           "measured": {"cpu": "", "ready": "why not", "faults": "", "lines": ""},
           "groups": [[parent, superstep, ordinal, index, MEMBERS], ...],
           "frames": [[file, function, first_line, line, library], ...],
           "stacks": [[position in frames, ...], ...],
           "sources": {file: "digest", ...},
           "records": N,             length of the arrays
           "traffic": M,
           "samples": S | null,      null where the run was not sampled
           "waits": W | null,        null where each record waited for the last arrival
           "numberings": [[[position in groups, ...], [position in stacks, ...]], ...]}

    LIFETIME = {"called": ns, "started": [ns | null, ...], "ready": [...], "finished": [...],
                "collected": ns | null, "returned": ns | null}      the lists are by pid

    MEMBERS = [pid, ...]             in root numbering, each process once
            | {"first": pid, "count": N, "step": number other than 0}

The digest of a source file that frames name is its SHA-256, as 64 hexadecimal digits. Where it
was not known, the file is missing.

Numbers are finite. Texts outside meta have at most 4096 characters, and stacks have
at most 1000 frames. Nothing here does I/O.
"""

from __future__ import annotations

import functools
import json
import math
import re
import reprlib
from typing import TYPE_CHECKING, Any

import numpy as np

from bsplib.backends.members import Members, as_members
from bsplib.errors import TraceError
from bsplib.recording.packing import Numbering, numberings_in
from bsplib.recording.records import (
    MAX_NUMBER,
    MAX_STACK,
    MAX_TEXT,
    NOT_MEASURED,
    RECORD,
    TRAFFIC,
    Frame,
    GroupInfo,
    Lifetime,
    Run,
    Stack,
    Trace,
    shortened,
)

if TYPE_CHECKING:
    from collections.abc import Callable

FORMAT = "bsplib trace"
FORMAT_VERSION = 4

MAX_JSON_BYTES = 64 * 2**20
MAX_VALUES = 3 * 2**20
"""Most values of the document: three bytes can be one, which takes some 64 bytes of memory."""
MAX_META_NESTING = 32
MAX_NPROCS = 2**16
SOURCES_OF_TIME = frozenset({"cpu", "ready", "faults", "lines"})
"""What may be measured, or not, in the records of a run."""
_KEYS = frozenset(
    {"nprocs", "complete", "meta", "lifetime", "steal_ns", "measured", "groups", "frames"}
    | {"stacks", "sources", "numberings", "records", "traffic", "samples", "waits"}
)
"""What the entry of a run has."""
_DIGEST = re.compile("[0-9a-f]{64}")


class TraceTooLongError(TraceError):
    """A trace has too many groups, stacks or runs to be read."""


def excess_of(content: bytes) -> str:
    """Say what makes a document too long to be read; empty if it is not.

    Commas and brackets are counted, which are at least as many as the values.
    """
    if len(content) > MAX_JSON_BYTES:
        return f"{len(content)} bytes, more than {MAX_JSON_BYTES}"
    values = sum(map(content.count, (b",", b"[", b"{")))
    return f"some {values} values, more than {MAX_VALUES}" if values > MAX_VALUES else ""


def to_json(trace: Trace) -> bytes:
    """Return the document in JSON, with shorter stacks if it would be too long.

    Raises:
        TooLongError: it would be too long even so.
        TraceError: the metadata has no form in JSON.
    """
    for most in (MAX_STACK, 100, 10, 3):
        try:
            runs = [_entry(run, most) for run in trace.runs]
            whole = {"format": FORMAT, "version": FORMAT_VERSION, "runs": runs}
            document = json.dumps(whole, allow_nan=False).encode()
        except (TypeError, ValueError) as error:
            raise TraceError(f"cannot be written as JSON: {error}") from error
        if not (excess := excess_of(document)):
            return document
    raise TraceTooLongError(f"trace.json would have {excess}")


def _entry(run: Run, most: int) -> dict[str, Any]:
    frames: dict[Frame, int] = {}
    stacks = [
        [frames.setdefault(frame, len(frames)) for frame in shortened(stack, most)]
        for stack in run.stacks
    ]
    return {
        "nprocs": run.nprocs,
        "complete": run.complete,
        "meta": run.meta,
        "lifetime": None if run.lifetime is None else run.lifetime._asdict(),
        "steal_ns": run.steal_ns,
        "measured": dict(run.measured),
        "groups": [group.to_json() for group in run.groups],
        "frames": list(frames),
        "stacks": stacks,
        "sources": dict(run.sources),
        "records": len(run.table("records")),
        "traffic": len(run.table("traffic")),
        "samples": None if run.samples is None else len(run.samples),
        "waits": None if run.waits is None else len(run.waits),
        "numberings": numberings_in(run.table("records")),
    }


def parse(content: bytes) -> list[Any]:
    """Return the entries of the runs.

    Nothing but format and version is checked.

    Raises:
        TraceError: the document is too long, declares another format or version, or has no list
            of runs.
        ValueError: it is not UTF-8, or not JSON.
    """

    def finite(text: str) -> float:
        if not math.isfinite(number := float(text)):
            raise TraceError(f"trace.json contains the number {text[:40]}, which is not finite")
        return number

    if excess := excess_of(content):
        raise TraceError(f"trace.json has {excess}")
    document = json.loads(content.decode("utf-8"), parse_constant=finite, parse_float=finite)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise TraceError(f"trace.json does not declare the format {FORMAT!r}")
    version = document.get("version")
    if type(version) is not int or version != FORMAT_VERSION:
        shown = reprlib.repr(version)
        raise TraceError(f"has version {shown}, and this bsplib reads version {FORMAT_VERSION}")
    return _list(document.get("runs"), "runs")


def entry_of(value: object) -> dict[str, Any]:
    """Check that a run has an entry that says all; return it."""
    if not isinstance(value, dict):
        raise TraceError(f"its entry is {reprlib.repr(value)}, not an object")
    if missing := sorted(_KEYS - value.keys()):
        raise TraceError(f"its entry does not have {', '.join(missing)}")
    there = [each for each in ("samples", "waits") if value[each] is not None]
    for table in ("records", "traffic", *there):
        _int(value[table], f"length of {table}", 0, MAX_NUMBER)
    return value


def head_of(entry: dict[str, Any]) -> Run:
    """Return a run without its groups, stacks and records, after all checks of the rest."""
    complete, meta = entry["complete"], entry["meta"]
    if not isinstance(complete, bool):
        raise TraceError(f"complete is {reprlib.repr(complete)}, not true or false")
    if not isinstance(meta, dict) or _nesting(meta) > MAX_META_NESTING:
        raise TraceError(f"meta is {reprlib.repr(meta)}, not an object or nested too deeply")
    nprocs = _int(entry["nprocs"], "nprocs", 1, MAX_NPROCS)
    _check_absent(meta.get("absent", []), nprocs, complete=complete)
    _check_repeat(meta.get("repeat"))
    lifetime = None if entry["lifetime"] is None else lifetime_of(entry["lifetime"], nprocs)
    return Run(
        nprocs=nprocs,
        groups=(),
        stacks=(),
        records=np.empty(0, RECORD),
        traffic=np.empty(0, TRAFFIC),
        complete=complete,
        meta=meta,
        lifetime=lifetime,
        steal_ns=_int(entry["steal_ns"], "steal_ns", NOT_MEASURED, MAX_NUMBER),
        measured=checked_reasons(entry["measured"]),
    )


def _check_repeat(value: object) -> None:
    """Check which repeat of how many a run is."""
    if value is not None:
        repeat, repeats = _list(value, "repeat", 2)
        _int(repeat, "repeat", 0, _int(repeats, "repeat", 1, MAX_NUMBER) - 1)


def lifetime_of(value: object, nprocs: int) -> Lifetime:
    """Return when a run began and ended; its moments are in order."""
    if not isinstance(value, dict) or value.keys() != set(Lifetime._fields):
        raise TraceError(f"lifetime is {reprlib.repr(value)}, not its moments by name")
    of_caller = [_moment(value[name], name) for name in ("called", "collected", "returned")]
    of_processes = [
        [_moment(moment, name) for moment in _list(value[name], name, nprocs)]
        for name in ("started", "ready", "finished")
    ]
    for moments in (of_caller, *zip(*of_processes, strict=True)):
        known = [moment for moment in moments if moment is not None]
        if known != sorted(known):
            raise TraceError(f"lifetime has the moments {known}, which are not in order")
    called, collected, returned = of_caller
    if called is None:
        raise TraceError("lifetime does not say when the run was called")
    started, ready, finished = map(tuple, of_processes)
    return Lifetime(called, started, ready, finished, collected, returned)


def _moment(value: object, what: str) -> int | None:
    return None if value is None else _int(value, what, -MAX_NUMBER, MAX_NUMBER)


def checked_reasons(value: object) -> dict[str, str]:
    """Check why something was not measured, by what it is; return it.

    Raises:
        TraceError: it names what is never measured, or is no text.
    """
    if not isinstance(value, dict) or not value.keys() <= SOURCES_OF_TIME:
        raise TraceError(f"measured is {reprlib.repr(value)}, not {sorted(SOURCES_OF_TIME)}")
    for what, why in value.items():
        if not isinstance(why, str) or len(why) > MAX_TEXT:
            raise TraceError(f"measured has {reprlib.repr(why)} for {what}, no text or too long")
    return value


def _check_absent(value: object, nprocs: int, *, complete: bool) -> None:
    """Check the list of the processes whose records are missing."""
    pids = [_int(pid, "absent", 0, nprocs - 1) for pid in _list(value, "absent")]
    if pids and (complete or len(set(pids)) != len(pids) or len(pids) == nprocs):
        raise TraceError(
            f"absent is {reprlib.repr(pids)}, which cannot be those of {nprocs} processes whose "
            f"records are missing from a run that is not complete"
        )


def groups_of(entry: dict[str, Any], nprocs: int) -> tuple[GroupInfo, ...]:
    """Return the groups; the root must be first, and each sub-group inside an earlier group."""
    groups: list[GroupInfo] = []
    contains = functools.cache(lambda position: _membership(groups[position].members))
    for position, row in enumerate(_list(entry["groups"], "groups")):
        what = f"group {position}"
        group = group_in(row, what, nprocs)
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


def group_in(row: object, what: str, nprocs: int) -> GroupInfo:
    """Return the group that ``GroupInfo.to_json`` has described; its parent is not looked at."""
    *fields, members = _list(row, what, len(GroupInfo._fields))
    parent, superstep, ordinal, index = (_int(field, what, -1, MAX_NUMBER) for field in fields)
    return GroupInfo(parent, superstep, ordinal, index, _members(members, what, nprocs))


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


def stacks_of(entry: dict[str, Any]) -> tuple[Stack, ...]:
    """Return the stacks; none may be empty."""
    frames = _frames(entry["frames"])
    stacks = []
    for number, row in enumerate(_list(entry["stacks"], "stacks")):
        what = f"stack {number}"
        if len(_list(row, what)) > MAX_STACK:
            raise TraceError(f"{what} has {len(row)} frames, more than {MAX_STACK}")
        positions = [_int(position, what, 0, len(frames) - 1) for position in row]
        if not positions:
            raise TraceError(f"{what} is empty")
        stacks.append(tuple(frames[position] for position in positions))
    return tuple(stacks)


def numberings_of(entry: dict[str, Any], groups: int, stacks: int) -> list[Numbering]:
    """Return the positions of groups and of stacks in the run, for each numbering of chunks.

    Args:
        entry: that of the run.
        groups: number of groups of the run.
        stacks: number of stacks of the run.
    """
    numberings = []
    for row in _list(entry["numberings"], "numberings"):
        of_groups, of_stacks = _list(row, "a numbering", 2)
        of_group = [_int(at, "a numbering", 0, groups - 1) for at in _list(of_groups, "groups")]
        of_stack = [_int(at, "a numbering", 0, stacks - 1) for at in _list(of_stacks, "stacks")]
        numberings.append(
            {"group": np.array(of_group, np.int32), "stack": np.array(of_stack, np.int32)}
        )
    return numberings


def sources_of(entry: dict[str, Any]) -> dict[str, str]:
    """Return the digests of source files."""
    sources = entry["sources"]
    if not isinstance(sources, dict):
        raise TraceError(f"sources is {reprlib.repr(sources)}, not an object")
    for file, digest in sources.items():
        if len(file) > MAX_TEXT or not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
            shown = f"{reprlib.repr(file)} has {reprlib.repr(digest)}"
            raise TraceError(f"source {shown}, no digest or too long a name")
    return sources


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
