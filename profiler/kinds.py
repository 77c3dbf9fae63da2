"""The kinds of losses: who is waited for at a place of the program, and how often.

A *spot* is a cost centre with the function that contains it and the caller of that
function. At each spot the losses of computation, of bytes, of sub-groups and the price of
supersteps are entries of their own. Their kinds do not depend on the rates; their seconds
do, and :mod:`bsplib.profiler.losses` computes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.profiler._numbering import blocks
from bsplib.profiler.booking import RULES
from bsplib.profiler.costs import computation_ns, h_relation

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bsplib.profiler.booking import Books, Floats, Leaders, Positions
    from bsplib.profiler.callgraph import CallGraph
    from bsplib.profiler.pricing import Priced

FIXED, ROTATING, ONE_OFF = "fixed", "rotating", "one-off"
FAN_IN, FAN_OUT, UNEVEN = "fan-in", "fan-out", "uneven exchange"
GROUPS, STEPS, CORE = "unequal sub-groups", "too many supersteps", "waiting for a core"
KINDS = (FIXED, ROTATING, ONE_OFF, FAN_IN, FAN_OUT, UNEVEN, GROUPS, STEPS, CORE)
"""Kinds of losses: of computation the first three, of bytes the next three."""

COMP, COMM, SUB_GROUPS, SYNC = "comp", "comm", "groups", "sync"
"""What is lost: waiting for the greatest w, for the greatest h, for a sub-group; or l paid."""

_MOST_SPOTS = 40
"""Losses of each sort that are described, the greatest ones."""
_REPEATED = 5
"""A spot that is passed at least so often can have a loss that happens once."""
_HALF = 0.5
_NEARLY_NOTHING_S = 1e-12
_FAR_MORE = 1.5


class Spot(NamedTuple):
    """A cost centre, the function that contains it, and the caller of that function."""

    leaf: str
    """Id of the node."""
    function: str
    """Id of the node; empty if the cost centre is the root."""
    caller: str
    """Id of the node; empty if the function is the root."""


@dataclass(frozen=True)
class LossEntry:
    """A loss at a spot, without its seconds."""

    source: str
    """``comp``, ``comm``, ``groups`` or ``sync``."""
    rule: str
    """For ``comm`` the rule for h to which the entry belongs, otherwise empty."""
    spot: int
    """Position in the list of spots."""
    chain: tuple[str, ...]
    """The call chain to the cost centre that loses most at the spot."""
    kind: str
    """One of ``KINDS``."""
    habit: str
    """``fixed``, ``rotating`` or ``one-off``: whether it is always the same process."""
    pids: tuple[int, ...]
    """The process, or the processes of the sub-group, that the others wait for."""
    superstep: int | None = None
    """For ``one-off`` its number in its group."""
    group: int = 0
    """Position in ``run.groups`` of the group of that superstep."""
    count: int = 0
    """Number of supersteps, or of partitions; 0 for ``sync``."""
    sharing: int = 0
    """How many processes end these supersteps at the cost centre; 0: all."""


def spots_of(callgraph: CallGraph) -> tuple[list[Spot], Positions]:
    """Return the spots of a call graph, and for each origin the position of its spot."""
    found: dict[Spot, int] = {}
    of_origin = []
    for origin in callgraph.origins:
        caller, function, leaf = ("", "", *origin.chain)[-3:]
        of_origin.append(found.setdefault(Spot(leaf, function, caller), len(found)))
    return list(found), np.array(of_origin, np.intp)


def find_entries(callgraph: CallGraph, books: Books, priced: Priced) -> list[LossEntry]:
    """Return the losses of a run at all spots where they may matter at any rates.

    Args:
        callgraph: the call graph.
        books: its books.
        priced: the sub-groups that cost most. At other rates others may do so; all kinds
            but this one are found in all groups.
    """
    return _EntryFinder(callgraph, books, priced).entries()


class _EntryFinder:
    """Finds the entries of a run."""

    def __init__(self, callgraph: CallGraph, books: Books, priced: Priced) -> None:
        self._callgraph = callgraph
        self._run = callgraph.run
        self._books = books
        self._priced = priced
        self._steps = books.supersteps
        self._origin = callgraph.origin_of_records()
        _, self._spot_of_origin = spots_of(callgraph)

    def entries(self) -> list[LossEntry]:
        """Return all entries."""
        if len(self._steps.group) == 0:
            return []
        found = self._computation()
        h_out, h_in = h_relation(self._run, self._steps.of_record)
        mean_in, mean_out = self._mean(h_in), self._mean(h_out)
        for rule in RULES:
            found += self._bytes(rule, (h_in, mean_in), (h_out, mean_out))
        return found + self._sub_groups() + self._supersteps()

    def _computation(self) -> list[LossEntry]:
        leaders = self._steps.w
        ranked = self._ranked(leaders)
        habits = self._habits(leaders, ranked, computation_ns(self._run))
        sharing = self._sharing(ranked)
        return [
            self._entry(COMP, "", ranked, rank, habit, habit.habit, sharing=sharing[rank])
            for rank, habit in enumerate(habits)
        ]

    def _bytes(
        self, rule: str, into: tuple[Floats, Floats], out: tuple[Floats, Floats]
    ) -> list[LossEntry]:
        """Return the losses of bytes, from the bytes of records and their means by superstep."""
        leaders = self._steps.h[rule]
        ranked = self._ranked(leaders)
        relation = np.maximum(into[0], out[0]) if rule == "max" else into[0] + out[0]
        habits = self._habits(leaders, ranked, relation)
        excess = [self._excess(leaders, ranked, *values) for values in (into, out)]
        return [
            self._entry(COMM, rule, ranked, rank, habit, _direction(*(by[rank] for by in excess)))
            for rank, habit in enumerate(habits)
        ]

    def _sub_groups(self) -> list[LossEntry]:
        at = self._books.partitions.origin
        spot = np.where(at >= 0, self._spot_of_origin[at.clip(min=0)], -1)
        # A partition that loses nothing at these rates may do so at others.
        ranked = _Ranked(spot, self._priced.lost_s + _NEARLY_NOTHING_S)
        entries = []
        for rank in range(len(ranked.spots)):
            mine = np.flatnonzero(ranked.rank == rank)
            worst = mine[np.argmax(self._priced.lost_s[mine])]
            group = self._run.groups[self._priced.costliest[worst]]
            entries.append(
                LossEntry(
                    SUB_GROUPS,
                    "",
                    int(ranked.spots[rank]),
                    self._callgraph.origins[at[worst]].chain,
                    GROUPS,
                    FIXED,
                    tuple(group.members),
                    count=len(mine),
                )
            )
        return entries

    def _supersteps(self) -> list[LossEntry]:
        spot = self._spot_of_origin[self._origin[self._steps.w.record]]
        ranked = _Ranked(spot, self._steps.ended)
        return [
            LossEntry(
                SYNC,
                "",
                int(ranked.spots[rank]),
                self._chain(self._steps.w, ranked, rank),
                STEPS,
                FIXED,
                (),
            )
            for rank in range(len(ranked.spots))
        ]

    def _ranked(self, leaders: Leaders) -> _Ranked:
        """Rank the spots by what the others wait there for the leaders."""
        spot = self._spot_of_origin[self._origin[leaders.record]]
        return _Ranked(spot, leaders.lost)

    def _entry(
        self,
        source: str,
        rule: str,
        ranked: _Ranked,
        rank: int,
        habit: _Habit,
        kind: str,
        *,
        sharing: int = 0,
    ) -> LossEntry:
        leaders = self._steps.h[rule] if rule else self._steps.w
        step = habit.worst
        once = habit.habit == ONE_OFF
        return LossEntry(
            source,
            rule,
            int(ranked.spots[rank]),
            self._chain(leaders, ranked, rank),
            kind,
            habit.habit,
            (habit.pid,),
            superstep=int(self._steps.number[step]) if once else None,
            group=int(self._steps.group[step]),
            count=habit.passed,
            sharing=sharing,
        )

    def _chain(self, leaders: Leaders, ranked: _Ranked, rank: int) -> tuple[str, ...]:
        """Return the call chain that loses most at a spot."""
        mine = np.flatnonzero(ranked.rank == rank)
        origin = self._origin[leaders.record[mine]]
        worst = int(np.argmax(np.bincount(origin, ranked.lost[mine])))
        return self._callgraph.origins[worst].chain

    def _habits(self, leaders: Leaders, ranked: _Ranked, values: Floats) -> list[_Habit]:
        """Tell for each of the ranked spots whether it is always the same process."""
        above, lost = self._by_pid(leaders, ranked, values)
        habits = []
        for number in range(len(ranked.spots)):
            mine = np.flatnonzero(ranked.rank == number)
            worst = mine[np.argmax(ranked.lost[mine])]
            pid = int(np.argmax(above[number]))
            once = ranked.lost[worst] > _HALF * ranked.lost[mine].sum()
            if len(mine) >= _REPEATED and once:
                pid, habit = int(self._run.records["pid"][leaders.record[worst]]), ONE_OFF
            else:
                fixed = above[number, pid] >= _HALF * lost[number, pid]
                habit = FIXED if fixed else ROTATING
            habits.append(_Habit(habit, pid, int(worst), len(mine)))
        return habits

    def _by_pid(self, leaders: Leaders, ranked: _Ranked, values: Floats) -> tuple[Floats, Floats]:
        """Sum over the supersteps of each ranked spot, for each process of their groups.

        Returns:
            By how much the process is above the mean, and what is lost there; both have the
            shape (spots, processes).
        """
        nprocs, pids = self._run.nprocs, self._run.records["pid"]
        above, lost = np.zeros((2, len(ranked.spots) * nprocs))
        for part in blocks(len(values)):
            step = self._steps.of_record[part]
            rank = ranked.rank[step]
            rows = np.flatnonzero(rank >= 0)
            keys, step = rank[rows] * nprocs + pids[part][rows], step[rows]
            np.add.at(above, keys, values[part][rows] - leaders.mean[step])
            np.add.at(lost, keys, ranked.lost[step])
        return above.reshape(-1, nprocs), lost.reshape(-1, nprocs)

    def _mean(self, values: Floats) -> Floats:
        """Return the mean of each superstep over all processes of its group."""
        steps = self._steps
        sums = np.bincount(steps.of_record, values, len(steps.group))
        return sums / self._books.size[steps.group]

    def _excess(self, leaders: Leaders, ranked: _Ranked, values: Floats, mean: Floats) -> Floats:
        """Return by how much the leading processes exceed the mean, for each ranked spot."""
        mine = np.flatnonzero(ranked.rank >= 0)
        above = (values[leaders.record] - mean)[mine]
        return np.bincount(ranked.rank[mine], above, len(ranked.spots)).astype(np.float64)

    def _sharing(self, ranked: _Ranked) -> list[int]:
        """Return how many processes end the supersteps of a spot there; 0 for most of them."""
        number = {node: position for position, node in enumerate(self._callgraph.graph)}
        leaf = np.array([number[origin.chain[-1]] for origin in self._callgraph.origins])
        steps, origin = self._steps, self._origin
        leading, there = leaf[origin[steps.w.record]], np.zeros(len(steps.group))
        for part in blocks(len(origin)):
            step = steps.of_record[part]
            np.add.at(there, step, (leaf[origin[part]] == leading[step]).astype(np.float64))
        sharing = []
        for rank in range(len(ranked.spots)):
            mine = np.flatnonzero(ranked.rank == rank)
            mean, size = there[mine].mean(), self._books.size[steps.group[mine]].mean()
            sharing.append(max(1, round(mean)) if mean <= _HALF * size else 0)
        return sharing


class _Habit(NamedTuple):
    """Who is waited for at a spot."""

    habit: str
    pid: int
    worst: int
    """Position of the superstep that loses most."""
    passed: int
    """Number of supersteps."""


class _Ranked:
    """The spots that lose most."""

    def __init__(self, spot: Positions, lost: Floats) -> None:
        sums = np.bincount(spot[spot >= 0], lost[spot >= 0])
        order = np.argsort(-sums, kind="stable")[:_MOST_SPOTS]
        self.lost = lost
        self.spots: Positions = order[sums[order] > 0]
        """Positions of the spots, the greatest loss first."""
        place = np.full(len(sums) + 1, -1, np.intp)  # the last element is for no spot
        place[self.spots] = np.arange(len(self.spots))
        self.rank: NDArray[np.intp] = place[spot]
        """For each element given the rank of its spot; -1 for others."""


def _direction(in_excess: float, out_excess: float) -> str:
    if in_excess > _FAR_MORE * out_excess:
        return FAN_IN
    return FAN_OUT if out_excess > _FAR_MORE * in_excess else UNEVEN
