"""Which cells of tables are held out, and what follows from predictions that are judged."""

from __future__ import annotations

import json
import platform
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

from benchmarks.cases import predictions, tables
from benchmarks.cases.predictions import Total, TotalsRecorder, judged, totals_judged, totals_of
from benchmarks.cases.tables import HELD_OUT, Judged, chittor_table, kernel_table
from benchmarks.unseen import SIZES
from bsplib.machine import Machine

MACHINE = Machine("made up", "by hand", g=1e-9, l=1e-5, host=platform.node())


def test_chittors_cells_are_those_of_the_file():
    table = chittor_table()
    assert (np.count_nonzero(table.train), np.count_nonzero(~table.train)) == (34, 51)
    assert np.isin(table.part(table.train)["N"], HELD_OUT["chittor"]["train"]["N"]).all()


@pytest.mark.parametrize("part", HELD_OUT["kernels"]["sets"])
@pytest.mark.parametrize("kernel", HELD_OUT["kernels"]["names"])
def test_cells_of_kernels_are_fitted_or_held_out_as_was_said(part, kernel):
    sets = HELD_OUT["kernels"]["sets"][part]
    said = sets.get(kernel, sets)
    for computer in ("kernels.csv", "kernels_epyc.csv"):
        table = kernel_table(computer, part, kernel)
        for chosen, name in ((table.train, "train"), (~table.train, "test")):
            cells = set(zip(*table.part(chosen).values(), strict=True))
            assert {(n, p) for n in said[name]["n"] for p in said[name]["p"]} <= cells
            assert len(cells) == np.count_nonzero(chosen)


def test_bands_are_judged_by_how_often_they_hold_and_how_wide_they_are():
    found = Judged(np.zeros(4), np.array([True, True, True, False]), np.full(4, 0.1))
    assert found.band("T").reached == "75%, 10%"
    assert found.band("T").met is False
    assert Judged(np.zeros(4), np.ones(4, bool), np.full(4, 0.1)).band("T").met is True
    assert Judged(np.zeros(4), np.ones(4, bool), np.full(4, 0.9)).band("T").met is False


@pytest.mark.slow
def test_laws_of_a_program_are_predicted_far_from_its_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(predictions, "FAR", ((8, 8),))
    cells = [cell for cell in judged("power", tmp_path) if cell.quantity != "comp"]
    assert max(cell.error for cell in cells if cell.quantity == "supersteps") < 1e-9
    assert all(cell.is_inside for cell in cells)


@pytest.mark.slow
def test_a_program_is_recorded_small_and_its_large_totals_are_predicted(tmp_path):
    with ProcessPoolExecutor(1, get_context("fork")) as process:
        run = TotalsRecorder(tmp_path, "power", process).run
        cells = list(totals_of(run, SIZES["power"], MACHINE, 1))
    assert [cell.p for cell in cells] == [2, 2 * predictions.own_cores()]
    for cell in cells:
        assert min(cell.measured_s, cell.predicted_s, cell.settled_s) > 0


def test_totals_are_judged_by_mean_and_greatest_error_after_the_run_that_is_named():
    cells = [
        Total(p, 1.0, np.float64(predicted), predicted < 1, 1.0, settled, True)
        for p, predicted, settled in ((2, 0.9, 0.95), (2, 1.3, 1.1), (4, 1.1, 1.3), (4, 0.8, 0.8))
    ]
    found = list(totals_judged(cells))
    assert [each.reached for each in found] == [
        "20%, 30%, 1 of 2; 8%, 10%, 2 of 2",
        "15%, 20%, 1 of 2; 25%, 30%, 2 of 2",
    ]
    assert [each.met for each in found] == [True, False]
    assert json.dumps([each._asdict() for each in found])


def test_without_extra_p_nothing_is_said_of_it(monkeypatch, tmp_path):
    monkeypatch.setattr(tables, "EXTRAP", tmp_path / "nothing")
    monkeypatch.setattr(tables, "fit_timings", lambda *_: None)
    monkeypatch.setattr(Judged, "by", lambda *_: Judged(np.ones(2), np.ones(2), np.ones(2)))
    (found,) = tables._kernels()
    assert found.met is None
