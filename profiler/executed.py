"""The functions that never sync: what was executed below each cost centre, from samples.

The call graph has the functions that led to a sync. What they called, and what returned before the
sync, is known from samples only: it stands below the cost centre that ended the superstep.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

import networkx
import numpy as np

from bsplib.profiler.kinds import LEAST_TOLD
from bsplib.profiler.lines import (
    PARTS,
    LineSeconds,
    is_comprehension,
    is_of_program,
    records_of_samples,
    seconds_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Set

    from bsplib.profiler._arrays import Floats
    from bsplib.profiler.callgraph import CallGraph
    from bsplib.recording.records import Stack


_DEEPEST = 60


_Name = tuple[str, str, int]
"""What tells functions apart: file, name and first line."""


class Executed(NamedTuple):
    """A function of the program that was executed below a cost centre."""

    centre: str
    """Id of the cost centre."""
    caller: int
    """Position in the list of the function that called it; -1: one that led to the sync."""
    file: str
    function: str
    first_line: int
    seconds: LineSeconds
    """Time of the function with all that it called, summed over the processes."""
    by_process: tuple[float, ...]
    """The same in all, by pid."""


_Sampled = tuple[tuple[_Name, ...], "Floats"]
"""A chain of functions, from the outermost one, and what was sampled there by process and part."""


def executed_below(callgraph: CallGraph) -> list[Executed]:
    """Return the functions that were executed below the cost centres of a run.

    One that takes less than ``LEAST_TOLD`` of the time below its cost centre is left out, with all
    that it called. Those of a cost centre follow one another, each after the one that called it and
    the one that took most first. Functions that lead to the cost centre itself are not among them.

    Args:
        callgraph: the call graph; of a run without samples the result is empty.
    """
    found = {}
    for centre, sampled in _by_centre(callgraph).items():
        leading = _leading(callgraph, centre)
        chains = [(_names(callgraph.run.stacks[stack], leading), sums) for stack, sums in sampled]
        found[centre] = [each for each in chains if each[0]]
    whole_s = {centre: _total_s(sampled) for centre, sampled in found.items()}
    listed: list[Executed] = []
    for centre in sorted(found, key=lambda centre: -whole_s[centre]):
        _list_tree(listed, centre, -1, found[centre], LEAST_TOLD * whole_s[centre])
    return listed


def _by_centre(callgraph: CallGraph) -> dict[str, list[tuple[int, Floats]]]:
    """Return for each cost centre the sampled stacks, with seconds by process and part."""
    run = callgraph.run
    if run.samples is None or not len(run.samples):
        return {}
    record = records_of_samples(run)
    leaves = [chain[-1] for chain in callgraph.origins]
    number = {leaf: position for position, leaf in enumerate(dict.fromkeys(leaves))}
    leaf_of = np.array([number[leaf] for leaf in leaves], np.int64)
    inside = np.flatnonzero(record >= 0)
    samples = run.samples[inside]
    records = run.table("records").pick(record[inside].astype(np.int64), ("stack", "kind"))
    leaf = leaf_of[callgraph.origin_of(records)]
    keys, place = np.unique(leaf * len(run.stacks) + samples["stack"], return_inverse=True)
    sums = np.zeros((len(keys), run.nprocs, len(PARTS)))
    np.add.at(sums, (place, samples["pid"]), seconds_of(samples))
    found: defaultdict[str, list[tuple[int, Floats]]] = defaultdict(list)
    centres = list(number)
    for key, each in zip(keys.tolist(), sums, strict=True):
        found[centres[key // len(run.stacks)]].append((key % len(run.stacks), each))
    return found


def _leading(callgraph: CallGraph, centre: str) -> Set[_Name]:
    """Return the functions that lead to a cost centre."""
    nodes = callgraph.graph.nodes(data="node")
    above = (nodes[name] for name in networkx.ancestors(callgraph.graph, centre))
    return {(node.file, node.name, node.line) for node in above}


def _names(stack: Stack, leading: Set[_Name]) -> tuple[_Name, ...]:
    """Return the functions of the program on a stack, below those that lead to the cost centre.

    Of calls of a function by itself, the first counts. The frames of comprehensions belong to the
    function around them.
    """
    ours = (each for each in stack if is_of_program(each, stack[0]))
    frames = (each for each in ours if not is_comprehension(each))
    names = tuple(dict.fromkeys((each.file, each.function, each.first_line) for each in frames))
    first = next((at for at, name in enumerate(names) if name not in leading), len(names))
    return names[first:][:_DEEPEST]


def _total_s(sampled: Iterable[_Sampled]) -> float:
    return sum(float(seconds.sum()) for _, seconds in sampled)


def _list_tree(
    listed: list[Executed], centre: str, caller: int, sampled: list[_Sampled], least_s: float
) -> None:
    """Append the functions that begin some chains to a list, each with those that it called."""
    by_first: defaultdict[_Name, list[_Sampled]] = defaultdict(list)
    for chain, seconds in sampled:
        by_first[chain[0]].append((chain[1:], seconds))
    for name in sorted(by_first, key=lambda name: (-_total_s(by_first[name]), name)):
        mine = by_first[name]
        if (total_s := _total_s(mine)) < least_s or total_s == 0:
            continue
        whole = np.sum([seconds for _, seconds in mine], axis=0)
        parts = LineSeconds(*whole.sum(axis=0).tolist())
        position = len(listed)
        listed.append(Executed(centre, caller, *name, parts, tuple(whole.sum(axis=1).tolist())))
        _list_tree(listed, centre, position, [each for each in mine if each[0]], least_s)
