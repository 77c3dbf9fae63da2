"""What a prediction names as never seen, and the run that would tell it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from bsplib.machine import Machine
from bsplib.profiler.models.nodes import fit_nodes, predict_nodes
from bsplib.profiler.models.nodes.opening import run_to_make
from tests.made_runs import RunMaker, frame

MACHINE = Machine("here", "made up", 1e-10, 1e-6, relative_speed=1.0)
COUNTS = (1, 2, 4)
SMALL = (64, 128, 256)
FAR = 2048


def seconds(n, p):
    return 1e-4 + 1e-9 * n * n / p


def runs_of(sizes, noise, counts=COUNTS, seed=5):
    """Runs whose processes share n * n elements, and take nearly as long as these demand."""
    random = np.random.default_rng(seed)
    for n, p in itertools.product(sizes, counts):
        maker = RunMaker(p)
        maker.step((frame("main", 1, 2),), seconds(n, p) * (1 + noise * random.standard_normal()))
        yield maker.run(), {"n": float(n)}, ()


def predicted(runs, p=2, n=FAR):
    return predict_nodes(fit_nodes(list(runs)), p, {"n": float(n)}, MACHINE)


def width(prediction):
    return prediction.high_s / prediction.low_s


def test_where_the_band_is_wide_a_run_half_way_to_the_sizes_is_named():
    prediction = predicted(runs_of(SMALL, 0.1))
    assert width(prediction) > 2
    assert run_to_make(prediction) == {"n": 1024.0, "p": 2.0}
    assert "how computation grows there (a run that would tell: n = 1024, p = 2)." in str(
        prediction
    ).replace("\n", " ")
    assert run_to_make(predicted(runs_of(SMALL, 0.1), n=2**18)) == {"n": 2.0**13, "p": 2.0}


def test_the_run_that_is_named_narrows_the_band():
    before = predicted(runs_of(SMALL, 0.1))
    named = run_to_make(before)
    more = runs_of((int(named["n"]),), 0.1, (int(named["p"]),))
    after = predicted([*runs_of(SMALL, 0.1), *more])
    assert width(after) < width(before)


@pytest.mark.lengthy
def test_no_run_is_named_where_the_band_is_narrow_or_the_runs_are_nearly_as_large():
    assert run_to_make(predicted(runs_of((64, 128, 256, 512, 1024), 0.0), n=8192)) is None
    assert run_to_make(predicted(runs_of(SMALL, 0.1), n=512)) is None
    assert "how computation grows" not in str(predicted(runs_of(SMALL, 0.1), n=512))


@pytest.mark.lengthy
def test_a_band_holds_growth_that_the_largest_runs_by_chance_do_not_show():
    held = 0
    for seed in range(10):
        prediction = predicted(runs_of(SMALL, 0.05, seed=seed))
        held += prediction.low_s <= seconds(FAR, 2) <= prediction.high_s
    assert held >= 8
