"""Which run of one trace is compared with which run of another."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bsplib.errors import UsageError

if TYPE_CHECKING:
    from bsplib.recording.records import Trace


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
