"""What the page shows, as plain data that can be said in JSON; no web framework here.

All text from a trace passes ``profiler.format.visible`` and is still untrusted: the
page sets it as text, never as markup.
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
"""Of all pies of a page, which takes some hundred bytes for each of them."""

_MEASURE_HEADS = {
    "abs": ("abs", "absolute: the maximum"),
    "imb": ("imb", "absolute imbalance: maximum less average"),
    "rel": ("rel", "relative imbalance: the share of the maximum that is imbalance"),
    "weighted": ("wtd", "weighted imbalance: absolute times relative"),
}


class Views:
    """The views of one trace, each made when it is first asked for; safe among threads."""

    def __init__(self, trace: Trace, *, library: bool = False) -> None:
        self.overview = describe_trace(trace)
        self._runs = trace.runs
        self._library = library
        self._made: dict[int, Json] = {}
        self._refused: dict[int, str] = {}
        self._lock = threading.Lock()

    def run(self, number: int) -> Json:
        """What the page shows of a run.

        Raises:
            IndexError: the trace has no such run.
            TooLargeError: it cannot be shown; to find that out may take long, once.
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
    """The runs by name, and the words for metrics and paths: what every view needs."""
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
    """One run whole: drawing, nodes, edges, and shades and way of the seventeen paths.

    Raises:
        TooLargeError: there are too many nodes and processes for a page.
        LayoutError: the call graph cannot be laid out in time.
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
    """Size, backend and length of a run in a few words."""
    records = run.records
    elapsed_s = int(records["end"].max() - records["start"].min()) / 1e9 if len(records) else 0.0
    processes = "1 process" if run.nprocs == 1 else f"{run.nprocs} processes"
    parts = [processes, _meta(run, "backend"), fmt.seconds(elapsed_s)]
    return ", ".join(parts if run.complete else [*parts, "not complete"])


def _meta(run: Run, key: str) -> str:
    return fmt.visible(str(run.meta.get(key, f"{key} unknown")))


def _describe_node(node: Node) -> Json:
    place = f"{fmt.visible(node.file)}:{node.line}" if node.file else ""
    return {"name": fmt.label(node), "kind": node.kind, "sync": node.sync, "place": place}


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
    """The processes' values, of which the page takes shares, and how to write them."""
    return {
        "values": [float(f"{value:.6g}") for value in pie],
        "texts": [fmt.amount(value, metric) for value in pie],
    }


def _describe_path(callgraph: CallGraph, path: str) -> Json:
    """Shades of the nodes, and the critical path with what came through it so far."""
    nodes = callgraph.graph.nodes
    greatest = max(nodes, key=lambda name: critical.score(nodes[name]["cost"], path))
    shades = critical.shades(callgraph, path)
    way = critical.critical_path(callgraph, path)
    return {
        "greatest": _score_text(nodes[greatest]["cost"], path),
        "at": greatest,
        "shades": {name: round(shade, 3) for name, shade in shades.items()},
        "way": [
            {"node": name, "score": _score_text(_through(callgraph, way[: depth + 1]), path)}
            for depth, name in enumerate(way)
        ],
    }


def _through(callgraph: CallGraph, way: list[str]) -> Cost:
    """The cost of what came to the last node of a way along it."""
    *before, last = way
    if before:
        return callgraph.onward(before)[last]
    whole: Cost = callgraph.graph.nodes[last]["cost"]
    return whole


def _score_text(cost: Cost, path: str) -> str:
    """A score with its unit."""
    value = critical.score(cost, path)
    if path == "sync":
        return str(int(value))
    metric, measure = path.split("-")
    return f"{100 * value:.0f}%" if measure == "rel" else fmt.amount(value, metric)
