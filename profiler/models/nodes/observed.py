"""What the runs of a program tell of each call chain: supersteps, h-relations, computation.

A call chain leads from ``main`` to a cost centre. In each superstep of a group the greatest
value of its processes counts, and the supersteps of a chain are added; of sub-groups that ran
side by side the greatest sum counts. So the quantities of a chain are those that the page shows
(:mod:`bsplib.profiler.callgraph`). Where processes end one superstep at several places, ``booked``
has it once, at the place of the process with the lowest pid: so the chains add up to the run.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.machine.measured import FRESH
from bsplib.profiler._numbering import ranked
from bsplib.profiler.callgraph import CallGraph, Node, build
from bsplib.profiler.costs import (
    computation_ns,
    group_columns,
    h_relation,
    superstep_numbers,
)
from bsplib.profiler.imports import imported
from bsplib.profiler.models.nodes.moves import Moves, moves_of
from bsplib.profiler.models.nodes.unpassed import Unpassed, passed_by, unpassed
from bsplib.profiler.models.nodes.values import PROCESSES
from bsplib.profiler.page_faults import page_faults
from bsplib.profiler.prices import recognise
from bsplib.profiler.timeline import calls_of_records, lay_out
from bsplib.sync_kinds import Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bsplib.recording.records import Run


Chain = tuple[str, ...]
"""Ids of nodes, from ``main`` to a cost centre."""
QUANTITIES = ("supersteps", "h", "h_sum", "comp")
"""Supersteps; bytes of the h-relations by the rules ``max`` and ``sum``; seconds of computation."""


class Quantities(NamedTuple):
    """What one chain has in one run."""

    supersteps: float
    h: float
    h_sum: float
    comp: float
    """Seconds of computation, without ``imports``."""
    share: float
    """Bytes that a process sent, in the mean over the processes of the group."""
    deviation: float
    """Standard deviation over the processes of the group of the bytes that each sent, or of those
    that it received: the greater one."""
    pages: float = 0.0
    """Pages of memory that the system gave a process during its computation; 0 if not counted."""
    once: float = 0.0
    """The part of ``comp`` by which its first supersteps are longer than the others: what every
    process does once, such as to touch its memory. 0 where there are too few supersteps to tell,
    and in sub-groups."""
    once_pages: float = 0.0
    """The part of ``pages`` by which its first supersteps have more than the others; or 0."""
    calls: float = 0.0
    """Calls of put, get and send of the process that made most in each superstep."""
    imports: float = 0.0
    """Seconds in which the process that imported most imported modules."""


@dataclass(frozen=True)
class Observation:
    """A run, or several runs of the same program with the same values and seed."""

    values: dict[str, float]
    """The variables, with the number of processes as ``p``."""
    seed: tuple[float, ...]
    """What tells it from runs with the same variables and other data."""
    repeats: int
    """Number of runs; computation is that of the median time of each superstep."""
    seen: dict[Chain, Quantities]
    """As the page shows them."""
    booked: dict[Chain, Quantities]
    """Each superstep once."""
    pages: float | None = None
    """Pages of memory that the system gave to the process that got most; None if not counted."""
    moved: dict[Chain, NDArray[np.float64]] = field(default_factory=dict)
    """Of chains whose supersteps are all alike and have all processes of the run: the bytes that
    each process sends, and those that it receives, in one of them."""


@dataclass(frozen=True)
class ObservedProgram:
    """The nodes of all runs of a program."""

    nodes: dict[str, Node]
    chains: tuple[Chain, ...]
    patterns: Mapping[Chain, str]
    """Of the chains that communicate, as far as the runs tell."""
    moves: Mapping[Chain, Moves]
    """How the chains communicate that do."""
    unpassed: Mapping[Chain, Unpassed]
    """Of the chains through a loop in which the program communicates elsewhere, too, where no
    run came to."""


def observe(
    runs: Sequence[tuple[Run, Mapping[str, float], tuple[float, ...]]],
) -> tuple[ObservedProgram, list[Observation]]:
    """Return what runs tell.

    Args:
        runs: runs with their variables, without the number of processes, and their seeds.
    """
    by_place: defaultdict[tuple[object, ...], list[CallGraph]] = defaultdict(list)
    values_of: dict[tuple[object, ...], tuple[dict[str, float], tuple[float, ...]]] = {}
    nodes: dict[str, Node] = {}
    chains: dict[Chain, None] = {}
    for run, values, seed in runs:
        graph = build(run)
        nodes |= dict(graph.graph.nodes(data="node"))
        chains |= dict.fromkeys(origin.chain for origin in graph.origins)
        there = {**values, PROCESSES: float(run.nprocs)}
        place = (*sorted(there.items()), seed)
        by_place[place].append(graph)
        values_of[place] = there, seed
    observations = [_observation(graphs, *values_of[place]) for place, graphs in by_place.items()]
    used = {node for chain in chains for node in chain}
    every = [graph for graphs in by_place.values() for graph in graphs]
    earliest = min((run for run, *_ in runs), key=lambda run: str(run.meta.get("started", "")))
    return ObservedProgram(
        {name: nodes[name] for name in nodes if name in used},
        tuple(chains),
        patterns_of(every),
        moves_of(every),
        unpassed(earliest, passed_by(every)),
    ), observations


def _observation(
    graphs: Sequence[CallGraph], values: dict[str, float], seed: tuple[float, ...]
) -> Observation:
    arranged = [_Arranged(graph) for graph in graphs]
    first = arranged[0]
    pages = _pages(graphs)
    if all(other.is_like(first) for other in arranged[1:]):
        sums = first.sums(*_typical_work(arranged))
        return Observation(values, seed, len(graphs), *sums, pages, first.moved())
    every = [each.sums(each.w, each.imports) for each in arranged]
    seen, booked = (_typical([pair[side] for pair in every]) for side in (0, 1))
    return Observation(values, seed, len(graphs), seen, booked, pages)


def _typical_work(arranged: Sequence[_Arranged]) -> list[NDArray[np.float64]]:
    """Return computation and imports of each record: the medians of all repeats.

    The least time would be too low for a prediction of what a clock shows: of many supersteps some
    are always disturbed, by the caches at least, and the slowest process counts in each.
    """
    rows = [each.w for each in arranged], [each.imports for each in arranged]
    return [np.median(row, axis=0) for row in rows]


def _typical(found: Sequence[dict[Chain, Quantities]]) -> dict[Chain, Quantities]:
    """Return the first run's quantities, with the median computation of all."""
    return {
        chain: each._replace(
            **{
                name: float(
                    np.median([getattr(other[chain], name) for other in found if chain in other])
                )
                for name in ("comp", "once", "imports")
            }
        )
        for chain, each in found[0].items()
    }


def _pages(graphs: Sequence[CallGraph]) -> float | None:
    """Return the pages that the process with most got in a run: the median of all repeats."""
    found = [page_faults(graph) for graph in graphs]
    counts = [max(max(each.minor) for each in nodes.values()) for nodes in found if nodes]
    return float(np.median(counts)) if len(counts) == len(graphs) else None


class _Arranged:
    """The records of a run in the order of group, superstep and process."""

    def __init__(self, graph: CallGraph) -> None:
        run = graph.run
        records = run.records
        order = np.lexsort((records["pid"], records["superstep"], records["group"]))
        chains = list(dict.fromkeys(origin.chain for origin in graph.origins))
        number = {chain: place for place, chain in enumerate(chains)}
        of_origin = np.array([number[origin.chain] for origin in graph.origins], np.intp)
        self.chains = chains
        self.run = run
        self._chain = of_origin[graph.origin_of_records()[order]]
        self._keys = records[["pid", "group", "superstep", "kind"]][order]
        self._step = superstep_numbers(run)[order]
        out, into = (side[order] for side in h_relation(run))
        self._h, self._h_sum = np.maximum(out, into), out + into
        self._sent, self._received = out, into
        self._ended = (records["kind"][order] != Kind.END).astype(float)
        self._group = records["group"][order].astype(np.intp)
        self._calls = calls_of_records(run)[order].astype(float)
        w, imports = computation_ns(run), imported(run)
        self._pages = (records["comp_minor"] - imports.faults)[order].clip(min=0)
        self.imports: NDArray[np.float64] = np.minimum(imports.ns, w)[order] / 1e9
        self.w: NDArray[np.float64] = w[order] / 1e9 - self.imports

    def is_like(self, other: _Arranged) -> bool:
        """Whether the runs have the same records, apart from times."""
        return (
            self.chains == other.chains
            and self.run.groups == other.run.groups
            and np.array_equal(self._keys, other._keys)
            and np.array_equal(self._chain, other._chain)
            and np.array_equal(self._h, other._h)
        )

    def sums(
        self, w: NDArray[np.float64], imports: NDArray[np.float64]
    ) -> tuple[dict[Chain, Quantities], dict[Chain, Quantities]]:
        """Return the quantities of all chains as the page shows them, and booked once."""
        columns = np.stack(
            [self._ended, self._h, self._h_sum, w, self._pages, self._calls, imports]
        )
        first = np.ones(len(w), bool)
        first[1:] = self._step[1:] != self._step[:-1]
        begins = np.flatnonzero(first)
        leader = self._chain[begins][np.cumsum(first) - 1] if len(w) else self._chain
        seen = self._sums(columns, self._chain)
        return seen, seen if np.array_equal(leader, self._chain) else self._sums(columns, leader)

    def moved(self) -> dict[Chain, NDArray[np.float64]]:
        """Return what each process sends and receives in a superstep of each chain."""
        found = {}
        everyone = np.arange(self.run.nprocs)
        for place, chain in enumerate(self.chains):
            rows = np.flatnonzero((self._chain == place) & (self._group == 0))
            if not len(rows) or len(rows) % len(everyone):
                continue
            pids = self._keys["pid"][rows].reshape(-1, len(everyone))
            sides = np.stack([self._sent[rows], self._received[rows]])
            steps = sides.reshape(2, -1, len(everyone))
            if (pids == everyone).all() and (steps == steps[:, :1]).all():
                found[chain] = steps[:, 0].astype(float)
        return found

    def _sums(
        self, columns: NDArray[np.float64], chain: NDArray[np.intp]
    ) -> dict[Chain, Quantities]:
        count = len(self.chains)
        cells, cell = ranked(self._step * count + chain)
        group = np.zeros(len(cells), np.intp)
        group[cell] = self._group
        greatest = np.zeros((len(columns), len(cells)))
        for row, values in zip(greatest, columns, strict=True):
            np.maximum.at(row, cell, values)
        found = np.concatenate([greatest[:4], self._shares(cell, group), greatest[4:]])
        totals = np.zeros((len(found), len(self.run.groups), count))
        for total, row in zip(totals, found, strict=True):
            np.add.at(total, (group, cells % count), row)
        self._fold(totals)
        once, pages = (_once(row, cells % count, group, count) for row in greatest[3:5])
        sums = totals[:, 0].T.tolist()
        return {
            each: Quantities(*sums[place][:-2])._replace(
                once=once[place],
                once_pages=pages[place],
                calls=sums[place][-2],
                imports=sums[place][-1],
            )
            for place, each in enumerate(self.chains)
        }

    def _shares(self, cell: NDArray[np.intp], group: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return mean and standard deviation of what the processes of each cell communicate."""
        members = np.array([each.size for each in self.run.groups], float)[group]
        count = len(group)
        mean = np.bincount(cell, self._sent, count) / members
        squares = [np.bincount(cell, side**2, count) for side in (self._sent, self._received)]
        variance = np.maximum(*squares) - members * mean**2
        variance = np.maximum(variance, 0) / np.maximum(members - 1, 1)
        # The root of the variance of few normally distributed values is too small by this.
        return np.stack([mean, np.sqrt(variance) * (1 + 1 / (4 * np.maximum(members - 1, 1)))])

    def _fold(self, totals: NDArray[np.float64]) -> None:
        """Add to each group the greatest of its sub-groups that ran side by side."""
        groups = self.run.groups
        beside: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
        for place, group in enumerate(groups[1:], start=1):
            beside[group.parent, group.ordinal].append(place)
        depth = group_columns(self.run).depth
        for parent, ordinal in sorted(beside, key=lambda key: -depth[key[0]]):
            totals[:, parent] += totals[:, beside[parent, ordinal]].max(axis=1)


def _once(
    comp: NDArray[np.float64], chain: NDArray[np.intp], group: NDArray[np.intp], count: int
) -> list[float]:
    """Return by how much the first supersteps of each chain are longer than the others, in all.

    Args:
        comp: the longest computation of a process, for each superstep in order.
        chain: its chain.
        group: its group.
        count: number of chains.
    """
    found = [0.0] * count
    order = np.argsort(chain, kind="stable")
    bounds = np.searchsorted(chain[order], np.arange(count + 1))
    for place in range(count):
        steps = order[bounds[place] : bounds[place + 1]]
        if len(steps) >= 2 * FRESH and not group[steps].any():
            usual = float(np.median(comp[steps[FRESH:]]))
            found[place] = float(comp[steps[:FRESH]].sum()) - FRESH * usual
    return found


def distinct(observations: Iterable[Observation], name: str) -> list[float]:
    """Return the values of a variable, in order."""
    return sorted({each.values[name] for each in observations})


# -- the communication pattern of each call chain, by which a probed Machine has its prices -------


_FEWEST = 3
"""With fewer processes the patterns are not told apart."""


def patterns_of(graphs: Iterable[CallGraph]) -> dict[tuple[str, ...], str]:
    """Return the pattern of each chain that communicates, as the run with most processes has it.

    Where the supersteps of a chain have several patterns, the one of most supersteps counts.

    Args:
        graphs: call graphs of runs of one program.
    """
    large = [graph for graph in graphs if graph.run.nprocs >= _FEWEST]
    if not large:
        return {}
    graph = max(large, key=lambda each: (each.run.nprocs, int(each.run.traffic["bytes"].sum())))
    timeline = lay_out(graph.run)
    origin = graph.origin_of_records()[timeline.position]
    found: defaultdict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for step in timeline.steps:
        pattern = recognise(timeline, step)
        if pattern is not None:
            found[graph.origins[int(origin[step.start])].chain][pattern] += 1
    return {chain: counted.most_common(1)[0][0] for chain, counted in found.items()}
