"""What the price of a superstep depends on beside its h-relation, learnt for each call chain.

A probe measures three things that make supersteps with the same h-relation differ: the calls that
make it, such as puts, gets, elements by index and messages of Python objects; memory that a process
sends through for the first time; and the first supersteps in which a process calls put, get or send
at all. A replay sees them in each superstep. A node model takes them from the run that communicates
most: which part of the bytes and of the calls is of each kind, and which of the supersteps of a
chain were new in one of the two other ways. Programs become used to their memory in the first
supersteps, however large they are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bsplib.machine.measured import COUNTS, PARTS, HRelation, amounts_of
from bsplib.profiler.timeline import lay_out

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

    parts: Mapping[str, float] = MappingProxyType({})
    """By the names of amounts of an :class:`bsplib.machine.measured.HRelation`, without those that
    are 0: which part of the bytes, or of the calls, they are."""
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
        calls = max(calls, float(h > 0))
        return HRelation(
            h,
            calls=calls,
            cold=cold * h,
            apart=apart,
            fresh=left * (h > 0),
            **{name: part * (calls if name in COUNTS else h) for name, part in self.parts.items()},
        )

    def as_json(self) -> dict[str, Any]:
        """Return it in values of JSON."""
        new = [list(step) for step in self.new]
        return {"parts": dict(self.parts), "new": new}


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
    # Of a run that was cut short, the superstep around a sub-group may have no records.
    starts = np.array([step.start for step in timeline.steps if step.start < step.stop])
    if not len(starts) or not len(graph.run.traffic):
        return {}
    amounts = {
        "h": np.maximum(timeline.h_in, timeline.h_out),
        "calls": timeline.calls,
        "fresh": timeline.fresh,
        "cold": timeline.cold,
        **amounts_of(timeline.directions, np.maximum, np.zeros(len(timeline.position))),
    }
    columns = {
        name: np.maximum.reduceat(np.asarray(column, float), starts)
        for name, column in amounts.items()
    }
    origin = graph.origin_of_records()[timeline.position][starts]
    places: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
    for step, number in enumerate(origin.tolist()):
        places[graph.origins[number].chain].append(step)
    found = {
        chain: _of_chain({name: each[steps] for name, each in columns.items()})
        for chain, steps in places.items()
    }
    return {chain: each for chain, each in found.items() if each is not None}


def _of_chain(columns: Mapping[str, NDArray[np.float64]]) -> Moves | None:
    """Return how a chain communicates, by its supersteps; None if it does not."""
    h, fresh, cold = (columns[name] for name in ("h", "fresh", "cold"))
    sums = {name: float(column.sum()) for name, column in columns.items()}
    if not sums["h"]:
        return None
    wholes = {name: sums["calls" if name in COUNTS else "h"] for name in PARTS}
    new = np.flatnonzero((fresh > 0) | (cold > 0))[:MOST_NEW].tolist()
    each = sums["h"] / len(h)
    return Moves(
        {name: sums[name] / whole for name, whole in wholes.items() if sums[name]},
        tuple(NewStep(int(fresh[step]), float(cold[step]) / each) for step in new),
    )
