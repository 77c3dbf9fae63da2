"""The shaded call graph as a picture, described in DOT for dot to draw, and as SVG.

A box is a node, with its name and its score, as red as the score is on the scale of the
metric; the legend gives the numbers. The width of a line is what came through it.
The critical path has thick black outlines. Pictures are light, so that they can be printed.
"""

from __future__ import annotations

import html
import itertools
import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple
from xml.etree import ElementTree

import graphviz
import networkx

from bsplib.profiler import format as fmt
from bsplib.profiler.critical import METRIC_TITLES
from bsplib.profiler.drawing.graphviz import LayoutError, NoDotError, run_dot
from bsplib.profiler.format import TITLE_COLUMNS, title_lines

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from bsplib.profiler.callgraph import CallGraph, Cost, Node
    from bsplib.profiler.drawing.view import View


NAME_COLUMNS = 40
"""The middle of a wider name is left out."""
MOST_SHOWN = 80
"""Number of nodes that can be read on a screen or on a page."""
MOST_DRAWN = 2000
"""Greatest number of nodes of a picture: dot would take minutes for more."""

MOST_LINES = 200
"""Lines that a picture may have beside two for each of its nodes."""

INK, QUIET, LINE = "#1a1e24", "#57606c", "#9aa3af"
"""Colours of texts, of minor texts, and of outlines and edges."""
_WHITE, _RED = (255, 255, 255), (195, 18, 31)
_FONT = "Helvetica"  # one name: for a list of fonts some programs measure another one
_GRAPH = {
    "nodesep": "0.16",
    "ranksep": "0.5",
    "pad": "0.25",
    "outputorder": "edgesfirst",
    "nslimit": "2",  # limits the search for better layouts: 1000 nodes take a second
    "labelloc": "t",
    "labeljust": "l",
    "fontname": _FONT,
    "fontcolor": INK,
    "rankdir": "LR",
}
_NODE = {
    "shape": "box",
    "fontname": _FONT,
    "fontsize": "11",
    "height": "0.5",
    "margin": "0.12,0.06",
}
_EDGE = {"arrowsize": "0.5", "color": LINE}
_BINS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Limits of the shades in the legend; a score is on the scale as the square of its shade."""


class Drawing(NamedTuple):
    """What a picture shows of a call graph."""

    callgraph: CallGraph
    view: View
    names: list[str]
    """Ids of the nodes that are drawn, in the order of the graph."""
    links: list[tuple[str, str]]
    """Callers and callees; dashed where the call leads through nodes that are not drawn."""


def drawing(callgraph: CallGraph, view: View, most: int = MOST_SHOWN) -> Drawing:
    """Choose what a picture shows: the critical path, and the nodes with the greatest scores.

    If dot would need minutes for the edges between these, and nobody could follow them, fewer
    nodes are chosen.

    Args:
        callgraph: the call graph.
        view: the same call graph, seen by a metric.
        most: how many nodes to draw.
    """
    always = {callgraph.root, *view.chain}
    while True:
        names = chosen_nodes(callgraph.graph, view.ranks, always, most)
        links = links_between(callgraph.graph, names)
        if len(links) <= MOST_LINES + 2 * len(names) or most <= len(always):
            return Drawing(callgraph, view, names, links)
        most //= 2


def chosen_nodes(
    graph: networkx.DiGraph,
    ranks: Mapping[str, tuple[float, ...]],
    always: Iterable[str],
    most: int = MOST_SHOWN,
) -> list[str]:
    """Return the nodes that matter most, in the order of the graph.

    Args:
        graph: the call graph.
        ranks: by node id, what to compare; the greatest are chosen.
        always: ids of nodes that are chosen in any case, such as those of a critical path.
        most: how many nodes to choose; more only if ``always`` has more.
    """
    kept = set(always)
    for name in sorted(graph, key=ranks.__getitem__, reverse=True):
        if len(kept) >= most:
            break
        kept.add(name)
    return [name for name in graph if name in kept]


def links_between(graph: networkx.DiGraph, shown: Collection[str]) -> list[tuple[str, str]]:
    """Return the lines between the nodes that are shown: caller and callee.

    A node is linked with each shown node that it calls, directly or through nodes that are
    not shown: then the graph has no such edge. So a shown node that the root reaches is never
    without a caller.

    Args:
        graph: the call graph.
        shown: ids of the nodes that are shown.
    """
    kept = frozenset(shown)
    return [(caller, callee) for caller in shown for callee in _reached(graph, caller, kept)]


def _reached(graph: networkx.DiGraph, caller: str, shown: frozenset[str]) -> Iterator[str]:
    """Yield each shown node that is called directly or through nodes that are not shown."""
    seen = {caller}
    waiting = list(graph.successors(caller))[::-1]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        if name in shown:
            yield name
        else:
            waiting.extend(graph.successors(name))


def draw(picture: Drawing, output: str) -> bytes:
    """Draw a picture in a format of dot, such as ``svg``.

    Raises:
        LayoutError: dot failed, exceeded its time limit, or is not installed.
    """
    try:
        return run_dot(to_dot(picture, output), output)
    except NoDotError:
        raise
    except LayoutError as error:
        size = f"{fmt.counted(len(picture.names), 'node')} and {len(picture.links)} edges"
        raise LayoutError(
            f"the picture has {size}, and {error}: use --top to draw fewer nodes"
        ) from None


def to_dot(
    picture: Drawing,
    output: str = "svg",
    *,
    numbers: networkx.DiGraph | None = None,
) -> str:
    """Return a picture in DOT; all names are escaped.

    Args:
        picture: what to draw.
        output: the format in which it is to be drawn.
        numbers: the same call graph with further attributes of its nodes and edges.
    """
    attributes = {**_GRAPH, "label": _heading(picture)} | (
        {"dpi": "144"} if output == "png" else {}
    )
    dot = graphviz.Digraph(graph_attr=attributes, node_attr=_NODE, edge_attr=_EDGE)
    critical = set(picture.view.chain)
    for name in picture.names:
        more = _attributes({} if numbers is None else numbers.nodes[name])
        box = _box(picture, name, critical) | more
        dot.node(name, _label(picture, name), _attributes=box)
    steps = set(itertools.pairwise(picture.view.chain))
    for link in picture.links:
        known = {} if numbers is None else numbers.get_edge_data(*link, default={})
        line = _line(picture, link, steps) | _attributes(known)
        dot.edge(*link, _attributes=line)
    source: str = dot.source
    return source


def _attributes(values: Mapping[str, object]) -> dict[str, str]:
    """Return values as attributes in DOT that mean nothing to dot."""
    return {name: graphviz.nohtml(graphviz.escape(str(value))) for name, value in values.items()}


def _label(picture: Drawing, name: str) -> str:
    """Return the two lines of a box, in which escapes and HTML have no effect on dot."""
    node = picture.callgraph.graph.nodes[name]["node"]
    lines = fmt.shortened(fmt.label(node), NAME_COLUMNS), picture.view.texts[name]
    escaped = (graphviz.escape(line.replace("&", "&amp;")) for line in lines)
    label: str = graphviz.nohtml(r"\n".join(escaped))
    return label


def _box(picture: Drawing, name: str, critical: set[str]) -> dict[str, str]:
    """Return the attributes of a box."""
    node, shade = picture.callgraph.graph.nodes[name]["node"], picture.view.shades[name]
    return {
        "id": name,
        "class": node.kind,
        "style": "rounded,filled" if node.kind == "function" else "filled",
        "fillcolor": fill(shade),
        "fontcolor": on_fill(shade),
        "color": "#000000" if name in critical else LINE,
        "penwidth": "2" if name in critical else "0.8",
    }


def _line(
    picture: Drawing, link: tuple[str, str], critical: set[tuple[str, str]]
) -> dict[str, str]:
    """Return the attributes of a line: its width, and whether it is critical or indirect."""
    if not picture.callgraph.graph.has_edge(*link):
        return {"style": "dashed", "penwidth": "0.8"}
    width = 0.6 + 5.4 * picture.view.weights[link]
    line = {"penwidth": f"{width:.2f}"}
    return line | {"color": INK} if link in critical else line


def _heading(picture: Drawing) -> str:
    """Return title, legend and note as a label in the HTML of dot."""
    title, *more = title_lines(picture.callgraph.run)
    rows = [_row(f'<B><FONT POINT-SIZE="15">{_text(title)}</FONT></B>')]
    rows += [_row(_small(line)) for line in more]
    rows += [_row(_small(line, INK)) for line in _wrapped(picture.view.verdict)]
    rows.append(_row(_small(_explanation(picture.view))))
    rows += [_row(_small(line)) for line in _wrapped(picture.view.prices)]
    if picture.view.full:
        rows.append(f"<TR>{''.join(_legend(picture.view))}</TR>")
    if dropped := _dropped(picture):
        rows.append(_row(_small(dropped)))
    style = 'BORDER="0" CELLBORDER="0" CELLSPACING="1" CELLPADDING="2"'
    space = '<TR><TD HEIGHT="8"></TD></TR>'
    return f"<<TABLE {style}>{''.join(rows)}{space}</TABLE>>"


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, TITLE_COLUMNS)


def _row(content: str) -> str:
    return f'<TR><TD ALIGN="LEFT" COLSPAN="{len(_BINS)}">{content}</TD></TR>'


def _small(text: str, colour: str = QUIET) -> str:
    return f'<FONT POINT-SIZE="11" COLOR="{colour}">{_text(text)}</FONT>'


def _text(text: str) -> str:
    """Return a text for a label in the HTML of dot, which may not be empty."""
    return html.escape(text) or " "


def _explanation(view: View) -> str:
    """Return what the colours stand for."""
    if not view.full:
        return f"{view.title}: 0 everywhere"
    path = " Thick outlines: the critical path." if view.chain else ""
    return f"Shade: {view.title}.{path} Width of a line: what came through it."


def _legend(view: View) -> Iterator[str]:
    """Yield the cells of the legend: ranges of shades with the scores at their limits."""
    for low, high in itertools.pairwise(_BINS):
        middle = (low + high) / 2
        limits = f"{view.amount(low**2 * view.full)} to {view.amount(high**2 * view.full)}"
        yield (
            f'<TD BORDER="1" COLOR="{LINE}" BGCOLOR="{fill(middle)}">'
            f'<FONT POINT-SIZE="10" COLOR="{on_fill(middle)}">{_text(limits)}</FONT></TD>'
        )
    yield "<TD></TD>"


def _dropped(picture: Drawing) -> str:
    """Return a sentence that says what the picture leaves out; empty if that is nothing."""
    names, view = set(picture.names), picture.view
    others = [view.scores[name] for name in picture.callgraph.graph if name not in names]
    if not others:
        return ""
    is_whole = all(picture.callgraph.graph.has_edge(*link) for link in picture.links)
    folded = "" if is_whole else ", folded into dashed lines"
    return (
        f"{len(others)} of {len(view.scores)} nodes are left out{folded}: none of them has more "
        f"than {view.amount(max(others))}."
    )


# -- colours of the shades on paper: white for nothing, red for the greatest cost -----------------


def fill(shade: float) -> str:
    """Return the colour of a shade from 0 (white) to 1 (red), such as ``#ffffff``."""
    return "#" + "".join(f"{channel:02x}" for channel in _mixed(shade))


def on_fill(shade: float) -> str:
    """Return the colour of a text on a shade: black or white, whichever has more contrast."""
    luminance = _luminance(_mixed(shade))
    return "#000000" if (luminance + 0.05) / 0.05 >= 1.05 / (luminance + 0.05) else "#ffffff"


def _mixed(shade: float) -> tuple[int, ...]:
    share = min(max(shade, 0.0), 1.0)
    return tuple(round(a + share * (b - a)) for a, b in zip(_WHITE, _RED, strict=True))


def _luminance(channels: tuple[int, ...]) -> float:
    """Return the relative luminance of a colour of the sRGB space, from 0 to 1."""
    linear = [
        c / 255 / 12.92 if c / 255 <= 0.04045 else ((c / 255 + 0.055) / 1.055) ** 2.4
        for c in channels
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


_SVG = "{http://www.w3.org/2000/svg}"
_ROOM = 1.17
"""What a browser shows where it has no Helvetica, such as DejaVu Sans or Verdana, is wider by this:
so letters are smaller by it than those of the layout, and the picture is larger."""


def drawn_as_svg(picture: Drawing) -> str:
    """Draw a picture as an SVG element, without scripts and links.

    Pointing at a node shows its costs, also to those who cannot see it.

    Raises:
        LayoutError: dot failed or exceeded its time limit.
    """
    ElementTree.register_namespace("", _SVG.strip("{}"))
    root = ElementTree.fromstring(draw(picture, "svg"))
    root.set("role", "img")
    root.set("aria-label", "Call graph of " + title_lines(picture.callgraph.run)[0])
    for group in root.iter(f"{_SVG}g"):
        _retitle(group, picture.callgraph)
    for side in ("width", "height"):
        root.set(side, f"{float(root.get(side, '0pt').removesuffix('pt')) * _ROOM:.0f}pt")
    for text in root.iter(f"{_SVG}text"):
        text.set("font-size", f"{float(text.get('font-size', '14')) / _ROOM:.2f}")
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
