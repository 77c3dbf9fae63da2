"""What each process spent at each call stack, for formats that hold stacks with weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.profiler.costs import METRICS, record_costs
from bsplib.profiler.losses import lost_by_record
from bsplib.sync_kinds import Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bsplib.profiler.callgraph import CallGraph
    from bsplib.profiler.rates import Rates


class Weights(NamedTuple):
    """Pairs of call stacks and processes, with what was spent there; arrays of equal length."""

    origin: NDArray[np.int64]
    """Position in ``CallGraph.origins``."""
    pid: NDArray[np.int64]
    values: NDArray[np.int64]
    """Shape (pairs, ``len(VALUES)``)."""


VALUES = (
    ("supersteps", "count"),
    ("computation", "nanoseconds"),
    ("communication", "nanoseconds"),
    ("idle", "nanoseconds"),
    ("h", "bytes"),
    ("loss", "nanoseconds"),
)
"""Name and unit of each value."""


def weights_of(callgraph: CallGraph, rates: Rates) -> Weights:
    """Sum up the records of a run by call stack and process.

    What a process has of supersteps, times and h adds up to its slices in the pies of the
    call graph. The losses are those that the other processes waited for, and add up to the
    loss of the run but for the rounding to nanoseconds.

    Args:
        callgraph: the call graph of the run.
        rates: by which the losses are priced.
    """
    run = callgraph.run
    keys = callgraph.origin_of_records().astype(np.int64) * run.nprocs + run.records["pid"]
    found, pair = np.unique(keys, return_inverse=True)
    costs = dict(zip(METRICS, record_costs(run), strict=True))
    columns = (
        run.records["kind"] != Kind.END,
        costs["comp"],
        costs["comm"],
        costs["idle"],
        costs["h"],
        1e9 * lost_by_record(callgraph, rates),
    )
    sums = [np.bincount(pair, column, len(found)) for column in columns]
    values = np.rint(np.stack(sums, axis=1)).astype(np.int64)
    origin, pid = np.divmod(found, run.nprocs)
    return Weights(origin, pid, values)
