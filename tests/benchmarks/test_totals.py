"""Totals of real runs are predicted and measured; what is said of them follows from the cells."""

import json
import platform
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

from benchmarks.bench_totals import TotalsRecorder, counts, goals, judged
from benchmarks.beyond.programs import SIZES
from bsplib.machine import Machine

MACHINE = Machine("made up", "by hand", g=1e-9, l=1e-5, host=platform.node())


@pytest.mark.slow
def test_a_program_is_recorded_small_and_its_large_totals_are_predicted(tmp_path):
    with ProcessPoolExecutor(1, get_context("fork")) as process:
        cells = judged(TotalsRecorder(tmp_path, "power", process), "power", MACHINE, 1)
    assert [cell["p"] for cell in cells] == list(counts())
    assert {cell["n"] for cell in cells} == {8 * SIZES["power"][-1]}
    for cell in cells:
        assert cell["measured_s"] > 0
        assert cell["predicted_s"] > 0
        assert cell["settled_s"] > 0
        assert json.dumps(cell)


def test_goals_are_the_mean_and_greatest_error_for_each_number_of_processes():
    cells = [
        {
            "p": p,
            "measured_s": 1.0,
            "measured_again_s": 1.0,
            "predicted_s": np.float64(predicted),
            "settled_s": settled,
        }
        | {"inside": predicted < 1, "settled_inside": True}
        for p, predicted, settled in ((2, 0.9, 0.95), (2, 1.3, 1.1), (4, 1.1, 1.3), (4, 0.8, 0.8))
    ]
    rows = goals(cells)
    assert [(row.reached, row.met) for row in rows] == [
        ("20%, 30%; 1 of 2", False),
        ("8%, 10%; 2 of 2", True),
        ("15%, 20%; 1 of 2", True),
        ("25%, 30%; 2 of 2", False),
    ]
    assert json.dumps([row._asdict() for row in rows])
