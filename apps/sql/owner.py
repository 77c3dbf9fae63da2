"""The owner of a row: the process to which its values are assigned.

The owner is a hash of the values only, and so equal in every relation: rows that one
primitive has moved to their owners need not be moved again by the next.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bsplib.apps.sql.column import Column
from bsplib.apps.sql.keys import ordinals

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""2**64 over the golden ratio: its multiples are spread evenly, whatever step they come in."""
_NULL = np.uint64(0x5851F42D4C957F2D)
_HIGH = np.uint64(32)


def owners(columns: Sequence[Column], nprocs: int) -> NDArray[np.intp]:
    """Return for each row the process that its values belong to.

    Args:
        columns: at least one; NULL is a value like any other.
        nprocs: number of processes.

    Source: Knuth, The Art of Computer Programming 3, section 6.4: hashing by the
        golden ratio.
    """
    mixed = _mix(columns[0])
    for column in columns[1:]:
        mixed = (mixed ^ (mixed >> _HIGH)) * _GOLDEN + _mix(column)
    owner = ((mixed >> _HIGH) * np.uint64(nprocs)) >> _HIGH
    return owner.astype(np.intp)


def _mix(column: Column) -> NDArray[np.uint64]:
    plain = ordinals(column)
    if column.valid is not None:
        plain = np.where(column.valid, plain, _NULL)
    return plain * _GOLDEN
