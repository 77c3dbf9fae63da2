"""The answer for the view "Compare": what changed since another run, node by node."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from bsplib.profiler import format as fmt
from bsplib.profiler.compare.comparison import compare
from bsplib.profiler.compare.conditions import differences
from bsplib.profiler.compare.quantities import QUANTITIES, SHOWN
from bsplib.profiler.compare.verdict import verdict
from bsplib.profiler.compare.words import label, short_label
from bsplib.profiler.rates import Rates
from bsplib.webui.opened import QueryError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bsplib.profiler.compare.comparison import Compared, Measured
    from bsplib.webui.opened import OpenRun

Json = dict[str, Any]

_RUN = re.compile(r"([0-9]{1,9})\.([0-9]{1,9})")
_RULES = ("max", "sum")


def run_named(query: Mapping[str, str]) -> tuple[str, int]:
    """Return the run with which a query compares, ``with=T.N``: id of its trace, and number.

    Raises:
        QueryError: the query names no run.
    """
    found = _RUN.fullmatch(query.get("with", ""))
    if found is None:
        raise QueryError("with must be a trace and the number of a run, as in 1.0.")
    return found[1], int(found[2])


def describe_comparison(before: OpenRun, after: OpenRun, query: Mapping[str, str]) -> Json:
    """Compare two whole runs.

    Args:
        before: the run before.
        after: the run that the page shows.
        query: ``library``; and ``g``, ``l``, ``rule`` and ``ratio`` where the losses of both
            are to be priced by other rates than their own.

    Returns:
        ``verdict`` (a sentence), ``conditions`` (texts), ``quantities`` (name, title, unit and
        whether more is better) and ``nodes``: label, short label, kind, status, ``parent``
        (position of the function that a cost centre is in, else null), ``before`` and
        ``after``, each null or the id of the node with its quantities in s, bytes, numbers
        and fractions.

    Raises:
        QueryError: a value of the query means nothing.
    """
    rates = _rates(query)
    part = after.whole(query)
    graphs = before.callgraph(part), after.callgraph(part)
    comparison = compare(*graphs, rates=(rates, rates))
    functions = {
        node.known.node.id: position
        for position, node in enumerate(comparison.nodes)
        if node.known.node.kind == "function"
    }
    return {
        "verdict": verdict(comparison),
        "conditions": differences(before.run, after.run),
        "quantities": [_quantity(name) for name in SHOWN],
        "nodes": [_node(node, functions) for node in comparison.nodes],
    }


def _quantity(name: str) -> Json:
    quantity = QUANTITIES[name]
    about = {"name": name, "title": quantity.title, "unit": quantity.unit}
    return about | {"better": "more" if quantity.more_is_better else "less"}


def _node(node: Compared, functions: Mapping[str, int]) -> Json:
    is_function = node.known.node.kind == "function"
    return {
        "label": label(node),
        "short": label(node) if is_function else short_label(node),
        "file": fmt.visible(node.known.node.file),
        "kind": node.known.node.kind,
        "status": node.status,
        "parent": None if is_function else functions.get(node.known.function.id),
        "before": _side(node.before),
        "after": _side(node.after),
    }


def _side(side: Measured | None) -> Json | None:
    if side is None:
        return None
    return {"id": side.node.id} | {name: side.figures[name] for name in SHOWN}


def _rates(query: Mapping[str, str]) -> Rates | None:
    """Return the rates of a query; None where it leaves them to the runs."""
    if "g" not in query:
        return None
    g, latency, ratio = (_number(query, key) for key in ("g", "l", "ratio"))
    rule = query.get("rule", "max")
    if rule not in _RULES or ratio == 0:
        raise QueryError("rule must be max or sum, and ratio more than 0.")
    return Rates(g, latency, rule, ratio)


def _number(query: Mapping[str, str], key: str) -> float:
    text = query.get(key, "1" if key == "ratio" else "0")
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise QueryError(f"{key} is {text[:40]!r}: give a number that is not negative.")
    return value
