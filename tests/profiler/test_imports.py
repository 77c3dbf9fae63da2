"""The imports in the computation of each record, and in learnt programs."""

from __future__ import annotations

import numpy as np
import pytest

from bsplib.machine import Machine
from bsplib.profiler.imports import imported_ns
from bsplib.profiler.predict import learn, predict_run, read_model, write_model
from tests.made_runs import frame, run_of, step
from tests.scripted import Script

PLAIN = Machine("here", "made up", 1e-10, 1e-6, relative_speed=1.0)
SIZES, COUNTS, FAR = (4096, 8192, 16384), (1, 2, 4), 131072
IMPORT_S, ELEMENT_S = 8e-3, 2e-8


def made(n=4096, p=2, import_s=IMPORT_S):
    """One superstep that imports and computes, and one that computes."""
    made = Script(p)
    step(made, (frame("main", 1, 2),), import_s + ELEMENT_S * n / p)
    step(made, (frame("main", 1, 5),), ELEMENT_S * n / p)
    run = run_of(made)
    run.meta["imports"] = [[[1000, round(import_s * 1e9)]]] * p
    return run


def test_an_import_belongs_to_the_superstep_in_which_it_began():
    run = made()
    found = imported_ns(run)
    first = run.records["superstep"] == 0
    assert found[first] == pytest.approx(IMPORT_S * 1e9)
    assert not found[~first].any()


@pytest.mark.parametrize(
    "told",
    [
        *(None, 3, [3], [[3]], [[[1]]], [[[1000, 2, 3]]], [[["a", 1]]], [[[-5, 10]]]),
        *([[[1000, -5]]], [[[10**400, 1]]], [[[1000, 10**400]]]),
    ],
    ids=lambda told: repr(told)[:20],
)
def test_what_is_no_import_is_left_out(told):
    run = made()
    run.meta["imports"] = told
    assert not imported_ns(run).any()


@pytest.mark.lengthy
def test_imports_with_noise_do_not_hide_how_a_computation_grows(tmp_path):
    noise = np.random.default_rng(1)
    runs = [
        (made(n, p, IMPORT_S * float(np.exp(noise.normal(0, 0.1)))), {"n": float(n)}, ())
        for n in SIZES
        for p in COUNTS
    ]
    model = learn(runs)
    write_model(model, tmp_path / "model.json")
    for known in (model, read_model(tmp_path / "model.json")):
        found = predict_run(known, 2, {"n": FAR}, PLAIN)
        assert found.total.comp_s == pytest.approx(IMPORT_S + 2 * ELEMENT_S * FAR / 2, rel=0.15)
