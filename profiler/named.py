"""Nodes by what a user calls them."""

from __future__ import annotations

import difflib
import posixpath
from typing import TYPE_CHECKING

from bsplib.errors import UsageError
from bsplib.profiler import format as fmt

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bsplib.profiler.callgraph import CallGraph, Node


def named(nodes: Iterable[Node], text: str) -> list[Node]:
    """Return the nodes that a text names, of several ways to name one the most exact.

    Args:
        nodes: the nodes.
        text: an id; a name such as ``relax`` or ``sort.py line 31``; file and line of a cost
            centre, such as ``sort.py:31``; the last part of a qualified name; or file and line of
            a function.
    """
    exact: dict[int, list[Node]] = {}
    for node in nodes:
        places = [f"{node.file}:{node.line}", place_of(node)]
        names = [[node.id], [node.name, fmt.label(node)], places, [node.name.rpartition(".")[2]]]
        if node.kind == "function":
            names.append(names.pop(2))
        for rank, some in enumerate(names):
            if text in some:
                exact.setdefault(rank, []).append(node)
    return exact[min(exact)] if exact else []


def place_of(node: Node) -> str:
    """Return file and line of a node, such as ``sort.py:31``."""
    return f"{posixpath.basename(node.file)}:{node.line}"


def find(callgraphs: Iterable[CallGraph], text: str) -> str:
    """Return the id of the node that a text names.

    Args:
        callgraphs: the call graphs of some runs; a node may be missing in some of them.
        text: as for :func:`named`, or a part of a name.

    Raises:
        UsageError: no node has this name, or several have it.
    """
    graphs = [callgraph.graph for callgraph in callgraphs]
    nodes = {name: node for graph in graphs for name, node in graph.nodes(data="node")}.values()
    found = named(nodes, text)
    if not found and text:
        found = [node for node in nodes if text.lower() in fmt.label(node).lower()]
    if not found:
        close = difflib.get_close_matches(text, [fmt.label(node) for node in nodes], n=3)
        hint = f"; close to it are {', '.join(close)}" if close else "; bsp report lists them"
        raise UsageError(f"no node is called '{fmt.visible(text)}'{hint}")
    if len(found) > 1:
        some = [f"{fmt.label(node)} = {node.id} ({place_of(node)})" for node in found]
        rest = f" and {len(found) - fmt.MOST_NAMED} more" if len(found) > fmt.MOST_NAMED else ""
        raise UsageError(
            f"'{fmt.visible(text)}' may be {len(found)} nodes: {', '.join(some[: fmt.MOST_NAMED])}"
            f"{rest}; give an id"
        )
    return found[0].id
