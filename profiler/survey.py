"""What is summed up of a run before anything is priced, in one pass over its windows.

The call graph, the books, the rates that are fitted to a run, and facts about it begin with the
same pass, whose results are kept with the run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bsplib.profiler._sums import RunSums
from bsplib.profiler._times import CommunicationTimes, of_records, of_supersteps
from bsplib.profiler.booking import BookKeeper
from bsplib.profiler.costs import computation_ns, once, spent_ns, superstep_numbers
from bsplib.profiler.window import windows
from bsplib.recording.records import MAX_NUMBER, NOT_MEASURED
from bsplib.sync_kinds import Kind

if TYPE_CHECKING:
    from bsplib.profiler.booking import Books
    from bsplib.profiler.window import RunWindow
    from bsplib.recording.records import Run


class RunFacts:
    """Facts about a whole run."""

    def __init__(self) -> None:
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
        self.is_oblivious = False
        """Whether a superstep of the root group was oblivious."""

    def add(self, window: RunWindow) -> None:
        """Take in the records of a window."""
        run, fresh = window.run, window.fresh
        records = run.records[fresh]
        root = records["group"] == 0
        self.first_ns = int(records["start"][root].min(initial=self.first_ns))
        self.last_ns = int(records["end"].max(initial=self.last_ns))
        synced = root & (records["kind"] != Kind.END)
        steps = superstep_numbers(run)[fresh][synced]
        ended = np.zeros(int(steps.max(initial=-1)) + 1, bool)
        ended[steps] = True
        self.root_count += int(np.count_nonzero(ended))
        self.waited_ns += float((spent_ns(run)[fresh] - computation_ns(run)[fresh]).sum())
        known = np.maximum(records["comp_cpu"], records["comp_ready"])
        self.is_measured |= bool((known != NOT_MEASURED).any())
        self.is_oblivious |= bool((records["kind"][root] == Kind.OBLSYNC).any())


@dataclass(frozen=True)
class Survey:
    """What is known of a run without any price."""

    sums: RunSums
    books: Books
    times: CommunicationTimes
    facts: RunFacts


def survey(run: Run) -> Survey:
    """Sum up a run; if its records cannot change, only the first call takes long."""
    return once(run, "survey", lambda: _survey(run))


def _survey(run: Run) -> Survey:
    sums, books, times, facts = RunSums(run), BookKeeper(run), CommunicationTimes(), RunFacts()
    pairs = of_records if shares_cores(run) else of_supersteps
    for window in windows(run):
        sums.add(window)
        books.add(window)
        times.add(*pairs(window))
        facts.add(window)
    sums.close()
    return Survey(sums, books.close(sums.keys), times, facts)


def is_virtual(run: Run) -> bool:
    """Tell whether the times of a run are virtual."""
    return "virtual_time" in run.meta or run.meta.get("backend") == "sim"


def shares_cores(run: Run) -> bool:
    """Tell whether a run had more processes than cores."""
    cores = run.meta.get("cores")
    return isinstance(cores, int) and run.nprocs > cores and not is_virtual(run)


def root_count(run: Run) -> int:
    """Return how many supersteps the root group ended with a sync."""
    return survey(run).facts.root_count


def waiting_ns(run: Run) -> float | None:
    """Return the total time that processes waited for a core during computation.

    Returns:
        Nanoseconds, the sum of W - w over all records; None if CPU time was not measured.
    """
    facts = survey(run).facts
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
    facts = survey(run).facts
    first = 0 if facts.first_ns == MAX_NUMBER else facts.first_ns
    last = facts.last_ns
    life = run.lifetime
    if life is None or run.meta.get("backend") == "sim":  # whose caller has no virtual time
        return min(first, last), last
    times = (life.collected, life.returned, last)
    return min(life.called, first), max(time for time in times if time is not None)
