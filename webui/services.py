"""The data that the page shows, as values for JSON; nothing here uses a web framework.

All text from a trace goes through ``profiler.format.visible`` and is still untrusted: the
page inserts it as text, never as markup.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from bsplib.errors import BspError
from profiler import critical
from profiler import format as fmt
from profiler.callgraph import build
from profiler.costs import METRICS
from profiler.limits import TooLargeError, check_product
from webui.graph_svg import draw, edge_ids, supersteps

if TYPE_CHECKING:
    from bsplib.recording.records import Run, Trace
    from profiler.callgraph import CallGraph, Cost, Node, Summary

Json = dict[str, Any]

MAX_SLICES = 2**20
"""Greatest number of slices in all pies of a page; each slice takes some hundred bytes."""

_MEASURE_HEADS = {
    "abs": ("abs", "absolute: the maximum"),
    "imb": ("imb", "absolute imbalance: maximum - average"),
    "rel": ("rel", "relative imbalance: 1 - average / maximum"),
    "weighted": ("wtd", "weighted imbalance: absolute times relative imbalance"),
}


class Views:
    """The views of one trace. Each is created on first use; threads may share them."""

    def __init__(self, trace: Trace, *, library: bool = False) -> None:
        self.overview = describe_trace(trace)
        self._runs = trace.runs
        self._library = library
        self._made: dict[int, Json] = {}
        self._refused: dict[int, str] = {}
        self._lock = threading.Lock()

    def run(self, number: int) -> Json:
        """Return the data of a run.

        Raises:
            IndexError: the trace has no such run.
            TooLargeError: the run is too large to show; only the first call takes long.
        """
        if not 0 <= number < len(self._runs):
            raise IndexError(f"there is no run {number}: the trace has {len(self._runs)}, from 0")
        with self._lock:
            if number in self._refused:
                raise TooLargeError(self._refused[number])
            if number not in self._made:
                self._make(number)
            return self._made[number]

    def _make(self, number: int) -> None:
        try:
            self._made[number] = describe_run(self._runs[number], library=self._library)
        except BspError as error:
            self._refused[number] = str(error)
            raise


def describe_trace(trace: Trace) -> Json:
    """Return the titles of the runs, and the names of metrics, measures and paths."""
    return {
        "title": _meta(trace.runs[0], "program") if trace.runs else "no runs",
        "runs": [
            f"run {number}: {_heading(run)}" for number, run in enumerate(trace.runs, start=1)
        ],
        "metrics": dict(critical.METRIC_TITLES),
        "measures": {
            name: {"head": head, "meaning": meaning}
            for name, (head, meaning) in _MEASURE_HEADS.items()
        },
        "paths": {path: critical.TITLES[path] for path in critical.PATHS},
    }


def describe_run(run: Run, *, library: bool = False) -> Json:
    """Return the data of a run: drawing, nodes, edges, and the seventeen critical paths.

    Raises:
        TooLargeError: there are too many nodes and processes for a page.
        LayoutError: no layout of the call graph was found in time.
    """
    callgraph = build(run, library=library)
    graph = callgraph.graph
    check_product("nodes", len(graph), "processes", run.nprocs, MAX_SLICES)
    return {
        "heading": _heading(run),
        "waiting": fmt.waiting(run),
        "program": _meta(run, "program"),
        "error": "" if run.complete else _meta(run, "error"),
        "nprocs": run.nprocs,
        "root": callgraph.root,
        "svg": draw(callgraph),
        "nodes": {
            name: _describe_node(data["node"]) | {"cost": _describe_cost(data["cost"], pies=True)}
            for name, data in graph.nodes(data=True)
        },
        "edges": {
            edge: {
                "caller": caller,
                "callee": callee,
                "cost": _describe_cost(graph.edges[caller, callee]["cost"], pies=False),
            }
            for (caller, callee), edge in edge_ids(graph).items()
        },
        "paths": {path: _describe_path(callgraph, path) for path in critical.PATHS},
    }


def _heading(run: Run) -> str:
    """Return a short text with the size, backend and duration of a run."""
    records = run.records
    elapsed_s = int(records["end"].max() - records["start"].min()) / 1e9 if len(records) else 0.0
    processes = "1 process" if run.nprocs == 1 else f"{run.nprocs} processes"
    parts = [processes, _meta(run, "backend"), fmt.seconds(elapsed_s)]
    return ", ".join(parts if run.complete else [*parts, "not complete"])


def _meta(run: Run, key: str) -> str:
    return fmt.visible(str(run.meta.get(key, f"{key} unknown")))


def _describe_node(node: Node) -> Json:
    line = f"{fmt.visible(node.file)}:{node.line}" if node.file else ""
    return {"name": fmt.label(node), "kind": node.kind, "sync": node.sync, "line": line}


def _describe_cost(cost: Cost, *, pies: bool) -> Json:
    return {
        "supersteps": supersteps(cost),
        "elapsed": fmt.seconds(cost.elapsed_s),
        "metrics": {
            metric: _describe_summary(cost[metric], metric)
            | ({"pie": _describe_pie(cost[metric].pie, metric)} if pies else {})
            for metric in METRICS
        },
    }


def _describe_summary(summary: Summary, metric: str) -> Json:
    average, minimum = summary.percentages()
    return {
        "text": fmt.summary(summary, metric),
        "max": fmt.amount(summary.maximum, metric),
        "avg": fmt.amount(summary.average, metric),
        "min": fmt.amount(summary.minimum, metric),
        "avgPercent": average,
        "minPercent": minimum,
        "raw": summary.maximum,
    }


def _describe_pie(pie: tuple[float, ...], metric: str) -> Json:
    """Return the values of all processes, rounded, and their texts with units."""
    return {
        "values": [float(f"{value:.6g}") for value in pie],
        "texts": [fmt.amount(value, metric) for value in pie],
    }


def _describe_path(callgraph: CallGraph, path: str) -> Json:
    """Return the shades of the nodes, and the critical path as a call chain with its scores."""
    nodes = callgraph.graph.nodes
    greatest = max(nodes, key=lambda name: critical.score(nodes[name]["cost"], path))
    shades = critical.shades(callgraph, path)
    chain = critical.critical_path(callgraph, path)
    return {
        "greatest": _score_text(nodes[greatest]["cost"], path),
        "at": greatest,
        "shades": {name: round(shade, 3) for name, shade in shades.items()},
        "chain": [
            {"node": name, "score": _score_text(_through(callgraph, chain[: depth + 1]), path)}
            for depth, name in enumerate(chain)
        ],
    }


def _through(callgraph: CallGraph, chain: list[str]) -> Cost:
    """Return the cost that passed through a call chain to its last node."""
    *before, last = chain
    if before:
        return callgraph.onward(before)[last]
    whole: Cost = callgraph.graph.nodes[last]["cost"]
    return whole


def _score_text(cost: Cost, path: str) -> str:
    """Return a score with its unit."""
    value = critical.score(cost, path)
    if path == "sync":
        return str(int(value))
    metric, measure = path.split("-")
    return f"{100 * value:.0f}%" if measure == "rel" else fmt.amount(value, metric)
