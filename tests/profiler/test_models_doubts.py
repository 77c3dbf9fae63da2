"""Boundaries, wrong formulas, combined terms and bands."""

from __future__ import annotations

import dataclasses
import math
import warnings

import numpy as np
import pytest

from bsplib.experiments.formula import read_formula
from bsplib.profiler.models.band import Attempt, calibrate_jointly
from bsplib.profiler.models.fit import FitWarning, fit, fit_once
from bsplib.profiler.models.select import choose

SIZES = 2.0 ** np.arange(8, 24)


def noisy(times, seed, noise=0.03):
    return times * (1 + noise * np.random.default_rng(seed).standard_normal(len(times)))


def fitted(formula, values, times):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        return fit(formula, values, times)


# -- wrong or divided --------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("law", "given"),
    [
        (SIZES * np.log2(SIZES), "f[0] + f[1]*N"),
        (SIZES**1.5, "f[0] + f[1]*N*log2(N)"),
        (SIZES, "f[0] + f[1]*N*log2(N)"),
    ],
)
def test_a_wrong_formula_is_called_wrong_and_not_divided(law, given, seed):
    found = fitted(given, {"N": SIZES}, noisy(1e-9 * law, seed))
    assert "the errors drift" in found.doubt
    assert len(found.segments) == 1


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("jump", [1.5, 3.0])
def test_a_boundary_is_a_boundary_and_no_wrong_formula(jump, seed):
    times = 1e-9 * SIZES * np.where(SIZES > 2.0**15, jump, 1)
    found = fitted("f[0]*N", {"N": SIZES}, noisy(times, seed))
    assert [segment.high for segment in found.segments] == [2.0**15, math.inf]
    assert not found.doubt


def test_a_right_formula_is_neither():
    for seed in range(20):
        found = fitted("f[0] + f[1]*N", {"N": SIZES}, noisy(1e-6 + 1e-9 * SIZES, seed))
        assert not found.doubt
        assert len(found.segments) == 1


def test_three_values_at_least_are_on_each_side_of_a_boundary():
    size, count = (each.ravel() for each in np.meshgrid(SIZES, [1.0, 2, 4, 8]))
    times = 1e-9 * size / count * np.where(count > 2, 1.5, 1)  # not a law of N and P
    found = fitted("f[0]*N/P", {"N": size, "P": count}, noisy(times, 1))
    assert len(found.segments) == 1
    assert found.doubt


def test_a_division_has_to_predict_the_largest_better():
    """The last segment is as right as the first ones: only one outlier is in the middle."""
    times = 1e-9 * SIZES
    times[7:9] *= 1.2
    assert len(fitted("f[0]*N", {"N": SIZES}, times).segments) == 1


def test_a_segment_in_which_a_variable_has_one_value_is_tested_as_the_others():
    """Blocks of more than 2^16 values were measured with one process only."""
    size, count = (each.ravel() for each in np.meshgrid(2.0 ** np.arange(8, 18), [1.0, 2]))
    some = (size <= 2.0**14) | (count == 1)
    size, count = np.append(size[some], 2.0 ** np.arange(18, 22)), np.append(count[some], [1.0] * 4)
    times = 1e-9 * size / count * np.where(size / count > 2.0**16, 2, 1)
    found = fitted("f[0]*N/P", {"N": size, "P": count}, noisy(times, 1))
    assert [segment.high for segment in found.segments] == [2.0**16, math.inf]
    assert not found.doubt


def test_too_few_measurements_cannot_be_tested():
    found = fit("f[0] + f[1]*N", {"N": [1, 2, 3]}, [1, 2, 4])
    assert not found.is_tested
    assert not found.doubt


# -- combined terms ----------------------------------------------------------------------------


def shape():
    size, count = (each.ravel() for each in np.meshgrid(2.0 ** np.arange(10, 15), [1.0, 2, 4, 8]))
    return {"N": size, "P": count}


def test_the_pieces_of_a_combined_term_may_be_negative():
    values = shape()
    times = 1e-6 + 4e-9 * values["N"] * (values["P"] - 1) / values["P"]
    found = fit("f[0] + f[1]*N + f[2]*N/P", values, times)
    assert found.segments[0].coefficients == pytest.approx(
        {"f[0]": 1e-6, "f[1]": 4e-9, "f[2]": -4e-9}
    )


def test_but_not_more_than_the_whole():
    """N - 2 N/P would be negative for one process."""
    values = shape()
    times = 1e-4 + 4e-9 * (values["N"] - 2 * values["N"] / values["P"])
    coefficients = fitted("f[0] + f[1]*N + f[2]*N/P", values, times).segments[0].coefficients
    assert coefficients["f[1]"] + coefficients["f[2]"] >= -1e-15
    columns, _ = read_formula("f[1]*N + f[2]*N/P").columns(values)
    part = columns @ [coefficients["f[1]"], coefficients["f[2]"]]
    assert (part >= -1e-12).all()


def test_a_size_alone_makes_no_term_negative():
    found = fitted("f[0] + f[1]*N", {"N": SIZES}, 5 * SIZES - 2)
    assert found.segments[0].coefficients["f[0]"] == 0


# -- bands -------------------------------------------------------------------------------------


def by_the_program(values, times):
    return Attempt(fit_once(read_formula(choose(values, times).formula), values, times))


def given(formula, values, times):
    return Attempt(fit_once(read_formula(formula), values, times))


@pytest.mark.lengthy
@pytest.mark.slow
def test_bands_hold_far_beyond_the_measurements_in_both_variables():
    values = shape()
    far = {"N": np.array([2.0**17, 2.0**18, 2.0**14]), "P": np.array([16.0, 32, 64])}

    def law(at):
        share = at["N"] / at["P"]
        return 1e-5 * at["P"] + 2e-9 * share * np.log2(share) + 1e-8 * share * np.log2(at["P"])

    held = []
    for seed in range(8):
        times = noisy(law(values), seed, 0.02)
        model = by_the_program(values, times)
        band = calibrate_jointly(model, values, times, by_the_program)
        assert band.is_calibrated
        below, above = band.reach(far, 0.9)
        true = np.log(law(far) / model.fit.predict(far))
        held += list((-below <= true) & (true <= above))
    assert np.mean(held) >= 0.8


def test_a_band_widens_with_the_distance():
    values = {"N": SIZES}
    times = noisy(1e-9 * SIZES**1.2, 1)  # no power of the library
    model = by_the_program(values, times)
    reach = calibrate_jointly(model, values, times, by_the_program).reach(
        {"N": SIZES[-1] * 2.0 ** np.arange(5)}, 0.9
    )
    for side in reach:
        assert (np.diff(side) >= 0).all()
        assert side[-1] > side[0]


def test_a_band_allows_for_a_growth_that_is_a_little_off():
    values, times = {"N": SIZES}, 1e-9 * SIZES
    band = calibrate_jointly(
        given("f[0]*N", values, times), values, times, lambda *some: given("f[0]*N", *some)
    )
    at = {"N": SIZES[-1] * np.array([1.0, 16])}
    for near, far in band.reach(at, 0.9):
        assert near < 1e-3  # the formula is exact
        assert far > math.log(16**0.05)


def test_a_band_reaches_further_up_since_larger_data_leave_caches():
    values, times = {"N": SIZES}, 1e-9 * SIZES
    band = calibrate_jointly(
        given("f[0]*N", values, times), values, times, lambda *some: given("f[0]*N", *some)
    )
    below, above = band.reach({"N": SIZES[-1] * np.array([1.0, 2, 16])}, 0.9)
    assert above[0] == below[0]  # inside the measurements no cache is left
    assert (above[1:] > 2 * below[1:]).all()


def test_trials_that_were_better_than_expected_make_a_band_narrower():
    def law(sizes):
        return 1e-9 * sizes * np.exp(0.3 * np.sin(np.log(sizes)))  # no formula follows it

    values = {"N": SIZES}
    reach = {}
    for name, times in (("exact", 1e-9 * SIZES), ("wrong", law(SIZES))):
        band = calibrate_jointly(
            given("f[0]*N", values, times), values, times, lambda *some: given("f[0]*N", *some)
        )
        assert band.is_calibrated
        untried = dataclasses.replace(band, misses=np.empty(0))
        at = {"N": SIZES[-1] * 16}
        reach[name] = band.reach(at, 0.9)[1] / untried.reach(at, 0.9)[1]
    assert reach["exact"] < 0.6 < reach["wrong"]


def test_a_band_is_wider_where_other_formulas_predict_something_else():
    values, times = {"N": SIZES[:6]}, noisy(1e-9 * SIZES[:6], 2)
    alone = given("f[0]*N", values, times)
    both = alone._replace(rivals=[given("f[0] + f[1]*N**1.25", values, times).fit])
    at = {"N": SIZES[-1]}
    refit = lambda *some: given("f[0]*N", *some)  # noqa: E731
    narrow, wide = (calibrate_jointly(each, values, times, refit) for each in (alone, both))
    for wider, narrower in zip(wide.reach(at, 0.9), narrow.reach(at, 0.9), strict=True):
        assert wider > narrower + 0.3


def test_what_did_not_vary_is_not_known_elsewhere():
    values = {"N": SIZES, "P": np.full(len(SIZES), 2.0)}
    times = noisy(1e-9 * SIZES, 3)
    band = calibrate_jointly(
        given("f[0]*N", values, times), values, times, lambda *some: given("f[0]*N", *some)
    )
    assert list(band.measured) == ["N"]
    assert all(np.isfinite(side).all() for side in band.reach({"N": SIZES[-1] * 2}, 0.9))


def test_a_few_predictions_do_not_say_how_fast_errors_grow():
    values = {"N": np.array([1.0, 2, 4, 8])}
    times = np.array([5.0, 1, 7, 40])
    band = calibrate_jointly(
        given("f[0]*N", values, times),
        values,
        times,
        lambda *some: given("f[0]*N**3", *some),  # it predicts badly
    )
    assert 0 < len(band.errors) < 5
    assert not band.is_calibrated
    assert band.growth == 0


def test_without_a_trial_a_band_is_not_calibrated():
    values, times = {"N": np.array([4.0, 8, 16])}, np.array([4.0, 8.1, 16])
    attempt = given("f[0]*N", values, times)
    band = calibrate_jointly(attempt, values, times, lambda _v, _t: attempt)
    assert not band.is_calibrated
    assert all((side > 0).all() for side in band.reach({"N": 32}, 0.9))


@pytest.mark.parametrize("confidence", [0, 1, math.nan])
def test_a_band_has_a_confidence_between_0_and_1(confidence):
    values, times = {"N": np.array([4.0, 8, 16])}, np.array([4.0, 8.1, 16])
    attempt = given("f[0]*N", values, times)
    band = calibrate_jointly(attempt, values, times, lambda _v, _t: attempt)
    with pytest.raises(ValueError, match="between 0 and 1"):
        band.reach({"N": 32}, confidence)
