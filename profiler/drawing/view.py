"""A call graph seen by one metric: what each node scores, how red it is, what leads to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bsplib.profiler import critical
from bsplib.profiler import format as fmt

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bsplib.profiler.book import Time
    from bsplib.profiler.callgraph import CallGraph, Cost
    from bsplib.profiler.graph_book import GraphBook

DEFAULT = critical.LOSS
"""The metric by which a call graph is seen where none is chosen."""
LOSS_TITLE = "seconds lost, of the time in main"


@dataclass(frozen=True)
class View:
    """The scores of one metric, and what a picture needs to show them."""

    metric: str
    """One of ``bsplib.profiler.critical.VIEWS``."""
    title: str
    scores: Mapping[str, float]
    """By node id; supersteps, seconds, bytes, or a fraction for relative imbalance."""
    shades: Mapping[str, float]
    """By node id, from 0 (white) to 1 (red)."""
    full: float
    """The score that is shown as red."""
    chain: tuple[str, ...]
    """The critical path: node ids from the root to a leaf, empty if nothing is critical."""
    texts: Mapping[str, str]
    """By node id, the score in words, with what it is a part of."""
    ranks: Mapping[str, tuple[float, float]]
    """By node id, the score, and the cost that decides between equal scores."""
    weights: Mapping[tuple[str, str], float]
    """By edge, its cost as a part of the greatest of a node, from 0 to 1."""

    verdict: str = ""
    """The first sentence of the verdict on the run, where the metric is the losses."""
    prices: str = ""
    """The g and l by which transfers and latency are told apart."""

    def amount(self, score: float) -> str:
        """Return a score with its unit."""
        if self.metric == critical.LOSS:
            return fmt.seconds(score)
        if self.metric == "sync":
            return str(round(score))
        metric, _, measure = self.metric.partition("-")
        return f"{100 * score:.3g}%" if measure == "rel" else fmt.amount(score, metric)


def view_of(metric: str, book: GraphBook) -> View:
    """Return a call graph as seen by a metric.

    Args:
        metric: one of ``bsplib.profiler.critical.VIEWS``.
        book: the book of the call graph.

    Raises:
        ValueError: there is no such metric.
    """
    if metric == critical.LOSS:
        return _of_losses(book)
    return _of_path(book.callgraph, metric)


def _of_losses(book: GraphBook) -> View:
    """Return a call graph as seen by the seconds that are lost."""
    first, nodes = book.verdict().sentences[0], book.nodes.items()
    return View(
        metric=critical.LOSS,
        title=LOSS_TITLE,
        scores={name: time.loss_s for name, time in nodes},
        shades=book.shades(),
        full=book.full_of(),
        chain=tuple(book.path()),
        texts={name: _lost(time) for name, time in nodes},
        ranks={name: time.sizes for name, time in nodes},
        weights={edge: time.ns / (book.main.ns or 1) for edge, time in book.edges.items()},
        verdict=first.text,
        prices=book.rates.sentence(),
    )


def _lost(time: Time) -> str:
    """Return what is lost of a time."""
    lost, whole = fmt.seconds(time.loss_s), fmt.seconds(time.time_s)
    return f"{lost} lost of {whole}" if time.ns else whole


def _of_path(callgraph: CallGraph, metric: str) -> View:
    """Return a call graph as seen by one of the critical paths."""
    costs: dict[str, Cost] = dict(callgraph.graph.nodes(data="cost"))
    whole = critical.size_path(metric)
    scores = {name: critical.score(cost, metric) for name, cost in costs.items()}
    sizes = {name: critical.score(cost, whole) for name, cost in costs.items()}
    greatest = max(sizes.values()) or 1.0
    return View(
        metric=metric,
        title=critical.TITLES[metric],
        scores=scores,
        shades=critical.shades(callgraph, metric),
        full=critical.scale(costs.values(), metric),
        chain=tuple(critical.critical_path(callgraph, metric)),
        texts={name: _text(cost, metric) for name, cost in costs.items()},
        ranks={name: (scores[name], sizes[name]) for name in costs},
        weights={
            (caller, callee): critical.score(cost, whole) / greatest
            for caller, callee, cost in callgraph.graph.edges(data="cost")
        },
    )


def _text(cost: Cost, path: str) -> str:
    """Return the score of a cost, with what it is a part of."""
    if path == "sync":
        return fmt.counted(cost.count, "superstep")
    metric, measure = path.split("-")
    if measure == "abs":
        return fmt.summary(cost[metric], metric)
    score, whole = critical.score(cost, path), fmt.amount(cost[metric].maximum, metric)
    part = f"{100 * score:.0f}%" if measure == "rel" else fmt.amount(score, metric)
    return f"{part} of {whole}" if cost[metric].maximum else whole
