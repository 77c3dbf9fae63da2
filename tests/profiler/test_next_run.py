"""Between which times a further run would lie."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bsplib.profiler.repeats import CONFIDENCE, next_run_s


def test_the_interval_of_three_times_is_that_of_student():
    least, greatest = next_run_s([math.exp(1), math.exp(2), math.exp(3)])
    reach = 2.9200 * 1 * math.sqrt(1 + 1 / 3)
    assert least == pytest.approx(math.exp(2 - reach))
    assert greatest == pytest.approx(math.exp(2 + reach))


@pytest.mark.parametrize("count", [2, 3, 5, 10, 11, 25])
def test_a_further_run_is_inside_as_often_as_the_interval_says(count):
    rng = np.random.default_rng(count)
    drawn = np.exp(rng.normal(-1.0, 0.05, (4000, count + 1)))
    inside = 0
    for *known, further in drawn.tolist():
        least, greatest = next_run_s(known)
        inside += least <= further <= greatest
    assert inside / len(drawn) == pytest.approx(CONFIDENCE, abs=0.02)
