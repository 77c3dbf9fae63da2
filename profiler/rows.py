"""The row of a node: what was measured of it and what is booked at it.

Reports, tables, pages, comparisons and tests read the same rows by the names of ``QUANTITIES`` and
``COLUMNS``, so that each number has one function that says it. A report shows some of the rows, in
an order (``RowChoice``).
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from bsplib.profiler import format as fmt
from bsplib.profiler.account import PARTS, TITLES
from bsplib.profiler.costs import METRICS
from bsplib.profiler.critical import METRIC_TITLES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from bsplib.profiler.book import Time
    from bsplib.profiler.callgraph import Cost, Node
    from bsplib.profiler.graph_book import GraphBook


@dataclass(frozen=True)
class Row:
    """A node, or the part of it that came through a call."""

    node: Node
    cost: Cost
    """What was measured."""
    time: Time
    """What is booked there."""
    function: Node
    """The function that a cost centre is in; the node itself if it is a function."""

    @property
    def supersteps(self) -> int:
        """Number of supersteps."""
        return self.cost.count

    @property
    def time_s(self) -> float:
        """What is booked there, on average over the processes. These add up."""
        return self.time.time_s

    @property
    def loss_s(self) -> float:
        """The part of the time that is lost."""
        return self.time.loss_s

    @property
    def h(self) -> int:
        """Bytes: the sum over supersteps of the greatest h of a process."""
        return int(self.cost.h.maximum)

    @property
    def h_mean(self) -> float:
        """Bytes: the sum over supersteps of the mean h of the processes."""
        return self.cost.h.average

    @property
    def balance(self) -> float:
        """Mean computation divided by the greatest; 1 where nothing is computed."""
        comp = self.cost.comp
        return comp.average / comp.maximum if comp.maximum else 1.0

    def __getitem__(self, quantity: str) -> float:
        """Return a quantity, one of ``QUANTITIES``."""
        return QUANTITIES[quantity].of(self)

    def text(self, quantity: str) -> str:
        """Return a quantity with its unit; that of a metric with its balance."""
        if quantity in METRICS:
            return fmt.summary(self.cost[quantity], quantity)
        return QUANTITIES[quantity].text(self[quantity])


def row_of(book: GraphBook, name: str) -> Row:
    """Return the row of a node, by its id."""
    found = book.callgraph.graph.nodes[name]
    node = found["node"]
    return Row(node, found["cost"], book.nodes[name], book.callgraph.function_of(node))


def row_of_call(book: GraphBook, caller: str, callee: str, *, of_caller: bool = False) -> Row:
    """Return the part of a node that came through a caller; on demand as a row of the caller."""
    graph, call = book.callgraph.graph, (caller, callee)
    node = graph.nodes[caller if of_caller else callee]["node"]
    return Row(node, graph.edges[call]["cost"], book.edges[call], book.callgraph.function_of(node))


class Quantity(NamedTuple):
    """What users order, compare and limit nodes by."""

    title: str
    unit: str
    """``s``, ``B``, ``%`` (a fraction) or empty (a number)."""
    of: Callable[[Row], float]
    more_is_better: bool = False

    def text(self, value: float) -> str:
        """Return a value with its unit, such as ``1.35 ms``, ``54%`` or ``120``."""
        units = {"s": fmt.seconds, "B": fmt.size, "%": "{:.0%}".format, "": "{:.0f}".format}
        return units[self.unit](value)


def _part(number: int) -> Callable[[Time], float]:
    return lambda time: time.part_s(number)


def _booked(amount: Callable[[Time], float]) -> Callable[[Row], float]:
    return lambda row: amount(row.time)


AMOUNTS: dict[str, Callable[[Time], float]] = {
    "time": attrgetter("time_s"),
    "loss": attrgetter("loss_s"),
    **{name: _part(number) for number, name in enumerate(PARTS)},
}
"""The seconds that are booked, by name: the parts add up to the time, some of them to the loss."""

METRIC_UNITS = {metric: "bytes" if metric == "h" else "s" for metric in METRICS}
"""The units at the end of the names of columns."""

QUANTITIES = {
    "time": Quantity("time", "s", attrgetter("time_s")),
    "loss": Quantity("loss", "s", attrgetter("loss_s")),
    "supersteps": Quantity("supersteps", "", attrgetter("supersteps")),
    "balance": Quantity("balance", "%", attrgetter("balance"), more_is_better=True),
    "elapsed": Quantity("elapsed time", "s", attrgetter("cost.elapsed_s")),
    **{
        metric: Quantity(title, "B" if metric == "h" else "s", attrgetter(f"cost.{metric}.maximum"))
        for metric, title in METRIC_TITLES.items()
    },
    **{part: Quantity(TITLES[part], "s", _booked(AMOUNTS[part])) for part in PARTS},
}
"""By the name that a user writes."""

SHOWN = ("loss", "time", "supersteps", *METRICS)
"""The quantities of reports, in their order."""

EXACT = frozenset({"h", "supersteps"})
"""The quantities that repeat exactly where the input, its seed and p are equal."""

MEASURES = {"max": "maximum", "avg": "average", "min": "minimum"}
"""The fields of the summary of a metric, by their names in columns."""

COLUMNS: dict[str, Callable[[Row], Any]] = {
    "supersteps": attrgetter("supersteps"),
    "elapsed_s": attrgetter("cost.elapsed_s"),
    **{
        f"{metric}_{measure}_{METRIC_UNITS[metric]}": attrgetter(f"cost.{metric}.{field}")
        for metric in METRICS
        for measure, field in MEASURES.items()
    },
    **{f"{name}_s": _booked(amount) for name, amount in AMOUNTS.items()},
}
"""The numbers of a row in tables and files, by name, with the unit at its end."""


# -- which nodes a report shows, in which order ----------------------------------------------------


TREE = "tree"
"""Order of the call tree: each node under its nearest caller."""
SORTS = ("loss", "time", *METRICS, "supersteps", "name", TREE)
"""The orders of rows: by greatest loss, time, maximum of a metric or supersteps; by name."""

MOST_ROWS = 40
"""Rows that are shown unless a user asks for more."""


@dataclass(frozen=True)
class RowChoice:
    """Which nodes are shown, and in which order."""

    sort: str = "loss"
    """One of ``SORTS``."""
    top: int | None = None
    """Greatest number of rows; None: all."""
    depth: int | None = None
    """Greatest number of calls from ``main`` to a node; None: any."""

    def __post_init__(self) -> None:
        if self.sort not in SORTS:
            raise ValueError(f"no order is called {self.sort!r}; they are {', '.join(SORTS)}")

    @property
    def column(self) -> str:
        """The quantity that matters most in this order."""
        return "loss" if self.sort in {"name", TREE} else self.sort

    def ordered(self, rows: Iterable[Row]) -> list[Row]:
        """Return rows in the order; of equals the first comes first."""
        if self.sort == TREE:
            return list(rows)
        if self.sort == "name":
            return sorted(rows, key=lambda row: row.node.name)
        return sorted(rows, key=itemgetter(self.sort), reverse=True)


def choose(book: GraphBook, choice: RowChoice) -> tuple[list[Row], list[Row]]:
    """Return the rows to show, in order, and the others; of equals, those near ``main`` first."""
    depths = book.callgraph.depths()
    rows = [row for row in (row_of(book, name) for name in depths) if not _is_empty_end(row)]
    deepest = max(depths.values()) if choice.depth is None else choice.depth
    near = [row for row in rows if depths[row.node.id] <= deepest]
    if choice.sort != TREE:
        near.sort(key=lambda row: depths[row.node.id])
    chosen = choice.ordered(near)[: choice.top]
    shown = {row.node.id for row in chosen}
    return chosen, [row for row in rows if row.node.id not in shown]


def _is_empty_end(row: Row) -> bool:
    """Tell whether a row is the end of ``main``, and nothing was done there."""
    return row.node.sync == "end" and not any(row[metric] for metric in METRICS)
