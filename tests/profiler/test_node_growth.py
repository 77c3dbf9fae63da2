"""How fast a computation grows beyond the runs: with the program, and from the largest run."""

from __future__ import annotations

import pytest

from bsplib.machine import Machine
from bsplib.profiler.models.nodes import fit_nodes, predict_nodes, read_model
from tests.made_runs import RunMaker, frame

PLAIN = Machine("here", "made up", 1e-10, 1e-6, relative_speed=1.0)
SIZES, COUNTS, FAR = (4096, 8192, 16384), (1, 2, 4), 131072


def run_of(seconds, p):
    maker = RunMaker(p)
    for line, each in enumerate(seconds, 2):
        maker.step((frame("main", 1, line),), each)
    return maker.run()


def test_a_short_computation_that_jumps_grows_no_faster_than_the_program():
    """What is freed at the end takes longer from 4096 elements of a process on, as in real runs."""
    jumping_us = {1: (143, 181, 438), 2: (52, 66, 164), 4: (56, 58, 60)}
    runs = [
        (run_of((1e-6 * n / p, jumping_us[p][place] / 1e6), p), {"n": float(n)}, ())
        for place, n in enumerate(SIZES)
        for p in COUNTS
    ]
    found = predict_nodes(fit_nodes(runs), 2, {"n": FAR}, PLAIN)
    assert found.total.comp_s == pytest.approx(1e-6 * FAR / 2, rel=0.15)


def test_a_prediction_goes_on_from_the_largest_run(tmp_path):
    """The computation takes three times as long once its data outgrow a cache."""
    runs = [(run_of((1e-7 * n / p,), p), {"n": float(n)}, ()) for n in SIZES for p in COUNTS]
    runs.append((run_of((3e-7 * 65536 / 2,), 2), {"n": 65536.0}, ()))
    model = fit_nodes(runs)
    model.save(tmp_path / "model.json")
    for known in (model, read_model(tmp_path / "model.json")):
        large = predict_nodes(known, 2, {"n": 65536}, PLAIN)
        assert large.total.comp_s == pytest.approx(3e-7 * 65536 / 2)
    small = predict_nodes(model, 2, {"n": 8192}, PLAIN)
    assert small.total.comp_s == pytest.approx(1e-7 * 8192 / 2, rel=0.3)


def test_most_of_a_program_may_grow_faster_than_the_whole():
    """A halo exchange computes on a square grid, after a start that grows with its rows."""
    runs = [
        (run_of((7e-4 + 4e-6 * n, 2e-5 + 6e-9 * n * n / p), p), {"n": float(n)}, ())
        for n in (64, 128, 256)
        for p in COUNTS
    ]
    runs.append((run_of((7e-4 + 4e-6 * 1024, 2e-5 + 6e-9 * 1024**2 / 2), 2), {"n": 1024.0}, ()))
    found = predict_nodes(fit_nodes(runs), 2, {"n": 2048}, PLAIN)
    assert found.total.comp_s == pytest.approx(
        7e-4 + 4e-6 * 2048 + 2e-5 + 6e-9 * 2048**2 / 2, rel=0.1
    )
