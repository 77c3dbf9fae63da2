"""A comparison as values for JSON: numbers without units in their text, seconds and bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bsplib.profiler.compare.conditions import differences
from bsplib.profiler.compare.quantities import EXACT, QUANTITIES
from bsplib.profiler.compare.verdict import verdict

if TYPE_CHECKING:
    from bsplib.profiler.compare.comparison import Compared, Comparison, Measured


def as_data(comparison: Comparison) -> dict[str, Any]:
    """Return a comparison as values for JSON.

    Args:
        comparison: two runs.

    Returns:
        ``verdict`` (a sentence), ``conditions`` (what differs beside the code, a list of
        texts), and ``nodes``, the whole run first: each with ``status``, ``kind`` and the
        sides ``before`` and ``after``, null where there was no such node. A side has the
        ``id``, ``name``, ``function``, ``file``, ``line`` and ``sync`` of the node, and the
        quantities by their names: times in seconds, h in bytes, balance as a fraction.
    """
    before, after = comparison.before.callgraph.run, comparison.after.callgraph.run
    return {
        "verdict": verdict(comparison),
        "conditions": differences(before, after),
        "nodes": [_node(node) for node in comparison.nodes],
    }


def _node(node: Compared) -> dict[str, Any]:
    return {
        "status": node.status,
        "kind": node.known.node.kind,
        "before": _side(node.before),
        "after": _side(node.after),
    }


def _side(side: Measured | None) -> dict[str, Any] | None:
    if side is None:
        return None
    node = side.node
    place = {"id": node.id, "name": node.name, "function": side.function.name}
    where = {"file": node.file, "line": node.line, "sync": node.sync}
    return place | where | {name: _number(side, name) for name in QUANTITIES}


def _number(side: Measured, quantity: str) -> float:
    """Return a quantity; bytes and numbers of supersteps as whole numbers."""
    value = side.figures[quantity]
    return int(value) if quantity in EXACT else value
