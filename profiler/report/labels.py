"""Names of nodes that fit into a number of columns; all functions are pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size

from bsplib.profiler import format as fmt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bsplib.profiler.callgraph import CallGraph

MOST_CALLERS = 2
"""Callers that are named; the others are counted."""
MOST_INDENT = 20
"""Columns by which a row is indented at most; below that its depth is written."""
CUT = "…"


def label(callgraph: CallGraph, name: str, width: int, *, callers: int = 1) -> str:
    """Return the name of a node with those of its callers, as far as they fit.

    Args:
        callgraph: the call graph.
        name: id of the node.
        width: columns of the terminal.
        callers: least number of callers whose names are added.
    """
    texts = list(labels(callgraph, name, callers=callers))
    return next((text for text in texts if cell_len(text) <= width), cut(texts[-1], width))


def labels(callgraph: CallGraph, name: str, *, callers: int = 1) -> Iterator[str]:
    """Yield the texts for a node: with two callers, with one, with their number, with none."""
    nodes = callgraph.graph.nodes
    own = fmt.label(nodes[name]["node"])
    calling = [fmt.label(nodes[caller]["node"]) for caller in callgraph.graph.predecessors(name)]
    if len(calling) >= max(callers, 1):
        for named in range(min(MOST_CALLERS, len(calling)), 0, -1):
            yield f"{own} (from {_listed(calling, named)})"
        if len(calling) > 1:
            yield f"{own} (from {len(calling)} callers)"
    yield own


def _listed(names: list[str], most: int) -> str:
    """Return the first names, and the number of the others, as in ``a, b and 20 more``."""
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")


def indent(depth: int) -> str:
    """Return the space before a row of a call tree; where it is deep, the depth as a number."""
    space = 2 * depth
    return " " * space if space <= MOST_INDENT else f"{f'({depth})':<{MOST_INDENT}} "


def cut(text: str, width: int) -> str:
    """Return the end of a text, which tells most of it, within a width in columns."""
    if cell_len(text) <= width:
        return text
    text = text[-width:]
    while text and cell_len(text) > width - len(CUT):
        text = text[1:]
    return CUT + text


def padded(text: str, width: int) -> str:
    """Return a text, filled with spaces to a width in columns."""
    return set_cell_size(text, max(width, cell_len(text)))
