"""The account of a whole run, put together window by window."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from bsplib.errors import TraceError
from bsplib.profiler.account import ENDS, PARTS, RECORDING, Account, taken
from bsplib.profiler.loss_sums import LossSums
from bsplib.profiler.survey import span_of, survey
from bsplib.profiler.window import windows
from bsplib.recording.tables import ahead

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bsplib.profiler.account import Ints
    from bsplib.profiler.rates import Rates
    from bsplib.profiler.window import RunWindow
    from bsplib.recording.records import Run


class RunAccount:
    """The account of a whole run: the sum of those of its windows.

    Args:
        run: the run.
        rates: what a byte and a superstep cost.

    Raises:
        TraceError: the records of a process take more time than the run, or overlap.
    """

    def __init__(self, run: Run, rates: Rates) -> None:
        self.run = run
        self.rates = rates
        self.begin_ns, self.end_ns = span_of(run)

    @property
    def elapsed_ns(self) -> int:
        """Elapsed time of the run."""
        return self.end_ns - self.begin_ns

    def accounts(self) -> Iterator[Account]:
        """Yield the account of one window after another."""
        return (account for _, account in self.by_window())

    def by_window(self) -> Iterator[tuple[RunWindow, Account]]:
        """Yield one window after another with its account."""
        return ahead(
            (window, Account(window.run, self.rates, window.halo, window.position))
            for window in windows(self.run)
        )

    def in_supersteps_ns(self) -> int:
        """Return the time of all processes in supersteps, while they had a core.

        What the recorder, the start and the end of a run and other programs take does not
        decide what is worth a sentence about the program.
        """
        spent = self.whole()
        others = spent["recording"] + spent["ends"] + spent["core"]
        return self.elapsed_ns * self.run.nprocs - others

    def by_process(self) -> Ints:
        """Return the account of each process: shape (parts, processes), with start and end."""
        return self.sums.by_process + self.outside

    def whole(self) -> dict[str, int]:
        """Return the account of the run in nanoseconds, by name of the part."""
        return dict(zip(PARTS, self.by_process().sum(axis=1).tolist(), strict=True))

    @cached_property
    def sums(self) -> LossSums:
        """What is booked and lost, by origin and by process."""
        sums = self.no_sums()
        for account in self.accounts():
            sums.add(account)
        return sums

    def no_sums(self) -> LossSums:
        """Return sums that have not taken in any account."""
        return LossSums(self.run, survey(self.run).sums)

    def take_over(self, sums: LossSums) -> None:
        """Use sums that have taken in the accounts of all windows."""
        self.sums = sums

    @cached_property
    def outside(self) -> Ints:
        """Time of each process outside its records: shape (parts, processes)."""
        return time_outside(self.run, self.sums.covered)


_ACCOUNT = "account"


def account_of(run: Run, rates: Rates) -> RunAccount:
    """Return the account of a run; that at the last rates is kept with the run."""
    known = run.derived.get(_ACCOUNT)
    if known is None or known.rates != rates:
        known = RunAccount(run, rates)
        if run.is_fixed:
            run.derived[_ACCOUNT] = known
    account: RunAccount = known
    return account


def time_outside(run: Run, covered: Ints) -> Ints:
    """Return the time of each process outside its records: shape (parts, processes).

    Args:
        run: the run.
        covered: how much of the time of each process is in its records, and between them.

    Raises:
        TraceError: this is more than the run takes.
    """
    begin_ns, end_ns = span_of(run)
    elapsed_ns = end_ns - begin_ns
    outside = np.zeros((len(PARTS), run.nprocs), np.int64)
    outside[ENDS] = elapsed_ns - covered
    life = run.lifetime
    if life is not None and life.returned is not None and life.collected is not None:
        written = np.full(run.nprocs, max(life.returned - life.collected, 0))
        outside[RECORDING], outside[ENDS] = taken(outside[ENDS], written)
    if (outside < 0).any():
        pid = int(outside[ENDS].argmin())
        raise TraceError(
            f"the records of process {pid} take {covered[pid]} ns, and the run only "
            f"{elapsed_ns} ns: they overlap, so the trace is damaged"
        )
    return outside
