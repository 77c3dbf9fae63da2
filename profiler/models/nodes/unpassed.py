"""Communication in a loop that no run came to: what its cost centres cost beyond the runs is open.

A program may have a loop such as that of a selection, which ends at once while there are few
values, and has rounds of communication where there are many::

    while True:
        told = bsp.allgather(...)
        if few(told):
            return bsp.allgather(...)
        bsp.allreduce(...)              # no small run comes here

Small runs then have one superstep at each of two places, and a law from them would say so of
all runs. The source of the program shows that there is more. It is read only where it surely is
what ran, and it is never executed.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.profiler.sources import parsed

if TYPE_CHECKING:
    from bsplib.profiler.callgraph import CallGraph
    from bsplib.recording.records import Run

Chain = tuple[str, ...]
ENDS_SUPERSTEPS = frozenset(
    {"sync", "oblsync", "split", "broadcast", "gather", "allgather", "scatter", "alltoall"}
    | {"reduce", "allreduce", "scan", "exscan"}
)
"""Methods of a group that end supersteps."""


class FunctionKey(NamedTuple):
    """A function, as traces identify it."""

    file: str
    function: str
    first_line: int


class Unpassed(NamedTuple):
    """A call in a loop that no run came to, though it ends supersteps."""

    file: str
    line: int
    lines: frozenset[int]
    """The lines of the loop."""


Passed = Mapping[Chain, frozenset[tuple[FunctionKey, int]]]
"""The lines of calls by which the runs came to each cost centre."""


def passed_by(graphs: Iterable[CallGraph]) -> dict[Chain, frozenset[tuple[FunctionKey, int]]]:
    """Return for each chain the functions on its stacks, with the lines of the calls there."""
    found: defaultdict[Chain, set[tuple[FunctionKey, int]]] = defaultdict(set)
    for graph in graphs:
        run = graph.run
        pairs = np.stack([graph.origin_of_records(), run.records["stack"]])
        for origin, stack in np.unique(pairs, axis=1).T.tolist():
            found[graph.origins[origin].chain] |= {
                (FunctionKey(frame.file, frame.function, frame.first_line), frame.line)
                for frame in run.stacks[stack]
                if not frame.library
            }
    return {chain: frozenset(places) for chain, places in found.items()}


def unpassed(run: Run, passed: Passed) -> dict[Chain, Unpassed]:
    """Return the chains that lead through a loop with communication that no run came to.

    Args:
        run: the earliest of the runs; its program is read.
        passed: of :func:`passed_by`, over all runs.
    """
    lines: defaultdict[FunctionKey, set[int]] = defaultdict(set)
    for places in passed.values():
        for place, line in places:
            lines[place].add(line)
    loops = {place: tuple(_loops(run, place, known)) for place, known in lines.items()}
    found = {}
    for chain, places in passed.items():
        for place, line in sorted(places):
            inside = [loop for loop in loops[place] if line in loop.lines]
            if inside:
                found[chain] = inside[0]
                break
    return found


def _loops(run: Run, place: FunctionKey, known: set[int]) -> Iterator[Unpassed]:
    """Yield the loops of a function that have calls which no run came to, and others."""
    tree = parsed(run, place.file)
    function = None if tree is None else _function(tree, place)
    if function is None:
        return
    groups = {_group_of(call) for call in _calls(function) if _covers(call, known)} - {None}
    for loop in ast.walk(function):
        if isinstance(loop, ast.While):
            missing = [
                call.lineno
                for call in _calls(loop)
                if _group_of(call) in groups and not _covers(call, known)
            ]
            if missing:
                yield Unpassed(place.file, min(missing), frozenset(_lines(loop)))


def _function(tree: ast.Module, place: FunctionKey) -> ast.AST | None:
    name = place.function.rpartition(".")[2]
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            lines = [node.lineno, *(part.lineno for part in node.decorator_list)]
            if min(lines) == place.first_line:
                return node
    return None


def _calls(node: ast.AST) -> list[ast.Call]:
    return [call for call in ast.walk(node) if isinstance(call, ast.Call)]


def _lines(node: ast.stmt | ast.expr) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _covers(call: ast.Call, known: set[int]) -> bool:
    """Whether a run came to a call; Python names any of its lines."""
    return not known.isdisjoint(_lines(call))


def _group_of(call: ast.Call) -> str | None:
    """Return the name of the group of a call that ends supersteps, as bsp in bsp.sync()."""
    function = call.func
    if not isinstance(function, ast.Attribute) or function.attr not in ENDS_SUPERSTEPS:
        return None
    return function.value.id if isinstance(function.value, ast.Name) else None
