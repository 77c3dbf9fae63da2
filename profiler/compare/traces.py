"""The runs of two traces compared, each with the one that belongs to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from bsplib.profiler.callgraph import build
from bsplib.profiler.compare.comparison import Comparison, compare
from bsplib.profiler.compare.pairing import pairs_of
from bsplib.profiler.rates import rates_on

if TYPE_CHECKING:
    from bsplib.machine import Machine
    from bsplib.profiler.rates import Rates
    from bsplib.recording.records import Run, Trace


class RunPair(NamedTuple):
    """Two runs by their numbers in their traces, from 1."""

    before: int
    after: int
    comparison: Comparison


def compare_traces(
    before: Trace,
    after: Trace,
    *,
    chosen: str | None = None,
    machine: Machine | None = None,
    speed: str | None = None,
    library: bool = False,
) -> list[RunPair]:
    """Compare the runs of two traces.

    Args:
        before: the first trace.
        after: the second trace; may be the same.
        chosen: which runs, as for ``bsplib.profiler.compare.pairing.pairs_of``.
        machine: prices the losses of both; default: each run's own rates.
        speed: speed of a process of the Machine, as for ``bsplib.profiler.rates.rates_on``.
        library: also show the functions of bsplib as nodes.

    Raises:
        UsageError: there is no such run, or the Machine lacks a figure.
        TooLargeError: a call graph would take gigabytes of memory.
    """
    pairs = []
    for first, second in pairs_of(before, after, chosen):
        runs = before.runs[first], after.runs[second]
        rates = _rates(runs[0], machine, speed), _rates(runs[1], machine, speed)
        comparison = compare_runs(*runs, rates=rates, library=library)
        pairs.append(RunPair(first + 1, second + 1, comparison))
    return pairs


def compare_runs(
    before: Run,
    after: Run,
    *,
    rates: tuple[Rates | None, Rates | None] = (None, None),
    library: bool = False,
) -> Comparison:
    """Compare two runs.

    Args:
        before: the first run.
        after: the second run.
        rates: g and l by which the losses of each are priced; default: the run's own.
        library: also show the functions of bsplib as nodes.

    Raises:
        TooLargeError: a call graph would take gigabytes of memory.
    """
    first, second = (build(run, library=library) for run in (before, after))
    return compare(first, second, rates=rates)


def _rates(run: Run, machine: Machine | None, speed: str | None) -> Rates | None:
    return None if machine is None else rates_on(machine, run, speed=speed)
