"""The call graph of a run: one node for each function and each cost centre.

Every record belongs to an origin: a call stack with the kind of sync at its end. The cost of
a node, an edge or a path is the cost of the records whose origins pass through it. Nothing
is estimated, and nothing is divided among callers. Functions of bsplib itself are left
out by default, so that a cost centre is a line of the program.
"""

from __future__ import annotations

import hashlib
import posixpath
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import networkx
import numpy as np

from bsplib.profiler.costs import Cost, Summary
from bsplib.profiler.lines import is_comprehension
from bsplib.profiler.survey import survey
from bsplib.recording.records import MPI_CALL
from bsplib.sync_kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bsplib.profiler._arrays import Ints, Rows
    from bsplib.profiler._sums import RunSums
    from bsplib.recording.records import Run, Stack
    from bsplib.recording.tables import Columns

__all__ = ["CallGraph", "Cost", "Node", "Summary", "build"]


@dataclass(frozen=True)
class Node:
    """A function, or a cost centre: the line of the program that ended a superstep."""

    id: str
    """Derived from the other fields: nodes with equal fields have equal ids in all runs."""
    kind: str
    """``function`` or ``cost_centre``."""
    name: str
    """Qualified name of a function. For a cost centre, as in ``sort.py line 31``; where that
    line called a collective, for example, as in ``cg.py line 12 · allreduce``."""
    file: str
    line: int
    """First line of a function; line of the call that ended the superstep."""
    sync: str
    """For a cost centre ``sync``, ``oblsync`` or ``end`` (the end of ``main``), else empty."""


@dataclass(frozen=True)
class CallGraph:
    """The functions that lead to syncs, and their costs."""

    graph: networkx.DiGraph
    """Nodes are the ids, with attributes ``node`` (a Node) and ``cost`` (a Cost). An edge
    has the ``cost`` of the part of the callee that was called through this caller.

    The pies and averages of the edges into a node add up to those of the node. So do
    maximum, minimum and count if all records of a superstep of the root group, with
    those of its sub-groups, have the same stack. Where a function recurs on a stack, only
    the caller of its outermost call counts."""
    root: str
    """Id of ``main``."""
    run: Run
    origins: tuple[tuple[str, ...], ...] = field(repr=False)
    """What each record belongs to (see :meth:`origin_of_records`), by its call chain: ids of the
    nodes from the root to the leaf, without recursive calls."""
    _sums: RunSums = field(repr=False)
    passing: dict[str | tuple[str, str], frozenset[int]] = field(repr=False)
    """For each node, and each edge, the positions in ``origins`` of those that pass through it."""
    _through: dict[tuple[str, ...], dict[str, frozenset[int]]] = field(
        default_factory=dict, repr=False
    )
    """Results of :meth:`through`: many critical paths begin with the same nodes."""

    def origin_of(self, records: Columns | Rows) -> Ints:
        """Return the position in ``origins`` of the origin of some records."""
        return self._sums.origin_of(records)

    def origin_of_records(self) -> Ints:
        """Return for each record of the run the position in ``origins`` of its origin."""
        chunks = self.run.table("records").chunks(("stack", "kind"))
        parts = [self.origin_of(rows) for _, rows in chunks]
        return np.concatenate([np.zeros(0, np.int64), *parts])

    def kind_of(self, origin: int) -> Kind:
        """Return the kind of sync at the end of an origin."""
        return self._sums.origins[origin][1]

    def stack_of(self, origin: int) -> Stack:
        """Return the call stack of an origin, with the frames of bsplib."""
        return self.run.stacks[self._sums.origins[origin][0]]

    def call_lines(self, origin: int) -> list[int]:
        """Return the lines of the calls on the stack of an origin that are shown, downwards.

        The last one is the line of the cost centre, and the one before it that on which the
        function that contains the cost centre was called.
        """
        stack, _ = self._sums.origins[origin]
        shown = _of_program(self.run.stacks[stack])
        named = [frame.line for frame in shown if not is_comprehension(frame)]
        return [shown[0].line, *named] if len(named) < 2 else named

    def function_of(self, node: Node) -> Node:
        """Return the function that a cost centre is in; for a function the node itself."""
        if node.kind == "function":
            return node
        callers = [self.graph.nodes[name]["node"] for name in self.graph.predecessors(node.id)]
        around = [it for it in callers if it.file == node.file and it.line <= node.line] or callers
        return max(around, key=lambda caller: caller.line, default=node)

    def leaves(self) -> list[str]:
        """Return the ids of the cost centres."""
        nodes = self.graph.nodes(data="node")
        return [name for name, node in nodes if node.kind == "cost_centre"]

    def depths(self) -> dict[str, int]:
        """Return how many calls lead from the root to each node, in the order of the call tree.

        Each node stands below its nearest caller.
        """
        tree = networkx.bfs_tree(self.graph, self.root)
        depth = networkx.single_source_shortest_path_length(tree, self.root)
        return {name: depth[name] for name in networkx.dfs_preorder_nodes(tree, self.root)}

    def through(self, chain: Sequence[str]) -> dict[str, frozenset[int]]:
        """Return the origins that pass through a call chain, by the next node below it.

        Args:
            chain: ids of nodes from the root downwards, each called by the one before.
        """
        key, depth = tuple(chain), len(chain)
        if key not in self._through:
            found: defaultdict[str, set[int]] = defaultdict(set)
            for number in self.passing[key[-1]]:
                nodes = self.origins[number]
                if len(nodes) > depth and nodes[:depth] == key:
                    found[nodes[depth]].add(number)
            in_order = sorted(found, key=lambda node: min(found[node]))
            self._through[key] = {node: frozenset(found[node]) for node in in_order}
        return self._through[key]

    def onward(self, chain: Sequence[str]) -> dict[str, Cost]:
        """Return the costs that passed through a call chain, by the next node below it.

        Returns:
            Cost by id of the next node; empty if the chain ends at a leaf.
        """
        return {node: self._sums.cost(origins) for node, origins in self.through(chain).items()}


def _node(kind: str, name: str, file: str, line: int, sync: str = "") -> Node:
    """Return a node with its id, in characters that DOT, HTML and URLs allow."""
    text = "\0".join((kind, name, file, str(line), sync)).encode(errors="surrogatepass")
    digest = hashlib.blake2b(text, digest_size=8).hexdigest()
    return Node(f"n{digest}", kind, name, file, line, sync)


_Callers = dict[Node, Node | None]
"""The nodes of an origin, from ``main`` to the leaf, each with its caller."""


def build(run: Run, *, library: bool = False) -> CallGraph:
    """Build the call graph of a run.

    Args:
        run: a well-formed run, as ``bsplib.recording.trace.read_trace`` returns it.
        library: also show the functions of bsplib, such as a collective, as nodes;
            cost centres are then the lines that called sync, also inside bsplib.

    Returns:
        The graph, with at least a root. Where a run has no records, or its stacks do not
        all begin with the same function, the root is a node ``main`` without file and line.

    Raises:
        TooLargeError: the graph would take gigabytes of memory.

    Source: Jarvis et al. 2002, sections 3.1 and 3.3.
    """
    sums = survey(run).sums
    callers = [_callers(run.stacks[stack], kind, library) for stack, kind in sums.origins]
    root, callers = _rooted(callers)
    passing: defaultdict[Node, set[int]] = defaultdict(set, {root: set()})
    parts: defaultdict[tuple[Node, Node], set[int]] = defaultdict(set)
    for origin, nodes in enumerate(callers):
        for node, caller in nodes.items():
            passing[node].add(origin)
            if caller is not None:
                parts[caller, node].add(origin)

    under: dict[str | tuple[str, str], frozenset[int]] = {
        node.id: frozenset(origins) for node, origins in passing.items()
    }
    under |= {(one.id, other.id): frozenset(origins) for (one, other), origins in parts.items()}
    sums.check(under.values())
    origins = tuple(_chain(each) for each in callers)
    graph, calls = networkx.DiGraph(), networkx.DiGraph([*parts])
    calls.add_node(root)
    for node in networkx.dfs_preorder_nodes(calls, root):
        graph.add_node(node.id, node=node, cost=sums.cost(under[node.id]))
    for caller, node in parts:
        graph.add_edge(caller.id, node.id, cost=sums.cost(under[caller.id, node.id]))
    return CallGraph(graph, root.id, run, origins, sums, under)


def _callers(stack: Stack, kind: Kind, library: bool) -> _Callers:
    """Return the nodes of a stack with their callers; of a recursive function the first caller."""
    shown = stack if library else _of_program(stack)
    callers: _Callers = {}
    caller = None
    for frame in shown:
        if not is_comprehension(frame):
            node = _node("function", frame.function, frame.file, frame.first_line)
            callers.setdefault(node, caller)
            caller = node
    callers[_cost_centre(stack, shown, kind)] = caller
    return callers


def _of_program(stack: Stack) -> Stack:
    """Return the frames of the program; ``main`` if even it is part of bsplib, as that of map."""
    return tuple(frame for frame in stack if not frame.library) or stack[:1]


def _cost_centre(stack: Stack, shown: Stack, kind: Kind) -> Node:
    """Return the leaf of a stack: the innermost line shown, and the function that it called."""
    leaf = shown[-1]
    name = f"{posixpath.basename(leaf.file)} line {leaf.line}"
    below = len(stack) - stack[::-1].index(leaf)
    if below < len(stack):
        name += f" · {stack[below].function.rpartition('.')[2]}"
    is_call_of_mpi = stack[-1].file == MPI_CALL and kind != Kind.END
    ending = Kind.SYNC if is_call_of_mpi else kind  # the name of the call says how
    return _node("cost_centre", name, leaf.file, leaf.line, ending.name.lower())


def _rooted(callers: list[_Callers]) -> tuple[Node, list[_Callers]]:
    """Find the function with which all stacks begin; if there is none, add one above them."""
    tops = [next(iter(nodes)) for nodes in callers]
    if len(set(tops)) == 1 and tops[0].kind == "function":
        return tops[0], callers
    root = _node("function", "main", "", 0)
    # The root is given again at the end, in case a stack has a function with the same key.
    return root, [
        {root: None} | nodes | {top: root, root: None}
        for top, nodes in zip(tops, callers, strict=True)
    ]


def _chain(callers: _Callers) -> tuple[str, ...]:
    """Return the call chain from the root to the leaf.

    Where functions call each other in a cycle, those that are not needed to reach the
    leaf are left out.
    """
    chain, caller = [], next(reversed(callers), None)
    while caller is not None:
        chain.append(caller.id)
        caller = callers[caller]
    return tuple(reversed(chain))
