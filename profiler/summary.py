"""The cost of a part of a run: for each metric maximum, average, minimum and pie."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Summary:
    """One metric over the supersteps k and processes i of a part of a run.

    In seconds, or in bytes for the h-relation. ``minimum <= average <= maximum``. In each
    superstep all processes of its group count; a process without a record there counts
    as 0. Where sub-groups run at the same time, the greatest of their maxima and the
    least of their minima count.

    Source: Jarvis et al. 2002, equations 2-5.
    """

    maximum: float
    """Sum over k of the greatest over i (equation 2)."""
    average: float
    """Sum over k of the mean over i (equation 3), which is the mean of the pie."""
    minimum: float
    """Sum over k of the least over i (equation 4)."""
    pie: tuple[float, ...]
    """Sum over k for each process of the root group; its maximum is equation 5."""

    def percentages(self) -> tuple[int, int]:
        """Return average and minimum in percent of the maximum, rounded half to even.

        Both are 100 if the maximum is 0: a cost of 0 is balanced.
        """
        if self.maximum == 0:
            return 100, 100
        return self._percent(self.average), self._percent(self.minimum)

    def _percent(self, value: float) -> int:
        # Seconds are not exact in binary: 1 ns of 8 ns must still be 12.5, a half.
        return round(round(100 * value / self.maximum, 9))


@dataclass(frozen=True)
class Cost:
    """The cost of a part of a run: a node, an edge or a path of the call graph."""

    count: int
    """Number of supersteps. The time from the last sync to the end of ``main`` has costs,
    but is not counted as a superstep."""
    elapsed_s: float
    """Time in which at least one process was in one of these supersteps, including their
    sub-groups. Not additive: supersteps may overlap."""
    comp: Summary
    comm: Summary
    idle: Summary
    h: Summary

    def __getitem__(self, metric: str) -> Summary:
        """Return the summary of a metric, one of ``bsplib.profiler.costs.METRICS``."""
        summaries = {"comp": self.comp, "comm": self.comm, "idle": self.idle, "h": self.h}
        return summaries[metric]
