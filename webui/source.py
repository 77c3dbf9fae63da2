"""The data of the view of the source: highlighted lines, and which nodes belong to them."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from bsplib.profiler.format import visible
from bsplib.profiler.sources import read_sources
from bsplib.webui.highlight import highlight

if TYPE_CHECKING:
    from pathlib import Path

    from bsplib.profiler.callgraph import CallGraph
    from bsplib.profiler.sources import Excerpt

Calls = dict[str, dict[int, list[int]]]


def describe_sources(callgraph: CallGraph, folder: Path | None = None) -> dict[str, Any]:
    """Return the excerpts of a call graph, and the position of that of each node.

    Args:
        callgraph: of a run.
        folder: where source files are looked for, too.

    Returns:
        ``excerpts``: a list of ``file``, ``first`` (number of the first line), ``lines``
        (a list of pieces each, see :func:`bsplib.webui.highlight.highlight`), ``note``, and
        ``calls``: pairs of a line and the positions of the functions that it calls;
        ``of``: for each node, in the order of the graph, the position of its excerpt.
    """
    sources, calls = read_sources(callgraph, folder), _calls(callgraph)
    return {
        "excerpts": [_describe(excerpt, calls) for excerpt in sources.excerpts],
        "of": [sources.of[name] for name in callgraph.graph],
    }


def _describe(excerpt: Excerpt, calls: Calls) -> dict[str, Any]:
    shown = range(excerpt.first, excerpt.first + len(excerpt.lines))
    called = calls.get(excerpt.file, {})
    return {
        **excerpt._asdict(),
        "lines": highlight(excerpt.lines),
        "calls": [[line, called[line]] for line in shown if line in called],
    }


def _calls(callgraph: CallGraph) -> Calls:
    """Return by file and line the positions of the functions that are called there."""
    functions = {
        (node.file, node.name, node.line): position
        for position, (_, node) in enumerate(callgraph.graph.nodes(data="node"))
        if node.kind == "function"
    }
    calls: defaultdict[str, defaultdict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for stack in callgraph.run.stacks:
        for caller, callee in pairwise(stack):
            position = functions.get((callee.file, callee.function, callee.first_line))
            if position is not None:
                calls[visible(caller.file)][caller.line].add(position)
    return {
        file: {line: sorted(positions) for line, positions in lines.items()}
        for file, lines in calls.items()
    }
