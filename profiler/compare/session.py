"""The whole of ``bsp compare``: compare the runs of two traces, print, and check limits."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from bsplib.profiler.compare.conditions import differences
from bsplib.profiler.compare.limits import parse, violations
from bsplib.profiler.compare.node_texts import label, short_label
from bsplib.profiler.compare.report import print_comparison
from bsplib.profiler.compare.traces import compare_traces
from bsplib.profiler.compare.verdict import verdict
from bsplib.profiler.rows import EXACT, QUANTITIES
from bsplib.visible import visible

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bsplib.profiler.compare.comparison import Compared, Comparison, Side
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
    found = [(after, it) for _, after, pair in pairs for it in violations(pair, wanted)]
    if as_json:
        _print_json(pairs)
    else:
        _print_tables(pairs, sort, top)
    for number, violation in found:
        run = f"run {number}, " if len(pairs) > 1 else ""
        print(visible(f"{run}{violation}."), file=sys.stderr)
    return not found


def _print_json(pairs: list[tuple[int, int, Comparison]]) -> None:
    runs = [
        {"run_before": before, "run_after": after, **as_data(comparison)}
        for before, after, comparison in pairs
    ]
    print(json.dumps({"runs": runs}, indent=1))


def _print_tables(pairs: list[tuple[int, int, Comparison]], sort: str, top: int) -> None:
    for before, after, comparison in pairs:
        other = "" if before == after else f" before, run {after} after"
        title = "" if len(pairs) == before == after == 1 else f"run {before}{other}"
        print_comparison(comparison, title=title, sort=sort, top=top)


# -- a comparison as values for JSON: numbers without units in their text, seconds and bytes ------


def as_data(comparison: Comparison) -> dict[str, Any]:
    """Return a comparison as values for JSON.

    Args:
        comparison: two runs.

    Returns:
        ``verdict`` (a sentence), ``conditions`` (what differs beside the code, a list of
        texts), ``computation_scaling`` (a fraction; null where both runs have equally many
        processes), and ``nodes``, the whole run first: each with ``status``, ``kind``, its
        ``label``, the ``short`` one below that of its function, ``parent`` (the position of the
        function that a cost centre is in, else null) and the sides ``before`` and ``after``, null
        where there was no such node. A side has the ``id``, ``name``, ``function``, ``file``,
        ``line`` and ``sync`` of the node, and the quantities by their names: times in seconds, h in
        bytes, balance as a fraction.
    """
    before, after = comparison.before.callgraph.run, comparison.after.callgraph.run
    scaling = comparison.scaling
    functions = {
        node.known.node.id: position
        for position, node in enumerate(comparison.nodes)
        if node.known.node.kind == "function"
    }
    return {
        "verdict": verdict(comparison),
        "conditions": differences(before, after),
        "computation_scaling": scaling.fraction if scaling else None,
        "nodes": [_node(node, functions) for node in comparison.nodes],
    }


def _node(node: Compared, functions: Mapping[str, int]) -> dict[str, Any]:
    is_function = node.known.node.kind == "function"
    return {
        "status": node.status,
        "kind": node.known.node.kind,
        "label": label(node),
        "short": label(node) if is_function else short_label(node),
        "parent": None if is_function else functions.get(node.known.function.id),
        "before": _side(node.before),
        "after": _side(node.after),
    }


def _side(side: Side | None) -> dict[str, Any] | None:
    if side is None:
        return None
    node = side.node
    names = {"name": node.name, "function": side.function.name, "file": node.file}
    place = {"id": node.id, "line": node.line, "sync": node.sync}
    numbers = {name: side.row[name] for name in QUANTITIES}
    exact = {name: int(numbers[name]) for name in EXACT}
    return {name: visible(text) for name, text in names.items()} | place | numbers | exact
