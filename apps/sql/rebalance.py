"""Balances the rows of a relation, without changing their order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import bsplib
from bsplib.apps.sql.exchange import by_bounds, exchange
from bsplib.apps.sql.relation import Relation


def rebalance(
    bsp: bsplib.Group, relation: Relation, weights: NDArray[np.int64] | None = None
) -> Relation:
    """Give every process the same number of rows, or the same weight.

    The rows keep their order: those of process 0 come first.

    Args:
        bsp: the group.
        relation: the rows of this process.
        weights: weight of each row, 0 or more; default: 1.

    Returns:
        The rows of this process afterwards. The numbers of rows of two processes differ by
        at most one; with weights, their weights by at most that of the heaviest row.

    Supersteps: 2.
    Cost: h = the excess or missing rows of a process; before, 8 bytes to each process.
    Source: Jarvis et al. 2002, section 4.1: the load balancing functions added by hand.
    """
    before, total = _before(bsp, relation.rows if weights is None else int(weights.sum()))
    if weights is None:
        goals = [total * pid // bsp.nprocs - before for pid in range(bsp.nprocs + 1)]
        bounds = [min(max(goal, 0), relation.rows) for goal in goals]
    else:
        middles = before + np.cumsum(weights) - weights // 2
        goals = [-(-total * pid // bsp.nprocs) for pid in range(1, bsp.nprocs)]
        bounds = [0, *np.searchsorted(middles, goals).tolist(), relation.rows]
    return exchange(bsp, by_bounds(relation, bounds))[0]


def _before(bsp: bsplib.Group, mine: int) -> tuple[int, int]:
    """Return what the processes before this one have together, and what all have."""
    each = bsp.allgather(np.int64(mine))
    return int(sum(each[: bsp.pid])), int(sum(each))
