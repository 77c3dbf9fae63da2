"""The data of a run that the page shows: numbers as values for JSON, never texts with units.

Nothing here uses a web framework. All text from a trace goes through
``bsplib.profiler.format.visible`` and is still untrusted: the page inserts it as text, never as
markup.
"""

from __future__ import annotations

import posixpath
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from bsplib.profiler import critical
from bsplib.profiler import format as fmt
from bsplib.profiler.account import PARTS, TITLES
from bsplib.profiler.book import LOST
from bsplib.profiler.callgraph import build
from bsplib.profiler.costs import METRICS
from bsplib.profiler.critical import PATHS, critical_path
from bsplib.profiler.drawing.graphviz import LayoutError
from bsplib.profiler.drawing.picture import chosen_nodes, links_between
from bsplib.profiler.format import hosts_of
from bsplib.profiler.graph_book import book_graph
from bsplib.profiler.lines import executed_below
from bsplib.profiler.rates import Rates, rates_of_run
from bsplib.profiler.rows import AMOUNTS
from bsplib.profiler.sources import read_sources
from bsplib.profiler.survey import elapsed_s, root_count
from bsplib.profiler.system_time import own_threads_sentence, steal_sentence
from bsplib.webui.layout import DrawnLink, box_width, layouts
from bsplib.webui.machines import describe_machines

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    import networkx

    from bsplib.profiler.book import Time
    from bsplib.profiler.callgraph import CallGraph, Cost, Node, Summary
    from bsplib.profiler.graph_book import GraphBook
    from bsplib.recording.records import Run


Json = dict[str, Any]

MAX_SLICES = 2**17
"""Greatest number of slices in all pies of a run; where there are more, the page asks for
those of one node or edge (see ``describe_pies``)."""
MOST_LISTED_PROCESSES = 4096
"""Greatest number of processes of which each part of the account is given."""
MOST_LAID_OUT = 300
"""Greatest number of nodes for which dot is used; the page lays out larger graphs itself."""
MOST_UNDER = 120
"""Letters of the source line of a node that are shown at most."""
MOST_LINES = 600
"""The same for lines: dot takes long for a tangle, which it cannot make readable either."""


def describe_run(run: Run, *, library: bool = False) -> Json:
    """Return the data of a run: facts, nodes, edges, critical paths and layouts.

    Raises:
        TooLargeError: the call graph would need too much memory.
    """
    return describe_graph(build(run, library=library))


def describe_graph(
    callgraph: CallGraph,
    rates: Rates | None = None,
    folder: Path | None = None,
    machines: Sequence[str] | None = None,
) -> Json:
    """Return the data of a run with this call graph; see :func:`describe_run`.

    Args:
        callgraph: the call graph of the run, or of a part of it.
        rates: its rates; default: those of the run of the call graph.
        folder: where source files are looked for, too.
        machines: names of the Machines on which the page shows the run, too.
    """
    graph, run = callgraph.graph, callgraph.run
    rates = rates or rates_of_run(run)
    book = book_graph(callgraph, rates)
    book.verdict()  # the times of nodes come from the same pass
    names = first_shown(book)
    under = lines_under(callgraph, folder)
    return {
        "run": describe_facts(run),
        "rates": asdict(rates),
        "machines": describe_machines(run, machines),
        "root": list(graph).index(callgraph.root),
        "nodes": _nodes(callgraph, under),
        "edges": _edges(callgraph),
        "costs": describe_paths(callgraph),
        **describe_book(book, names),
        "shown": _positions(graph, names),
        "layouts": lay_out(callgraph, names, under),
        "executed": describe_executed(callgraph),
    }


def describe_executed(callgraph: CallGraph) -> list[Json]:
    """Return the functions that were executed below the cost centres of a run that was sampled.

    The page numbers them after the nodes: ``caller`` is the number of another one or, for the
    first ones, of the cost centre. Seconds are an average over the processes, by part.
    """
    number = {name: position for position, name in enumerate(callgraph.graph)}
    functions, nprocs = executed_below(callgraph), callgraph.run.nprocs
    processes = (len(number) + len(functions)) * nprocs <= MAX_SLICES
    return [
        {
            "name": fmt.visible(each.function),
            "sync": "",
            "file": fmt.visible(each.file),
            "line": each.first_line,
            "centre": number[each.centre],
            "caller": number[each.centre] if each.caller < 0 else len(number) + each.caller,
            "seconds": each.seconds.total / nprocs,
            "parts": {part: value / nprocs for part, value in each.seconds._asdict().items()},
            "processes": _rounded(each.by_process) if processes else [],
        }
        for each in functions
    ]


def describe_book(book: GraphBook, shown: Collection[str] | None = None) -> Json:
    """Return the account of a run, on its own or on another Machine.

    Args:
        book: the account.
        shown: ids of the nodes of which each amount is given by process; default: as shown first.
    """
    verdict = describe_verdict(book)
    shown = first_shown(book) if shown is None else shown
    return {
        "times": describe_times(book, shown),
        "account": describe_account(book),
        "verdict": verdict,
    }


def describe_times(book: GraphBook, shown: Collection[str]) -> Json:
    """Return the seconds of nodes, edges and paths, by the names of ``AMOUNTS``.

    Returns:
        ``nodes`` and ``edges``: by name a list in their order; ``paths``: by name, from ``main`` by
        what came through the path, nodes with their seconds; ``pies``: of the nodes that are
        shown, by their positions and by name, the seconds of each process that is the root;
        ``shades`` of nodes, from 0 to 1, by name; ``scales``, the seconds of shade 1; and
        ``before``, of a range of supersteps, what is rooted before it.
    """
    run, graph = book.callgraph.run, book.callgraph.graph
    shades = {name: book.shades(amount) for name, amount in AMOUNTS.items()}
    few = len(shown) * run.nprocs <= MAX_SLICES
    return {
        "nodes": _amounts([book.nodes[node] for node in graph]),
        "edges": _amounts([book.edges[edge] for edge in graph.edges]),
        "paths": {name: _path(book, amount) for name, amount in AMOUNTS.items()},
        "pies": dict(_root_pies(book, shown)) if few else {},
        "shades": {name: [by_node[node] for node in graph] for name, by_node in shades.items()},
        "scales": {name: book.full_of(amount) for name, amount in AMOUNTS.items()},
        "before": _of_time(book.book.before) if run.part_of is not None else None,
    }


def _amounts(times: Sequence[Time]) -> Json:
    return {name: [amount(time) for time in times] for name, amount in AMOUNTS.items()}


def _of_time(time: Time) -> Json:
    return {name: amount(time) for name, amount in AMOUNTS.items()}


def _path(book: GraphBook, amount: Callable[[Time], float]) -> list[list[float]]:
    """Return the nodes with the greatest amount, by position, and what came through the path."""
    number = {node: position for position, node in enumerate(book.callgraph.graph)}
    return [[number[node], amount(time)] for node, time in book.steps(amount)]


def _root_pies(book: GraphBook, shown: Collection[str]) -> Iterator[tuple[str, Json]]:
    """Yield for each node by name of an amount the seconds by root; without those that are 0."""
    for position, node in enumerate(book.callgraph.graph):
        if node in shown:
            by_process = book.book.sums.by_root_process(book.callgraph.passing[node])
            pies = {"time": by_process.sum(axis=0), "loss": by_process[list(LOST)].sum(axis=0)}
            pies |= dict(zip(PARTS, by_process, strict=True))
            yield (
                str(position),
                {name: _rounded(ns / 1e9) for name, ns in pies.items() if ns.any()},
            )


def describe_account(book: GraphBook) -> Json:
    """Return what the elapsed time was used for, in seconds on average over the processes.

    Each part has its seconds in the whole run, and by process that spent them.
    """
    run, account = book.callgraph.run, book.book
    scale = 1e9 * run.nprocs
    by_process = account.by_process()
    return {
        "elapsed_s": book.elapsed_s,
        "parts": [
            {
                "name": name,
                "title": TITLES[name],
                "seconds": int(mine.sum()) / scale,
                "processes": (mine / 1e9).tolist() if run.nprocs <= MOST_LISTED_PROCESSES else [],
            }
            for name, mine in zip(PARTS, by_process, strict=True)
        ],
        "efficiency": book.efficiencies._asdict(),
    }


def describe_verdict(book: GraphBook) -> Json:
    """Return the sentences of a verdict, with the positions of their nodes."""
    number = {node: position for position, node in enumerate(book.callgraph.graph)}
    balanced, sentences, rest, short = book.verdict()
    told = [short, *sentences] if short else sentences
    return {
        "balanced": balanced,
        "sentences": [
            {
                key: list(value) if isinstance(value, tuple) else value
                for key, value in each.as_dict().items()
                if key != "sites"
            }
            | {"node": None if each.node is None else number[each.node]}
            | {"nodes": [number[node] for node in each.nodes]}
            for each in told
        ],
        "rest": None if rest is None else rest.text,
        "threads": own_threads_sentence(book.callgraph.run),
        "steal": steal_sentence(book.callgraph.run),
    }


def describe_facts(run: Run) -> Json:
    """Return what is known of a run as a whole; null where something was not recorded."""
    return {
        **describe_head(run),
        "arguments": [fmt.visible(str(value)) for value in _list(run.meta.get("arguments"))],
        "cores": cores if isinstance(cores := run.meta.get("cores"), int) else None,
        "elapsed_s": elapsed_s(run),
        "supersteps": root_count(run),
        "machine": _machine_name(run.meta.get("machine")),
        "hosts": _hosts(run),
    }


def _hosts(run: Run) -> Json | None:
    """Return the names of the hosts, and by pid the position of a process's host among them."""
    hosts = hosts_of(run)
    if not hosts:
        return None
    position = {name: number for number, name in enumerate(dict.fromkeys(hosts))}
    return {"names": list(position), "of": [position[name] for name in hosts]}


def describe_head(run: Run) -> Json:
    """Return what is known of a run without its records."""
    keys = ("program", "host", "backend", "started", "error")
    return {
        **{key: _meta(run, key) for key in keys},
        "nprocs": run.nprocs,
        "complete": run.complete,
        "repeat": run.repeat,
    }


def lines_under(callgraph: CallGraph, folder: Path | None = None) -> dict[str, str]:
    """Return by id what stands under the name of a node.

    This is the source line of a cost centre, if it can be read, and else the file.
    """
    (excerpts, of), found = read_sources(callgraph, folder), {}
    for name, node in callgraph.graph.nodes(data="node"):
        excerpt = excerpts[of[name]]
        line = node.line - excerpt.first
        is_read = node.kind != "function" and 0 <= line < len(excerpt.lines)
        text = excerpt.lines[line].strip() if is_read else file_of(node)
        found[name] = text if len(text) <= MOST_UNDER else f"{text[: MOST_UNDER - 1]}…"
    return found


def lay_out(
    callgraph: CallGraph,
    names: Sequence[str],
    under: Mapping[str, str],
    executed: Mapping[int, Json] | None = None,
) -> Json:
    """Return the layouts of some nodes of a call graph, by dot.

    Args:
        callgraph: the call graph.
        names: ids of the nodes.
        under: by id, what stands under the name of a node.
        executed: functions below cost centres that are shown, too, by their numbers; see
            :func:`describe_executed`.

    Returns:
        ``wide`` and ``tall``, as :func:`bsplib.webui.layout.layouts` describes them; empty where
        dot found none in time, since the page then computes one itself.
    """
    graph, executed = callgraph.graph, executed or {}
    lines = links(graph, names)
    lines += [DrawnLink(each["caller"], at, None) for at, each in executed.items()]
    widths = {
        position: box_width(short_label(graph.nodes[name]["node"]), under[name])
        for position, name in zip(_positions(graph, names), names, strict=True)
    }
    widths |= {position: box_width(each["name"]) for position, each in executed.items()}
    return layouts_in_time(widths, lines)


def layouts_in_time(widths: dict[int, float], lines: Sequence[DrawnLink]) -> Json:
    """Return the layouts of a graph, or nothing where dot would take too long."""
    if len(widths) > MOST_LAID_OUT or len(lines) > MOST_LINES:
        return {}
    try:
        return layouts(widths, lines)
    except LayoutError:
        return {}


def _positions(graph: networkx.DiGraph, names: Sequence[str]) -> list[int]:
    position = {name: number for number, name in enumerate(graph)}
    return [position[name] for name in names]


def _nodes(callgraph: CallGraph, under: Mapping[str, str]) -> list[Json]:
    """Return the nodes; without pies where these would have too many slices."""
    pies = len(callgraph.graph) * callgraph.run.nprocs <= MAX_SLICES
    frames = {frame for stack in callgraph.run.stacks for frame in stack if frame.library}
    library = {(frame.file, line) for frame in frames for line in (frame.first_line, frame.line)}
    return [
        {
            **describe_node(data["node"]),
            "under": under[name],
            "library": (data["node"].file, data["node"].line) in library,
            **describe_cost(data["cost"], pies=pies),
        }
        for name, data in callgraph.graph.nodes(data=True)
    ]


def _edges(callgraph: CallGraph) -> list[Json]:
    """Return the edges; without pies where these would have too many slices."""
    graph = callgraph.graph
    position = {name: number for number, name in enumerate(graph)}
    parts = len(graph) + len(graph.edges)
    pies = parts * callgraph.run.nprocs <= MAX_SLICES
    return [
        {"from": position[caller], "to": position[callee], **describe_cost(cost, pies=pies)}
        for caller, callee, cost in graph.edges(data="cost")
    ]


def describe_paths(callgraph: CallGraph) -> Json:
    """Return the scores of the seventeen critical paths, in the form of :func:`describe_times`."""
    graph = callgraph.graph
    position = {name: number for number, name in enumerate(graph)}
    nodes = [cost for _, cost in graph.nodes(data="cost")]
    edges = [cost for *_, cost in graph.edges(data="cost")]
    found: Json = {name: {} for name in ("nodes", "edges", "paths", "shades", "scales")}
    for path in PATHS:
        found["nodes"][path] = [critical.score(cost, path) for cost in nodes]
        found["edges"][path] = [critical.score(cost, path) for cost in edges]
        found["paths"][path] = [
            [position[name], critical.score(cost, path)]
            for name, cost in critical.critical_steps(callgraph, path)
        ]
        found["shades"][path] = _rounded(critical.shades(callgraph, path).values())
        found["scales"][path] = critical.scale(nodes, path)
    return found


def file_of(node: Node) -> str:
    """Return the file of a node, without its folders."""
    return fmt.visible(posixpath.basename(node.file))


def short_name(node: Node) -> str:
    """Return the name of a node without the file, which its function has."""
    return fmt.visible(node.name.removeprefix(f"{posixpath.basename(node.file)} "))


def short_label(node: Node) -> str:
    """Return the same, with the kind of sync if that is not ``sync``."""
    return fmt.label(replace(node, name=short_name(node)))


def describe_node(node: Node) -> Json:
    """Return what a page says of a node of a call graph, apart from its cost."""
    return {
        "id": node.id,
        "name": fmt.visible(node.name),
        "short": short_name(node),
        "kind": node.kind,
        "sync": node.sync,
        "file": fmt.visible(node.file),
        "line": node.line,
    }


def describe_cost(cost: Cost, *, pies: bool) -> Json:
    """Return a cost: supersteps, elapsed seconds, and each metric with or without its pie."""
    return {
        "count": cost.count,
        "elapsed_s": cost.elapsed_s,
        "cost": {metric: _describe_summary(cost[metric], pies=pies) for metric in METRICS},
    }


def _describe_summary(summary: Summary, *, pies: bool) -> Json:
    described: Json = {"max": summary.maximum, "avg": summary.average, "min": summary.minimum}
    if pies:
        described["pie"] = _pie(summary)
    return described


def describe_pies(cost: Cost) -> Json:
    """Return the pies of a cost, by metric: a value for each process, in seconds or bytes."""
    return {metric: _pie(cost[metric]) for metric in METRICS}


def _pie(summary: Summary) -> list[float]:
    return _rounded(summary.pie)


def _rounded(values: Iterable[float]) -> list[float]:
    return [float(f"{value:.6g}") for value in values]


def _meta(run: Run, key: str) -> str | None:
    value = run.meta.get(key)
    return None if value is None else fmt.visible(str(value))


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _machine_name(machine: object) -> str | None:
    if not isinstance(machine, dict) or "name" not in machine:
        return None
    return fmt.visible(str(machine["name"]))


# -- which nodes of a large call graph the page shows at first ------------------------------------


NEGLIGIBLE = 0.001
"""Part of the cost of a run below which the end of ``main`` is not shown."""


def first_shown(book: GraphBook) -> list[str]:
    """Return the nodes that are shown at first, in the order of the call graph.

    These are all nodes of the critical paths and then those that lose most, about 80. The
    stretch from the last superstep to the end of ``main`` is left out where it costs nothing
    to speak of.
    """
    callgraph = book.callgraph
    graph = callgraph.graph
    ranks = {name: time.sizes for name, time in book.nodes.items()}
    always = {callgraph.root, *book.path()}
    for path in PATHS:
        always.update(critical_path(callgraph, path))
    chosen = chosen_nodes(graph, ranks, always)
    return [name for name in chosen if name in always or not _is_idle_end(book, name)]


def _is_idle_end(book: GraphBook, name: str) -> bool:
    """Tell whether a node is the end of ``main`` and costs next to nothing."""
    node = book.callgraph.graph.nodes[name]["node"]
    return node.sync == "end" and book.nodes[name].ns <= NEGLIGIBLE * book.main.ns


def links(graph: networkx.DiGraph, names: Collection[str]) -> list[DrawnLink]:
    """Return the lines between nodes: the edges, and calls through nodes that are not shown.

    Args:
        graph: the call graph; nodes and edges are numbered in its order.
        names: ids of the nodes that are shown.
    """
    number = {name: position for position, name in enumerate(graph)}
    edges = {edge: position for position, edge in enumerate(graph.edges)}
    return [
        DrawnLink(number[caller], number[callee], edges.get((caller, callee)))
        for caller, callee in links_between(graph, names)
    ]
