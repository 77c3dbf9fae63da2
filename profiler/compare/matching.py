"""Which node of one call graph is which node of another, although the program was edited.

The id of a node contains its line, which changes with every edit above it. Nodes of two
graphs are therefore matched by what an edit keeps: functions by their qualified names and the
ends of their paths, cost centres by their function, what they call there, and their order.
"""

from __future__ import annotations

import posixpath
from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from bsplib.profiler._arrays import Floats
    from bsplib.profiler.callgraph import CallGraph, Node

_MOST_PARTS = 16
"""Folders and file name that are compared of a path, from its end."""
_MOST_DISTANCES = 2**22
"""Pairs of lines whose distances are computed; of more lines only equal ones are matched."""


def match(before: CallGraph, after: CallGraph) -> list[tuple[str | None, str | None]]:
    """Match the nodes of two call graphs.

    The roots are matched with each other. Of functions with the same qualified name, those
    with the longest common end of their paths are matched; functions of files with other
    names only where one is left on both sides. Cost centres are matched inside matched
    functions where they call the same and end a superstep in the same way, in the order of
    their lines and as near to each other as possible. What then remains is matched where
    file name, line and call are equal, since the function may have been renamed.

    Args:
        before: the graph of the first run.
        after: the graph of the second run.

    Returns:
        The ids of each node before and after, None where it is new or vanished: those of
        ``after`` in its order, then what vanished.
    """
    pairs = {before.root: after.root}
    left, right = (
        [_Matched(node, node.line) for node in _nodes(it, "function")] for it in (before, after)
    )
    deepest = max((each.node.file.count("/") + 1 for each in left), default=0)
    for count in range(min(deepest, _MOST_PARTS), 0, -1):
        _pair(left, right, pairs, partial(_end_of_path, count=count))
    _pair(left, right, pairs, lambda each: each.node.name, single=True)
    left = _cost_centres(before, {old: old for old in pairs}, "before")
    right = _cost_centres(after, {new: old for old, new in pairs.items()}, "after")
    _pair(left, right, pairs, lambda each: (each.function, call_at(each.node), each.node.sync))
    _pair(left, right, pairs, lambda each: (each.node.name, each.node.sync))
    came_from = {new: old for old, new in pairs.items()}
    return [
        *((came_from.get(node), node) for node in after.graph),
        *((node, None) for node in before.graph if node not in pairs),
    ]


def call_at(node: Node) -> str:
    """Return what a cost centre calls, such as ``allreduce``; empty where it calls sync.

    Args:
        node: a cost centre.
    """
    place = f"{posixpath.basename(node.file)} line {node.line}"
    return node.name.removeprefix(place).removeprefix(" · ")


class _Matched(NamedTuple):
    """A node with what it is matched by."""

    node: Node
    line: int
    """Line of a function; of a cost centre, counted from the line of its function."""
    function: Hashable = None
    """For a cost centre a key that is equal for the functions that were matched."""


def _end_of_path(each: _Matched, count: int) -> Hashable:
    """Return the name, and the last parts of the path."""
    return each.node.name, *each.node.file.split("/")[-count:]


def _cost_centres(callgraph: CallGraph, before: dict[str, str], side: str) -> list[_Matched]:
    """Return the cost centres; ``before`` has the ids of matched functions in the first run."""
    items = []
    for node in _nodes(callgraph, "cost_centre"):
        function = callgraph.function_of(node)
        key = before.get(function.id) or (side, function.id)
        items.append(_Matched(node, node.line - function.line, key))
    return items


def _nodes(callgraph: CallGraph, kind: str) -> list[Node]:
    return [node for _, node in callgraph.graph.nodes(data="node") if node.kind == kind]


def _pair(
    left: Iterable[_Matched],
    right: Iterable[_Matched],
    pairs: dict[str, str],
    key: Callable[[_Matched], Hashable],
    *,
    single: bool = False,
) -> None:
    """Add the pairs of items with equal keys that are in no pair so far.

    Args:
        left: items of the first graph.
        right: items of the second graph.
        pairs: ids before and after; pairs are added.
        key: returns what must be equal.
        single: take only keys that one item on each side has.
    """
    taken = set(pairs), set(pairs.values())
    groups: defaultdict[Hashable, tuple[list[_Matched], list[_Matched]]]
    groups = defaultdict(lambda: ([], []))
    for side, items in enumerate((left, right)):
        for item in items:
            if item.node.id not in taken[side]:
                groups[key(item)][side].append(item)
    for old, new in groups.values():
        if not single or len(old) == len(new) == 1:
            pairs.update((one.node.id, other.node.id) for one, other in _in_order(old, new))


def _in_order(old: list[_Matched], new: list[_Matched]) -> list[tuple[_Matched, _Matched]]:
    """Pair as many items as possible in the order of their lines."""
    old, new = (sorted(items, key=lambda item: item.line) for items in (old, new))
    if len(old) > len(new):
        return [(second, first) for first, second in _in_order(new, old)]
    positions = nearest([item.line for item in old], [item.line for item in new])
    return [(old[i], new[j]) for i, j in positions]


def nearest(few: Sequence[int], many: Sequence[int]) -> list[tuple[int, int]]:
    """Assign each of a few numbers one of many, keeping their order.

    Args:
        few: numbers, sorted.
        many: at least as many numbers, sorted.

    Returns:
        Pairs of positions with the least sum of the distances of their numbers. If there are
        more than ``2**22`` pairs to compare, only equal numbers are paired.
    """
    if len(few) == len(many):
        return [(i, i) for i in range(len(few))]
    if len(few) * len(many) > _MOST_DISTANCES:
        where = {number: position for position, number in enumerate(many)}
        return [(i, where[number]) for i, number in enumerate(few) if number in where]
    return _least_sum(np.array(few, np.float64), np.array(many, np.float64))


def _least_sum(few: Floats, many: Floats) -> list[tuple[int, int]]:
    """Return the assignment with the least sum of distances, by dynamic programming."""
    sums = np.zeros(len(many) + 1)  # of the numbers so far, within the first 0, 1, ... of many
    rows = []
    for number in few:
        ending = sums[:-1] + np.abs(many - number)
        sums = np.concatenate([[np.inf], np.minimum.accumulate(ending)])
        rows.append(ending)
    chosen, end = [], len(many)
    for i in range(len(few) - 1, -1, -1):
        end = int(np.argmin(rows[i][:end]))
        chosen.append((i, end))
    return chosen[::-1]
