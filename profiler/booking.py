"""The books of a run: what its supersteps cost and lose, at which origins, before any price.

The computation of a superstep and its l are booked where the process with the greatest w
ended it, and its g h where the process with the greatest h did (of equal processes, the
one of the lowest pid). The losses ``w_max - w_mean`` and ``h_max - h_mean``, over all
processes of the group, are booked at the same places. Everything is booked once, so that
it adds up. Since the rates are not known here, the books hold nanoseconds, supersteps and
bytes; :mod:`bsplib.profiler.losses` and the page price them.

Source: the cost of a superstep, ``w + g h + l`` (Jarvis et al. 2002, section 2.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.profiler._numbering import rank_in_place, ranked
from bsplib.profiler._sums import origin_keys, summed
from bsplib.profiler.costs import group_sizes
from bsplib.profiler.leaders import RULES, supersteps_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bsplib.profiler.leaders import RunSupersteps
    from bsplib.profiler.window import RunWindow
    from bsplib.recording.records import Run

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Positions = NDArray[np.intp]
    from numpy.typing import NDArray

    from bsplib.profiler.rates import Rates


class BookedCells(NamedTuple):
    """What is booked for each group at each origin; the arrays have equal lengths."""

    group: Positions
    origin: Positions
    """Position in ``CallGraph.origins``."""
    w: Floats
    w_lost: Floats
    steps: Floats
    h: dict[str, Floats]
    h_lost: dict[str, Floats]


class Partitions(NamedTuple):
    """The sets of sub-groups that ran side by side; the arrays have equal lengths."""

    parent: Positions
    """Group that was divided."""
    origin: Positions
    """Origin at which the superstep of the parent ended; -1 if it did not end."""
    record: Positions
    """Position in ``run.records`` of the greatest w of that superstep, or -1."""


@dataclass(frozen=True)
class Books:
    """What a run cost and lost, before any price."""

    run: Run
    cells: BookedCells
    partitions: Partitions
    partition_of: Positions
    """For each group the position of its partition; -1 for the root."""
    parent: Positions
    size: Positions
    """Number of processes of each group."""

    @cached_property
    def supersteps(self) -> RunSupersteps:
        """All supersteps of the run."""
        return supersteps_of(self.run)


class BookKeeper:
    """Books the supersteps of a run window by window; origins are given by their keys."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._partition_of, self._parent, self._superstep = _partitions(run)
        count = len(self._parent)
        self._record, self._at = np.full((2, count), -1, np.int64)
        self._keys: Ints = np.zeros(0, np.int64)
        self._sums = np.zeros((3 + 2 * len(RULES), 0))

    def add(self, window: RunWindow) -> None:
        """Take in the supersteps of a window."""
        steps = supersteps_of(window.run)
        records = window.run.records
        origin = origin_keys(records)
        leaders = [steps.w, *(steps.h[rule] for rule in RULES)]
        fresh = slice(window.halo_steps, None)  # those of the halo are the first of the root
        number = np.concatenate(
            [(steps.group * _MOST_ORIGINS + origin[each.record])[fresh] for each in leaders]
        )
        found = rank_in_place(number)
        places = np.split(number, len(leaders))
        columns = [(places[0], steps.ended)]
        for place, each in zip(places, leaders, strict=True):
            columns += [(place, each.greatest), (place, each.lost)]
        sums = np.stack(
            [np.bincount(place, values[fresh], len(found)) for place, values in columns]
        )
        self._keys, self._sums = summed(
            np.concatenate([self._keys, found]), np.concatenate([self._sums, sums], axis=1)
        )
        if len(self._parent):
            self._add_partitions(window, steps, origin)

    def _add_partitions(self, window: RunWindow, steps: RunSupersteps, origin: Ints) -> None:
        """Note where the supersteps ended in which groups were divided."""
        step = _positions(steps, self._parent, self._superstep)
        here = np.flatnonzero(step >= 0)
        leader = steps.w.record[step[here]]
        here, leader = here[leader >= window.halo], leader[leader >= window.halo]
        self._record[here] = window.position[leader - window.halo]
        self._at[here] = origin[leader]

    def close(self, keys: Ints) -> Books:
        """Return the books, with origins by their positions among all keys."""
        group, key = np.divmod(self._keys, _MOST_ORIGINS)
        at = np.where(self._at >= 0, np.searchsorted(keys, self._at), -1)
        ended, w, w_lost, *h = self._sums
        return Books(
            self._run,
            BookedCells(
                group.astype(np.intp),
                np.searchsorted(keys, key),
                w,
                w_lost,
                ended,
                dict(zip(RULES, h[::2], strict=True)),
                dict(zip(RULES, h[1::2], strict=True)),
            ),
            Partitions(self._parent.astype(np.intp), at, self._record),
            self._partition_of,
            np.array([entry.parent for entry in self._run.groups], np.intp),
            group_sizes(self._run),
        )


_MOST_ORIGINS = 2**34
"""More than the keys of the origins of a run."""


def _partitions(run: Run) -> tuple[Positions, Ints, Ints]:
    """Find the groups that ran side by side.

    Returns:
        For each group its partition; for each partition the group and the superstep in which it
        was opened.
    """
    partition_of = np.full(len(run.groups), -1, np.intp)
    found: dict[tuple[int, int], int] = {}
    opened: list[tuple[int, int]] = []
    for position, group in enumerate(run.groups[1:], start=1):
        which = found.setdefault((group.parent, group.ordinal), len(found))
        partition_of[position] = which
        if which == len(opened):
            opened.append((group.parent, group.superstep))
    parent, number = np.array(opened, np.int64).reshape(-1, 2).T
    return partition_of, parent, number


def _positions(
    steps: RunSupersteps, group: NDArray[np.int64], number: NDArray[np.int64]
) -> Positions:
    """Return the positions of supersteps; -1 where there is none."""
    distinct, _ = ranked(steps.number)
    keys = steps.group * len(distinct) + np.searchsorted(distinct, steps.number)
    rank = np.searchsorted(distinct, number).clip(max=max(len(distinct) - 1, 0))
    if len(keys) == 0:
        return np.full(len(group), -1, np.intp)
    wanted = group * len(distinct) + rank
    position = np.searchsorted(keys, wanted).clip(max=len(keys) - 1)
    sound = (keys[position] == wanted) & (distinct[rank] == number)
    return np.where(sound, position, -1)


# -- the cost of the groups of a run at given rates, and which sub-groups are booked --------------


@dataclass(frozen=True)
class Priced:
    """The groups of a run at given rates."""

    total_s: Floats
    """For each group its cost, with that of its sub-groups."""
    booked: NDArray[np.bool_]
    """For each group whether it is booked: it costs most of those that ran side by side,
    and so do the groups that contain it."""
    costliest: Positions
    """For each partition the group that costs most; of equals the first."""
    lost_s: Floats
    """For each partition what the processes of its parent wait for that group, on average;
    0 where the parent is not booked."""


def price(books: Books, rates: Rates) -> Priced:
    """Price the groups of a run, and choose those that are booked.

    Of the sub-groups of a partition the one that costs most counts. What their parent does
    itself and successive partitions are added.
    """
    cells = books.cells
    costs = rates.ratio * cells.w / 1e9 + rates.l * cells.steps + rates.g * cells.h[rates.rule]
    own = np.bincount(cells.group, costs, len(books.parent)).astype(np.float64)
    total_s, costliest = _totals(books, own)
    booked = np.zeros(len(books.parent), bool)
    booked[0] = True
    for group in np.sort(costliest).tolist():  # a group comes after its parent
        booked[group] = booked[books.parent[group]]
    inside = np.flatnonzero(books.partition_of >= 0)
    which = books.partition_of[inside]
    work = np.bincount(which, total_s[inside] * books.size[inside], len(costliest))
    lost_s = total_s[costliest] - work / books.size[books.partitions.parent]
    lost_s *= booked[books.partitions.parent]
    return Priced(total_s, booked, costliest, np.maximum(lost_s, 0.0))


def _totals(books: Books, own: Floats) -> tuple[Floats, Positions]:
    """Return the cost of each group with its sub-groups, and of each partition the costliest."""
    total, parent = own.tolist(), books.parent.tolist()
    partition_of = books.partition_of.tolist()
    costliest = [-1] * len(books.partitions.parent)
    below: list[list[int]] = [[] for _ in parent]
    for partition, group in enumerate(books.partitions.parent.tolist()):
        below[group].append(partition)
    # A group comes after its parent: backwards, its sub-groups are complete before it.
    for group in reversed(range(len(parent))):
        total[group] += sum(total[costliest[partition]] for partition in below[group])
        partition = partition_of[group]
        if group and (costliest[partition] < 0 or total[group] >= total[costliest[partition]]):
            costliest[partition] = group
    return np.array(total), np.array(costliest, np.intp)
