"""The page faults of a run by place and process, as the system counted them for each thread.

A *minor* fault gives a process a page of memory, such as at the first touch of new memory; a
*major* one waits for a disk. By the rule of the recorder (``bsplib.core.log``) they belong to the
stretch at whose end the system was read: a stretch of less than 30 us leaves its own to the next
one that is longer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bsplib.recording.chunk_ranges import ChunkRanges
from bsplib.recording.records import NOT_MEASURED, PAGE_FAULTS

if TYPE_CHECKING:
    from bsplib.profiler._arrays import Ints
    from bsplib.profiler.callgraph import CallGraph

KINDS = ("minor", "major")
"""Page faults without input, and those that waited for it."""
_FIELDS = {"minor": ("comp_minor", "comm_minor"), "major": ("comp_major", "comm_major")}


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
        for number, fields in enumerate(_FIELDS.values()):
            for name in fields:
                values = rows[name]
                is_measured |= bool((values != NOT_MEASURED).any())
                if values.max() > 0:  # few chunks have any
                    np.add.at(sums[number], at, values.clip(min=0))
    return sums if is_measured else None
