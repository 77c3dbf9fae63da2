"""What the records of a loss would take less, for each way to mend it.

A mend says how many nanoseconds each record of a window takes less before its arrival, and after
its release. :mod:`bsplib.profiler.whatif` replays the run with that. There are two ways to mend
what some processes do longer than others: what they do is **shared evenly** among all processes,
or it becomes **as short as on the others**, which need not do more for it.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from bsplib.profiler._numbering import stable_order, starts
from bsplib.profiler.account import BLOCKED, PARTS, TRANSFER_IMBALANCE
from bsplib.profiler.costs import (
    by_superstep,
    communication_ns,
    group_columns,
    without_core_ns,
)
from bsplib.profiler.kinds import MOST, ROTATING

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from bsplib.profiler._arrays import Bools, Floats, Ints
    from bsplib.profiler._by_step import BySuperstep
    from bsplib.profiler.account import Account
    from bsplib.profiler.loss import Loss
    from bsplib.profiler.loss_lines import LossWindow

    Saved = tuple[Floats | float, Floats | float]
    """What each record takes less, in ns: before its arrival, and after its release."""


class LossRows:
    """The records of a window that belong to a loss.

    Args:
        window: the window.
        rows: positions of the records.
        loss: the loss. If it is that of changing processes, all processes of a superstep are the
            others.
    """

    def __init__(self, window: LossWindow, rows: Ints, loss: Loss) -> None:
        self.window = window
        self.account, self.records = window.account, window.records
        self.rows = rows
        self.part, self.is_rotating = loss.part, loss.habit == ROTATING

    @cached_property
    def steps_inside(self) -> Bools:
        """Marks the supersteps of these records."""
        found = np.zeros(self.window.steps, bool)
        found[self.window.step[self.rows]] = True
        return found

    @cached_property
    def inside(self) -> Bools:
        """Marks the records of all processes in the supersteps of these records."""
        found: Bools = self.steps_inside[self.window.step]
        return found

    @cached_property
    def others(self) -> Ints:
        """The records of others in these supersteps, in the order of supersteps."""
        chosen = self.inside.copy()
        if not self.is_rotating:
            chosen[self.rows] = False
        rows: Ints = np.flatnonzero(chosen)
        return rows

    def above_mean(self, values: Floats, shares: Floats | None = None) -> Floats:
        """Return by how much values exceed an even share of their superstep, in those inside.

        Args:
            values: one for each record.
            shares: of what to take the mean; default: of the values.
        """
        window, given = self.window, values if shares is None else shares
        means = np.bincount(window.step, given, window.steps)[window.step] / window.size
        return np.where(self.inside, values - means, 0.0)

    def above_others(self, values: Floats) -> Floats:
        """Return by how much values of these records exceed those of the others: their median.

        Where no other process has a record in the superstep, it does nothing there. Of changing
        processes only those are mended that stand out in their superstep.
        """
        step = self.window.step[self.rows]
        above = (values[self.rows] - self.usual(values)[step]).clip(min=0)
        if self.is_rotating:
            most = np.zeros(self.window.steps)
            np.maximum.at(most, step, above)
            above[above < MOST * most[step]] = 0
        return self._spread(above)

    def _spread(self, values: NDArray[np.integer | np.floating]) -> Floats:
        """Return for each record the value of a row, and 0 for all that are no rows."""
        spread = np.zeros(len(self.records))
        spread[self.rows] = values
        return spread

    def usual(self, values: Floats) -> Floats:
        """Return by superstep the median of the values of the others; 0 where there are none."""
        step, rows, usual = self.window.step, self.others, np.zeros(self.window.steps)
        if np.bincount(step[rows], minlength=1).max() < 2:  # one other at most, as on two processes
            usual[step[rows]] = values[rows]
            return usual
        order = rows[np.argsort(values[rows])]
        order = order[stable_order(step[order])]
        begins = starts(step[order])
        ends = np.append(begins[1:], len(order))
        low, high = (begins + ends - 1) // 2, (begins + ends) // 2
        if self.is_rotating:  # the one that is longer is among them
            high = low
        usual[step[order[begins]]] = (values[order[low]] + values[order[high]]) / 2
        return usual

    def only(self, values: NDArray[np.integer | np.floating]) -> Floats:
        """Return values at these rows, and 0 at all others."""
        return self._spread(values[self.rows])

    def after(self, saved_ns: Floats) -> Saved:
        """Take from what follows the release first, and then from the calls."""
        tail = (self.records["end"] - self.records["released"]).astype(np.float64)
        after = np.minimum(saved_ns, tail)
        return np.minimum(saved_ns - after, self.records["comm_calls"]), after

    # -- what the account says of each record ------------------------------------------------------

    @cached_property
    def core(self) -> Floats:
        """For how long each record computed."""
        return self.account.computing.core.astype(np.float64)

    @cached_property
    def blocked(self) -> Floats:
        """For how long it was blocked before its arrival."""
        return (self.account.computing.blocked + self.account.calls.blocked).astype(np.float64)

    @cached_property
    def calls(self) -> Floats:
        """For how long it was in calls, neither blocked nor without a core."""
        known = self.account.calls
        took: Floats = (self.records["comm_calls"] - known.ready - known.blocked).astype(np.float64)
        return took

    @property
    def latency(self) -> Ints:
        """What each record took for the end of its superstep."""
        return self.account.communication.latency

    @cached_property
    def longer(self) -> Floats:
        """For how much longer than the others each of these records did what is lost."""
        if self.part == PARTS[TRANSFER_IMBALANCE]:
            return self.above_others(self.transfers[0] + self.calls)
        return self.above_others(self.blocked if self.part == PARTS[BLOCKED] else self.core)

    @cached_property
    def transfers(self) -> tuple[Floats, Floats]:
        """What the transfers of each record took, and what those of its superstep did.

        With mpi4py that is what they took, where this is more: in a Gather the root alone takes
        long, and no price of a byte holds for both sides.
        """
        parts = self.account.communication
        own, priced = parts.transfers, parts.transfers + parts.uneven
        if self.account.run.is_interleaved:
            took = communication_ns(self.records) - without_core_ns(self.records)[1] - parts.latency
            priced, own = np.maximum(priced, took), np.maximum(own, took)
        return own.astype(np.float64), priced.astype(np.float64)


def excess_bytes(account: Account) -> list[Floats]:
    """Return by how much the bytes out of and into each record exceed the mean of its superstep."""
    run, by = account.run, by_superstep(account.run)
    sizes = group_columns(run).size[run.records["group"]]
    return [
        (values - by.spread(by.sums(values)) / sizes).clip(min=0) for values in account.h_out_and_in
    ]


# -- ways to mend ----------------------------------------------------------------------------------


def _even_transfers(loss: LossRows) -> Saved:
    own, priced = loss.transfers
    return loss.after(loss.above_mean(priced, own))


def _transfers_as_others(loss: LossRows) -> Saved:
    """Let all take what the others move; what these records were longer in calls goes, too."""
    own, priced = loss.transfers
    usual = loss.usual(own)[loss.window.step]
    before, after = loss.after(np.where(loss.inside, priced - usual, 0.0).clip(min=0))
    return np.maximum(before, loss.above_others(loss.calls)), after


def _half_the_bytes(loss: LossRows) -> Saved:
    parts = loss.account.communication
    return loss.after(loss.only((moved_ns(loss.account) + parts.uneven) / 2))


def pickling_ns(account: Account) -> Ints:
    """Return for how long each record made and read pickles on a core.

    mpi4py does so before and after it calls MPI; elsewhere it is a part of what calls take.
    """
    parts = account.communication
    within = parts.transfers + parts.calls
    if account.run.is_interleaved:
        within = account.computing.core
    found: Ints = np.minimum(account.run.records["pickling"], within)
    return found


def moved_ns(account: Account) -> Ints:
    """Return for how long each record moved bytes: its transfers without its pickles."""
    transfers = account.communication.transfers
    if account.run.is_interleaved:
        return transfers
    moved: Ints = (transfers - pickling_ns(account)).clip(min=0)
    return moved


def _two_stages(loss: LossRows) -> Saved:
    """Let a process that alone sends, or receives, n bytes for each other one do so in two stages.

    It scatters parts of n / p bytes, which all processes exchange then; or these combine parts, and
    it gathers the results. That costs g n (p - 1) / p in each stage and another l, instead
    of g n (p - 1). Where h counts bytes in and out, the exchange costs twice as much.
    """
    account, records = loss.account, loss.records
    size = group_columns(account.run).size[records["group"]]
    h_out, h_in = account.h_out_and_in
    if account.run.is_interleaved:
        return 0.0, 0.0
    by = by_superstep(account.run)
    alone = _from_one(by, size, h_out, h_in) | _from_one(by, size, h_in, h_out)
    if not alone.any():
        return 0.0, 0.0
    stages = 2 if account.rates.rule == "max" else 3
    h = stages * account.h_max[account.step] / size
    less = loss.transfers[1] - 1e9 * (account.rates.g * h + account.rates.l)
    return loss.after(np.where(loss.inside & alone, less, 0.0).clip(min=0.0))


def _from_one(by: BySuperstep, size: Ints, giving: Floats, taking: Floats) -> Bools:
    """Mark the records of supersteps in which one of three or more gives all others as much."""
    givers, takers = (by.sums(values > 0) for values in (giving, taking))
    alone = by.spread(givers) == 1
    alike = by.spread(by.sums(taking)) == by.spread(by.greatest(taking)) * (size - 1)
    found: Bools = alone & (by.spread(takers) == size - 1) & alike
    return found & (size > 2)  # between two there is nothing that another one could pass on


CALL_NS = 5_000
"""What is computed between two messages in a shorter time is taken for the cost of the call."""


def _half_the_messages(loss: LossRows) -> Saved:
    moved = communication_ns(loss.records) - without_core_ns(loss.records)[0]
    before, after = loss.after(loss.only(moved / 2))
    return before + loss.only(np.minimum(loss.core, CALL_NS) / 2), after


def _own_cores(loss: LossRows) -> Saved:
    waited = loss.account.computing.waited.astype(np.float64)
    return waited, loss.account.communication.core.astype(np.float64)


def _without_pickling(loss: LossRows) -> Saved:
    pickling = loss.only(pickling_ns(loss.account))
    if loss.account.run.is_interleaved:
        return pickling, 0.0
    return loss.after(pickling)


EVENLY, AS_OTHERS = "shared evenly", "as short there as on the others"
WITHOUT, BLOCKED_AS_OTHERS = "without it", "blocked there as little as the others"
EVEN_TRANSFERS, EVEN_BYTES = "with even transfers", "with the bytes evenly distributed"
BYTES_AS_OTHERS = "with as few bytes there as on the others"
HALF_BYTES, HALF_MESSAGES = "with half as many bytes", "with half as many messages"
STAGES = "in two stages (if all get the same, or what comes is added)"
ONE_OF_EACH_ROW, HALF_STEPS = "with one superstep for each row of them", "with half as many"
OWN_CORES, WITHOUT_SYSTEM = "with a core for each process", "without that time"
WITHOUT_PICKLES = "without pickles"
"""The ways to mend, in the words of a sentence before "the run would take"."""

MENDS: dict[str, Callable[[LossRows], Saved]] = {
    EVENLY: lambda loss: (loss.above_mean(loss.core), 0.0),
    AS_OTHERS: lambda loss: (loss.longer, 0.0),
    WITHOUT: lambda loss: (loss.only(loss.blocked), 0.0),
    BLOCKED_AS_OTHERS: lambda loss: (loss.longer, 0.0),
    EVEN_TRANSFERS: _even_transfers,
    EVEN_BYTES: _even_transfers,
    BYTES_AS_OTHERS: _transfers_as_others,
    HALF_BYTES: _half_the_bytes,
    STAGES: _two_stages,
    ONE_OF_EACH_ROW: lambda loss: (0.0, loss.only(loss.latency)),
    HALF_STEPS: lambda loss: (0.0, loss.only(loss.latency / 2)),
    HALF_MESSAGES: _half_the_messages,
    OWN_CORES: _own_cores,
    WITHOUT_SYSTEM: lambda loss: (loss.window.system, 0.0),
    WITHOUT_PICKLES: _without_pickling,
}
LIKE_OTHERS = frozenset({AS_OTHERS, BLOCKED_AS_OTHERS, BYTES_AS_OTHERS})
"""The ways to mend in which it becomes as short as on the others."""
