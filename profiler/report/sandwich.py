"""One node of the call graph between its callers and its callees."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from bsplib.profiler import format as fmt
from bsplib.profiler.report.columns import KEEP, columns, labels
from bsplib.profiler.report.lines import MARK, STYLE, Name, print_table
from bsplib.profiler.report.sampled_lines import print_executed
from bsplib.profiler.rows import row_of, row_of_call

if TYPE_CHECKING:
    from bsplib.console import Console
    from bsplib.profiler.profile import RunProfile
    from bsplib.profiler.report.rows import RowChoice


def print_sandwich(
    profile: RunProfile, name: str, choice: RowChoice, marked: set[str], console: Console
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
    heads = {
        position: _head(title, len(found) - len(shown))
        for position, title, found, shown in (
            (0, "callers", callers, above),
            (len(above) + 1, "callees", callees, below),
        )
        if found
    }
    own = graph.nodes[name]["node"]
    console.print(Text(f"{fmt.label(own)}: {fmt.visible(own.file)}:{own.line}, id {name}"))
    names = [
        Name(
            list(labels(profile.callgraph, row.node.id, callers=2)),
            "" if row.node.id == name else "  ",
            MARK if row.node.id in marked else " ",
            STYLE if row.node.id in marked else "bold" if row.node.id == name else "",
        )
        for row in rows
    ]
    shown = columns(rows, book.main.time_s)
    print_table(console, names, shown, keep=(choice.column, *KEEP), heads=heads)
    print_executed(profile, name, console)


def _head(title: str, left_out: int) -> str:
    """Return the line before callers or callees, with how many are not shown."""
    return title + (f" ({left_out} more are not shown)" if left_out else "")
