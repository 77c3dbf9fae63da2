"""What the runs of a program tell of each call chain: supersteps, h-relations, computation.

A call chain leads from ``main`` to a cost centre. In each superstep of a group the greatest
value of its processes counts, and the supersteps of a chain are added; of sub-groups that ran
side by side the greatest sum counts. Where processes end one superstep at several places, it
belongs to the place of the process with the lowest pid: so the chains add up to the run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.profiler._numbering import ranked
from bsplib.profiler.callgraph import CallGraph, Node, build
from bsplib.profiler.costs import (
    computation_ns,
    group_columns,
    h_relation,
    superstep_numbers,
)
from bsplib.profiler.imports import imported_ns
from bsplib.profiler.predict.values import PROCESSES
from bsplib.profiler.timeline import calls_of_records
from bsplib.sync_kinds import Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bsplib.recording.records import Run

Chain = tuple[str, ...]
"""Ids of nodes, from ``main`` to a cost centre."""
_TOLD = frozenset({"in_one_stage", "in_two_stages"})
"""Functions of the library in which a broadcast ends whose stages the program gives."""


class Quantities(NamedTuple):
    """What one chain has in one run."""

    supersteps: float
    h: float
    """Bytes of the h-relations by the rule ``max``."""
    h_sum: float
    """The same by the rule ``sum``."""
    comp: float
    """Seconds of computation, without imports of modules."""
    calls: float
    """Calls of put, get and send of the process that made most in each superstep."""
    moved: float
    """Bytes that all processes sent together."""
    imports: float = 0.0
    """Seconds in which the process that imported most imported modules."""
    comm: float = 0.0
    """Seconds that were spent on communication, without waiting for a core or for others."""
    members: float = 0.0
    """Sizes of the groups of the supersteps, added."""


NOTHING = Quantities(*[0.0] * 6)


@dataclass(frozen=True)
class Observation:
    """A run, or several runs of the same program with the same values and seed."""

    values: dict[str, float]
    """The variables, with the number of processes as ``p``."""
    chains: dict[Chain, Quantities]
    elapsed_s: float
    """The time in ``main``, without waiting for a core."""

    def of(self, chain: Chain) -> Quantities:
        """Return what a chain has here, which may be nothing."""
        return self.chains.get(chain, NOTHING)


@dataclass(frozen=True)
class ObservedProgram:
    """The nodes of all runs of a program."""

    nodes: dict[str, Node]
    chains: tuple[Chain, ...]
    told: frozenset[Chain]
    """Chains that end in a broadcast whose stages the program gives."""
    inside: frozenset[Chain]
    """Chains with supersteps of sub-groups."""
    observations: list[Observation]


def observe(
    runs: Sequence[tuple[Run, Mapping[str, float], tuple[float, ...]]],
) -> ObservedProgram:
    """Return what runs tell.

    Args:
        runs: runs with their variables, without the number of processes, and their seeds.
    """
    by_place: defaultdict[tuple[object, ...], list[Observation]] = defaultdict(list)
    nodes: dict[str, Node] = {}
    chains: dict[Chain, None] = {}
    told: set[Chain] = set()
    inside: set[Chain] = set()
    for run, values, seed in runs:
        graph = build(run)
        nodes |= dict(graph.graph.nodes(data="node"))
        for number, chain in enumerate(graph.origins):
            chains[chain] = None
            stack = graph.stack_of(number)
            if any(frame.library and frame.function in _TOLD for frame in stack):
                told.add(chain)
        there = {**values, PROCESSES: float(run.nprocs)}
        found = _quantities(graph, inside)
        records = run.records
        took = float(records["end"].max() - records["start"].min()) / 1e9 if len(records) else 0.0
        worked = sum(row.comp + row.imports + row.comm for row in found.values())
        observation = Observation(there, found, min(took, worked))
        by_place[*sorted(there.items()), seed].append(observation)
    return ObservedProgram(
        {name: nodes[name] for chain in chains for name in chain},
        tuple(chains),
        frozenset(told),
        frozenset(inside),
        [_typical(found) for found in by_place.values()],
    )


def _typical(found: Sequence[Observation]) -> Observation:
    """Return the first of equal runs, with the median computation of each chain of all.

    The least time would be too low for a prediction of what a clock shows: of many supersteps some
    are always disturbed, by the caches at least, and the slowest process counts in each.
    """
    chains = {
        chain: each._replace(
            comp=float(np.median([one.of(chain).comp for one in found if chain in one.chains]))
        )
        for chain, each in found[0].chains.items()
    }
    elapsed = float(np.median([each.elapsed_s for each in found]))
    return Observation(found[0].values, chains, elapsed)


def _quantities(graph: CallGraph, inside: set[Chain]) -> dict[Chain, Quantities]:
    """Return the quantities of the chains of a run; each superstep counts once.

    Args:
        graph: the call graph of the run.
        inside: the chains with supersteps of sub-groups, which are added.
    """
    run, records = graph.run, graph.run.records
    if not len(records):
        return {}
    order = np.lexsort((records["pid"], records["superstep"], records["group"]))
    chains = list(dict.fromkeys(graph.origins))
    number = {chain: place for place, chain in enumerate(chains)}
    of_origin = np.array([number[chain] for chain in graph.origins], np.intp)
    group_of = records["group"][order].astype(np.intp)
    ends_step = (records["kind"] != Kind.END).astype(float)
    out, into = (side.astype(float) for side in h_relation(run))
    w = computation_ns(run)
    imports = np.minimum(imported_ns(run), w)
    comm = records["comm_calls"] + records["end"] - records["released"]
    comm -= np.maximum(records["comm_ready"], 0)
    sizes = np.array([group.size for group in run.groups], float)[records["group"]]
    columns = [ends_step, np.maximum(out, into), out + into, (w - imports) / 1e9]
    columns += [calls_of_records(run), imports / 1e9, np.maximum(comm, 0) / 1e9, sizes * ends_step]

    # A superstep belongs to the place where the process with the lowest pid ends it.
    step = superstep_numbers(run)[order]
    first = np.ones(len(step), bool)
    first[1:] = step[1:] != step[:-1]
    own = of_origin[graph.origin_of_records()[order]]
    inside |= {chains[place] for place in set(own[group_of > 0].tolist())}
    chain, count = own[np.flatnonzero(first)][np.cumsum(first) - 1], len(chains)
    cells, cell = ranked(step * count + chain)
    group = np.zeros(len(cells), np.intp)
    group[cell] = group_of
    greatest = np.zeros((len(columns), len(cells)))
    for row, values in zip(greatest, columns, strict=True):
        np.maximum.at(row, cell, values[order])
    moved = np.bincount(cell, out[order], len(cells))
    found = np.concatenate([greatest[:-3], moved[None], greatest[-3:]])
    totals = np.zeros((len(found), len(run.groups), count))
    for total, row in zip(totals, found, strict=True):
        np.add.at(total, (group, cells % count), row)
    _fold(run, totals)
    passed = set((cells % count).tolist())
    return {
        each: Quantities(*totals[:, 0, place].tolist())
        for place, each in enumerate(chains)
        if place in passed
    }


def _fold(run: Run, totals: NDArray[np.float64]) -> None:
    """Add to each group the greatest of its sub-groups that ran side by side."""
    beside: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for place, group in enumerate(run.groups[1:], start=1):
        beside[group.parent, group.ordinal].append(place)
    depth = group_columns(run).depth
    for parent, ordinal in sorted(beside, key=lambda key: -depth[key[0]]):
        totals[:, parent] += totals[:, beside[parent, ordinal]].max(axis=1)
