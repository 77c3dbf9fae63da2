"""The runs of two traces compared: which run with which, and the comparison of each pair."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bsplib.errors import UsageError
from bsplib.profiler import format as fmt
from bsplib.profiler.compare.comparison import Comparison, compare
from bsplib.profiler.named import named
from bsplib.profiler.profile import RunProfile
from bsplib.profiler.rows import row_of

if TYPE_CHECKING:
    from bsplib.machine import Machine
    from bsplib.profiler.rows import Row
    from bsplib.recording.records import Run, Trace


def compare_traces(
    before: Trace,
    after: Trace,
    *,
    chosen: str | None = None,
    machine: Machine | None = None,
    speed: str | None = None,
    library: bool = False,
) -> list[tuple[int, int, Comparison]]:
    """Compare the runs of two traces.

    Args:
        before: the first trace.
        after: the second trace; may be the same.
        chosen: which runs, as for :func:`pairs_of`.
        machine: compare both runs as they would be there; default: as they were.
        speed: speed of a process of the Machine, as for ``bsplib.profiler.rates.rates_on``.
        library: also show the functions of bsplib as nodes.

    Returns:
        For each pair of runs their numbers, from 1, and what changed.

    Raises:
        UsageError: there is no such run, or the Machine lacks a figure.
        TooLargeError: a call graph would take gigabytes of memory.
    """
    found = []
    for first, second in pairs_of(before, after, chosen):
        profiles = [
            RunProfile(trace.runs[position], position + 1, library=library)
            for trace, position in ((before, first), (after, second))
        ]
        if machine is not None:
            profiles = [profile.on(machine, speed=speed) for profile in profiles]
        found.append((first + 1, second + 1, compare(*(each.book() for each in profiles))))
    return found


def compare_runs(before: Run, after: Run) -> Comparison:
    """Compare two runs.

    Raises:
        TooLargeError: a call graph would take gigabytes of memory.
    """
    return compare(*(RunProfile(run, 1).book() for run in (before, after)))


def figures_of(run: Run, name: str | None = None) -> Row:
    """Return the row of a run, or of one node of it.

    Args:
        run: a run.
        name: a function, such as ``Solver.step`` or ``step``, or a cost centre, such as
            ``cg.py:12``; the whole run if None.

    Raises:
        LookupError: no node has this name, or several have it.
    """
    book = RunProfile(run, 1).book()
    if name is None:
        return row_of(book, book.callgraph.root)
    rows = {row.node: row for row in (row_of(book, node) for node in book.nodes)}
    found = named(rows, name)
    if len(found) != 1:
        known = ", ".join(fmt.label(node) for node in (found or rows))
        number = "no node is" if not found else f"{len(found)} nodes are"
        raise LookupError(f"{number} called {name!r}; there are {known}")
    return rows[found[0]]


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
