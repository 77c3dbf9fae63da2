"""The tables of nodes of a report, and what the sampled lines and functions take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from bsplib.profiler import format as fmt
from bsplib.profiler.kinds import LEAST_TOLD
from bsplib.profiler.lines import (
    PART_NAMES,
    Executed,
    Line,
    LineSeconds,
    executed_below,
    lines_of,
)
from bsplib.profiler.report.lines import (
    KEPT_WIDTH,
    MARK,
    STYLE,
    Name,
    NumberColumn,
    print_table,
    print_wrapped,
)
from bsplib.profiler.rows import QUANTITIES, SHOWN, TREE, choose, row_of, row_of_call
from bsplib.profiler.survey import is_virtual

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from bsplib.console import Console
    from bsplib.profiler.callgraph import CallGraph
    from bsplib.profiler.profile import RunProfile
    from bsplib.profiler.rows import Row, RowChoice


_KEEP = ("loss", "time", "supersteps", "comp", "h", "comm", "idle")
"""The quantities in the order in which a narrow terminal loses them, the last one first."""


def print_nodes(
    profile: RunProfile, choice: RowChoice, marked: Collection[str], console: Console
) -> None:
    """Print the chosen nodes of a run, and the sum of the others."""
    depths, is_tree = profile.callgraph.depths(), choice.sort == TREE
    rows, rest = choose(profile.book(), choice)
    names = [
        _name(
            profile.callgraph,
            row.node.id,
            marked,
            space=_indent(depths[row.node.id]) if is_tree else "",
            callers=2 if is_tree else 1,
        )
        for row in rows
    ]
    shown = _columns(rows, profile.book().main.time_s)
    print_table(console, names, shown, keep=(choice.column, *_KEEP), tail=_sum_of(rest))


def print_sandwich(
    profile: RunProfile, name: str, choice: RowChoice, marked: Collection[str], console: Console
) -> None:
    """Print a node with its callers above it and its callees below it.

    The numbers of a caller are the part of the node that came through it; those of a
    callee are the part of the callee that came through the node.

    Args:
        profile: the run.
        name: id of the node.
        choice: order and greatest number of callers, and of callees.
        marked: ids of the nodes that are marked.
        console: where to print.
    """
    book, graph = profile.book(), profile.callgraph.graph
    callers = [row_of_call(book, it, name, of_caller=True) for it in graph.predecessors(name)]
    callees = [row_of_call(book, name, it) for it in graph.successors(name)]
    above, below = (choice.ordered(rows)[: choice.top] for rows in (callers, callees))
    rows = [*above, row_of(book, name), *below]
    heads = {}
    if callers:
        heads[0] = _head("callers", len(callers) - len(above))
    if callees:
        heads[len(above) + 1] = _head("callees", len(callees) - len(below))
    own = graph.nodes[name]["node"]
    console.print(Text(f"{fmt.label(own)}: {fmt.visible(own.file)}:{own.line}, id {name}"))
    names = [
        _name(profile.callgraph, name, marked, space="", style="bold")
        if row.node.id == name
        else _name(profile.callgraph, row.node.id, marked, space="  ")
        for row in rows
    ]
    shown = _columns(rows, book.main.time_s)
    print_table(console, names, shown, keep=(choice.column, *_KEEP), heads=heads)
    print_executed(profile, name, console)


def _head(title: str, left_out: int) -> str:
    """Return the line before callers or callees, with how many are not shown."""
    return title + (f" ({left_out} more are not shown)" if left_out else "")


def _sum_of(rest: list[Row]) -> str:
    """Return what nodes take that are not shown; functions would count their leaves twice."""
    if not rest:
        return ""
    leaves = [row for row in rest if row.node.kind == "cost_centre"]
    loss_s, time_s = sum(row.loss_s for row in leaves), sum(row.time_s for row in leaves)
    what = f"  and {fmt.counted(len(rest), 'more node')}"
    if not time_s:
        return what
    parts = f"loss {fmt.seconds(loss_s)}, time {fmt.seconds(time_s)}"
    return f"{what}: {parts} in the cost centres among them"


def _columns(rows: Sequence[Row], whole_s: float) -> list[NumberColumn]:
    """Return all columns of numbers for some rows.

    Args:
        rows: the rows.
        whole_s: time in ``main``, of which losses are given in percent.
    """
    return [
        NumberColumn(
            name,
            QUANTITIES[name].title.replace("supersteps", "super-\nsteps"),
            [Text(_loss(row, whole_s) if name == "loss" else row.text(name)) for row in rows],
        )
        for name in SHOWN
    ]


def _loss(row: Row, whole_s: float) -> str:
    """Return a loss with its share in percent of the time in ``main``, such as ``1.35 ms  12%``."""
    if not row.loss_s:
        return f"0 s{'':5}"  # where the others have their share
    share = f"{100 * row.loss_s / whole_s:.0f}" if row.loss_s >= whole_s / 200 else "<1"
    return f"{row.text('loss')} {share:>3}%"


def _name(
    callgraph: CallGraph,
    node: str,
    marked: Collection[str],
    *,
    space: str,
    callers: int = 2,
    style: str = "",
) -> Name:
    """Return the left end of a row; fewer than ``callers`` are not told."""
    is_marked = node in marked
    texts = list(_texts(callgraph, node, callers))
    return Name(texts, space, MARK if is_marked else " ", STYLE if is_marked else style)


_MOST_CALLERS = 2
"""Callers that are named; the others are counted."""


def _texts(callgraph: CallGraph, name: str, callers: int) -> Iterator[str]:
    """Yield the texts for a node: with two callers, with one, with their number, with none."""
    nodes = callgraph.graph.nodes
    own = fmt.label(nodes[name]["node"])
    calling = [fmt.label(nodes[caller]["node"]) for caller in callgraph.graph.predecessors(name)]
    if len(calling) >= max(callers, 1):
        for named in range(min(_MOST_CALLERS, len(calling)), 0, -1):
            rest = len(calling) - named
            more = f" and {rest} more" if rest else ""
            yield f"{own} (from {', '.join(calling[:named])}{more})"
        if len(calling) > 1:
            yield f"{own} (from {len(calling)} callers)"
    yield own


def _indent(depth: int) -> str:
    """Return the space before a row of a call tree; where it is deep, the depth as a number.

    It is no wider than what is kept for the name behind it.
    """
    space = 2 * depth
    return " " * space if space <= KEPT_WIDTH else f"{f'({depth})':<{KEPT_WIDTH}} "


MOST_LINES = 8


def print_places(profile: RunProfile, console: Console) -> None:
    """Print the lines that took most; of a run that could not be sampled, why."""
    reason = profile.run.measured.get("lines", "")
    if reason and not is_virtual(profile.run):
        print_wrapped(console, f"no line was sampled: {fmt.visible(reason)}")
    lines = [line for line in lines_of(profile.run) if line.own.total]
    whole_s = sum(line.own.total for line in lines)
    shown = [line for line in lines if line.own.total >= LEAST_TOLD * whole_s][:MOST_LINES]
    if shown:
        print_wrapped(console, "lines that take most, average of the processes, from samples:")
    for line in shown:
        print_wrapped(console, _of_line(line, whole_s))


def print_executed(profile: RunProfile, centre: str, console: Console) -> None:
    """Print the functions that were executed below a cost centre of a run that was sampled."""
    found = executed_below(profile.callgraph)
    depth: dict[int, int] = {-1: 0}
    for position, each in enumerate(found):
        depth[position] = depth[each.caller] + 1
    here = [position for position, each in enumerate(found) if each.centre == centre]
    if here:
        title = "functions executed in the supersteps that end here, average of the processes"
        print_wrapped(console, f"{title}, from samples:")
    for position in here[:MOST_LINES]:
        print_wrapped(console, "  " * depth[position] + _of_function(found[position]))
    if len(here) > MOST_LINES:
        print_wrapped(console, f"  and {fmt.counted(len(here) - MOST_LINES, 'more function')}")


def _of_function(each: Executed) -> str:
    place = f"{fmt.visible(each.file.rpartition('/')[2])}:{each.first_line}"
    return f"{fmt.visible(each.function)} ({place}): {_taken(each.seconds, each.by_process)}"


def _of_line(line: Line, whole_s: float) -> str:
    place = f"{fmt.visible(line.file.rpartition('/')[2])}:{line.line}"
    taken = f"{100 * line.own.total / whole_s:.0f}%: {_taken(line.own, line.by_process)}"
    return f"  {place} in {fmt.visible(line.function)}, {taken}"


def _taken(seconds: LineSeconds, by_process: tuple[float, ...]) -> str:
    """Return seconds by what was done, as average of the processes, and who took most."""
    nprocs, most_s = len(by_process), max(by_process)
    parts = ", ".join(
        f"{fmt.seconds(value / nprocs)} {PART_NAMES[part]}"
        for part, value in seconds._asdict().items()
        if value >= LEAST_TOLD * seconds.total
    )
    most = f"; most in process {by_process.index(most_s)}: {fmt.seconds(most_s)}"
    return parts + most * (nprocs > 1)
