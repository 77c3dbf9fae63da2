"""The whole of ``bsp compare``: compare the runs of two traces, print, and check limits."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from bsplib.profiler.compare.data import as_data
from bsplib.profiler.compare.limits import parse, violations
from bsplib.profiler.compare.report import print_comparison
from bsplib.profiler.compare.traces import compare_traces

if TYPE_CHECKING:
    from bsplib.profiler.compare.traces import RunPair
    from bsplib.recording.records import Trace


def compare_and_print(
    before: Trace,
    after: Trace,
    *,
    limits: str | None = None,
    sort: str = "time",
    top: int = 20,
    as_json: bool = False,
    **options: Any,
) -> bool:
    """Compare the runs of two traces and print what changed.

    Args:
        before: the first trace.
        after: the second trace.
        limits: as for ``bsplib.profiler.compare.limits.parse``; a sentence about each violation is
            printed on standard error.
        sort: the quantity by whose change the rows are sorted, or ``name``.
        top: how many rows to show; 0 for all.
        as_json: print JSON instead of tables.
        **options: as for ``bsplib.profiler.compare.traces.compare_traces``.

    Returns:
        Whether all limits hold.

    Raises:
        LimitError: the limits cannot be understood, or name a node that is not there.
        UsageError: there is no such run, or the Machine lacks a figure.
    """
    wanted = [] if limits is None else parse(limits)
    pairs = compare_traces(before, after, **options)
    found = [(pair, it) for pair in pairs for it in violations(pair.comparison, wanted)]
    if as_json:
        _print_json(pairs)
    else:
        _print_tables(pairs, sort, top)
    for pair, violation in found:
        run = f"run {pair.after}, " if len(pairs) > 1 else ""
        print(f"{run}{violation}.", file=sys.stderr)
    return not found


def _print_json(pairs: list[RunPair]) -> None:
    runs = [
        {"run_before": before, "run_after": after, **as_data(comparison)}
        for before, after, comparison in pairs
    ]
    print(json.dumps({"runs": runs}, indent=1))


def _print_tables(pairs: list[RunPair], sort: str, top: int) -> None:
    for before, after, comparison in pairs:
        other = "" if before == after else f" before, run {after} after"
        title = "" if len(pairs) == before == after == 1 else f"run {before}{other}"
        print_comparison(comparison, title=title, sort=sort, top=top)
