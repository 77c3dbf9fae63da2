"""Positions of the nodes and edges of a call graph, computed by dot.

Only sizes and generated names are given to dot, never a text of the trace. A layout is tried
in both directions, since it depends on the window which of them can be shown larger.
"""

from __future__ import annotations

import math
import unicodedata
from typing import TYPE_CHECKING, Any, NamedTuple

import graphviz

from bsplib.profiler.drawing.graphviz import run_dot

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PX_PER_INCH = 72
"""dot computes in inches; a pixel at scale 1 is one of its points."""

BOX_HEIGHT = 56.0
NARROWEST, WIDEST = 104.0, 236.0
"""Limits of the width of a box: the widest has room for names of about 32 letters."""
MOST_LETTERS = 32
"""Letters of a name, or of what stands under it, in a box; a longer one is cut."""
UNDER_SIZE = 0.92
"""The width of the letters under a name as a part of that of its bold ones."""
_PADDING = 20.0
_NARROW, _WIDE = frozenset("iljtfrI.,:;|!'`()[] "), frozenset("mwMW@%")

DIRECTIONS = {"wide": "LR", "tall": "TB"}
"""Names of the two layouts of a graph, and the direction of the calls in each."""

LAYOUT_SECONDS = 5
"""Time limit of the layouts of a graph: for some graphs dot would take hours."""


class DrawnLink(NamedTuple):
    """A line between two nodes: an edge, or calls through nodes that are not shown."""

    caller: int
    callee: int
    edge: int | None
    """Position of the edge in the call graph; None for a chain through other nodes."""


def box_width(name: str, under: str = "") -> float:
    """Return the width of a box, from estimates of the widths of its texts in pixels."""
    estimate = max(
        sum(map(_letter_width, name)), UNDER_SIZE * sum(map(_letter_width, under[:MOST_LETTERS]))
    )
    return min(WIDEST, max(NARROWEST, round(estimate + _PADDING)))


def _letter_width(char: str) -> float:
    """Return the width of a letter in a bold sans-serif font of 12 pixels."""
    if unicodedata.east_asian_width(char) in "WF":
        return 12.5
    if char in _NARROW:
        return 4.2
    return 10.8 if char in _WIDE else 8.2 if char.isupper() else 7.0


def layouts(
    widths: dict[int, float], links: Sequence[DrawnLink], *, seconds: float = LAYOUT_SECONDS
) -> dict[str, Any]:
    """Lay out a graph in both directions.

    Args:
        widths: the width of each box in pixels, by the number of its node.
        links: the lines between these nodes.
        seconds: time limit.

    Returns:
        ``wide`` and ``tall``, each with ``width`` and ``height`` in pixels, ``nodes`` (number,
        x, y of the top left corner, width, height) and ``links`` (caller, callee, edge or
        None, list of points of the Bezier curve).

    Raises:
        LayoutError: dot failed, or exceeded its time limit.
    """
    if not widths:
        return {name: _empty() for name in DIRECTIONS}
    sources = [_to_dot(widths, links, rankdir) for rankdir in DIRECTIONS.values()]
    edges = {(link.caller, link.callee): link.edge for link in links}
    plain = run_dot(sources, "plain", limit_s=seconds).decode()
    drawn = [_parsed(part, edges) for part in plain.split("stop\n") if part.strip()]
    return dict(zip(DIRECTIONS, drawn, strict=True))


def _empty() -> dict[str, Any]:
    return {"width": 0, "height": 0, "nodes": [], "links": []}


def _to_dot(widths: dict[int, float], links: Sequence[DrawnLink], rankdir: str) -> str:
    """Return the graph in DOT; the names of its nodes are numbers."""
    spacing = {"nodesep": "0.17", "ranksep": "0.42" if rankdir == "LR" else "0.5"}
    dot = graphviz.Digraph(
        # nslimit bounds the search for better layouts: without it 1000 nodes take a minute.
        graph_attr={"rankdir": rankdir, "nslimit": "2", **spacing},
        node_attr={"shape": "box", "fixedsize": "true", "label": ""},
        edge_attr={"dir": "none"},
    )
    height = f"{BOX_HEIGHT / PX_PER_INCH:.4f}"
    for number, width in widths.items():
        dot.node(str(number), width=f"{width / PX_PER_INCH:.4f}", height=height)
    for link in links:
        dot.edge(str(link.caller), str(link.callee))
    source: str = dot.source
    return source


def _parsed(plain: str, edges: dict[tuple[int, int], int | None]) -> dict[str, Any]:
    """Read the positions in dot's format "plain": inches, with y upwards."""
    layout = _empty()
    for line in plain.splitlines():
        kind, *words = line.split()
        if kind == "graph":
            layout["width"], layout["height"] = (math.ceil(_px(word)) for word in words[1:3])
        elif kind == "node":
            x, y, width, height = (_px(word) for word in words[1:5])
            top = layout["height"] - y - height / 2
            layout["nodes"].append([int(words[0]), *_rounded((x - width / 2, top, width, height))])
        elif kind == "edge":
            caller, callee, count = (int(word) for word in words[:3])
            points = list(_points(words[3 : 3 + 2 * count], layout["height"]))
            layout["links"].append([caller, callee, edges[caller, callee], points])
    return layout


def _points(words: Sequence[str], height: float) -> Iterator[list[float]]:
    for x, y in zip(words[::2], words[1::2], strict=True):
        yield _rounded((_px(x), height - _px(y)))


def _px(inches: str) -> float:
    return float(inches) * PX_PER_INCH


def _rounded(values: Sequence[float]) -> list[float]:
    return [round(value, 1) for value in values]
