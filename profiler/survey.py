"""What is summed up of a run before anything is priced, in one pass over its windows.

The call graph, the rates that are fitted to a run, and facts about it begin with the same pass,
whose results are kept with the run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bsplib.profiler._numbering import starts
from bsplib.profiler._steps import RootSteps
from bsplib.profiler._sums import RunSums
from bsplib.profiler.costs import (
    by_superstep,
    communication_ns,
    computation_ns,
    h_relation,
    once,
    spent_ns,
    without_core_ns,
)
from bsplib.profiler.window import hand_out
from bsplib.recording.records import MAX_NUMBER, NOT_MEASURED
from bsplib.sync_kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from bsplib.profiler._arrays import Floats, Ints, Rows
    from bsplib.profiler.window import RunWindow
    from bsplib.recording.records import Run


class Survey:
    """What is known of a run without any price."""

    def __init__(self, run: Run) -> None:
        """Begin with nothing; then all windows are added."""
        self.sums = RunSums(run)
        self.times = CommunicationTimes()
        self._shares_cores = shares_cores(run)
        self.first_ns = MAX_NUMBER
        """When the first superstep of the root group began; ``MAX_NUMBER`` if there is none."""
        self.last_ns = 0
        """When the last superstep ended."""
        self.root_count = 0
        """Supersteps of the root group that ended with a sync."""
        self.waited_ns = 0.0
        """Time that processes waited for a core during computation: the sum of W - w."""
        self.is_measured = False
        """Whether it was measured for some record."""
        self.pickling_ns = 0
        """Time that processes spent on pickles of objects."""
        self.is_oblivious = False
        """Whether a superstep of the root group was oblivious."""

    def add(self, window: RunWindow) -> None:
        """Take in the records of a window."""
        self.sums.add(window)
        run, fresh = window.run, window.fresh
        records, by = run.records[fresh], by_superstep(run).after(window.halo)
        synced = records["kind"] != Kind.END
        h = np.maximum(*(values[fresh] for values in h_relation(run)))
        comm_ns = _on_core_ns(records, h)
        if self._shares_cores:
            self.times.add(h[synced], comm_ns[synced])
        else:  # None of these is negative, so that 0 for the stretches at the end changes nothing.
            present = by.greatest(synced)
            greatest = by.greatest(h * synced), by.greatest(comm_ns * synced)
            self.times.add(*(each[present] for each in greatest))
        root = records["group"] == 0
        self.first_ns = int(records["start"][root].min(initial=self.first_ns))
        self.last_ns = int(records["end"].max(initial=self.last_ns))
        self.root_count += int(np.count_nonzero(by.greatest(root & synced)))
        self.waited_ns += float((spent_ns(records) - computation_ns(run)[fresh]).sum())
        self.pickling_ns += int(records["pickling"].sum())
        known = np.maximum(records["comp_cpu"], records["comp_ready"])
        self.is_measured |= bool((known != NOT_MEASURED).any())
        self.is_oblivious |= bool((records["kind"][root] == Kind.OBLSYNC).any())


_SURVEY = "survey"


def survey(run: Run) -> Survey:
    """Sum up a run; only the first call takes long."""
    return once(run, _SURVEY, lambda: _survey(run))


def survey_with_steps(run: Run) -> None:
    """Sum up a run, and find its root supersteps in the same pass, which a timeline needs, too."""
    if _SURVEY not in run.derived:
        steps = RootSteps(run)
        once(run, _SURVEY, lambda: _survey(run, steps.add))
        steps.keep()


def _survey(run: Run, *others: Callable[[RunWindow], None]) -> Survey:
    found = Survey(run)
    hand_out(run, found.add, *others)
    found.sums.close()
    return found


def is_virtual(run: Run) -> bool:
    """Tell whether the times of a run are virtual."""
    return "virtual_time" in run.meta or run.meta.get("backend") == "sim"


def shares_cores(run: Run) -> bool:
    """Tell whether a run had more processes than cores."""
    cores = run.meta.get("cores")
    return isinstance(cores, int) and run.nprocs > cores and not is_virtual(run)


def root_count(run: Run) -> int:
    """Return how many supersteps the root group ended with a sync."""
    return survey(run).root_count


def waiting_ns(run: Run) -> float | None:
    """Return the total time that processes waited for a core during computation.

    Returns:
        Nanoseconds, the sum of W - w over all records; None if CPU time was not measured.
    """
    facts = survey(run)
    return facts.waited_ns if facts.is_measured else None


def elapsed_s(run: Run) -> float:
    """Return the seconds that the caller of a run waited for it; see :func:`span_of`."""
    began, ended = span_of(run)
    return (ended - began) / 1e9


def span_of(run: Run) -> tuple[int, int]:
    """Return when a run began and ended, in nanoseconds on the clock of its records.

    This is the time that its caller waited, where the trace knows it; otherwise from the
    beginning of the first superstep to the end of the last one.
    """
    facts = survey(run)
    first = 0 if facts.first_ns == MAX_NUMBER else facts.first_ns
    last = facts.last_ns
    life = run.lifetime
    if life is None or run.meta.get("backend") == "sim":  # whose caller has no virtual time
        return min(first, last), last
    times = (life.collected, life.returned, last)
    return min(life.called, first), max(time for time in times if time is not None)


# -- how long communication took for each h: what g and l are fitted to, counted window by window -


MOST_POINTS = 1000
"""Greatest number of points into which supersteps are summed up for a fit."""


class CommunicationTimes:
    """Pairs of h and a time, each with how often it was measured.

    Times are whole nanoseconds and repeat, so that there are far fewer pairs than supersteps.
    """

    def __init__(self) -> None:
        nothing = np.zeros(0, np.int64)
        self._pairs = [(nothing, nothing, nothing)]
        """Those joined so far, with their numbers, and then those of windows since."""

    def add(self, h: Floats, comm_ns: Floats) -> None:
        """Take in pairs."""
        once_each = np.ones(len(h), np.int64)
        self._pairs.append(_counted(h.astype(np.int64), comm_ns.astype(np.int64), once_each))
        # Where most times differ, the pairs are joined again only when there are twice as many.
        if sum(len(each) for each, *_ in self._pairs[1:]) > len(self._pairs[0][0]):
            self._join()

    def _join(self) -> tuple[Ints, Ints, Ints]:
        every = zip(*self._pairs, strict=True)
        self._pairs = [_counted(*(np.concatenate(each) for each in every))]
        return self._pairs[0]

    def points(self, quantile: float) -> tuple[Floats, Floats, Floats]:
        """Sum up times of similar h: the median h, a quantile of the times, and their number.

        Quantiles, since a process that waits for a core communicates a thousand times longer.
        """
        h, comm_ns, count = self._join()
        until = np.cumsum(count)
        begins = starts(h)
        if len(begins) > MOST_POINTS:
            wanted = np.linspace(0, until[-1], MOST_POINTS, endpoint=False).astype(int)
            at = np.searchsorted(until, wanted, side="right")
            begins = np.unique(begins[np.searchsorted(begins, at, side="right") - 1])
        points = [
            (
                _quantile(h[piece], count[piece], 0.5),
                _quantile(comm_ns[piece] / 1e9, count[piece], quantile),
                int(count[piece].sum()),
            )
            for piece in map(slice, begins, np.append(begins[1:], len(h)))
        ]
        found_h, comm_s, number = np.array(points, np.float64).reshape(-1, 3).T
        return found_h, comm_s, number


def _counted(h: Ints, comm_ns: Ints, count: Ints) -> tuple[Ints, Ints, Ints]:
    """Join equal pairs, and sort them."""
    if len(h) == 0:
        return h, comm_ns, count
    order = np.lexsort((comm_ns, h)) if h.any() else np.argsort(comm_ns, kind="stable")
    h, comm_ns = h[order], comm_ns[order]
    begins = starts(h, comm_ns)
    return h[begins], comm_ns[begins], np.add.reduceat(count[order], begins)


def _quantile(values: NDArray[np.float64 | np.int64], count: Ints, quantile: float) -> float:
    """Return a quantile, as :func:`numpy.quantile` does, where each value counts several times."""
    order = np.argsort(values, kind="stable")
    until = np.cumsum(count[order])
    place = (int(until[-1]) - 1) * quantile
    low = int(place)
    near = np.searchsorted(until, [low, min(low + 1, int(until[-1]) - 1)], side="right")
    return float(np.quantile(values[order][near], place - low))


def _on_core_ns(records: Rows, h: Floats) -> Floats:
    """Return the time of communication of records without that for want of a core.

    Calls that move few bytes do not count: their time, which is that of the calls themselves or
    asleep in them, is measured, and neither g nor l has a part in it.
    """
    comm = communication_ns(records) - without_core_ns(records)[1]
    few = np.flatnonzero((records["comm_calls"] > 0) & (h <= FEW_BYTES))
    if len(few):
        comm[few] = np.minimum(comm[few], (records["end"] - records["released"])[few])
    return comm.astype(np.float64)


FEW_BYTES = 1024
"""Calls that move no more in a superstep tell little of what bytes cost, and most of the time of
messages that have no more is no transfer."""
