"""What the price of a superstep depends on beside its h-relation, learnt for each call chain.

A probe measures four things that make supersteps with the same h-relation differ: elements that go
to places by their indices, and those that are fetched so; memory that a process sends through for
the first time; and the first supersteps in which a process calls put, get or send at all. A replay
sees them in each superstep. A node model takes them from the run that communicates most: which part
of the bytes goes by indices, and which of the supersteps of a chain were new in one of the two
other ways. Programs become used to their memory in the first supersteps, however large they are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bsplib.machine.measured import HRelation
from bsplib.profiler.timeline import HIndexed, Timeline, lay_out

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bsplib.profiler.callgraph import CallGraph

MOST_NEW = 16
"""How many supersteps that are new to a process are kept of each chain; it has few of them."""


class NewStep(NamedTuple):
    """A superstep in which something is new to a process."""

    left: int
    """How many first supersteps with calls are left, as :class:`bsplib.machine.measured.Begun`
    counts; 0 where it is none of them."""
    cold: float
    """Bytes that are sent through new memory, for each byte of the mean h-relation of the chain."""


class Moves(NamedTuple):
    """How the supersteps of a chain communicate."""

    placed: float = 0.0
    """Part of the bytes that are elements of puts by index."""
    fetched: float = 0.0
    """Part of the bytes that are elements of gets by index."""
    new: tuple[NewStep, ...] = ()
    """The supersteps that are new to a process, in order."""

    def relation(self, h: float, calls: float, apart: float, steps: int) -> HRelation:
        """Return what the first supersteps of the chain move, the last of which is not new.

        Args:
            h: bytes of the mean h-relation.
            calls: calls of put, get and send in the mean; 0 where they are as few as can be.
            apart: seconds from the sync before each superstep to its own.
            steps: how many of the new supersteps there are; the arrays have one element more.
        """
        left, cold = np.array([*self.new[:steps], (0, 0.0)], float).T
        return HRelation(
            h,
            calls=max(calls, float(h > 0)),
            cold=cold * h,
            apart=apart,
            placed=self.placed * h,
            fetched=self.fetched * h,
            fresh=left * (h > 0),
        )

    def as_json(self) -> dict[str, Any]:
        """Return it in values of JSON."""
        new = [list(step) for step in self.new]
        return {"placed": self.placed, "fetched": self.fetched, "new": new}


PLAIN = Moves()
"""Blocks from memory in use, in supersteps that are not the first."""


def moves_of(graphs: Iterable[CallGraph]) -> dict[tuple[str, ...], Moves]:
    """Return how each chain communicates, as the run has it whose processes send most bytes.

    Chains that do not communicate there are left out.

    Args:
        graphs: call graphs of runs of one program.
    """
    graph = max(graphs, key=lambda each: int(each.run.traffic["bytes"].sum()))
    timeline = lay_out(graph.run)
    if not len(timeline.steps) or not len(graph.run.traffic):
        return {}
    starts = np.array([step.start for step in timeline.steps])
    columns = [
        np.maximum.reduceat(column, starts)
        for column in (
            _greater(timeline.h_in, timeline.h_out),
            _by_index(timeline, timeline.placed),
            _by_index(timeline, timeline.fetched),
            timeline.fresh.astype(float),
            timeline.cold.astype(float),
        )
    ]
    origin = graph.origin_of_records()[timeline.position][starts]
    places: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
    for step, number in enumerate(origin.tolist()):
        places[graph.origins[number].chain].append(step)
    found = {chain: _of_chain([each[steps] for each in columns]) for chain, steps in places.items()}
    return {chain: each for chain, each in found.items() if each is not None}


def _of_chain(columns: Sequence[NDArray[np.float64]]) -> Moves | None:
    """Return how a chain communicates, by its supersteps; None if it does not."""
    h, placed, fetched, fresh, cold = columns
    whole = float(h.sum())
    if not whole:
        return None
    new = np.flatnonzero((fresh > 0) | (cold > 0))[:MOST_NEW].tolist()
    each = whole / len(h)
    return Moves(
        float(placed.sum()) / whole,
        float(fetched.sum()) / whole,
        tuple(NewStep(int(fresh[step]), float(cold[step]) / each) for step in new),
    )


def _by_index(timeline: Timeline, indexed: HIndexed | None) -> NDArray[np.float64]:
    if indexed is None:
        return np.zeros(len(timeline.position))
    return _greater(indexed.h_in, indexed.h_out)


def _greater(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    greater: NDArray[np.float64] = np.maximum(one, other)
    return greater
