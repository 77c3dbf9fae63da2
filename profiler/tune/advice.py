"""Which value to choose, and which ones the runs do not tell from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bsplib.profiler.tune.best import NEAR


@dataclass(frozen=True)
class Advice:
    """The value with the least mean cost, and how sure that is."""

    values: tuple[int, ...]
    best: int
    wins: int
    """Number of seeds with which no other value costs less."""
    seeds: int
    alike: tuple[int, ...]
    """Other values of which the costs overlap with those of the best, or are within 2% of it."""

    @property
    def is_open(self) -> bool:
        """Whether no value is told from the best."""
        return len(self.values) > 1 and len(self.alike) == len(self.values) - 1


def advise(values: Sequence[int], totals: Sequence[Sequence[float]]) -> Advice:
    """Compare the costs of the values over the seeds.

    A value is told from the best if it costs more with each of its seeds than the best with any,
    as the table of costs shows, and by more than 2% on average.

    Args:
        values: the values.
        totals: for each seed the cost of each value.
    """
    means = [sum(each) / len(totals) for each in zip(*totals, strict=True)]
    place = means.index(min(means))
    dearest = max(row[place] for row in totals)
    alike = tuple(
        value
        for number, value in enumerate(values)
        if number != place
        and (
            min(row[number] for row in totals) <= dearest
            or means[number] <= means[place] * (1 + NEAR)
        )
    )
    wins = sum(row[place] <= min(row) for row in totals)
    return Advice(tuple(values), values[place], wins, len(totals), alike)
