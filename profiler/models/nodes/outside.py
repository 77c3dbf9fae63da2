"""The time of a run before and after ``main``: how long its processes take to start and to end.

A trace records when run was called and when it returned, on the clock of its supersteps. What is
outside of ``main`` does not depend on the sizes of a program, only on the number of processes. So
it is learnt from all runs together, by medians: one that was disturbed does not count.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from bsplib.profiler.models.band import Reach
from bsplib.profiler.models.nodes.forms import Form
from bsplib.profiler.models.nodes.laws import FITTED, Law, Piece

if TYPE_CHECKING:
    from bsplib.recording.records import Run

_HELD = 0.9
"""Part of the runs that the band holds."""


def outside_s(run: Run) -> float | None:
    """Return the seconds of a run outside of ``main``; None if the trace does not tell."""
    life = run.lifetime
    if life is None or life.returned is None or run.meta.get("backend") == "sim":
        return None
    finished = [each for each in life.finished if each is not None]
    if len(finished) < run.nprocs:
        return None
    return (life.returned - max(finished) - life.called) / 1e9


def learn_outside(runs: Iterable[Run]) -> Law | None:
    """Return how long runs take outside of ``main``, by their number of processes.

    Returns:
        A constant and a part that grows with p, with a band of the errors of 90% of the runs; None
        if no run tells.
    """
    found: defaultdict[int, list[float]] = defaultdict(list)
    for run in runs:
        seconds = outside_s(run)
        if seconds is not None and seconds > 0:
            found[run.nprocs].append(seconds)
    if not found:
        return None
    middles = {p: float(np.median(each)) for p, each in sorted(found.items())}
    slopes = [
        (middles[two] - middles[one]) / (two - one)
        for one, two in itertools.combinations(middles, 2)
    ]
    slope = max(float(np.median(slopes)), 0.0) if slopes else 0.0
    level = float(np.median([seconds - slope * p for p, seconds in middles.items()]))
    if level <= 0:  # then it is in proportion to p
        slope, level = float(np.median([seconds / p for p, seconds in middles.items()])), 0.0
    errors = [
        abs(math.log(seconds / (level + slope * p)))
        for p, each in found.items()
        for seconds in each
    ]
    coefficients = {"1": level, "p": slope}
    kept = {term: factor for term, factor in coefficients.items() if factor}
    form = Form(tuple(kept.values()), tuple(kept), rounded=True, weight=len(kept))
    reach = Reach(float(np.quantile(errors, _HELD, method="higher")), calibrated=False)
    return Law(FITTED, (Piece((form,)),), reach)
