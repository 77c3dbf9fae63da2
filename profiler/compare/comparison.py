"""Two runs, node by node: what each cost before and after, in numbers and in words.

Also which runs of two traces are compared.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from bsplib.errors import UsageError
from bsplib.profiler import format as fmt
from bsplib.profiler.compare.matching import call_at, match
from bsplib.profiler.compare.verdict import verdict
from bsplib.profiler.efficiency import computation_scaling
from bsplib.profiler.named import named
from bsplib.profiler.profile import RunProfile
from bsplib.profiler.rows import EXACT, QUANTITIES, row_of

if TYPE_CHECKING:
    from bsplib.machine import Machine
    from bsplib.profiler.efficiency import ComputationScaling
    from bsplib.profiler.graph_book import GraphBook
    from bsplib.profiler.rows import Row
    from bsplib.recording.records import Run, Trace


STATUS_MARKS = {"same": " ", "moved": "↷", "new": "+", "vanished": "-"}
"""What may have become of a node, with the marks in tables."""


@dataclass(frozen=True)
class Compared:
    """A node of the first run, of the second, or of both."""

    before: Row | None
    after: Row | None

    @property
    def status(self) -> str:
        """One of ``STATUS_MARKS``; a function moved where its file or name changed."""
        if self.before is None or self.after is None:
            return "new" if self.before is None else "vanished"
        return "same" if _place(self.before) == _place(self.after) else "moved"

    @property
    def known(self) -> Row:
        """The node after, or before where it vanished."""
        known = self.after or self.before
        assert known is not None
        return known

    def values(self, quantity: str) -> tuple[float | None, float | None]:
        """Return a quantity before and after; None where there was no such node."""
        return (
            None if self.before is None else self.before[quantity],
            None if self.after is None else self.after[quantity],
        )

    def change(self, quantity: str) -> float:
        """Return the value after less the value before.

        A missing node counts 0; it has no balance, which then does not change.
        """
        before, after = self.values(quantity)
        if QUANTITIES[quantity].unit == "%" and None in (before, after):
            return 0.0
        return (after or 0.0) - (before or 0.0)


@dataclass(frozen=True)
class Comparison:
    """Two runs compared."""

    before: GraphBook
    after: GraphBook
    nodes: tuple[Compared, ...]
    """The whole run first, then the other nodes in the order of the call tree after, then
    those that vanished."""

    @property
    def whole(self) -> Compared:
        """The whole run: the roots of both call graphs."""
        return self.nodes[0]

    @cached_property
    def cost_centres(self) -> tuple[Compared, ...]:
        """The leaves, whose times add up to that of ``main``."""
        return tuple(it for it in self.nodes if it.known.node.kind == "cost_centre")

    @cached_property
    def scaling(self) -> ComputationScaling | None:
        """The computation scaling; None where both runs have equally many processes."""
        return computation_scaling(self.before.book, self.after.book)

    def __str__(self) -> str:
        return verdict(self)

    def count(self, status: str) -> int:
        """Return how many nodes have a status."""
        return sum(node.status == status for node in self.nodes)


def compare(before: GraphBook, after: GraphBook) -> Comparison:
    """Compare two runs, of any numbers of processes and on any Machines.

    Args:
        before: the first run.
        after: the second run.
    """
    pairs = match(before.callgraph, after.callgraph)
    nodes = tuple(
        Compared(
            None if old is None else row_of(before, old),
            None if new is None else row_of(after, new),
        )
        for old, new in pairs
    )
    return Comparison(before, after, nodes)


def _place(side: Row) -> tuple[str, str, int]:
    """Return what a node that did not move keeps: a function may begin at another line."""
    node = side.node
    line = node.line if node.kind == "cost_centre" else 0
    return node.file.rpartition("/")[2], side.function.name, line


def compare_traces(
    before: Trace,
    after: Trace,
    *,
    chosen: str | None = None,
    machine: Machine | None = None,
    speed: str | None = None,
    library: bool = False,
) -> list[tuple[int, int, Comparison]]:
    """Compare the runs of two traces.

    Args:
        before: the first trace.
        after: the second trace; may be the same.
        chosen: which runs, as for :func:`pairs_of`.
        machine: compare both runs as they would be there; default: as they were.
        speed: speed of a process of the Machine, as for ``bsplib.profiler.rates.rates_on``.
        library: also show the functions of bsplib as nodes.

    Returns:
        For each pair of runs their numbers, from 1, and what changed.

    Raises:
        UsageError: there is no such run, or the Machine lacks a figure.
        TooLargeError: a call graph would take gigabytes of memory.
    """
    found = []
    for first, second in pairs_of(before, after, chosen):
        profiles = [
            RunProfile(trace.runs[position], position + 1, library=library)
            for trace, position in ((before, first), (after, second))
        ]
        if machine is not None:
            profiles = [profile.on(machine, speed=speed) for profile in profiles]
        found.append((first + 1, second + 1, compare(*(each.book() for each in profiles))))
    return found


def compare_runs(before: Run, after: Run) -> Comparison:
    """Compare two runs.

    Raises:
        TooLargeError: a call graph would take gigabytes of memory.
    """
    return compare(*(RunProfile(run, 1).book() for run in (before, after)))


def figures_of(run: Run, name: str | None = None) -> Row:
    """Return the row of a run, or of one node of it.

    Args:
        run: a run.
        name: a function, such as ``Solver.step`` or ``step``, or a cost centre, such as
            ``cg.py:12``; the whole run if None.

    Raises:
        LookupError: no node has this name, or several have it.
    """
    book = RunProfile(run, 1).book()
    if name is None:
        return row_of(book, book.callgraph.root)
    rows = {row.node: row for row in (row_of(book, node) for node in book.nodes)}
    found = named(rows, name)
    if len(found) != 1:
        known = ", ".join(fmt.label(node) for node in (found or rows))
        number = "no node is" if not found else f"{len(found)} nodes are"
        raise LookupError(f"{number} called {name!r}; there are {known}")
    return rows[found[0]]


# -- which run of one trace is compared with which run of another ---------------------------------


def pairs_of(before: Trace, after: Trace, chosen: str | None = None) -> list[tuple[int, int]]:
    """Return which runs are compared, as positions in both traces.

    Args:
        before: the first trace.
        after: the second trace; may be the same.
        chosen: ``2`` for the second run of both traces, ``1:3`` for the first run of the one and
            the third of the other. By default all runs in their order if both traces have
            equally many, otherwise the last run of each.

    Raises:
        UsageError: there is no such run, or a trace has none.
    """
    counts = len(before.runs), len(after.runs)
    if not all(counts):
        which = "before" if not counts[0] else "after"
        raise UsageError(f"there is nothing to compare: the trace {which} has no runs")
    if chosen is None:
        return pairs_by_order(*counts)
    numbers = re.fullmatch(r"(\d{1,9})(?::(\d{1,9}))?", chosen.strip())
    if numbers is None:
        raise UsageError(f"{chosen!r} names no run: write it as in 2, or as in 1:3")
    first = int(numbers[1])
    second = int(numbers[2] or first)
    for number, count, which in ((first, counts[0], "before"), (second, counts[1], "after")):
        if not 1 <= number <= count:
            raise UsageError(f"there is no run {number} {which}; the trace has runs 1 to {count}")
    return [(first - 1, second - 1)]


def pairs_by_order(before: int, after: int) -> list[tuple[int, int]]:
    """Return all runs in their order if both numbers of runs are equal, otherwise the last ones.

    Args:
        before: number of runs of the first trace.
        after: number of runs of the second trace.

    Returns:
        Positions in both traces; empty if one of them has no runs.
    """
    if before == after:
        return [(position, position) for position in range(before)]
    return [(before - 1, after - 1)] if before and after else []


# -- names and values of compared nodes, for terminals and sentences -------------------------------


MORE, LESS = "▲", "▼"
"""Marks of a value that is greater, and of one that is less, after."""


def label(node: Compared, *, is_short: bool = False) -> str:
    """Return the name of a node, with what it was called before where it moved.

    Args:
        node: a function, such as ``Solver.step``, or a cost centre, such as
            ``solve · mg.py line 31 → 33 · allreduce``.
        is_short: leave out function and file of a cost centre that has kept both.
    """
    sides = [side for side in (node.before, node.after) if side is not None]
    files = [fmt.visible(posixpath.basename(side.node.file)) for side in sides]
    functions = [fmt.visible(side.function.name) for side in sides]
    if node.known.node.kind == "function":
        return _changed(functions) + (f" ({_changed(files)})" if len(set(files)) > 1 else "")
    is_short = is_short and len(set(zip(functions, files, strict=True))) == 1
    lines = [f"{file} line {side.node.line}" for file, side in zip(files, sides, strict=True)]
    parts = [_changed(functions), _changed(lines), _changed([_call(side) for side in sides])]
    if is_short:
        parts = [parts[1].removeprefix(f"{files[0]} "), parts[2]]
    return " · ".join(filter(None, parts))


def values(node: Compared, quantity: str) -> str:
    """Return a quantity before and after, such as ``1.12 s ▼ 0.98 s``; once if it is equal.

    A change too small for the digits that are shown has a mark only where the quantity
    repeats exactly, as h does.

    Args:
        node: a node.
        quantity: one of ``QUANTITIES``.
    """
    text = QUANTITIES[quantity].text
    before, after = node.values(quantity)
    if before is None or after is None:
        return text(after if before is None else before)  # type: ignore[arg-type]  # one is known
    if before == after or (text(before) == text(after) and quantity not in EXACT):
        return text(after)
    mark = MORE if after > before else LESS
    return f"{text(before)} {mark}" + (f" {text(after)}" if text(before) != text(after) else "")


def _call(side: Row) -> str:
    """Return what a cost centre calls, and how it ends a superstep if not by sync."""
    kind = "" if side.node.sync == "sync" else side.node.sync
    return " ".join(filter(None, (fmt.visible(call_at(side.node)), kind)))


def _changed(texts: list[str]) -> str:
    """Return a text before and after, without the words that both begin with; once if equal."""
    first, *others = texts
    if not others or others[0] == first:
        return first
    head, _, tail = others[0].rpartition(" ")
    return f"{first} → {tail if head and first.startswith(f'{head} ') else others[0]}"
