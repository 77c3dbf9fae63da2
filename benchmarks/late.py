"""How long a meeting takes from the coming of its last process to its end.

All processes but the last wait, for a time that is chosen. What counts is how soon they all go on
once the last one has come, and so whether they slept.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


def seconds_to_the_end(
    count: int,
    late_s: float,
    is_late: bool,
    meet: Callable[[], object],
    latest: Callable[[Numbers], Numbers],
    quantile: float,
) -> float:
    """Return a quantile of the seconds from the coming of the last process to the end.

    Args:
        count: number of meetings.
        late_s: seconds for which the others wait.
        is_late: this process is the last one.
        meet: takes part in a meeting of all.
        latest: combines arrays of all processes by their greatest values.
        quantile: 0.5 for the median.
    """
    came, ended, now = np.zeros(count), np.zeros(count), time.perf_counter
    meet()
    for turn in range(count):
        if is_late:
            until = now() + late_s
            while now() < until:
                pass
        came[turn] = now()
        meet()
        ended[turn] = now()
    return float(np.quantile(latest(ended) - latest(came), quantile))
