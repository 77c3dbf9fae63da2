"""Formulas fitted to measurements, their boundaries, and how far they may be off."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bsplib.experiments.formula import FormulaError
from bsplib.profiler.models.fit import Fit, FitWarning, fit
from bsplib.profiler.models.interval import calibrate, standard_error
from tests.drawn import times as repeats

FFT = "f[0] + f[1]*log2(P) + f[2]*(N/P)*log2(N/P) + f[3]*N*(P-1)/P"
TRUE = {"f[0]": 2e-5, "f[1]": 1e-5, "f[2]": 1e-9, "f[3]": 5e-9}

SIZES, PROCESSES = (grid.ravel() for grid in np.meshgrid(2.0 ** np.arange(10, 18), [1, 2, 4]))
SMALL = {"N": SIZES, "P": PROCESSES}
LARGE = {"N": np.array([2.0**21]), "P": np.array([16.0])}
"""As far from the small ones as Gonzalez et al. went, section 4."""


def fft_times(values):
    size, processes = values["N"], values["P"]
    return (
        TRUE["f[0]"]
        + TRUE["f[1]"] * np.log2(processes)
        + TRUE["f[2]"] * size / processes * np.log2(size / processes)
        + TRUE["f[3]"] * size * (processes - 1) / processes
    )


def only(fitted):
    (segment,) = fitted.segments
    return segment


# -- fits ---------------------------------------------------------------------------------


def test_exact_times_give_the_coefficients_back():
    fitted = fit(FFT, SMALL, fft_times(SMALL))
    assert only(fitted).coefficients == pytest.approx(TRUE)
    assert only(fitted).worst < 1e-9
    assert fitted.predict(LARGE) == pytest.approx(fft_times(LARGE))


def test_terms_without_a_parameter_stay_as_they_are():
    fitted = fit("f[0]*N + 3*P", SMALL, 2e-6 * SIZES + 3 * PROCESSES)
    assert only(fitted).coefficients == pytest.approx({"f[0]": 2e-6})


def test_errors_count_in_proportion():
    """Of times 1 and 100 each 10% off to either side the constant is in the middle."""
    fitted = fit("f[0]*N", {"N": [1, 1, 100, 100]}, [0.9, 1.1, 90, 110])
    one = (1 / 0.9 + 1 / 1.1) / (1 / 0.9**2 + 1 / 1.1**2)  # by hand, for one size alone
    assert only(fitted).coefficients["f[0]"] == pytest.approx(one)


def test_coefficients_are_not_negative_unless_asked():
    size = np.arange(1.0, 20)
    times = 5 * size - 2
    with pytest.warns(FitWarning, match="the errors drift"):
        inside = fit("f[0] + f[1]*N", {"N": size}, times, divide_by=())
    assert only(inside).coefficients["f[0]"] == 0
    free = fit("f[0] + f[1]*N", {"N": size}, times, negative=True)
    assert only(free).coefficients == pytest.approx({"f[0]": -2, "f[1]": 5})


def test_a_constant_formula_fits_any_number_of_times():
    fitted = fit("f[0]", {}, [2.0, 2.0, 2.0])
    assert only(fitted).coefficients == pytest.approx({"f[0]": 2})
    assert fitted.predict({}).tolist() == pytest.approx([2])


@pytest.mark.parametrize(
    ("formula", "values", "times", "words"),
    [
        ("f[0]*N", {"N": [1, 2]}, [1, 0], "a time is 0; times have to be greater than 0"),
        ("f[0]*N", {"N": [1, 2]}, [1, -1], "a time is -1"),
        ("f[0]*N", {"N": [1, 2]}, [1, math.nan], "a time is nan"),
        ("f[0]*N", {"N": [1, 2]}, [1, math.inf], "a time is inf"),
        ("f[0]*N", {"N": [1, 2, 3]}, [1, 2], r"there are 3 values of .* times of shape \(2,\)"),
        ("f[0]*N + f[1]", {"N": [1]}, [1], "2 parameters need as many measurements, and .* 1$"),
        ("f[0]*N", {"M": [1]}, [1], "N has no value; the variables are M"),
        ("f[0]*log(N)", {"N": [0]}, [1], "is not finite at N = 0"),
        ("f(0)", {"N": [0]}, [1], "is not allowed"),
    ],
)
def test_what_cannot_be_fitted_is_one_sentence(formula, values, times, words):
    with pytest.raises(FormulaError, match=rf"^formula: .*{words}"):
        fit(formula, values, times)


# -- boundaries -----------------------------------------------------------------------------


def cached(size, boundaries, rates):
    """Times of n log n whose rate changes where a cache is full."""
    rate = np.asarray(rates)[np.searchsorted(boundaries, size)]
    return rate * size * np.log2(size)


def test_a_cache_boundary_is_found():
    size = 2.0 ** np.arange(8, 24)
    times = cached(size, [2.0**15], [1e-9, 3e-9])
    fitted = fit("f[0]*N*log2(N)", {"N": size}, times)
    assert [(segment.low, segment.high) for segment in fitted.segments] == [
        (-math.inf, 2.0**15),
        (2.0**15, math.inf),
    ]
    rates = [segment.coefficients["f[0]"] for segment in fitted.segments]
    assert rates == pytest.approx([1e-9, 3e-9])
    assert [segment.measurements for segment in fitted.segments] == [8, 8]
    beyond = np.array([2.0**10, 2.0**15, 2.0**15 + 1, 2.0**30])
    assert fitted.predict({"N": beyond}) == pytest.approx(cached(beyond, [2.0**15], rates))


def test_a_boundary_may_be_in_a_quantity_that_is_computed():
    """The cache is that of one process: what counts is N/P and neither N nor P."""
    size, processes = (
        grid.ravel() for grid in np.meshgrid(2.0 ** np.arange(10, 22), [1.0, 2.0, 4.0])
    )
    values, share = {"N": size, "P": processes}, size / processes
    times = cached(share, [2.0**14], [1e-9, 2e-9])
    fitted = fit("f[0]*(N/P)*log2(N/P)", values, times, divide_by=["N", "P", "N/P"])
    assert fitted.divided_by.variables == ("N", "P")
    assert [segment.high for segment in fitted.segments] == [2.0**14, math.inf]
    assert fitted.predict(values) == pytest.approx(times)


def test_three_levels_of_memory_are_three_segments():
    size = 2.0 ** np.arange(6, 30)
    times = cached(size, [2.0**14, 2.0**22], [1e-9, 2e-9, 6e-9])
    fitted = fit("f[0]*N*log2(N)", {"N": size}, times)
    assert [segment.high for segment in fitted.segments] == [2.0**14, 2.0**22, math.inf]


def test_more_than_three_segments_warn_that_the_formula_may_be_wrong():
    size = 2.0 ** np.arange(4, 40)
    times = cached(size, [2.0**10, 2.0**18, 2.0**26, 2.0**33], [1e-9, 3e-9, 1e-9, 4e-9, 1e-9])
    with pytest.warns(
        FitWarning, match=r"^f\[0\]\*N\*log2\(N\): fits only in 5 segments: it may be"
    ):
        fit("f[0]*N*log2(N)", {"N": size}, times)


def test_a_wrong_formula_is_not_divided_and_warns_that_its_errors_drift():
    size = 2.0 ** np.arange(4, 40)
    with pytest.warns(FitWarning, match=r"^f\[0\]\*N: the errors drift by up to a factor of \d"):
        fitted = fit("f[0]*N", {"N": size}, size**1.5)
    assert len(fitted.segments) == 1


def test_noise_is_no_boundary():
    random = np.random.default_rng(7)
    divided = 0
    for _ in range(40):
        times = fft_times(SMALL) * (1 + 0.05 * random.standard_normal(len(SIZES)))
        divided += len(fit(FFT, SMALL, times).segments) > 1
    assert divided <= 2


def test_nothing_is_divided_that_fits_well_enough():
    size = 2.0 ** np.arange(8, 24)
    times = cached(size, [2.0**15], [1e-9, 1.01e-9])
    assert len(fit("f[0]*N*log2(N)", {"N": size}, times).segments) == 1
    exact = fit("f[0]*N*log2(N)", {"N": size}, times, tolerance=1e-6)
    assert len(exact.segments) == 2


# -- intervals --------------------------------------------------------------------------------


def measured_with(noise, kind, random):
    """Measure the small sizes and the large one; return the times."""
    draws = {
        "normal": random.standard_normal,
        "heavy": lambda count: random.standard_t(3, count) / math.sqrt(3),
        "late": lambda count: random.exponential(1, count),  # disturbed, never too early
    }
    return [
        fft_times(values) * np.maximum(1 + noise * draws[kind](len(values["N"])), 0.3)
        for values in (SMALL, LARGE)
    ]


@pytest.mark.parametrize(("noise", "kind"), [(0.02, "normal"), (0.03, "heavy"), (0.03, "late")])
@pytest.mark.filterwarnings("ignore:.*the errors drift")  # one fit in a hundred, by chance
@pytest.mark.lengthy
def test_intervals_hold_as_often_as_they_say(noise, kind):
    """Of 95% intervals 16 times beyond in N and 4 times in P nine in ten at least hold.

    They are worth something as well: no wider than three times what was needed.
    """
    random = np.random.default_rng(11)
    held, reach, missed = [], [], []
    for _ in range(repeats(80)):
        taken, (true,) = measured_with(noise, kind, random)
        calibrated = calibrate(fit(FFT, SMALL, taken, divide_by=()), SMALL, taken, size="N")
        interval = calibrated.interval(LARGE)
        held.append(interval.low[0] <= true <= interval.high[0])
        reach.append((interval.high[0] - interval.low[0]) / 2)
        missed.append(abs(true - interval.predicted[0]))
    assert np.mean(held) >= 0.9
    assert np.median(reach) <= 3 * np.quantile(missed, 0.95)


@pytest.mark.lengthy
def test_a_wrong_formula_widens_its_intervals():
    """Times that grow by N log N, fitted as N: practising extrapolation shows it."""
    size = 2.0 ** np.arange(6, 18)
    random = np.random.default_rng(3)
    times = size * np.log2(size) * (1 + 0.01 * random.standard_normal(len(size)))
    with pytest.warns(FitWarning, match="the errors drift"):
        fitted = fit("f[0]*N", {"N": size}, times, divide_by=())
    calibrated = calibrate(fitted, {"N": size}, times, size="N")
    interval = calibrated.interval({"N": 2.0**20})
    assert interval.low[0] <= 2.0**20 * 20 <= interval.high[0]
    assert interval.factor > 2.2  # Student's t is 2.2 for 11 degrees of freedom
    assert interval.held_out == len(calibrated.misses) == sum(range(1, 10))


def test_a_smaller_confidence_is_a_smaller_interval():
    times = fft_times(SMALL) * (1 + 0.02 * np.random.default_rng(5).standard_normal(len(SIZES)))
    calibrated = calibrate(fit(FFT, SMALL, times), SMALL, times, size="N")
    half, most = (calibrated.interval(LARGE, confidence) for confidence in (0.5, 0.95))
    assert most.low[0] < half.low[0] < half.predicted[0] < half.high[0] < most.high[0]


def test_exact_measurements_have_no_interval():
    times = fft_times(SMALL)
    interval = calibrate(fit(FFT, SMALL, times), SMALL, times, size="N").interval(LARGE)
    assert interval.low == pytest.approx(interval.high, rel=1e-4)


def test_without_anything_to_practise_on_the_interval_is_that_of_theory():
    """One size only: Student's t, and both the mean's error and the noise of one time."""
    times = np.array([1.0, 1.1, 0.9, 1.0])
    fitted = fit("f[0]*N", {"N": [1.0] * 4}, times)
    calibrated = calibrate(fitted, {"N": [1.0] * 4}, times, size="N")
    interval = calibrated.interval({"N": 1.0})
    assert interval.held_out == 0
    assert interval.factor == pytest.approx(3.182, abs=1e-3)  # t of 3 degrees, 97.5%
    spread = only(fitted).spread * interval.predicted[0]
    error = standard_error(fitted, {"N": 1.0})[0]
    assert spread < error < 1.2 * spread
    assert interval.high[0] - interval.predicted[0] == pytest.approx(interval.factor * error)


def test_a_time_is_never_expected_below_zero():
    times = np.array([1.0, 3.0, 0.2, 4.0, 1.0])
    values = {"N": np.arange(1.0, 6)}
    interval = calibrate(fit("f[0]*N", values, times), values, times, size="N").interval(values)
    assert (interval.low >= 0).all()


@pytest.mark.parametrize("confidence", [0, 1, -1, math.nan])
def test_a_confidence_is_between_0_and_1(confidence):
    times = fft_times(SMALL)
    calibrated = calibrate(fit(FFT, SMALL, times), SMALL, times, size="N")
    with pytest.raises(ValueError, match=f"{confidence}"):
        calibrated.interval(LARGE, confidence)


def test_the_variable_to_go_beyond_must_be_there():
    fitted = fit("f[0]*N", {"N": [1, 2]}, [1, 2])
    assert isinstance(fitted, Fit)
    with pytest.raises(FormulaError, match="M has no value; the variables are N"):
        calibrate(fitted, {"N": [1, 2]}, [1, 2], size="M")
