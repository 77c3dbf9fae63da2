"""How many terms measurements bear: noise bears none, and growth is found."""

from __future__ import annotations

import numpy as np
import pytest

from bsplib.profiler.models.borne import allows, power_beside_constant
from bsplib.profiler.models.nodes.work import fit_work
from bsplib.profiler.timings import Timings, fit_timings

SIZES = 2.0 ** np.arange(8, 14)


def terms(seconds, n=SIZES):
    law = fit_work({"n": n, "p": np.ones(len(n))}, seconds, {"n": n})
    return law.pieces[0].forms[0].terms


@pytest.mark.lengthy
@pytest.mark.parametrize("noise", [0.05, 0.15])
def test_series_that_are_constant_but_for_noise_keep_their_constant(noise):
    random = np.random.default_rng(3)
    series = [1e-3 * np.exp(random.normal(0, noise, len(SIZES))) for _ in range(300)]
    assert sum(terms(each) != ("1",) for each in series) <= 0.06 * len(series)


def test_a_table_of_times_that_are_constant_but_for_noise_has_a_constant_formula():
    times = 1e-3 * np.exp(np.random.default_rng(5).normal(0, 0.05, len(SIZES)))
    assert fit_timings(Timings.of({"n": SIZES}, times)).fit.formula.text == "f[0]"


@pytest.mark.parametrize(
    ("grown", "expected"),
    [(lambda n: 1e-4 + 1e-7 * n, 1.0), (lambda n: 1e-3 + 1e-10 * n**2, 2.0), (lambda n: n**3, 3.0)],
)
def test_the_differences_tell_a_power_beside_a_constant(grown, expected):
    power = power_beside_constant({"n": SIZES}, grown(SIZES), "n")
    assert power == pytest.approx(expected, abs=1e-6)


def test_a_power_needs_measurements_that_rise():
    assert power_beside_constant({"n": SIZES}, 1 + 1e-12 * SIZES**2, "n") is None
    assert allows(None, 1.0)
    assert not allows(None, 2.0)
    assert not allows(1.2, 2.0)


def test_work_of_a_square_beside_a_constant_is_learnt_from_three_sizes():
    places = [(n, p) for n in (64.0, 128.0, 256.0) for p in (1.0, 2.0, 4.0, 8.0)]
    n, p = np.array(places).T
    noise = np.exp(np.random.default_rng(2).normal(0, 0.05, len(n)))
    law = fit_work({"n": n, "p": p}, (3e-5 + 3e-9 * n**2 / p) * noise, {"n": n, "p": p})
    expected = 3e-5 + 3e-9 * 2048**2 / 8
    assert law.at({"n": 2048.0, "p": 8.0}).value == pytest.approx(expected, rel=0.1)


def test_what_one_process_computes_otherwise_does_not_disturb_the_others():
    places = [(n, p) for n in (4096.0, 8192.0, 16384.0) for p in (1.0, 2.0, 4.0, 8.0)]
    n, p = np.array(places).T
    seconds = np.where(p == 1, 2e-8 * n, 5e-6 + 4e-9 * n / p)
    law = fit_work({"n": n, "p": p}, seconds, {"n": n, "p": p})
    assert law.at({"n": 2.0**17, "p": 64.0}).value == pytest.approx(5e-6 + 4e-9 * 2**11, rel=0.05)
