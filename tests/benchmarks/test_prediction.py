"""The tables of the predictions: which cells there are, and how they are measured."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from benchmarks.prediction import cells, kernels
from benchmarks.prediction.settings import HELD_OUT


def test_no_cell_is_both_fitted_and_held_out():
    every = [(cell.part, cell.kernel, cell.n, cell.p) for cell in kernels.cells()]
    assert len(set(every)) == len(every)
    assert {cell.held_out for cell in kernels.cells()} == {True, False}


def test_the_measured_table_has_all_cells():
    with kernels.FILE.open(encoding="utf-8") as file:
        rows = [
            (row["kernel"], row["part"], int(row["n"]), int(row["p"]))
            for row in csv.DictReader(file)
        ]
    assert rows == [cell[:4] for cell in kernels.cells()]


def test_cells_are_measured_and_the_least_time_of_each_is_kept(tmp_path, monkeypatch):
    chosen = list(kernels.cells())[:2]
    found = iter([3.0, 5.0, 4.0, 1.0, 2.0, 6.0])
    monkeypatch.setattr(kernels, "measure", lambda _cell: next(found))
    assert kernels.write(tmp_path / "times.csv", chosen) == 3
    with (tmp_path / "times.csv").open(encoding="utf-8") as file:
        assert [row["seconds"] for row in csv.DictReader(file)] == ["2", "1"]


def test_no_further_turn_is_begun_when_it_is_late(tmp_path, monkeypatch):
    monkeypatch.setattr(kernels, "measure", lambda _cell: 1.0)
    monkeypatch.setattr(kernels, "_ENOUGH_S", -1.0)
    assert kernels.write(tmp_path / "times.csv", list(kernels.cells())[:2]) == 1


def test_a_table_is_kept_if_the_measurement_is_broken_off(tmp_path, monkeypatch):
    path = tmp_path / "times.csv"
    path.write_text("as it was")

    def broken(_cell):
        raise KeyboardInterrupt

    monkeypatch.setattr(kernels, "measure", broken)
    with pytest.raises(KeyboardInterrupt):
        kernels.write(path, list(kernels.cells())[:1])
    assert path.read_text() == "as it was"


@pytest.mark.slow
def test_a_cell_is_measured_in_a_process_of_its_own(tmp_path):
    kernels.measure_alone(tmp_path / "times.csv", every=1000)
    with (tmp_path / "times.csv").open(encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    assert row["kernel"] == "sort"
    assert 0 < float(row["seconds"]) < 1


def test_chittors_cells_are_those_of_the_file():
    train, test = cells.chittor_table().train, cells.chittor_table().test
    assert (len(train[1]), len(test[1])) == (34, 51)
    assert np.isin(train[0]["N"], HELD_OUT["chittor"]["train"]["N"]).all()


def test_a_band_covers_the_cells_inside_of_it():
    found = cells.covered(
        [
            {"low": 1.0, "high": 3.0, "predicted": 2.0, "measured": 2.5},
            {"low": 1.0, "high": 3.0, "predicted": 2.0, "measured": 3.5},
        ]
    )
    assert found == {"covered": 0.5, "half_width": 0.5}


@pytest.mark.slow
def test_random_splits_of_the_table_are_predicted_better_than_by_twelve_usual_terms(monkeypatch):
    monkeypatch.setitem(HELD_OUT["chittor"]["splits"], "count", 2)
    found = cells.chittor_splits()
    pairs = zip(found["by the program"]["splits"], found["usual"]["splits"], strict=True)
    assert all(ours["mean"] < theirs["mean"] for ours, theirs in pairs)
    assert len(found["bitonic"]["splits"]) == 2
