"""Find a node by what a user calls it."""

from __future__ import annotations

import difflib
import posixpath
from typing import TYPE_CHECKING

from bsplib.errors import UsageError
from bsplib.profiler import format as fmt

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bsplib.profiler.callgraph import CallGraph, Node

_MOST_NAMED = 4


def find(callgraphs: Iterable[CallGraph], text: str) -> str:
    """Return the id of the node that a text names.

    Args:
        callgraphs: the call graphs of some runs; a node may be missing in some of them.
        text: id or name of the node, such as ``relax`` or ``sort.py line 31``; the last part
            of a qualified name; file and line, such as ``sort.py:31``; or a part of the
            name. Of these, in this order, the first that fits counts.

    Raises:
        UsageError: no node has this name, or several have it.
    """
    graphs = [callgraph.graph for callgraph in callgraphs]
    nodes = list(
        {name: node for graph in graphs for name, node in graph.nodes(data="node")}.values()
    )
    for names in (_ids, _exact, _places, _last_parts):
        found = [node for node in nodes if text in names(node)]
        if found:
            return _only(text, found)
    found = [node for node in nodes if text.lower() in fmt.label(node).lower()]
    if text and found:
        return _only(text, found)
    close = difflib.get_close_matches(text, [fmt.label(node) for node in nodes], n=3)
    hint = f"; close to it are {', '.join(close)}" if close else "; bsp report lists them"
    raise UsageError(f"no node is called '{fmt.visible(text)}'{hint}")


def _ids(node: Node) -> list[str]:
    return [node.id]


def _exact(node: Node) -> list[str]:
    return [node.name, fmt.label(node)]


def _places(node: Node) -> list[str]:
    return [f"{node.file}:{node.line}", f"{posixpath.basename(node.file)}:{node.line}"]


def _last_parts(node: Node) -> list[str]:
    return [node.name.rpartition(".")[2]]


def _only(text: str, found: list[Node]) -> str:
    """Return the id of the only node found."""
    if len(found) == 1:
        return found[0].id
    named = [f"{fmt.label(node)} = {node.id} ({_places(node)[1]})" for node in found[:_MOST_NAMED]]
    rest = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
    raise UsageError(
        f"'{fmt.visible(text)}' may be {len(found)} nodes: {', '.join(named)}{rest}; give an id"
    )
