"""What the records of a run would take less if one of its losses were mended.

Without an imbalance each process has an even share; of transfers, and of supersteps that are
needed, half is left; time blocked, or without a core, is none.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from bsplib.profiler.costs import group_sizes
from bsplib.profiler.loss_sums import BYTES, COMM, COMP, CORES, SUB_GROUPS, SYNC, WAIT

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from bsplib.profiler.account import Account, Ints

    Floats = NDArray[np.float64]
    Saved = tuple[Floats, Floats]
    """What each record takes less before its arrival, and after its release."""

HALF = 0.5
"""Part of the bytes, or of supersteps that move some, that a mended program still has."""


class MendedRows:
    """The records of a window, some of which belong to a loss."""

    def __init__(self, account: Account, rows: Ints) -> None:
        self.account = account
        self.records = account.run.records
        self.rows = rows

    @cached_property
    def inside(self) -> NDArray[np.bool_]:
        """Marks the records of all processes in the supersteps of these rows."""
        steps = np.zeros(len(self.account.h_max), bool)
        steps[self.account.step[self.rows]] = True
        return steps[self.account.step]

    def above_mean(self, values: Floats, shares: Ints | None = None) -> Floats:
        """Return by how much values exceed the mean of their superstep, in those inside.

        Args:
            values: one for each record.
            shares: of what to take the mean; default: of the values.
        """
        step, size = self.account.step, group_sizes(self.account.run)[self.records["group"]]
        means = np.bincount(step, values if shares is None else shares)[step] / size
        return np.where(self.inside, values - means, 0.0)

    def only(self, values: NDArray[np.integer | np.floating]) -> Floats:
        """Return values at these rows, and 0 at all others."""
        kept = np.zeros(len(values))
        kept[self.rows] = values[self.rows]
        return kept

    def nothing(self) -> Floats:
        """Return 0 for each record."""
        return np.zeros(len(self.records))

    def after(self, saved_ns: Floats) -> Saved:
        """Take from what follows the release first, and then from the calls."""
        tail = (self.records["end"] - self.records["released"]).astype(np.float64)
        after = np.minimum(saved_ns, tail)
        return np.minimum(saved_ns - after, self.records["comm_calls"]), after


def saved(cause: str, mended: MendedRows) -> Saved:
    """Return what the records of a window would take less without a loss, in nanoseconds."""
    return _MENDED[cause](mended)


def _computation(mended: MendedRows) -> Saved:
    core = mended.account.computing.core.astype(np.float64)
    return mended.above_mean(core), mended.nothing()


def _sub_groups(mended: MendedRows) -> Saved:
    return mended.above_mean(mended.records["sub"].astype(np.float64)), mended.nothing()


def _transfers(mended: MendedRows) -> Saved:
    """Even out the bytes: each process takes what they take on average."""
    own, uneven, *_ = mended.account.communication
    return mended.after(mended.above_mean((own + uneven).astype(np.float64), own))


def _half_the_bytes(mended: MendedRows) -> Saved:
    own, uneven, *_ = mended.account.communication
    return mended.after(mended.only(HALF * (own + uneven)))


def _fewer_supersteps(mended: MendedRows) -> Saved:
    """Leave out supersteps that move nothing; of the others half."""
    account = mended.account
    still = account.h_max[account.step] > 0
    latency = account.communication.latency * np.where(still, HALF, 1.0)
    return mended.after(mended.only(latency))


def _blocked(mended: MendedRows) -> Saved:
    return mended.only(mended.account.computing.blocked), mended.nothing()


def _cores(mended: MendedRows) -> Saved:
    waited = mended.account.computing.waited.astype(np.float64)
    rest = mended.account.communication.rest
    return waited, np.minimum(rest, mended.records["comm_ready"].clip(min=0)).astype(np.float64)


_MENDED: dict[str, Callable[[MendedRows], Saved]] = {
    COMP: _computation,
    SUB_GROUPS: _sub_groups,
    COMM: _transfers,
    WAIT: _blocked,
    SYNC: _fewer_supersteps,
    BYTES: _half_the_bytes,
    CORES: _cores,
}
