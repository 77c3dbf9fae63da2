"""What a figure is to reach, and whether it does.

A goal stands beside the case it is for, as data. A ratio or a difference is that of
the median turn: both cases were measured in it, one after the other. A spread is how
far the quartiles are from the median, as a part of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

RATIO = "ratio"
DIFFERENCE = "difference_s"
SECONDS = "seconds"
SPREAD = "spread"


@dataclass(frozen=True)
class Goal:
    """A figure that a case is to stay at or below."""

    kind: str
    """A ratio to another case, the seconds more than another case, seconds, or a spread."""
    at_most: float
    of: str | None = None
    """Name of the other case, in the same section."""

    @classmethod
    def times(cls, at_most: float, of: str) -> Self:
        """Return the goal of so many times another case."""
        return cls(RATIO, at_most, of)

    @classmethod
    def more_than(cls, of: str, *, by_s: float) -> Self:
        """Return the goal of so many seconds more than another case."""
        return cls(DIFFERENCE, by_s, of)

    @classmethod
    def seconds(cls, at_most: float) -> Self:
        """Return the goal of so many seconds."""
        return cls(SECONDS, at_most)

    @classmethod
    def spread(cls, at_most: float) -> Self:
        """Return the goal that both quartiles are so near the median, as a part of it."""
        return cls(SPREAD, at_most)

    def judge(self, case: Mapping[str, Any]) -> dict[str, Any]:
        """Return the goal with what was measured, as it is kept in JSON.

        Args:
            case: the case as it is kept in JSON.

        Returns:
            ``measured`` and ``met`` are None where the other case is not there.
        """
        measured = self._measured(case)
        return {
            "kind": self.kind,
            "at_most": self.at_most,
            "of": self.of,
            "measured": measured,
            "met": None if measured is None else measured <= self.at_most,
        }

    def _measured(self, case: Mapping[str, Any]) -> float | None:
        if self.kind == SPREAD:
            return spread_of(case["seconds"])
        if self.of is None:
            median: float = case["seconds"]["median"]
            return median
        found = case["against"].get(self.of)
        return None if found is None else found[self.kind]["median"]


def spread_of(seconds: Mapping[str, float]) -> float:
    """Return how far the quartiles are from the median, as a part of it."""
    ends = (seconds["lower_quartile"], seconds["upper_quartile"])
    return max(abs(end / seconds["median"] - 1) for end in ends)
