"""How fast measurements grow, and which terms that allows."""

from __future__ import annotations

import numpy as np
import pytest

from bsplib.profiler.models.growth import Growth
from bsplib.profiler.models.select import choose

SIZES = 2.0 ** np.arange(10, 18)
JUMP = np.array([34, 36, 40, 49, 66, 104, 581, 1270]) * 1e-6
"""A sort of 2^10 .. 2^17 numbers, measured: from 2^16 on the processor predicts no branch."""


def test_growth_is_the_power_between_the_two_largest_sizes():
    growth = Growth({"n": SIZES}, np.where(SIZES < 2.0**16, SIZES, SIZES**2), "n")
    assert growth.power == pytest.approx(2)
    assert growth.of(SIZES**3) == pytest.approx(3)
    assert not growth.rises


def test_growth_is_the_median_over_the_other_variables():
    size, count = (each.ravel() for each in np.meshgrid(SIZES, [1.0, 2, 4]))
    growth = Growth({"n": size, "p": count}, size ** np.minimum(count, 2), "n")
    assert growth.power == pytest.approx(2)


def test_of_repeated_measurements_the_median_counts():
    size = np.repeat(SIZES, 3)
    times = size * np.tile([1.0, 1.1, 50.0], len(SIZES))
    assert Growth({"n": size}, times, "n").power == pytest.approx(1)


def test_sizes_that_never_differ_alone_have_no_growth():
    growth = Growth({"n": SIZES, "p": np.arange(len(SIZES))}, SIZES, "n")
    assert growth.power is None
    assert growth.allows(SIZES**3)


def test_a_size_of_zero_has_no_power():
    growth = Growth({"n": np.array([0.0, 4, 8])}, np.array([1.0, 2, 8]), "n")
    assert growth.power == pytest.approx(2)


def test_a_jump_is_no_power():
    growth = Growth({"n": SIZES}, JUMP, "n")
    assert growth.power == pytest.approx(1.13, abs=0.01)
    assert not growth.rises
    assert not growth.allows(SIZES**2)
    assert growth.allows(SIZES * np.log2(SIZES))


def test_a_power_that_is_hardly_seen_yet_rises():
    growth = Growth({"n": SIZES}, 4e-9 * SIZES + 1e-14 * SIZES**2, "n")
    assert growth.power < 1.3
    assert growth.rises
    assert growth.allows(SIZES**2)
    assert not growth.allows(SIZES**2, by_rise=False)


@pytest.mark.parametrize("processes", [None, "p"])
def test_times_that_jump_once_are_not_predicted_by_a_power(processes):
    values = {"n": SIZES} if processes is None else {"n": np.tile(SIZES, 2)}
    times = JUMP
    if processes:
        values["p"] = np.repeat([1.0, 2.0], len(SIZES))
        times = np.concatenate([JUMP, JUMP / 2])
    formula = choose(values, times, processes).formula
    assert "**1.5" not in formula
    assert not any(f"{term} " in f"{formula} " for term in ("*n**2", "(n/p)**2", "n**2/p"))


def test_a_power_that_is_hardly_seen_is_found_where_the_times_are_exact():
    assert choose({"n": SIZES}, 4e-9 * SIZES + 1e-14 * SIZES**2).formula == "f[0]*n + f[1]*n**2"
