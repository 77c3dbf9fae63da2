"""What a node model says of the time before and after ``main``."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bsplib.machine import Machine
from bsplib.profiler.models.nodes import fit_nodes, predict_nodes, read_model, write_model
from bsplib.recording.records import Lifetime
from tests.made_runs import RunMaker, frame

HERE = Machine("here", "made up", 1e-10, 1e-6, host="h", relative_speed=1.0)
THERE = replace(HERE, host="another")
NS = 10**9


def run(n, p, outside_s, backend="shm"):
    """Return a run that takes some seconds to start, and half as many to end."""
    maker = RunMaker(p)
    maker.step((frame("main", 1, 2),), 1e-6 * n / p)
    made = maker.run(backend=backend, host="h")
    end = round(1e-6 * n / p * NS)
    start = round(outside_s * NS / 1.5)
    life = Lifetime(-start, (0,) * p, (0,) * p, (end,) * p, end, end + start // 2)
    return replace(made, lifetime=life), {"n": float(n)}, ()


def model_of(backend="shm", disturbed=1.0):
    return fit_nodes(
        [
            run(n, p, (0.010 + 0.002 * p) * (disturbed if (n, p) == (4096, 4) else 1.0), backend)
            for n in (1024, 2048, 4096)
            for p in (1, 2, 4)
        ]
    )


@pytest.mark.parametrize("disturbed", [1.0, 20.0])
def test_start_and_end_are_the_same_at_any_size(tmp_path, disturbed):
    write_model(model_of(disturbed=disturbed), tmp_path / "model.json")
    found = predict_nodes(read_model(tmp_path / "model.json"), 8, {"n": 2**20}, HERE)
    assert found.outside.value == pytest.approx(0.026, rel=1e-6)
    assert "start and end of the processes: 26.0 ms more" in str(found)


def test_start_and_end_are_not_known_on_another_computer():
    assert predict_nodes(model_of(), 8, {"n": 2**20}, THERE).outside is None


def test_virtual_processors_take_no_time_to_start():
    assert model_of(backend="sim").outside is None
