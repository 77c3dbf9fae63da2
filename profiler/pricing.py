"""The cost of the groups of a run at given rates, and which sub-groups are booked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bsplib.profiler.booking import Books, Floats, Positions
    from bsplib.profiler.rates import Rates


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
