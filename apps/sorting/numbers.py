"""The sort of the numbers of one process: by numpy, or by digits where that is faster.

Where numpy has vector instructions to sort by, nothing is faster. Elsewhere it compares keys, and
the compiled core sorts numbers of eight bytes by their digits in a third of the time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsplib import core
from bsplib.core import radix

_LEAST = 1 << 12
"""Fewer numbers are sorted by numpy."""
_MEASURED = 1 << 13
"""How many numbers are sorted in both ways to find out which is faster."""
_TIMES = 3


def sort_numbers(numbers: NDArray[Any], out: NDArray[Any]) -> None:
    """Sort numbers in the order of numpy; which one of equal numbers comes first is open.

    Args:
        numbers: in one dimension; not changed, unless they are ``out``.
        out: as many, for the result.

    Cost: w = O(m log m), or O(m) and memory for as many numbers where they are sorted by digits.
    """
    if BY_DIGITS and len(numbers) >= _LEAST and _fits(numbers) and _fits(out):
        radix.sort_numbers(numbers, out)
        return
    if out is not numbers:
        out[...] = numbers
    out.sort()


def _fits(numbers: NDArray[Any]) -> bool:
    """Tell whether numbers can be sorted by their digits."""
    return numbers.flags.c_contiguous and numbers.flags.aligned and radix.can_sort(numbers.dtype)


def _is_faster_by_digits() -> bool:
    """Tell whether the compiled core sorts faster than numpy, after a millisecond or two."""
    if core.BUILD != "compiled":
        return False
    numbers = np.random.default_rng(0).random(_MEASURED)
    out = np.empty_like(numbers)

    def by_numpy() -> None:
        out[...] = numbers
        out.sort()

    by_digits = _least_ns(lambda: radix.sort_numbers(numbers, out))
    return by_digits < _least_ns(by_numpy)


def _least_ns(sort: Callable[[], None]) -> int:
    taken = []
    for _ in range(_TIMES):
        began = time.thread_time_ns()
        sort()
        taken.append(time.thread_time_ns() - began)
    return min(taken)


BY_DIGITS = _is_faster_by_digits()
"""Measured when this module is imported, so that it counts in the time of no process."""
