"""The shaded call graph as SVG, for browsers, notebooks and drawing programs."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree

from bsplib.profiler import format as fmt
from bsplib.profiler.critical import METRIC_TITLES
from bsplib.profiler.drawing.picture import draw, drawing
from bsplib.profiler.drawing.shown_nodes import MOST_SHOWN
from bsplib.profiler.drawing.view import DEFAULT, view_of
from bsplib.profiler.run_title import title_lines

if TYPE_CHECKING:
    from bsplib.profiler.callgraph import CallGraph, Cost, Node
    from bsplib.profiler.drawing.picture import Drawing
    from bsplib.profiler.graph_book import GraphBook

_SVG = "{http://www.w3.org/2000/svg}"


def svg(
    callgraph: CallGraph,
    metric: str = DEFAULT,
    *,
    most: int = MOST_SHOWN,
    book: GraphBook | None = None,
) -> str:
    """Return the shaded call graph as an SVG element.

    Pointing at a node shows its costs. The element contains no scripts and no links.

    Args:
        callgraph: the call graph.
        metric: what the shades stand for, one of ``bsplib.profiler.critical.VIEWS``.
        most: how many nodes to draw; of a larger graph those that matter most are drawn, and
            the picture says what was left out.
        book: the book of the call graph; default: at the rates of the run.

    Raises:
        ValueError: there is no such metric.
        LayoutError: dot failed or exceeded its time limit.
    """
    return drawn_as_svg(drawing(callgraph, view_of(callgraph, metric, book), most))


def drawn_as_svg(picture: Drawing) -> str:
    """Draw a picture, and describe its parts to those who point at them or cannot see them."""
    ElementTree.register_namespace("", _SVG.strip("{}"))
    root = ElementTree.fromstring(draw(picture, "svg"))
    root.set("role", "img")
    root.set("aria-label", "Call graph of " + title_lines(picture.callgraph.run)[0])
    for group in root.iter(f"{_SVG}g"):
        _retitle(group, picture.callgraph)
    return ElementTree.tostring(root, encoding="unicode")


def _retitle(group: ElementTree.Element, callgraph: CallGraph) -> None:
    """Replace the title that dot wrote, the id of a node, by the node's costs."""
    for title in group.findall(f"{_SVG}title"):
        name = group.get("id", "")
        if name in callgraph.graph:
            node = callgraph.graph.nodes[name]
            title.text = _description(node["node"], node["cost"])
        else:
            group.remove(title)


def _description(node: Node, cost: Cost) -> str:
    """Return the name, the place and the costs of a node, one a line."""
    place = [f"{fmt.visible(node.file)}:{node.line}"] if node.file else []
    costs = [
        f"{METRIC_TITLES[metric]}: {fmt.summary(cost[metric], metric)}" for metric in METRIC_TITLES
    ]
    return "\n".join([fmt.label(node), *place, fmt.counted(cost.count, "superstep"), *costs])
