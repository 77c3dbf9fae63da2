"""The runs of two traces compared: which run with which, and the comparison of each pair."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from bsplib.errors import UsageError
from bsplib.profiler.callgraph import build
from bsplib.profiler.compare.comparison import Comparison, compare
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
        chosen: which runs, as for ``bsplib.profiler.compare.traces.pairs_of``.
        machine: compare both runs as they would be there; default: as they were.
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
        rates: those of another Machine, on which both are timed anew; default: the run's own.
        library: also show the functions of bsplib as nodes.

    Raises:
        TooLargeError: a call graph would take gigabytes of memory.
    """
    first, second = (build(run, library=library) for run in (before, after))
    return compare(first, second, rates=rates)


def _rates(run: Run, machine: Machine | None, speed: str | None) -> Rates | None:
    return None if machine is None else rates_on(machine, run, speed=speed)


# -- which run of one trace is compared with which run of another ---------------------------------


def pairs_of(before: Trace, after: Trace, chosen: str | None = None) -> list[tuple[int, int]]:
    """Return which runs are compared, as positions in both traces.

    Args:
        before: the first trace.
        after: the second trace; may be the same.
        chosen: ``2`` for the second run of both traces, ``1:3`` for the first run of the one and
            the third of the other. By default all runs in their order if both traces have
            equally many, otherwise the last run of each.

    Raises:
        UsageError: there is no such run, or a trace has none.
    """
    counts = len(before.runs), len(after.runs)
    if not all(counts):
        which = "before" if not counts[0] else "after"
        raise UsageError(f"there is nothing to compare: the trace {which} has no runs")
    if chosen is None:
        return pairs_by_order(*counts)
    numbers = re.fullmatch(r"(\d{1,9})(?::(\d{1,9}))?", chosen.strip())
    if numbers is None:
        raise UsageError(f"{chosen!r} names no run: write it as in 2, or as in 1:3")
    first = int(numbers[1])
    second = int(numbers[2] or first)
    for number, count, which in ((first, counts[0], "before"), (second, counts[1], "after")):
        if not 1 <= number <= count:
            raise UsageError(f"there is no run {number} {which}; the trace has runs 1 to {count}")
    return [(first - 1, second - 1)]


def pairs_by_order(before: int, after: int) -> list[tuple[int, int]]:
    """Return all runs in their order if both numbers of runs are equal, otherwise the last ones.

    Args:
        before: number of runs of the first trace.
        after: number of runs of the second trace.

    Returns:
        Positions in both traces; empty if one of them has no runs.
    """
    if before == after:
        return [(position, position) for position in range(before)]
    return [(before - 1, after - 1)] if before and after else []
