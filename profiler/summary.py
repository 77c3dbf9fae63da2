"""What a part of a run cost: of each metric the extremes, the mean and the pie."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Summary:
    """One metric over the supersteps k and processes i of a part of a run.

    Seconds, or bytes for the h-relation. ``minimum <= average <= maximum``. In each
    superstep all processes of its group count, with 0 those that have no record there.
    Of sub-groups side by side the greatest maximum and the least minimum count.

    Source: Jarvis et al. 2002, equations 2-5.
    """

    maximum: float
    """Sum over k of the greatest over i (equation 2)."""
    average: float
    """Sum over k of the mean over i (equation 3): that of the pie."""
    minimum: float
    """Sum over k of the least over i (equation 4)."""
    pie: tuple[float, ...]
    """Sum over k for each process of the root group; its greatest is equation 5."""

    def percentages(self) -> tuple[int, int]:
        """Average and minimum in percent of the maximum, rounded half to even.

        Both are 100 where the maximum is 0: what costs nothing is in balance.
        """
        if self.maximum == 0:
            return 100, 100
        return self._percent(self.average), self._percent(self.minimum)

    def _percent(self, value: float) -> int:
        # Seconds are not exact in binary: 1 ns of 8 ns must still be 12.5, a half.
        return round(round(100 * value / self.maximum, 9))


@dataclass(frozen=True)
class Cost:
    """What a part of a run cost: a node, an edge or a path of the call graph."""

    count: int
    """Supersteps. The stretch to the end of ``main`` has costs but no sync, and is none."""
    elapsed_s: float
    """Time in which at least one process was in one of these supersteps, with
    whatever sub-groups they contain. Not additive: supersteps may overlap."""
    comp: Summary
    comm: Summary
    idle: Summary
    h: Summary

    def __getitem__(self, metric: str) -> Summary:
        """The summary of a metric, one of ``profiler.costs.METRICS``."""
        summaries = {"comp": self.comp, "comm": self.comm, "idle": self.idle, "h": self.h}
        return summaries[metric]
