"""Numbers for the keys of rows of one process, where a table of all possible keys is too large."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsplib.apps.kernels.numbering import KeyNumbers
from bsplib.apps.sql.keys import Keys


class Numbering:
    """The numbers of keys, from 0 on in the order in which the keys first come.

    Args:
        dtype: of the keys.

    Cost: w = O(keys), with one random access each.
    """

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self._dtype = dtype
        self._width = -(-dtype.itemsize // 8)
        self._numbers = KeyNumbers(self._width)

    @property
    def count(self) -> int:
        """How many different keys have come."""
        return self._numbers.count

    def number(self, keys: Keys) -> NDArray[np.int64]:
        """Return the numbers of some keys; new ones get the next numbers."""
        numbers: NDArray[np.int64] = self._numbers.number(self._words(keys))
        return numbers

    def find(self, keys: Keys) -> NDArray[np.int64]:
        """Return the numbers of some keys; -1 of one that has not come."""
        numbers: NDArray[np.int64] = self._numbers.find(self._words(keys))
        return numbers

    def keys(self) -> Keys:
        """Return all different keys, in the order of their numbers."""
        words = self._numbers.keys()
        if self._dtype.kind != "S":
            return words[:, 0].view(np.int64).astype(self._dtype, copy=False)
        return words.view(f"S{8 * self._width}")[:, 0].astype(self._dtype)

    def _words(self, keys: Keys) -> NDArray[np.uint64]:
        """Return keys as rows of words; a key of bytes is filled up with zeros."""
        whole = np.int64 if self._dtype.kind != "S" else f"S{8 * self._width}"
        words = np.ascontiguousarray(keys.astype(whole, copy=False)).view(np.uint64)
        return words.reshape(-1, self._width)
