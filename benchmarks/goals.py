"""Goals for the figures, and whether they are met.

A goal is part of the definition of its case. For a ratio or a difference of two cases, the
median over the turns counts: in each turn both cases were measured, one after the other. A
spread is the distance of the quartiles from the median, divided by the median.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

RATIO = "ratio"
DIFFERENCE = "difference_s"
SECONDS = "seconds"
SPREAD = "spread"
PEAK = "peak_bytes"
LINES = "lines"
WITHIN = "within"
DIFFERENT = "different"
_COUNTED = (PEAK, LINES, DIFFERENT)
"""Kinds whose figure is a number of its own in the case."""


@dataclass(frozen=True)
class Goal:
    """A greatest value for a figure of a case."""

    kind: str
    """Ratio to another case, how far this ratio is from 1, difference from another case in
    seconds, seconds, spread, peak of memory, lines of code, or results that differ."""
    at_most: float
    of: str | None = None
    """Name of the other case, in the same section."""

    @classmethod
    def times(cls, at_most: float, of: str) -> Self:
        """Return a goal for the ratio to another case."""
        return cls(RATIO, at_most, of)

    @classmethod
    def within(cls, part: float, of: str) -> Self:
        """Return a goal for how far the ratio to another case may be from 1, up or down."""
        return cls(WITHIN, part, of)

    @classmethod
    def more_than(cls, of: str, *, by_s: float) -> Self:
        """Return a goal for the difference from another case, in seconds."""
        return cls(DIFFERENCE, by_s, of)

    @classmethod
    def seconds(cls, at_most: float) -> Self:
        """Return a goal for the time, in seconds."""
        return cls(SECONDS, at_most)

    @classmethod
    def spread(cls, at_most: float) -> Self:
        """Return a goal for the distance of both quartiles from the median, divided by it."""
        return cls(SPREAD, at_most)

    @classmethod
    def peak(cls, at_most: float) -> Self:
        """Return a goal for the greatest memory of any sample, in bytes."""
        return cls(PEAK, at_most)

    @classmethod
    def fewer_lines(cls, than: int, of: str) -> Self:
        """Return a goal for the lines of code, of which another case has a known number."""
        return cls(LINES, than - 1, of)

    @classmethod
    def different(cls, at_most: int, of: str) -> Self:
        """Return a goal for the number of results that are not those of another case."""
        return cls(DIFFERENT, at_most, of)

    def judge(self, case: Mapping[str, Any]) -> dict[str, Any]:
        """Return the goal with the measured figure, in its form in the JSON file.

        Args:
            case: the case, in its form in the JSON file.

        Returns:
            The goal; ``measured`` and ``met`` are None if the other case was not measured.
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
        if self.kind in _COUNTED:
            counted: float = case[self.kind]
            return counted
        if self.of is None:
            median: float = case["seconds"]["median"]
            return median
        return self._compared(case["against"].get(self.of))

    def _compared(self, found: Mapping[str, Any] | None) -> float | None:
        if found is None:
            return None
        median: float = found[RATIO if self.kind == WITHIN else self.kind]["median"]
        return abs(median - 1) if self.kind == WITHIN else median


def spread_of(seconds: Mapping[str, float]) -> float:
    """Return the greater distance of a quartile from the median, divided by the median."""
    ends = (seconds["lower_quartile"], seconds["upper_quartile"])
    return max(abs(end / seconds["median"] - 1) for end in ends)
