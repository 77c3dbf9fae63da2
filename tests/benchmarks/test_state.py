"""The benchmark of prices by what came before: its programs run, and what meets the goals."""

from __future__ import annotations

import pytest

import bsplib
from benchmarks.bench_state import PROGRAMS, compared, goals, stateless
from bsplib.machine import Machine
from bsplib.machine.measured import Curve, Measured

PROBED = Machine(
    *("m", "x", 1e-9, 1e-6),
    measured=(
        Measured(1, empty=1e-7),
        Measured(2, empty=1e-6, late=Curve((0, 1000), (0.0, 1e-3)), evicting=1e-3),
    ),
)
SMALL = {"jacobi": (16, 2), "k_means": (64, 2, 2), "sparse": (64, 2), "quicksort": (64,)}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
def test_a_run_is_priced_with_the_state_and_without(program, tmp_path):
    path, machine = tmp_path / "run.bsp", tmp_path / "m.toml"
    machine.write_text(PROBED.text())
    how = {"nprocs": 2, "backend": "sim", "machine": str(machine)}
    bsplib.run(program, *SMALL[program.__name__], profile=path, **how)
    found = compared(path, PROBED)
    assert found["state"] == pytest.approx(found["measured_s"], abs=1e-6)
    assert found["stateless"] <= found["state"]


def test_a_machine_without_state_has_the_same_other_prices():
    machine = stateless(PROBED)
    assert PROBED.has_state
    assert not machine.has_state
    assert [entry.empty for entry in machine.measured] == [1e-7, 1e-6]


def cell(p, *centres, total=1.0):
    found = [
        {"cost_centre": "c", "measured_s": took, "state": one, "stateless": other}
        for took, one, other in centres
    ]
    times = {"measured_s": 1.0, "state": total, "stateless": total / 2}
    return {"program": "x", "p": p, "cost_centres": found} | times


def test_the_goals_count_cost_centres_within_a_factor_and_totals():
    cells = [cell(2, (0.1, 0.14, 0.01), (0.1, 0.08, 0.1)), cell(4, (0.1, 9.0, 9.0), total=1.1)]
    met = {goal.what: (goal.reached, goal.met) for goal in goals(cells)}
    assert met["p = 2, communication within 1.5 x, state"] == ("2 of 2, median 1.33 x", True)
    assert met["p = 2, communication within 1.5 x, stateless"][0].startswith("1 of 2")
    assert met["more processes than cores, error of the total, state"] == ("10%", True)
    assert met["more processes than cores, error of the total, stateless"] == ("45%", None)
