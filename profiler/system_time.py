"""What the system took beside the account: page faults, own threads, and other virtual machines.

Page faults are counted for each thread, and told by place and process. A *minor* fault gives a
process a page of memory, such as at the first touch of new memory; a *major* one waits for a disk.
By the rule of the recorder (``bsplib.core.log``) they belong to the stretch at whose end the system
was read: a stretch of less than 30 us leaves its own to the next one that is longer.

How long processes waited for threads of their own, such as those of a library for matrices, is a
part of useful computation: the process computes, though its main thread does not.

What other virtual machines took of a run is the steal that ``/proc/stat`` counts. It is known for
the host of the caller only, summed over its cores. The system books it nowhere in a process: it may
lie in computation, or in what is blocked or not explained.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bsplib.profiler import format as fmt
from bsplib.profiler.kinds import LEAST_TOLD
from bsplib.profiler.survey import elapsed_s, is_virtual
from bsplib.recording.chunk_ranges import ChunkRanges
from bsplib.recording.records import NOT_MEASURED, PAGE_FAULTS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bsplib.profiler._arrays import Ints
    from bsplib.profiler.callgraph import CallGraph
    from bsplib.recording.records import Run


KINDS = ("minor", "major")
"""Page faults without input, and those that waited for it."""
_MINOR, _MAJOR = ("comp_minor", "comm_minor"), ("comp_major", "comm_major")

_FAULT_NS = 1_000_000
"""A page fault takes no longer: that of a huge page, which is filled with zeros."""


def page_faults(callgraph: CallGraph) -> dict[str, dict[str, list[int]]] | None:
    """Return the page faults of each node with all below it, by its id, by kind and by pid.

    Returns:
        None where they were not measured, as on virtual processors.
    """
    sums, passing = _by_origin(callgraph), callgraph.passing
    if sums is None:
        return None
    return {
        node: dict(zip(KINDS, sums[:, [*passing[node]]].sum(axis=1).tolist(), strict=True))
        for node in callgraph.graph
    }


def _by_origin(callgraph: CallGraph) -> Ints | None:
    """Return page faults: shape (kinds, origins, processes); None if no record has any number."""
    run = callgraph.run
    sums = np.zeros((len(KINDS), len(callgraph.origins), run.nprocs), np.int64)
    is_measured = False
    records, known = run.table("records"), ChunkRanges(run, "records", "faults").known()
    for chunk in range(len(records.bounds) - 1):
        if known is not None and known[1][chunk] <= 0:
            is_measured |= bool(known[1][chunk] > NOT_MEASURED)
            continue
        rows = records.read(chunk, ("pid", "stack", "kind", *PAGE_FAULTS))
        at = callgraph.origin_of(rows), rows["pid"]
        for number, fields in enumerate((_MINOR, _MAJOR)):
            for name in fields:
                values = rows[name]
                is_measured |= bool((values != NOT_MEASURED).any())
                if values.max() > 0:  # few chunks have any
                    np.add.at(sums[number], at, values.clip(min=0))
    return sums if is_measured else None


def faults_behind(callgraph: CallGraph, nodes: Iterable[str], ns: int) -> int:
    """Return the minor page faults of some nodes if they can be what time in the system was for.

    New memory has page faults each time. A process that was forked has one for each page that it
    writes to first, nearly all in one superstep. So the median over supersteps counts.

    Args:
        callgraph: of the run.
        nodes: ids of the nodes.
        ns: the time in the system there, summed over processes.

    Returns:
        0 where page faults do not explain the time, or were not measured.
    """
    origins = sorted({origin for node in nodes for origin in callgraph.passing[node]})
    parts: list[tuple[Ints, Ints]] = []
    for _, rows in callgraph.run.table("records").chunks(("pid", "stack", "kind", *_MINOR)):
        inside = np.isin(callgraph.origin_of(rows), origins)
        counts = sum(rows[name][inside].clip(min=0) for name in _MINOR)
        parts.append((rows["pid"][inside], counts))
    pids, faults = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    mine = [faults[pids == pid] for pid in np.unique(pids)]
    again = sum(float(np.median(each)) * len(each) for each in mine)
    return int(faults.sum()) if again * _FAULT_NS >= ns else 0


def own_threads_s(run: Run) -> float | None:
    """Return the seconds that all processes waited for threads of their own; None if not known."""
    waited = run.meta.get("own_threads_ns")
    if not isinstance(waited, list) or not all(type(each) is int for each in waited):
        return None
    return sum(waited) / 1e9


def own_threads_sentence(run: Run) -> str:
    """Return the sentence about such waiting; empty where there is little, or it is not known."""
    waited_s, whole_s = own_threads_s(run), run.nprocs * elapsed_s(run)
    if not waited_s or waited_s < LEAST_TOLD * whole_s:
        return ""
    processes = fmt.processes(run.nprocs)
    return (
        f"{fmt.seconds(waited_s)} of {fmt.seconds(whole_s)} of {processes} "
        f"({100 * waited_s / whole_s:.0f}%) passed in waiting for own threads, which is "
        "computation."
    )


def steal_s(run: Run) -> float | None:
    """Return the seconds that the cores of the caller's host were taken; None if not known."""
    if run.steal_ns == NOT_MEASURED or is_virtual(run):
        return None
    return run.steal_ns / 1e9


def steal_sentence(run: Run) -> str:
    """Return the sentence about steal; empty where there is little, or it is not known."""
    stolen_s, cores, whole_s = steal_s(run), run.meta.get("cores"), elapsed_s(run)
    if not stolen_s or not isinstance(cores, int) or cores < 1:
        return ""
    share = stolen_s / (cores * whole_s) if whole_s else 1.0
    if share <= LEAST_TOLD:
        return ""
    of = fmt.counted(cores, "core")
    return (
        f"Other virtual machines took {fmt.seconds(stolen_s)} of {fmt.seconds(cores * whole_s)} of "
        f"{of} ({100 * share:.0f}%, steal): this is in computation, blocked or unexplained."
    )
