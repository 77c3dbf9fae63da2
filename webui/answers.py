"""What the page may ask about a run, by the name in the address.

``/traces/T/runs/N.json`` is the answer ``run``; all others are at
``/traces/T/runs/N/NAME.json``. A new view adds one line to ``ANSWERS``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from bsplib.profiler.graph_book import book_graph
from bsplib.profiler.rates import Rates
from bsplib.webui import services, timeline, traffic
from bsplib.webui.machines import rates_in
from bsplib.webui.opened_runs import AddressError, OpenRun
from bsplib.webui.source import describe_sources

Json = dict[str, Any]
Query = Mapping[str, str]


def _once(opened: OpenRun) -> Iterable[Query]:  # noqa: ARG001  # every run is asked once
    return ({},)


def _never(opened: OpenRun) -> Iterable[Query]:  # noqa: ARG001  # whatever the run
    return ()


@dataclass(frozen=True)
class PageAnswer:
    """An answer: how it is computed, and which of its queries a saved page contains."""

    make: Callable[[OpenRun, Query], Json]
    saved: Callable[[OpenRun], Iterable[Query]] = _once
    kept: bool = True
    """Whether it is kept for the same question; not where it is large, and soon computed."""


def _run(opened: OpenRun, query: Query) -> Json:
    """Return the data of a run, or of a part of it at the rates of the whole run."""
    callgraph = opened.callgraph(opened.part(query))
    return services.describe_graph(callgraph, opened.rates, opened.sources, opened.machines)


def _account(opened: OpenRun, query: Query) -> Json:
    """Return the account of a run, or of a part of it, timed anew by the figures of the query."""
    rates = rates_of(opened, query)
    return services.describe_book(book_graph(opened.callgraph(opened.part(query)), rates))


def rates_of(opened: OpenRun, query: Query) -> Rates:
    """Return the rates that a query asks for: ``machine``, ``g``, ``l`` and ``speed``.

    Raises:
        AddressError: the page offers no such Machine, or a figure is no number.
    """
    return rates_in(query, opened.rates, opened.run, opened.machines)


def _on_machines(opened: OpenRun) -> Iterable[Query]:
    return [{"machine": name} for name in opened.machines]


def _layout(opened: OpenRun, query: Query) -> Json:
    """Lay out the nodes whose positions in the call graph the query lists.

    The functions below cost centres are numbered after them.
    """
    callgraph = opened.callgraph(opened.part(query))
    names = list(callgraph.graph)
    executed = dict(enumerate(services.describe_executed(callgraph), start=len(names)))
    words, most = (
        [word for word in query.get("nodes", "").split(",") if word],
        len(names) + len(executed),
    )
    if not all(word.isascii() and word.isdigit() and int(word) < most for word in words):
        raise AddressError(f"nodes must be numbers below {most}, separated by commas.")
    wanted = sorted({int(word) for word in words})
    shown = [names[number] for number in wanted if number < len(names)]
    below = {number: executed[number] for number in wanted if number >= len(names)}
    under = services.lines_under(callgraph, opened.sources)
    return services.lay_out(callgraph, shown, under, below)


def _processes(opened: OpenRun, query: Query) -> Json:
    """Return how a node (``node``, its id) or an edge (``edge``, two ids) is shared out."""
    graph = opened.callgraph(opened.part(query)).graph
    caller, _, callee = query.get("edge", "").partition(".")
    if graph.has_edge(caller, callee):
        return services.describe_pies(graph.edges[caller, callee]["cost"])
    if (node := query.get("node", "")) in graph:
        return services.describe_pies(graph.nodes[node]["cost"])
    raise AddressError("Give a node or an edge of the call graph.")


def _source(opened: OpenRun, query: Query) -> Json:
    return describe_sources(opened.callgraph(opened.part(query)), opened.sources)


ANSWERS: dict[str, PageAnswer] = {
    "run": PageAnswer(_run),
    "account": PageAnswer(_account, saved=_on_machines),
    "layout": PageAnswer(_layout, saved=_never),
    "timeline": PageAnswer(timeline.timeline, saved=timeline.saved, kept=False),
    "marks": PageAnswer(timeline.marks, saved=_never),
    "waited": PageAnswer(timeline.waited, saved=_never),
    "traffic": PageAnswer(traffic.traffic),
    "departures": PageAnswer(traffic.scatter),
    "source": PageAnswer(_source),
    "processes": PageAnswer(_processes, saved=_never),
}
