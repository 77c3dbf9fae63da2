"""Whether a predicted run uses memory in another way than the runs that were recorded.

Where an array has 4 MiB or more, numpy asks the system for huge pages (on Linux). Then the first
use of memory takes a part of the time that it takes in small runs, and in some programs this is
most of the computation. No small run tells it, so a prediction has to say so. How large the arrays
of a program are is not recorded; what a process exchanges in one superstep is a sign of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bsplib.profiler.models.nodes.laws import Point
    from bsplib.profiler.models.nodes.model import ChainModel, NodeModel

HUGE = 2**22
"""Bytes from which on numpy asks for huge pages."""
LARGER_ARRAYS = (
    "Processes exchange 4 MiB or more at once here, and less in all runs: numpy uses huge pages "
    "for arrays of this size, with which computation may take less than predicted. Record a run of "
    "this size, or set NUMPY_MADVISE_HUGEPAGE=0 in all runs."
)


def has_larger_arrays(model: NodeModel, point: Point) -> bool:
    """Whether processes exchange as much as a huge array at once, which they did in no run."""
    return any(
        exchanged(model, each, point) >= HUGE > in_runs
        for each, in_runs in zip(model.chains, exchanged_in_runs(model), strict=True)
    )


def exchanged_in_runs(model: NodeModel) -> list[float]:
    """Return the greatest number of bytes that a process exchanged at once, for each chain.

    Computation on virtual processors may be charged: so nothing is said of it, as if they had
    exchanged any number of bytes.
    """
    if model.meta.get("backend") == "sim":
        return [float(HUGE)] * len(model.chains)
    rows = dict.fromkeys(zip(*model.measured.values(), strict=True))
    runs = [dict(zip(model.measured, row, strict=True)) for row in rows]
    return [max(exchanged(model, each, run) for run in runs) for each in model.chains]


def exchanged(model: NodeModel, chain: ChainModel, point: Point) -> float:
    """Return the bytes of the mean h-relation of a chain; 0 where it is not known."""
    h, supersteps = (model.value(chain.laws[name], point) for name in ("h", "supersteps"))
    if not (h.is_known and supersteps.is_known and supersteps.value):
        return 0.0
    return h.value / supersteps.value
