"""Collects the spools of all processes into the record of a run, and makes a run fit into a trace.

Where all processes have recorded their ends, the chunks that they have written become those of the
trace, with another header: so the end of a run takes as long as copying a short file, however many
supersteps there were.

Otherwise the files may be incomplete, since the program was killed or the disk was full. The run
then ends with the last superstep that all its processes have recorded. A run whose trace would be
too long to be read ends earlier, too.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsplib.backends.members import named
from bsplib.errors import TraceError
from bsplib.recording.import_clock import is_import
from bsplib.recording.lifetimes import NOTED, Caller, lifetime_of
from bsplib.recording.line_sampler import joined_samples, samples_of
from bsplib.recording.packing import Chunk, Numbering, StoredTable, chunk_of, chunks_in
from bsplib.recording.records import (
    FROM_SYSTEM,
    MAX_NUMBER,
    NOT_MEASURED,
    RECORD,
    TRAFFIC,
    Frame,
    GroupInfo,
    Host,
    Run,
    Stack,
    Trace,
    root_group,
    waits_among,
)
from bsplib.recording.spool import CHUNKS, HEADER
from bsplib.recording.tables import RunTable
from bsplib.recording.trace import write_trace
from bsplib.recording.trace_document import TraceTooLongError, checked_reasons, group_in

_NOWHERE = Path(os.devnull)
"""A folder without files."""


@dataclass(frozen=True)
class Collected:
    """The records of a run, as read from the files of its processes."""

    run: Run
    lost: dict[int, str]
    """Why a process stopped recording, by pid."""
    begun: bool
    """Whether any process began to record."""
    missing: tuple[int, ...]
    """Processes without a file of records."""

    def losses(self) -> str:
        """Say which processes stopped recording, and why; empty if none did."""
        by_reason: dict[str, list[int]] = {}
        for pid, reason in self.lost.items():
            by_reason.setdefault(reason, []).append(pid)
        return "; ".join(
            f"{named(pids)} stopped recording: {reason}" for reason, pids in by_reason.items()
        )


def collect(
    folders: Sequence[Path | None],
    *,
    complete: bool,
    meta: dict[str, Any],
    caller: Caller | None = None,
) -> Collected:
    """Read the spools of all processes and combine them into one run.

    Args:
        folders: where each process kept its spool, by pid; None where that is lost.
        complete: whether the run ended without error.
        meta: metadata for the run, as in ``Run.meta``; the hosts are added to it.
        caller: what the caller of the run noted, if it is known.

    Raises:
        TraceError: a file is damaged.
        OSError: a file cannot be read.
    """
    nprocs = len(folders)
    groups: dict[GroupInfo, int] = {root_group(nprocs): 0}
    stacks: dict[Stack, int] = {}
    parts, lost = [], {}
    if absent := [pid for pid, folder in enumerate(folders) if folder is None]:
        meta["absent"] = absent
    for pid, folder in enumerate(folders):
        with _naming(pid):
            part = _read_part(folder or _NOWHERE, pid, groups, stacks)
        parts.append(part)
        if part.lost or (complete and not part.begun):
            lost[pid] = part.lost or "it has no file of records"
    is_whole = complete and not lost
    # Short runs are shorter in few chunks, which have records of many processes.
    as_stored = is_whole and any(part.records.chunks for part in parts)
    records, traffic = _stored(parts) if as_stored else _looked_at(parts)
    hosts = [part.host for part in parts]
    meta.update(_hosts(hosts), **_meta_of(parts))
    run = Run(
        nprocs=nprocs,
        groups=tuple(groups),
        stacks=tuple(stacks),
        records=records,
        traffic=traffic,
        complete=is_whole,
        meta=meta,
        lifetime=lifetime_of([part.noted for part in parts], hosts, caller),
        steal_ns=NOT_MEASURED if caller is None else caller.steal_ns,
        samples=joined_samples([part.samples for part in parts]),
        measured=_reasons_of(parts),
    )
    missing = tuple(pid for pid, part in enumerate(parts) if not part.begun)
    return Collected(_keep_whole(run), lost, len(missing) < nprocs, missing)


@contextmanager
def _naming(pid: int) -> Iterator[None]:
    """Name the process whose files are damaged."""
    try:
        yield
    except (ValueError, LookupError, TypeError, RecursionError, OverflowError) as error:
        raise TraceError(f"the records of process {pid} are damaged: {error}") from error


def _hosts(found: Sequence[Host | None]) -> dict[str, Any]:
    """Return the metadata about the hosts of the processes; none where all are on one.

    A process that ended before it named its host has the host ``unknown``.
    """
    known = [host for host in found if host is not None]
    if not known:
        return {}
    bounds: dict[str, float] = {}
    for host in known:
        bounds[host.name] = max(bounds.get(host.name, 0.0), host.bound_ns / 1e9)
    names = ["unknown" if host is None else host.name for host in found]
    cores = sum({host.name: host.cores for host in known}.values())
    return {"hosts": names, "clock_bounds_s": bounds, "cores": cores}


def _reasons_of(parts: Sequence[_Part]) -> dict[str, str]:
    """Return why something was not measured in some process; empty text where it was in all."""
    reasons: dict[str, str] = {}
    for part in parts:
        for what, why in part.measured.items():
            reasons[what] = reasons.get(what) or why
    return reasons


def _meta_of(parts: Sequence[_Part]) -> dict[str, Any]:
    """Return what processes measured of themselves, as far as any did."""
    told: dict[str, list[Any]] = {
        "imports": [part.imports for part in parts],
        "blocks": [part.blocks for part in parts],
    }
    meta = {name: values for name, values in told.items() if any(values)}
    if any("own_threads_ns" in part.noted for part in parts):
        meta["own_threads_ns"] = [part.noted.get("own_threads_ns", 0) for part in parts]
    return meta


class _Spooled(NamedTuple):
    """A table of a process, as it is in its files."""

    chunks: list[Chunk]
    rows: NDArray[np.void]
    """Those after the chunks."""
    reason: str
    """Why recording stopped, if it did."""

    def whole(self) -> NDArray[np.void]:
        """Return all rows."""
        return np.concatenate([StoredTable(self.rows.dtype, self.chunks).whole(), self.rows])

    def with_heads(self, numbering: int, base: int) -> Iterator[Chunk]:
        """Yield all rows as chunks with these numbers in their headers."""
        for chunk in self.chunks:
            yield chunk._replace(numbering=numbering, base=base)
        if len(self.rows):
            yield chunk_of(self.rows, numbering, base)


@dataclass
class _Part:
    """What one process has recorded, and what it has told of itself."""

    pid: int
    records: _Spooled
    traffic: _Spooled
    """The field ``record`` is a position among the records of this process."""
    begun: bool
    group_of: list[int] = field(default_factory=list)
    """The positions in the run of its groups, and the same of its stacks."""
    stack_of: list[int] = field(default_factory=list)
    lost: str = ""
    host: Host | None = None
    noted: dict[str, int] = field(default_factory=dict)
    measured: dict[str, str] = field(default_factory=dict)
    samples: NDArray[np.void] | None = None
    imports: list[list[int]] = field(default_factory=list)
    """As ``bsplib.recording.import_clock.ImportClock.found`` has them."""
    blocks: dict[str, Any] = field(default_factory=dict)
    """As ``bsplib.experiments.blocks.Passages`` has them."""

    def define(
        self, what: str, value: Any, groups: dict[GroupInfo, int], stacks: dict[Stack, int]
    ) -> None:
        """Take in what a line of its definitions says; see ``spool.Spool.define``.

        Args:
            what: is said.
            value: what it is.
            groups: the numbers in the run of groups; new ones are added.
            stacks: the same of stacks.

        Raises:
            ValueError: the line says something else.
        """
        if what == "stack":
            self.stack_of.append(_number(value, stacks))
        elif what == "group":
            group = group_in(value, "a group", next(iter(groups)).size)
            if group.parent >= 0:
                group = group._replace(parent=self.group_of[group.parent])
            self.group_of.append(groups.setdefault(group, len(groups)))
        elif what == "samples":
            sampled, samples = value
            numbers = [_number(frames, stacks) for frames in sampled]
            self.samples = samples_of(self.pid, samples, numbers, self.records.whole)
        else:
            self._note(what, value)

    def _note(self, what: str, value: Any) -> None:
        if what == "host":
            self.host = Host.of_json(value)  # the last one counts
        elif what == "measured":
            self.measured |= checked_reasons(value)
        elif what == "imports":
            if wrong := [each for each in value if not is_import(each)]:
                raise ValueError(f"it noted an import {wrong[0]}")
            self.imports = value
        elif what == "blocks":
            self.blocks = dict(value)
        elif what == "noted":
            for name, moment in value.items():
                if name not in NOTED or type(moment) is not int:
                    raise ValueError(f"it noted {name} {moment}")
                self.noted[name] = moment
        else:
            raise ValueError(f"it told {what}")

    def sound_records(self) -> NDArray[np.void]:
        """Return the records before the first one that cannot be, numbered as in the run."""
        sound = sound_rows(self.records.whole(), len(self.group_of), len(self.stack_of))
        sound["pid"] = self.pid
        for name, positions in (("group", self.group_of), ("stack", self.stack_of)):
            sound[name] = np.array(positions, np.int32)[sound[name]]
        return sound


def _read_part(
    folder: Path, pid: int, groups: dict[GroupInfo, int], stacks: dict[Stack, int]
) -> _Part:
    path, definitions = folder / f"{pid}.records", folder / f"{pid}.definitions"
    records = _read_table(path, RECORD)
    part = _Part(pid, records, _read_table(folder / f"{pid}.traffic", TRAFFIC), path.exists())
    text = definitions.read_text(encoding="utf-8") if definitions.exists() else ""
    for line in text.split("\n")[:-1]:  # a last line without its end is incomplete
        what, value = json.loads(line)
        part.define(what, value, groups, stacks)
    part.lost = records.reason
    if len(sound_rows(records.rows, len(part.group_of), len(part.stack_of))) < len(records.rows):
        part.lost = part.lost or "a number is out of range"
    return part


def _stored(parts: list[_Part]) -> tuple[RunTable, RunTable]:
    """Return the records and the traffic of all processes as the chunks that they have written."""
    numberings: dict[tuple[tuple[int, ...], ...], int] = {}
    records: list[Chunk] = []
    traffic: list[Chunk] = []
    base = 0
    for part in parts:
        positions = tuple(part.group_of), tuple(part.stack_of)
        number = 0  # the numbering of the run
        if any(each != tuple(range(len(each))) for each in positions):
            number = numberings.setdefault(positions, len(numberings) + 1)
        traffic += part.traffic.with_heads(0, base)
        records += (own := list(part.records.with_heads(number, 0)))
        base += sum(chunk.rows for chunk in own)
    listed: list[Numbering] = [
        {"group": np.array(of_group, np.int32), "stack": np.array(of_stack, np.int32)}
        for of_group, of_stack in numberings
    ]
    return StoredTable(RECORD, records, listed), StoredTable(TRAFFIC, traffic)


def _looked_at(parts: list[_Part]) -> tuple[NDArray[np.void], NDArray[np.void]]:
    """Return the records and the traffic of all processes, as far as they can be."""
    records, traffic, base = [], [], 0
    for part in parts:
        with _naming(part.pid):
            sound, rows = part.sound_records(), part.traffic.whole()
        # A process writes traffic before its record: rows beyond the records were left unfinished.
        rows = rows[(rows["record"] >= 0) & (rows["record"] < len(sound))]
        rows["record"] += base
        base += len(sound)
        records.append(sound)
        traffic.append(rows)
    return np.concatenate(records), np.concatenate(traffic)


def sound_rows(records: NDArray[np.void], groups: int, stacks: int) -> NDArray[np.void]:
    """Copy the records before the first one whose numbers are out of range."""
    wrong = np.zeros(len(records), bool)
    for name in RECORD.names or ():
        end = {"group": groups, "stack": stacks}.get(name, MAX_NUMBER + 1)
        least = NOT_MEASURED if name in FROM_SYSTEM else 0
        wrong |= (records[name] < least) | (records[name] >= end)
    return records[: int(wrong.argmax()) if wrong.any() else len(records)].copy()


def _read_table(path: Path, dtype: np.dtype[Any]) -> _Spooled:
    if not path.exists():
        return _Spooled([], np.zeros(0, dtype), "")
    raw = path.read_bytes()
    if len(raw) < HEADER.size:
        return _Spooled([], np.zeros(0, dtype), "there was no room for a first record")
    count, word = HEADER.unpack_from(raw)
    written, reason = word >> 32, word & (2**32 - 1)
    count = min(count, (len(raw) - HEADER.size) // dtype.itemsize)
    rows = np.frombuffer(raw, dtype, count, HEADER.size)
    spooled = path.with_name(path.name + CHUNKS)
    found = chunks_in(spooled.read_bytes() if spooled.exists() else b"", may_be_cut=True)
    chunks = [chunk._replace(numbering=0, base=0) for chunk in found]  # those of the process
    if len(chunks) < written:
        raise ValueError(f"{len(chunks)} chunks of {written} are there")
    if len(chunks) > written:  # the process was killed before it could use the memory anew
        rows = rows[:0]
    return _Spooled(chunks, rows, os.strerror(reason) if 0 < reason < 2**31 else "")


def _number(frames: list[Any], stacks: dict[Stack, int]) -> int:
    """Return the number of a stack in the run, to which it is added if it is new."""
    stack = tuple(Frame(*frame) for frame in frames)
    return stacks.setdefault(stack, len(stacks))


def first_half(run: Run) -> Run:
    """Return a run without the later half of its records; of those that end together, all or none.

    Groups without records are left out, too: a program that opens very many groups
    makes a trace that is too long to be read.
    """
    ends = run.records["end"]
    middle = np.median(ends) if len(ends) else 0
    early = ends <= middle
    if early.all():  # more than half of the records end last, all at the same time
        early = ends < middle
    whole = replace(run, complete=False)
    return _without_empty_groups(_keep_whole(_keep(whole, early)))


def write_fitting(
    target: Path,
    earlier: tuple[Run, ...],
    run: Run,
    scratch: Path | None = None,
    *,
    is_sound: bool = False,
) -> tuple[Run, str]:
    """Write a trace; leave out the end of its last run if the trace is too long to be read.

    Args:
        target: the file.
        earlier: the runs before the last one.
        run: the last run.
        scratch: as for :func:`bsplib.recording.trace.write_trace`.
        is_sound: the same.

    Returns:
        The last run as it was written, and a text about what was left out of it.

    Raises:
        TooLongError: the trace is too long even with no record of the last run.
        OSError: the file cannot be written.
    """
    left_out = ""
    while True:
        try:
            write_trace(target, Trace((*earlier, run)), scratch=scratch, is_sound=is_sound)
        except TraceTooLongError as error:
            if len(run.table("records")) == 0:
                raise
            left_out = f"the end of the run was left out, since {str(error).rstrip('.')}"
            run = first_half(run)
            run.meta.setdefault("error", left_out)
        else:
            return run, left_out


def _without_empty_groups(run: Run) -> Run:
    needed = {0}
    for group in np.unique(run.records["group"]).tolist():
        while group not in needed:
            needed.add(group)
            group = run.groups[group].parent  # noqa: PLW2901  # add all ancestors
    kept = sorted(needed)
    numbers = np.full(len(run.groups), -1, np.int32)
    numbers[kept] = np.arange(len(kept))
    records = run.records.copy()
    records["group"] = numbers[records["group"]]
    groups = (run.groups[group] for group in kept)
    renumbered = (
        group._replace(parent=int(numbers[group.parent])) if group.parent >= 0 else group
        for group in groups
    )
    return replace(run, groups=tuple(renumbered), records=records)


def _keep_whole(run: Run) -> Run:
    """Drop the records of supersteps that some process of the group has not ended.

    Nothing is known of processes whose records are missing: those of the others stay.
    """
    if run.complete:
        return run
    there = [group.size - sum(pid in group.members for pid in run.absent) for group in run.groups]
    sizes = np.array(there, np.int64)
    keys = np.stack([run.records["group"].astype(np.int64), run.records["superstep"]], axis=1)
    _, inverse, counts = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
    return _keep(run, counts[inverse.reshape(-1)] == sizes[run.records["group"]])


def _keep(run: Run, keep: NDArray[np.bool_]) -> Run:
    """Keep the selected records and the traffic that belongs to them."""
    position = np.cumsum(keep) - 1
    traffic = run.traffic[keep[run.traffic["record"]]].copy()
    traffic["record"] = position[traffic["record"]]
    waits = waits_among(run, keep)
    return replace(run, records=run.records[keep], traffic=traffic, waits=waits)
