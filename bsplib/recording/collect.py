"""Collects the spools of all processes into the record of a run, and makes a run fit into a trace.

The files may be incomplete, where the program was killed or the disk was full. The run
then ends with the last superstep that all its processes have recorded. A run whose trace would be
too long to be read ends earlier, too.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsplib.backends.members import named
from bsplib.errors import TraceError
from bsplib.recording.import_clock import is_import
from bsplib.recording.lifetimes import Caller, Noted, lifetime_of
from bsplib.recording.line_sampler import joined_samples, read_samples
from bsplib.recording.packing import heads, unpacked, whole_chunks
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
from bsplib.recording.trace import write_trace
from bsplib.recording.trace_document import TraceTooLongError, checked_reasons
from bsplib.sync_kinds import Kind

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
        try:
            part = _read_part(folder or _NOWHERE, pid, groups, stacks)
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            raise TraceError(f"the records of process {pid} are damaged: {error}") from error
        parts.append(part)
        if part.lost or (complete and not part.begun):
            lost[pid] = part.lost or "it has no file of records"
    hosts = [part.told.host for part in parts]
    meta.update(_hosts(hosts), **meta_of([part.told for part in parts]))
    run = Run(
        nprocs=nprocs,
        groups=tuple(groups),
        stacks=tuple(stacks),
        records=np.concatenate([part.records for part in parts]),
        traffic=_joined_traffic(parts),
        complete=complete and not lost,
        meta=meta,
        lifetime=lifetime_of([part.told.noted for part in parts], hosts, caller),
        steal_ns=NOT_MEASURED if caller is None else caller.steal_ns,
        samples=joined_samples([part.samples for part in parts]),
        measured=reasons_of([part.told.measured for part in parts]),
    )
    missing = tuple(pid for pid, part in enumerate(parts) if not part.begun)
    return Collected(_keep_whole(run), lost, len(missing) < nprocs, missing)


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


def reasons_of(told: Sequence[dict[str, str]]) -> dict[str, str]:
    """Return why something was not measured in some process; empty text where it was in all."""
    reasons: dict[str, str] = {}
    for of_process in told:
        for what, why in of_process.items():
            reasons[what] = reasons.get(what) or why
    return reasons


def meta_of(told: Sequence[AboutProcess]) -> dict[str, Any]:
    """Return what processes measured of themselves: own threads, imports and blocks."""
    waited = [each.noted.own_threads_ns for each in told]
    meta: dict[str, Any] = {}
    if any(each is not None for each in waited):
        meta["own_threads_ns"] = [each or 0 for each in waited]
    if any(each.imports for each in told):
        meta["imports"] = [each.imports for each in told]
    if any(each.blocks for each in told):
        meta["blocks"] = [each.blocks for each in told]
    return meta


def has_ended(run: Run) -> bool:
    """Tell whether every process has reached the end of ``main``."""
    records = run.records
    ended = (records["group"] == 0) & (records["kind"] == Kind.END)
    return len(np.unique(records["pid"][ended])) == run.nprocs


@dataclass
class AboutProcess:
    """What a process has told of itself."""

    host: Host | None = None
    noted: Noted = field(default_factory=Noted)
    measured: dict[str, str] = field(default_factory=dict)
    sampled: list[int] = field(default_factory=list)
    """The number in the run of each stack of its samples."""
    imports: list[list[int]] = field(default_factory=list)
    """As ``bsplib.recording.import_clock.Import`` has them."""
    blocks: dict[str, Any] = field(default_factory=dict)
    """As ``bsplib.experiments.blocks.Passages`` has them."""

    def add(self, what: str, value: Any) -> None:
        """Add what a line of its definitions says.

        Raises:
            ValueError: the line says something else.
        """
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
                if name not in self.noted.__dict__ or type(moment) is not int:
                    raise ValueError(f"it noted {name} {moment}")
                setattr(self.noted, name, moment)
        else:
            raise ValueError(f"it told {what}")


@dataclass(frozen=True)
class _Part:
    """The records of one process; groups and stacks are numbered as in the run."""

    records: NDArray[np.void]
    traffic: NDArray[np.void]
    """The field ``record`` is a position among the records of this process."""
    lost: str
    begun: bool
    told: AboutProcess
    samples: NDArray[np.void] | None


def _read_part(
    folder: Path, pid: int, groups: dict[GroupInfo, int], stacks: dict[Stack, int]
) -> _Part:
    records, reason = read_table(folder / f"{pid}.records", RECORD)
    traffic, _ = read_table(folder / f"{pid}.traffic", TRAFFIC)
    group_of, stack_of, told = read_definitions(folder / f"{pid}.definitions", groups, stacks)
    sound = sound_rows(records, len(group_of), len(stack_of))
    if len(sound) < len(records):
        reason = reason or "a number is out of range"
    sound["pid"] = pid
    sound["group"] = group_of[sound["group"]]
    sound["stack"] = stack_of[sound["stack"]]
    # A process writes traffic before its record: rows beyond the records were left unfinished.
    within = (traffic["record"] >= 0) & (traffic["record"] < len(sound))
    samples = read_samples(folder, pid, told.sampled, lambda: sound)
    begun = (folder / f"{pid}.records").exists()
    return _Part(sound, traffic[within], reason, begun, told, samples)


def sound_rows(records: NDArray[np.void], groups: int, stacks: int) -> NDArray[np.void]:
    """Copy the records before the first one whose numbers are out of range."""
    wrong = np.zeros(len(records), bool)
    for name in RECORD.names or ():
        end = {"group": groups, "stack": stacks}.get(name, MAX_NUMBER + 1)
        least = NOT_MEASURED if name in FROM_SYSTEM else 0
        wrong |= (records[name] < least) | (records[name] >= end)
    return records[: int(wrong.argmax()) if wrong.any() else len(records)].copy()


def _joined_traffic(parts: list[_Part]) -> NDArray[np.void]:
    rows = 0
    joined = []
    for part in parts:
        traffic = part.traffic.copy()
        traffic["record"] += rows
        joined.append(traffic)
        rows += len(part.records)
    return np.concatenate(joined)


def read_table(path: Path, dtype: np.dtype[Any]) -> tuple[NDArray[np.void], str]:
    """Return the complete rows of a table, and the reason why recording stopped, if it did."""
    raw = path.read_bytes() if path.exists() else b""
    if len(raw) < HEADER.size:
        return np.zeros(0, dtype), "there was no room for a first record" if path.exists() else ""
    rows, written, reason = read_rows(raw, dtype)
    every = heads(unread_chunks(path))
    chunks = [unpacked(payload, head.rows, dtype) for head, payload in every]
    if len(chunks) < written:
        raise ValueError(f"{len(chunks)} chunks of {written} are there")
    if len(chunks) > written:  # the process was killed before it could use the memory anew
        rows = rows[:0]
    return np.concatenate([*chunks, rows]), os.strerror(reason) if 0 < reason < 2**31 else ""


def read_rows(raw: bytes, dtype: np.dtype[Any]) -> tuple[NDArray[np.void], int, int]:
    """Return the rows of a mapped file, the number of chunks before them, and an ``errno``."""
    count, word = HEADER.unpack_from(raw) if len(raw) >= HEADER.size else (0, errno.ENOSPC)
    there = max(len(raw) - HEADER.size, 0) // dtype.itemsize
    count = min(count, there)
    rows = np.frombuffer(raw, dtype, count, HEADER.size) if count else np.zeros(0, dtype)
    return rows, word >> 32, word & (2**32 - 1)


def unread_chunks(path: Path) -> memoryview:
    """Return the whole chunks of a table; a last one that is not whole is left out.

    Args:
        path: the mapped file of the table.
    """
    chunks = path.with_name(path.name + CHUNKS)
    return whole_chunks(memoryview(chunks.read_bytes() if chunks.exists() else b""))


def read_definitions(
    path: Path, groups: dict[GroupInfo, int], stacks: dict[Stack, int]
) -> tuple[NDArray[np.int32], NDArray[np.int32], AboutProcess]:
    """Return the numbers that the groups and stacks of a process have in the run, and the rest.

    Groups and stacks that the run does not have yet are added to it.
    """
    group_of: list[int] = []
    stack_of: list[int] = []
    told = AboutProcess()
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    for line in text.split("\n")[:-1]:  # a last line without its end is incomplete
        what, value = json.loads(line)
        if what == "stack":
            stack_of.append(_number(value, stacks))
        elif what == "sampled":
            number, frames = value
            told.sampled[number : number + 1] = [_number(frames, stacks)]
        elif what != "group":
            told.add(what, value)
        else:
            group = GroupInfo.of_json(value)
            if group.parent >= 0:
                group = group._replace(parent=group_of[group.parent])
            group_of.append(groups.setdefault(group, len(groups)))
    return np.array(group_of, np.int32), np.array(stack_of, np.int32), told


def _number(frames: list[Any], stacks: dict[Stack, int]) -> int:
    """Return the number of a stack in the run, to which it is added if it is new."""
    stack = tuple(Frame(*frame) for frame in frames)
    return stacks.setdefault(stack, len(stacks))


def first_half(run: Run) -> Run:
    """Return a run without the second half of its time; if no time passed, without any record.

    Groups without records are left out, too: a program that opens very many groups
    makes a trace that is too long to be read.
    """
    records = run.records
    middle = (int(records["start"].min()) + int(records["end"].max())) // 2 if len(records) else 0
    early = records["end"] <= middle
    if early.all():  # no time passed in the run
        early[:] = False
    whole = replace(run, complete=False)
    return _without_empty_groups(_keep_whole(_keep(whole, early)))


def write_fitting(
    target: Path, earlier: tuple[Run, ...], run: Run, scratch: Path | None = None
) -> tuple[Run, str]:
    """Write a trace; leave out the end of its last run if the trace is too long to be read.

    Args:
        target: the file.
        earlier: the runs before the last one.
        run: the last run.
        scratch: as for :func:`bsplib.recording.trace.write_trace`.

    Returns:
        The last run as it was written, and a text about what was left out of it.

    Raises:
        TooLongError: the trace is too long even with no record of the last run.
        OSError: the file cannot be written.
    """
    left_out = ""
    while True:
        try:
            write_trace(target, Trace((*earlier, run)), scratch=scratch)
        except TraceTooLongError as error:
            if len(run.records) == 0:
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
