"""Amounts in a grid of columns and rows, summed so that any range of columns takes two look-ups."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Grid:
    """Amounts of several layers, by column and row. Columns divide an axis evenly."""

    def __init__(self, low: int, width: int, amounts: Floats) -> None:
        """Sum up amounts.

        Args:
            low: where the first column begins on the axis.
            width: width of a column, in the unit of the axis.
            amounts: shape ``(columns, layers, rows)``, at least one column.
        """
        self.low = low
        self.width = width
        self._columns = len(amounts)
        self._sums = np.zeros((self._columns + 1, *amounts.shape[1:]))
        np.cumsum(amounts, axis=0, out=self._sums[1:])

    def between(self, edges: Floats) -> Floats:
        """Return the amounts between each edge and the next one.

        Args:
            edges: places on the axis, rising. Inside a column its amount is spread evenly.

        Returns:
            Shape ``(len(edges) - 1, layers, rows)``.
        """
        places = np.clip((edges - self.low) / self.width, 0, self._columns)
        whole = np.minimum(places.astype(np.int64), self._columns - 1)
        part = (places - whole)[:, None, None]
        until = self._sums[whole]
        if part.any():
            until = until + part * (self._sums[whole + 1] - until)
        return np.maximum(np.diff(until, axis=0), 0)
