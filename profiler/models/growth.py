"""How fast measurements grow with a size, and which terms that allows.

A power that is hardly seen among small measurements rules everything in large ones. Times that
jump once, where data outgrow a cache or what the processor learns of branches, are fitted best by
such a power. But the growth of a power rises up to the largest measurements, and that of a jump
has fallen again.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]
    Places = list[int]

_PROPORTIONAL = 1.3
"""Greatest power with which a size times its logarithm grows among usual sizes."""
_LEAST_VALUES = 3
"""Least number of values of which a growth can be said to rise or to fall."""


class Growth:
    """The growth of measurements with one size, up to the two largest values of it."""

    def __init__(self, values: Mapping[str, Vector], measured: Vector, size: str) -> None:
        """Find how the measurements grow.

        Args:
            values: the variables, one element for each measurement.
            measured: what grows; greater than 0.
            size: name of a variable.
        """
        self._sizes = values[size]
        self._rows = rows_of(values, size)
        powers = [self._powers(measured, row) for row in self._rows]
        self.power: float | None = float(np.median([row[-1] for row in powers])) if powers else None
        """The power of the size between its two largest values: the median over all values of
        the other variables. None where no two measurements differ in this size alone."""
        rising = [row[-1] >= max(row) for row in powers if len(row) >= _LEAST_VALUES - 1]
        self.rises = sum(rising) > len(rising) / 2
        """Whether the power is the greatest one there, for most values of the others."""

    def of(self, term: Vector) -> float:
        """Return the power with which a term grows between the two largest values."""
        return self._powers(term, self._rows[-1][-2:])[0] if self._rows else 0.0

    def allows(self, term: Vector, *, by_rise: bool = True) -> bool:
        """Whether a term may be used, by its values at the measurements.

        One that grows faster than a size times its logarithm may be used where the growth still
        rises, or where it is nearer to that of the term than to a proportional one.

        Args:
            term: its values, one element for each measurement.
            by_rise: whether a rise is enough. Where measurements have a constant part, it is not:
                beside a constant, the growth of what is proportional rises, too.
        """
        if self.power is None or (self.rises and by_rise):
            return True
        own = self.of(term)
        return own <= _PROPORTIONAL or self.power >= (own + 1) / 2

    def _powers(self, grown: Vector, row: list[Places]) -> list[float]:
        """Return the powers of the size with which something grows from one value to the next."""
        points = [(self._sizes[places[0]], float(np.median(grown[places]))) for places in row]
        return [
            math.log(after / before) / math.log(larger / smaller) if min(before, after) > 0 else 0.0
            for (smaller, before), (larger, after) in itertools.pairwise(points)
        ]


def rows_of(values: Mapping[str, Vector], size: str) -> list[list[Places]]:
    """Return where each value of a size is, in order, for each choice of the other variables.

    Sizes that are not greater than 0 are left out, and so are choices with one size.
    """
    others = [values[name].tolist() for name in values if name != size]
    rests = list(zip(*others, strict=True)) if others else [()] * len(values[size])
    found: defaultdict[tuple[float, ...], defaultdict[float, Places]]
    found = defaultdict(lambda: defaultdict(list))
    for place, (rest, value) in enumerate(zip(rests, values[size].tolist(), strict=True)):
        if value > 0:
            found[rest][value].append(place)
    return [[row[value] for value in sorted(row)] for row in found.values() if len(row) > 1]
