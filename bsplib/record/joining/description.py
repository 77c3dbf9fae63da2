"""What a trace says of the run of an mpi4py program, apart from its records."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from bsplib.backends.members import named
from bsplib.record.events import NOT_READ
from bsplib.record.joining.ranks import MpiCalls, Rank
from bsplib.recording.records import MAX_NUMBER, MAX_TEXT, Lifetime, Run
from bsplib.recording.sources import with_digests

BACKEND = "mpi4py"
"""The backend of such a run: its sentences speak of calls of MPI."""
_NOT_READ = "the recorder could not read it"


def described(calls: MpiCalls, run: Run) -> Run:
    """Return the run with its metadata, its lifetime and the digests of its sources."""
    ranks = calls.ranks
    first = ranks[min(ranks)]
    absent = [pid for pid in range(calls.nprocs) if pid not in ranks]
    error = _error(calls, absent)
    meta: dict[str, Any] = {
        "program": str(first.header.get("program", "unknown")),
        "arguments": _texts(first.header.get("arguments")),
        "backend": BACKEND,
        "cores": _cores(ranks),
        "host": str(first.header.get("host", "unknown")),
        "versions": {name: str(first.header.get(name)) for name in ("python", "mpi4py", "library")},
        "cpu_measured": bool((calls.cpu[0] != NOT_READ).any()),
        **_hosts(calls),
    }
    if absent:
        meta["absent"] = absent
    if error:
        meta["error"] = error
    run = replace(
        run,
        complete=not error,
        meta=meta,
        lifetime=_lifetime(calls, complete=not error),
        measured=dict(run.measured)
        | {
            "cpu": "" if (calls.cpu[0] != NOT_READ).any() else _NOT_READ,
            "ready": "" if (calls.ready[0] != NOT_READ).any() else _NOT_READ,
            "faults": "they are not recorded in programs of mpi4py",
        },
    )
    started_s = first.header.get("started")
    return with_digests(run, started_s if isinstance(started_s, float) else 0.0)


def _texts(value: object) -> list[str]:
    return [str(each) for each in value] if isinstance(value, list) else []


def _cores(ranks: dict[int, Rank]) -> int:
    """Return the number of cores of all hosts, as far as it is known."""
    told = {
        str(rank.header.get("host")): rank.header.get("cores")
        for rank in ranks.values()
        if isinstance(rank.header.get("cores"), int)
    }
    return sum(told.values()) if told else os.cpu_count() or 1  # type: ignore[arg-type]


def _hosts(calls: MpiCalls) -> dict[str, Any]:
    """Return the metadata about hosts, where there are several."""
    ranks = calls.ranks
    host = {pid: str(rank.header.get("host", "unknown")) for pid, rank in ranks.items()}
    if len(set(host.values())) < 2:
        return {}
    bounds: dict[str, float] = {}
    for pid, rank in ranks.items():
        bound_s = min(rank.bound, MAX_NUMBER) / 1e9
        bounds[host[pid]] = max(bounds.get(host[pid], 0.0), bound_s)
    names = [host.get(pid, "unknown") for pid in range(calls.nprocs)]
    return {"hosts": names, "clock_bounds_s": bounds}


def _error(calls: MpiCalls, absent: list[int]) -> str:
    """Say why the run is not complete; empty where it is."""
    texts = []
    if absent:
        texts.append(f"the records of {named(absent)} are missing, and count as 0 in all figures")
    full = [pid for pid, rank in calls.ranks.items() if rank.stopped]
    if full:
        texts.append(f"the disk was full before {named(full)} had recorded all")
    cut = [pid for pid, rank in calls.ranks.items() if rank.end is None and pid not in full]
    if cut:
        stuck = sorted({rank.stuck for rank in calls.ranks.values() if rank.stuck})
        where = f" (in {', '.join(stuck)})" if stuck else ""
        texts.append(f"{named(cut)} ended while the program was recorded{where}")
    for pid, rank in sorted(calls.ranks.items()):
        if rank.end is not None and rank.end.get("error"):
            texts.append(f"process {pid}: {rank.end['error']}")
            break
    return "; ".join(texts)[:MAX_TEXT]


def _lifetime(calls: MpiCalls, *, complete: bool) -> Lifetime:
    """Return when the program began and ended."""
    every = [calls.ranks.get(pid) for pid in range(calls.nprocs)]
    known = list(calls.ranks.values())
    last = max(rank.exit for rank in known)
    return Lifetime(
        called=min(rank.begin for rank in known),
        started=tuple(None if rank is None else rank.begin for rank in every),
        ready=tuple(None if rank is None else rank.ready for rank in every),
        finished=tuple(None if rank is None or rank.end is None else rank.until for rank in every),
        collected=last if complete else None,
        returned=last if complete else None,
    )
