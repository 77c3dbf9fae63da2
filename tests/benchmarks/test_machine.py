"""The benchmark of a probed Machine: which cells count, and what meets the goals."""

from __future__ import annotations

import pytest

import bsplib
from benchmarks import bench_machine
from benchmarks.bench_machine import goals, measured_computation, replayed, timed
from benchmarks.prediction.settings import MACHINE
from bsplib.machine import Machine
from bsplib.machine.measured import Curve, Measured

PROBED = Machine(
    *("m", "x", 1e-9, 1e-6),
    measured=(
        Measured(1, empty=1e-7),
        Measured(2, empty=1e-6, patterns={"exchange": Curve((64, 128), (1e-6, 2e-6))}),
    ),
)


def cell(program, p, error, centres, *, shm_s=1.0, total=1.0):
    """Return a cell whose run took 1 s, with the measured and the predicted of cost centres."""
    found = [
        {"cost_centre": "c", "measured_s": took, "predicted_s": said} for took, said in centres
    ]
    replay = {"measured_s": 1.0, "predicted_s": total, "cost_centres": found}
    times = {"shm_s": [shm_s, 1.5 * shm_s], "sim_s": [shm_s * (1 + error), 2 * shm_s]}
    return {"program": program, "p": p, "error": error, "replay": replay} | times


def report(*cells):
    spread = {"mean": 0.01, "greatest": 0.2}
    counts = [{"p": 2, "misfit": 0.2, "spread_of_two_probes": spread}]
    pair = (1.0, 1.04)
    row = {"program": "fft", "total": pair, "computation": pair, "communication": pair}
    return {"probe": {"counts": counts}, "programs": list(cells), "obsp": [row]}


def rows(*cells):
    return {row.what: (row.reached, row.met) for row in goals(report(*cells))}


def test_cost_centres_count_above_one_percent_of_the_time():
    centres = [(0.02, 0.024), (0.02, 0.026), (0.005, 1.0), (0.3, 0.3)]
    found = rows(cell("FFT", 2, 0.0, centres), cell("FFT", 1, 0.0, [(0.5, 5.0)], total=9))
    assert found["replay: communication of cost centres within 25%"] == ("2 of 3", False)
    assert found["replay: greatest error of a total"] == ("0.0%", True)


def test_of_each_program_the_longer_size_is_compared_with_sim():
    cells = [cell("FFT", 2, 0.5, []), cell("FFT", 2, 0.05, []), cell("SQL", 2, 0.2, [])]
    short = cell("PSRS", 2, 0.0, [], shm_s=0.08)
    assert rows(*cells, short)["sim against shm: cells within 10%"] == ("1 of 2", False)


def test_beside_the_medians_stand_the_least_times_and_how_far_runs_differ():
    found = rows(cell("FFT", 2, 0.05, []), cell("SQL", 2, 0.2, []))
    what = "sim against shm, the least of the repeats in place of the median"
    assert found[what] == ("1 of 2, at most 20.0%", None)
    assert found["runs of shm: median spread of the repeats"] == ("50.0%", None)


def test_the_probe_and_obsp_have_goals_of_their_own():
    found = rows(cell("FFT", 2, 0.0, []))
    assert found["probe, p = 2: misfit"] == ("20.0%", False)
    assert found["probe, p = 2: mean difference of two probes"] == ("1.0%", True)
    assert found["OBSP*, fft: mean error, total"] == ("4.0%", True)
    assert found["OBSP*, fft: mean error, computation"] == ("4.0%", True)


def test_every_program_of_the_settings_is_known():
    assert set(MACHINE["programs"]["sizes"]) == set(bench_machine._PROGRAMS)


def charging(bsp):
    bsp.charge(5.0)
    bsp.sync()
    return bsp.time()


def test_charges_do_not_count_where_computation_is_measured():
    with measured_computation():
        (took,) = bsplib.run(charging, nprocs=1, backend="sim")
    assert took < 5
    (took,) = bsplib.run(charging, nprocs=1, backend="sim")
    assert took >= 5


def test_a_trace_is_replayed_with_its_cost_centres(tmp_path):
    path = tmp_path / "run.bsp"
    bsplib.run(timed, "bitonic sort", 1000, nprocs=2, backend="sim", machine=PROBED, profile=path)
    found = replayed(path, PROBED)
    assert found["predicted_s"] == pytest.approx(found["measured_s"], rel=1e-3)
    leaves = {each["cost_centre"]: each["measured_s"] for each in found["cost_centres"]}
    (exchange,) = (took for name, took in leaves.items() if took > 0)
    assert exchange == pytest.approx(found["comm_s"][0], rel=1e-6)
