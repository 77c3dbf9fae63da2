"""How long a run would take if one of its losses were mended, by replaying its supersteps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bsplib.profiler.findings import BYTES, COMM, COMP, CORES, SUB_GROUPS, SYNC, WAIT
from bsplib.profiler.whatif import Replay

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from bsplib.profiler.account import Account
    from bsplib.profiler.findings import Finding

    Floats = NDArray[np.float64]
    Saved = tuple[Floats, Floats]
    """What each record takes less before its arrival, and after its release."""

HALF = 0.5
"""Part of the bytes, or of supersteps that move some, that a mended program still has."""


class Mending:
    """The run of an account without some of its losses."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._records = account.run.records
        self.replay = Replay(account)
        size = np.array([group.size for group in account.run.groups])
        self._size = size[self._records["group"]]

    def without_ns(self, finding: Finding) -> int:
        """Return how long the run would take without a loss, in nanoseconds.

        Without an imbalance each process has an even share; of transfers, and of supersteps
        that are needed, half is left; time blocked, or without a core, is none.
        """
        mended = np.zeros(int(self._account.step.max()) + 1, bool)
        mended[self._account.step[finding.rows]] = True
        return self.replay.without(*_MENDED[finding.cause](self, finding, self._inside(mended)))

    def _inside(self, steps: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return steps[self._account.step]

    def _evenly(self, values: Floats, inside: NDArray[np.bool_]) -> Floats:
        """Return by how much values exceed the mean of their superstep, in some of these."""
        means = np.bincount(self._account.step, values)[self._account.step] / self._size
        return np.where(inside, values - means, 0.0)

    def _computation(self, _: Finding, inside: NDArray[np.bool_]) -> Saved:
        core = self._account.computing(slice(None)).core.astype(np.float64)
        return self._evenly(core, inside), np.zeros(len(core))

    def _sub_groups(self, _: Finding, inside: NDArray[np.bool_]) -> Saved:
        sub = self._records["sub"].astype(np.float64)
        return self._evenly(sub, inside), np.zeros(len(sub))

    def _transfers(self, __: Finding, inside: NDArray[np.bool_]) -> Saved:
        """Even out the bytes: each process takes what they take on average."""
        own, uneven = self._account.communication(slice(None))[:2]
        mean = np.bincount(self._account.step, own)[self._account.step] / self._size
        return self._after(np.where(inside, own + uneven - mean, 0.0))

    def _half_the_bytes(self, finding: Finding, _: NDArray[np.bool_]) -> Saved:
        own, uneven = self._account.communication(slice(None))[:2]
        saved = np.zeros(len(own))
        saved[finding.rows] = HALF * (own + uneven)[finding.rows]
        return self._after(saved)

    def _fewer_supersteps(self, finding: Finding, _: NDArray[np.bool_]) -> Saved:
        """Leave out supersteps that move nothing; of the others half."""
        latency = self._account.communication(slice(None))[2]
        still = self._account.h_max[self._account.step] > 0
        saved = np.zeros(len(latency))
        saved[finding.rows] = (latency * np.where(still, HALF, 1.0))[finding.rows]
        return self._after(saved)

    def _blocked(self, finding: Finding, _: NDArray[np.bool_]) -> Saved:
        blocked = self._account.computing(slice(None)).blocked
        saved = np.zeros(len(blocked))
        saved[finding.rows] = blocked[finding.rows]
        return saved, np.zeros(len(blocked))

    def _cores(self, _: Finding, __: NDArray[np.bool_]) -> Saved:
        waited = self._account.computing(slice(None)).waited.astype(np.float64)
        rest = self._account.communication(slice(None))[3]
        return waited, np.minimum(rest, self._records["comm_ready"].clip(min=0)).astype(float)

    def _after(self, saved: Floats) -> Saved:
        """Take from what follows the release first, and then from the calls."""
        tail = (self._records["end"] - self._records["released"]).astype(np.float64)
        after = np.minimum(saved, tail)
        return np.minimum(saved - after, self._records["comm_calls"]), after


_MENDED: dict[str, Callable[[Mending, Finding, NDArray[np.bool_]], Saved]] = {
    COMP: Mending._computation,
    SUB_GROUPS: Mending._sub_groups,
    COMM: Mending._transfers,
    WAIT: Mending._blocked,
    SYNC: Mending._fewer_supersteps,
    BYTES: Mending._half_the_bytes,
    CORES: Mending._cores,
}
