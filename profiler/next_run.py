"""Between which times a further run of a program would lie, by the times of some runs.

The least and the greatest of n times are no such interval: of n + 1 runs in random order, the
last one is beyond the n others in 2 of n + 1 cases, so that 5 runs hold a sixth one in 2 of 3
cases only. A further run scatters as much as those that are known, and their mean is uncertain,
too. With mean m and standard deviation s of n values from one normal distribution, a further value
lies in

    m - t s sqrt(1 + 1/n)   to   m + t s sqrt(1 + 1/n)

with the probability to which t, the quantile of Student's distribution for n - 1 degrees of
freedom, belongs. Here the values are the logarithms of times: disturbances lengthen a run by a
part of it, and no time is negative.

Source: the prediction interval of a normal distribution whose mean and variance are not known
(Hahn and Meeker, Statistical Intervals, 1991, chapter 4).
"""

from __future__ import annotations

import math
from statistics import NormalDist, fmean, stdev
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

CONFIDENCE = 0.9
"""The part of all further runs that lie in their interval."""
_STUDENT = (6.3138, 2.9200, 2.3534, 2.1318, 2.0150, 1.9432, 1.8946, 1.8595, 1.8331)
"""Student's t with 0.05 above it, by degrees of freedom from 1 on."""


def next_run_s(times: Sequence[float]) -> tuple[float, float] | None:
    """Return between which times a further run would lie, in ``CONFIDENCE`` of all cases.

    Args:
        times: of the runs that are known, in seconds, under the same conditions.

    Returns:
        Least and greatest seconds; None of fewer than two times, or where one is not positive.
    """
    if len(times) < 2 or min(times) <= 0:
        return None
    logs = [math.log(time) for time in times]
    middle = fmean(logs)
    reach = _student(len(logs) - 1) * stdev(logs, middle) * math.sqrt(1 + 1 / len(logs))
    return math.exp(middle - reach), math.exp(middle + reach)


def _student(freedom: int) -> float:
    """Return Student's t for ``CONFIDENCE``; for many degrees of freedom by an expansion.

    Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.5, of which two terms
    are off by less than 0.1% from 10 degrees of freedom on.
    """
    if freedom <= len(_STUDENT):
        return _STUDENT[freedom - 1]
    z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
