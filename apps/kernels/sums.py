"""Adds integers to the sums of their groups, in one pass and without converting them first.

The public function does its work by numpy in the interpreted build; the compiled one runs the
loop at the end of the file.
"""

from __future__ import annotations

from typing import Any

import numpy as np

try:
    import cython
except ImportError:
    from bsplib.core import _no_cython as cython
if not cython.compiled:
    from bsplib.core.atomics import (
        address_of,
        itemsize_of,
        peek,
        peek_half,
        poke,
        prepare,
        wrapped,
    )
prepare()

_SIGN_OF_HALF = 1 << 31


def can_add(dtype: Any) -> bool:
    """Tell whether integers of a dtype can be added here."""
    return dtype.isnative and dtype.name in ("int32", "int64")


def add_integers(sums: Any, groups: Any, values: Any) -> None:
    """Add each value to the sum of its group, modulo 2**64.

    Args:
        sums: array of dtype int64.
        groups: for each value the index of its sum, which is not checked; of dtype int64.
        values: as many, of a dtype that can be added. All arrays have one dimension and are in
            C order.
    """
    if not cython.compiled:
        np.add.at(sums, groups, values.astype(np.int64))
        return
    count = len(groups)
    _add(address_of(sums), address_of(groups), count, address_of(values), itemsize_of(values))


# -- loop over addresses --------------------------------------------------------------------------


def _add(sums: int, groups: int, count: int, values: int, itemsize: int) -> None:
    """Do as :func:`add_integers`."""
    for at in range(groups, groups + 8 * count, 8):
        if itemsize == 8:
            value = peek(values)
        else:
            value = wrapped((peek_half(values) ^ _SIGN_OF_HALF) - _SIGN_OF_HALF)
        values += itemsize
        place = sums + 8 * peek(at)
        poke(place, wrapped(peek(place) + value))
