"""The call graph as a drawing: the package graphviz writes DOT, and dot lays it out as SVG.

The drawing contains only positions, shapes and texts. Colours, fonts and outlines are added
by the page, which shades the same drawing for each of the seventeen critical paths.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import graphviz

from profiler import format as fmt
from profiler.costs import METRICS
from profiler.dot import LayoutError, run_dot

if TYPE_CHECKING:
    from collections.abc import Iterator

    import networkx

    from profiler.callgraph import CallGraph, Cost, Node

NAME_COLUMNS = 24
"""The middle of a name that is wider than this is left out; the page has complete names."""

_GRAPH = {
    "rankdir": "LR",
    "nodesep": "0.2",
    "ranksep": "0.42",
    "outputorder": "edgesfirst",
    "nslimit": "2",  # limits the search for better layouts: 1000 nodes take a second
}
_NODE = {
    "shape": "box",
    # A monospaced font, so that texts in the page's font are as wide as dot computed.
    "fontname": "Courier",
    "fontsize": "11",
    "width": "2.6",
    "margin": "0.11,0.08",
}
_EDGE = {"fontname": "Courier", "fontsize": "10", "arrowsize": "0.6"}

_SVG = "{http://www.w3.org/2000/svg}"
_KEPT = {
    "svg": ("viewBox",),
    "g": ("id", "class", "transform"),
    "path": ("d",),
    "polygon": ("points",),
    "text": ("x", "y", "text-anchor"),
}
"""The elements and attributes of dot's output that are kept; all others are removed."""


def draw(callgraph: CallGraph) -> str:
    """Lay out the call graph, from left to right.

    Returns:
        An SVG document of shapes and texts only. A node is ``<g id=ID class="node
        function">`` (or ``cost_centre``), where ID is the id of the node, with a shape and
        a line of text for its name, its count and each of ``METRICS``. An edge is ``<g
        class="edge">`` with the id of ``edge_ids``, a line, an arrow head and, if its
        callee has several callers, a count.

    Raises:
        LayoutError: dot failed, or exceeded its time limit.
    """
    try:
        return _bare(run_dot(to_dot(callgraph)))
    except LayoutError as error:
        size = f"{len(callgraph.graph)} nodes and {callgraph.graph.number_of_edges()} edges"
        raise LayoutError(f"the call graph has {size}, and {error}: see bsp report") from None


def to_dot(callgraph: CallGraph) -> str:
    """Return the call graph in DOT; all names are escaped, and all ids generated."""
    dot = graphviz.Digraph(graph_attr=_GRAPH, node_attr=_NODE, edge_attr=_EDGE)
    graph = callgraph.graph
    for name, data in graph.nodes(data=True):
        node: Node = data["node"]
        style = "rounded" if node.kind == "function" else "solid"
        label = _escape(_lines(node, data["cost"]))
        dot.node(name, label, **{"id": name, "class": node.kind, "style": style})
    for (caller, callee), edge in edge_ids(graph).items():
        count = graph.edges[caller, callee]["cost"].count
        label = f"{count}×" if graph.in_degree(callee) > 1 else ""  # noqa: RUF001 - times
        dot.edge(caller, callee, label, id=edge)
    source: str = dot.source
    return source


def edge_ids(graph: networkx.DiGraph) -> dict[tuple[str, str], str]:
    """Return the ids of the edges: ``e0``, ``e1``, ... in their order in the graph."""
    return {edge: f"e{number}" for number, edge in enumerate(graph.edges)}


def supersteps(cost: Cost) -> str:
    """Return the number of supersteps of a cost as a text."""
    return "1 superstep" if cost.count == 1 else f"{cost.count} supersteps"


def _lines(node: Node, cost: Cost) -> Iterator[str]:
    """Yield the lines of text of a node."""
    yield _shortened(fmt.label(node))
    yield supersteps(cost)
    for metric in METRICS:
        summary = cost[metric]
        balance = fmt.balance(summary) if summary.maximum else ""
        yield f"{metric:4} {fmt.amount(summary.maximum, metric):>7} {balance:>13}".rstrip()


def _escape(lines: Iterator[str]) -> str:
    """Return a left-aligned label in which escapes, entities and HTML have no effect on dot."""
    escaped = (graphviz.escape(line.replace("&", "&amp;")) for line in lines)
    label: str = graphviz.nohtml("".join(rf"{line}\l" for line in escaped))
    return label


def _shortened(name: str) -> str:
    """Leave out the middle of a name that is too wide: both ends identify it best."""
    if sum(map(_columns, name)) <= NAME_COLUMNS:
        return name
    half = (NAME_COLUMNS - 1) // 2
    return f"{_fitting(name, half)}…{_fitting(name[::-1], half)[::-1]}"


def _fitting(text: str, columns: int) -> str:
    """Return the beginning of a text that fits into a number of columns."""
    taken = 0
    for position, char in enumerate(text):
        taken += _columns(char)
        if taken > columns:
            return text[:position]
    return text


def _columns(char: str) -> int:
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _bare(svg: bytes) -> str:
    """Remove everything from dot's output that the page does not need."""
    ElementTree.register_namespace("", _SVG.strip("{}"))
    root = ElementTree.fromstring(svg)
    _strip(root)
    return ElementTree.tostring(root, encoding="unicode")


def _strip(element: ElementTree.Element) -> None:
    """Remove every element and attribute that is not in ``_KEPT``, in place."""
    kept = _KEPT[element.tag.removeprefix(_SVG)]
    element.attrib = {name: element.attrib[name] for name in kept if name in element.attrib}
    element.tail = None
    for child in list(element):
        if child.tag.removeprefix(_SVG) in _KEPT and not _is_background(element, child):
            _strip(child)
        else:
            element.remove(child)
    if element.tag != f"{_SVG}text":
        element.text = None


def _is_background(parent: ElementTree.Element, child: ElementTree.Element) -> bool:
    """Tell whether this is the white background that dot draws below everything."""
    return parent.get("class") == "graph" and child.tag == f"{_SVG}polygon"
