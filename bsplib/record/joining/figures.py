"""CPU time, and time without a core, of any stretch: between readings, in proportion.

The clocks of the system are read at the begin of a call where the stretch before it was
long, and at its end where the call was. Between two readings all is taken to be alike.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bsplib.record.events import NOT_READ
from bsplib.record.joining.ranks import Calls, Ints

Floats = NDArray[np.float64]


def cpu_at(calls: Calls, pid: int, moments: Ints) -> Floats | None:
    """Return the CPU time of a process at some moments; None where it was not read.

    Before the first reading and after the last one it is taken to compute.
    """
    read = _readings(calls, pid, calls.cpu)
    if read is None:
        return None
    at, value = read
    found: Floats = np.interp(moments, at, value)
    found += np.maximum(moments - at[-1], 0)
    found -= np.minimum(np.maximum(at[0] - moments, 0), value[0])
    return found


def ready_at(calls: Calls, pid: int, moments: Ints) -> Floats | None:
    """Return for how long a process has had no core until some moments; None if not read."""
    read = _readings(calls, pid, calls.ready)
    return None if read is None else np.interp(moments, *read)


def _readings(calls: Calls, pid: int, values: tuple[Ints, Ints]) -> tuple[Floats, Floats] | None:
    """Return the moments at which a clock was read, and what it said; both rise."""
    rows = slice(calls.first[pid], calls.first[pid + 1])
    at = np.stack([calls.enter[rows], calls.leave[rows]], axis=1).ravel()
    value = np.stack([values[0][rows], values[1][rows]], axis=1).ravel()
    known = value != NOT_READ
    if not known.any():
        return None
    rising = np.maximum.accumulate(value[known].astype(np.float64))
    return at[known].astype(np.float64), rising
