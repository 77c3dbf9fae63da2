"""Whether a predicted run uses memory in another way than the runs that were recorded.

Where an array has 4 MiB or more, numpy asks the system for huge pages (on Linux). Then the first
use of memory takes a part of the time that it takes in small runs, and in some programs this is
most of the computation. No small run tells it, so a prediction has to say so. How large the arrays
of a program are is not recorded; what a process exchanges in one superstep is a sign of it.

Where processes use more memory than the caches hold, and in all runs did not, computation may take
several times as long as formulas say that were fitted inside the caches. How much memory a process
got from the system is recorded, and it grows at most like the computation. A probe measured how
long a pass over arrays takes by their bytes: computation that only passes over its memory becomes
slower by as much, and one that uses again what is in the caches does not. So the band reaches from
one to the other, and a run that uses as much memory would settle it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from bsplib.profiler import format as fmt
from bsplib.profiler.models.nodes.settle import words
from bsplib.profiler.models.nodes.values import PROCESSES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bsplib.machine import Machine
    from bsplib.profiler.models.nodes.laws import Point
    from bsplib.profiler.models.nodes.model import ChainModel, NodeModel

HUGE = 2**22
"""Bytes from which on numpy asks for huge pages."""
LARGER_ARRAYS = (
    "Processes exchange 4 MiB or more at once here, and less in all runs: numpy uses huge pages "
    "for arrays of this size, with which computation may take less than predicted. Record a run of "
    "this size, or set NUMPY_MADVISE_HUGEPAGE=0 in all runs."
)


_CLEAR = 1.25
"""A slowdown below this is in the band, and is not told."""
_MOST_OF_IT = 0.9
"""The part of a slowdown that a run has to show to settle it."""


class MemoryUse(NamedTuple):
    """The memory of a predicted run beside that of the runs."""

    here: float
    """Bytes that the process with most uses at most because of the sizes of the data."""
    in_runs: float
    """The same in the run that has most."""
    slowdown: float
    """How much longer than its formulas say computation may take for it; 1 or more."""

    @property
    def is_clear(self) -> bool:
        """Whether it makes a difference that has to be told."""
        return self.slowdown >= _CLEAR


def memory_use(model: NodeModel, point: Point, machine: Machine) -> MemoryUse:
    """Return the memory of a predicted run, and what it may do to computation on a Machine."""
    here, in_runs = memory_bytes(model, point), memory_in_runs(model)
    slowdown = machine.memory_slowdown(int(point[PROCESSES]), in_runs, here)
    return MemoryUse(here, in_runs, slowdown if here > in_runs else 1.0)


def memory_bytes(model: NodeModel, point: Point) -> float:
    """Return the bytes that a process uses at most because of the sizes; 0 if not known."""
    if model.memory is None:
        return 0.0
    found = model.value(model.memory, point)
    return found.high if found.is_known else 0.0


def memory_in_runs(model: NodeModel) -> float:
    """Return the bytes of the run whose processes use most."""
    return max(memory_bytes(model, run) for run in points_of_runs(model))


def run_with_memory(model: NodeModel, point: Point, machine: Machine) -> Point | None:
    """Return the smallest run that shows what memory does at a point; half its sizes if none does.

    It has as many processes, and sizes that are those of the largest run doubled some times.

    Returns:
        None where the runs have it.
    """
    wanted = _MOST_OF_IT * memory_use(model, point, machine).slowdown
    largest = largest_sizes(model)
    half = _with_sizes(point, {name: float(math.ceil(point[name] / 2)) for name in largest})
    doubled = {name: 2 * value for name, value in largest.items()}
    while any(doubled[name] < half[name] for name in largest):
        smaller = {name: min(value, half[name]) for name, value in doubled.items()}
        found = _with_sizes(point, smaller)
        if memory_use(model, found, machine).slowdown >= wanted:
            return found
        doubled = {name: 2 * value for name, value in doubled.items()}
    return half if half not in points_of_runs(model) else None


def largest_sizes(model: NodeModel) -> dict[str, float]:
    """Return the largest value in the runs of each variable that can be a size.

    One that is never above 0, such as a root, is none: doubled, it does not grow.
    """
    largest = {name: max(model.measured[name]) for name in model.variables}
    return {name: value for name, value in largest.items() if value > 0}


def _with_sizes(point: Point, sizes: Mapping[str, float]) -> Point:
    return {**point, **sizes}


def memory_doubt(model: NodeModel, point: Point, machine: Machine) -> str:
    """Return what was never seen of memory, and the run that would settle it; empty if nothing."""
    use = memory_use(model, point, machine)
    if not use.is_clear:
        return ""
    run = run_with_memory(model, point, machine)
    settled = "" if run is None else f" (a run that would settle it: {words([run])})"
    return (
        f"up to {fmt.size(use.here)} of data in the memory of a process, where the runs had "
        f"{fmt.size(use.in_runs)}, so that computation may take up to {use.slowdown:.2g} times as "
        f"long as the formulas say{settled}"
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
    runs = points_of_runs(model)
    return [max(exchanged(model, each, run) for run in runs) for each in model.chains]


def points_of_runs(model: NodeModel) -> list[Point]:
    """Return the points at which there are runs."""
    rows = dict.fromkeys(zip(*model.measured.values(), strict=True))
    return [dict(zip(model.measured, row, strict=True)) for row in rows]


def exchanged(model: NodeModel, chain: ChainModel, point: Point) -> float:
    """Return the bytes of the mean h-relation of a chain; 0 where it is not known."""
    h, supersteps = (model.value(chain.laws[name], point) for name in ("h", "supersteps"))
    if not (h.is_known and supersteps.is_known and supersteps.value):
        return 0.0
    return h.value / supersteps.value
