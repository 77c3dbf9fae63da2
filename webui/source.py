"""The data of the view of the source: highlighted lines, and which of them a node has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from profiler.sources import read_sources
from webui.highlight import highlight

if TYPE_CHECKING:
    from profiler.callgraph import CallGraph
    from profiler.sources import Excerpt


def describe_sources(callgraph: CallGraph) -> dict[str, Any]:
    """Return the excerpts of a call graph, and the position of that of each node.

    Returns:
        ``excerpts``: a list of ``file``, ``first`` (number of the first line), ``lines``
        (a list of pieces each, see :func:`webui.highlight.highlight`) and ``note``;
        ``of``: for each node, in the order of the graph, the position of its excerpt.
    """
    sources = read_sources(callgraph)
    return {
        "excerpts": [_describe(excerpt) for excerpt in sources.excerpts],
        "of": [sources.of[name] for name in callgraph.graph],
    }


def _describe(excerpt: Excerpt) -> dict[str, Any]:
    fields = excerpt._asdict()
    return fields | {"lines": highlight(excerpt.lines)}
