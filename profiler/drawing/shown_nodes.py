"""Which nodes of a large call graph are shown, and the lines between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    import networkx

MOST_SHOWN = 80
"""Number of nodes that can be read on a screen or on a page."""


def chosen(
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


def links(graph: networkx.DiGraph, shown: Collection[str]) -> list[tuple[str, str]]:
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
