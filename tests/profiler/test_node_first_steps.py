"""Growth that is hidden by what processes do once: start-up, imports, memory that is new."""

from __future__ import annotations

import numpy as np
import pytest

from bsplib.machine import Machine
from bsplib.profiler.models.nodes import fit_nodes, predict_nodes
from tests.made_runs import RunMaker, frame

PLAIN = Machine("here", "made up", 1e-10, 1e-6, relative_speed=1.0)
SIZES, COUNTS, FAR = (4096, 8192, 16384), (1, 2, 4), 131072
START_S, ELEMENT_S, PAIR_S = 10e-3, 3e-8, 2e-12


def _noisy(seconds, seed, noise=0.04):
    return seconds * float(np.exp(np.random.default_rng(seed).normal(0, noise)))


def steady(n, p):
    """Six equal supersteps, of which the first takes longer by what every process does once."""
    maker = RunMaker(p)
    for visit in range(6):
        once = _noisy(START_S, (1, n, p)) if visit == 0 else 0.0
        maker.step((frame("main", 1, 2),), once + _noisy(ELEMENT_S * n / p, (2, n, p, visit)))
    return maker.run()


def hidden(n, p):
    """One superstep that starts up and makes the data, and others that work on them."""
    maker = RunMaker(p)
    own_s = PAIR_S * n**2 / p
    maker.step((frame("main", 1, 2),), _noisy(START_S, (3, n, p)) + own_s)
    maker.step((frame("main", 1, 5),), _noisy(own_s, (4, n, p)))
    return maker.run()


def fitted(make):
    return fit_nodes([(make(n, p), {"n": float(n)}, ()) for n in SIZES for p in COUNTS])


def test_growth_is_told_from_what_only_the_first_supersteps_cost():
    found = predict_nodes(fitted(steady), 2, {"n": FAR}, PLAIN)
    truth = START_S + 6 * ELEMENT_S * FAR / 2
    assert found.total.comp_s == pytest.approx(truth, rel=0.1)
    assert found.low_s <= truth <= found.high_s
    assert found.high_s < 2 * truth


def test_a_band_holds_growth_that_a_constant_may_hide():
    model = fitted(hidden)
    found = predict_nodes(model, 2, {"n": FAR}, PLAIN)
    truth = START_S + 2 * PAIR_S * FAR**2 / 2
    assert found.low_s <= truth <= found.high_s
    assert found.high_s < 2 * truth


def touching(n, p):
    """One superstep that starts up and makes data, of which the system counts the memory."""
    maker = RunMaker(p)
    maker.step((frame("main", 1, 2),), _noisy(START_S, (5, n, p)) + PAIR_S * n**2 / p)
    made = maker.run()
    made.records["comp_minor"] = 800 + n**2 // p // 2**20
    return made


def test_pages_tell_how_a_constant_may_grow():
    found = predict_nodes(fitted(touching), 2, {"n": FAR}, PLAIN)
    truth = START_S + PAIR_S * FAR**2 / 2
    assert found.low_s <= truth <= found.high_s
