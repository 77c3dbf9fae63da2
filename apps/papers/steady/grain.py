"""Grain size: how many bytes the distribution of work costs, by the size of its pieces."""

from __future__ import annotations

from dataclasses import dataclass

_BYTES = 4
"""Size of a number in single precision: section 9."""


@dataclass(frozen=True)
class Grain:
    """A way to divide x by y pixels among P processors."""

    name: str
    pieces: float
    distribution_bytes: float
    """To tell all processors which pieces are theirs."""
    result_bytes: float
    """Size of the colours; the same for every way."""

    @property
    def comm_bytes(self) -> float:
        """Total volume of communication."""
        return self.distribution_bytes + self.result_bytes


def grains(x: int, y: int, nprocs: int) -> list[Grain]:
    """Return the ways of the paper, from fine to coarse.

    By pixel both coordinates are sent for each; by column one for each; in parts of x y / P
    pixels a process needs the first and the last column.

    Args:
        x: number of columns.
        y: number of pixels of a column.
        nprocs: P.

    Raises:
        ValueError: a number is less than 1.

    Source: Shi, section 9; the list of the three volumes is lost, but the text has 4 x bytes
        by column and 2 x 4 P by part, and that the result is a constant.
    """
    if min(x, y, nprocs) < 1:
        raise ValueError(f"{x} x {y} pixels on {nprocs} processors: each number is 1 or more")
    result = _BYTES * x * y
    return [
        Grain("pixel", x * y, 2 * _BYTES * x * y, result),
        Grain("column", x, _BYTES * x, result),
        Grain("part", nprocs, 2 * _BYTES * nprocs, result),
    ]
