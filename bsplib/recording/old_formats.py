"""What traces of earlier versions have in place of what this version reads.

Version 1: a group is ``[parent, superstep, ordinal, index, first process, size]``, a frame does
not say whether it is part of bsplib, and records have no CPU time. Version 2: a record has one
field for CPU time, that of its computation and its calls together, and only where a run had more
processes than cores. Neither knows page faults, the time ready without a core, or when the run
began and ended. Nothing here does I/O, and nothing is checked but what has to be known here:
what this makes of an entry is checked as one of this version.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsplib.recording.records import FROM_SYSTEM, MAX_NUMBER, NOT_MEASURED, RECORD

_GROUP_FIELDS, _FRAME_FIELDS = 6, 4
"""Numbers of fields in version 1."""

_FIELDS_1 = [
    *(("pid", np.int32), ("group", np.int32), ("superstep", np.int64)),
    *(("kind", np.uint8), ("stack", np.int32)),
    *((name, np.int64) for name in ("start", "arrive", "released", "end", "comm_calls", "sub")),
]
_TO_ITSELF = [("self_bytes", np.int64), ("self_messages", np.int64)]
RECORDS = {
    1: np.dtype([*_FIELDS_1, *_TO_ITSELF]),
    2: np.dtype([*_FIELDS_1, ("cpu", np.int64), *_TO_ITSELF]),
}
"""The dtypes of records, by version."""


def renewed(entry: Any, version: int) -> Any:
    """Return the entry of a run in the form of this version."""
    if version > 1 or not isinstance(entry, dict):
        return entry
    changed = dict(entry)
    for name, change in (("groups", _group), ("frames", _frame)):
        if isinstance(entry.get(name), list):
            changed[name] = [change(row) for row in entry[name]]
    return changed


def _group(row: Any) -> Any:
    if not isinstance(row, list) or len(row) != _GROUP_FIELDS:
        return row
    return [*row[:4], {"first": row[4], "count": row[5], "step": 1}]


def _frame(row: Any) -> Any:
    return [*row, False] if isinstance(row, list) and len(row) == _FRAME_FIELDS else row


def renewed_records(old: NDArray[np.void]) -> NDArray[np.void]:
    """Return records of an earlier version in the form of this one.

    Of the CPU time, the part in calls is taken to be as large as their part of the time.
    """
    records = np.zeros(len(old), RECORD)
    for name in old.dtype.names or ():
        if name in (RECORD.names or ()):
            records[name] = old[name]
    for name in FROM_SYSTEM:
        records[name] = NOT_MEASURED
    if "cpu" in (old.dtype.names or ()):
        records["comp_cpu"] = _without_calls(old)
    records.setflags(write=False)
    return records


def _without_calls(old: NDArray[np.void]) -> NDArray[np.int64]:
    """Return the CPU time of the computation alone; what cannot be stays as it is, for checks."""
    kept: NDArray[np.int64] = old["cpu"].astype(np.int64)
    with_calls = (old["arrive"] - old["start"] - old["sub"]).astype(np.float64)
    computed = with_calls - old["comm_calls"]
    possible = (kept >= 0) & (kept <= MAX_NUMBER) & (computed >= 0) & (computed <= MAX_NUMBER)
    computed, with_calls = computed[possible], np.maximum(with_calls[possible], 1)
    share = np.rint(kept[possible] * (computed / with_calls))
    kept[possible] = np.minimum(computed, share).astype(np.int64)
    return kept
