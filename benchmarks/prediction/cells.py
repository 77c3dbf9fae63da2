"""The cells of the tables: which are fitted, which are predicted, and how well."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import nnls

from benchmarks.prediction import extrap
from benchmarks.prediction.kernels import FILE
from benchmarks.prediction.settings import HELD_OUT, HERE
from bsplib.profiler.predict import TimingModel, Timings, fit_timings
from bsplib.profiler.predict.terms import column

Values = dict[str, np.ndarray]
Report = dict[str, Any]
CONFIDENCE: float = HELD_OUT["bands"]["confidence"]


class TimesTable(NamedTuple):
    """Times to fit, and times to predict."""

    train: tuple[Values, np.ndarray]
    test: tuple[Values, np.ndarray]

    def timings(self) -> Timings:
        """Return the times to fit, without variables that have one value."""
        values, times = self.train
        varied = {name: column for name, column in values.items() if np.ptp(column) > 0}
        return Timings.of(varied, times, time="t")


def summary(errors: np.ndarray) -> Report:
    """Return the mean, median and greatest of absolute relative errors."""
    sizes = np.abs(errors)
    return {
        "mean": float(sizes.mean()),
        "median": float(np.median(sizes)),
        "greatest": float(sizes.max()),
    }


def predicted_cells(table: TimesTable, model: TimingModel) -> list[Report]:
    """Return every held-out cell with its prediction and band."""
    values, times = table.test
    asked = {name: values[name] for name in model.timings.values}
    found = model.predict(asked, confidence=CONFIDENCE)
    return [
        {
            **{name: float(column[row]) for name, column in values.items()},
            "measured": float(times[row]),
            "predicted": float(found.times[row]),
            "error": float(found.times[row] / times[row] - 1),
            "low": float(found.low[row]),
            "high": float(found.high[row]),
        }
        for row in range(len(times))
    ]


def covered(cells: list[Report]) -> Report:
    """Return how many cells are inside their band, and its median half-width."""
    inside = [cell["low"] <= cell["measured"] <= cell["high"] for cell in cells]
    widths = [(cell["high"] - cell["low"]) / 2 / cell["predicted"] for cell in cells]
    return {"covered": float(np.mean(inside)), "half_width": float(np.median(widths))}


def errors_of(cells: list[Report]) -> np.ndarray:
    """Return the relative errors of cells."""
    return np.array([cell["error"] for cell in cells])


# -- Chittor's Table 6 ------------------------------------------------------------------------


def chittor_table() -> TimesTable:
    """Read the table of the thesis."""
    settings = HELD_OUT["chittor"]
    with (HERE / settings["file"]).open(encoding="utf-8") as file:
        rows = np.array([[float(cell) for cell in row] for row in list(csv.reader(file))[1:]])
    train = np.isin(rows[:, 0], settings["train"]["N"])
    train &= np.isin(rows[:, 1], settings["train"]["P"])

    def part(chosen: np.ndarray) -> tuple[Values, np.ndarray]:
        return {"N": rows[chosen, 0], "P": rows[chosen, 1]}, rows[chosen, 2]

    return TimesTable(part(train), part(~train))


def chittor() -> Report:
    """Fit and predict with terms of the program and with the formulas of a user."""
    table = chittor_table()
    formulas: dict[str, str | None] = {
        "by the program": None,
        **HELD_OUT["chittor"]["formulas"],
    }
    found: Report = {}
    for name, formula in formulas.items():
        model = fit_timings(table.timings(), formula)
        cells = predicted_cells(table, model)
        found[name] = {
            **described(model),
            "errors": summary(errors_of(cells)),
            **covered(cells),
            "roll_off": _roll_off(table, model),
            "cells": cells,
        }
    return found


def chittor_splits() -> Report:
    """Predict the rest of the table from random cells, in many splits, in three ways."""
    settings, table = HELD_OUT["chittor"]["splits"], chittor_table()
    values = {name: np.concatenate([part[0][name] for part in table]) for name in ("N", "P")}
    times = np.concatenate([part[1] for part in table])
    random = np.random.default_rng(settings["seed"])
    found: dict[str, list[Report]] = {"by the program": [], "usual": [], "bitonic": []}
    for _ in range(settings["count"]):
        train = np.zeros(len(times), bool)
        train[random.permutation(len(times))[: settings["train"]]] = True
        part = TimesTable(_some(values, times, train), _some(values, times, ~train))
        model = fit_timings(part.timings())
        errors = errors_of(predicted_cells(part, model))
        found["by the program"].append(summary(errors) | {"formula": model.fit.formula.text})
        for name in ("usual", "bitonic"):
            found[name].append(summary(_by_terms(settings[name], part)))
    return {name: {"splits": splits, **_means(splits)} for name, splits in found.items()}


def _some(values: Values, times: np.ndarray, chosen: np.ndarray) -> tuple[Values, np.ndarray]:
    return {name: column[chosen] for name, column in values.items()}, times[chosen]


def _by_terms(terms: list[str], table: TimesTable) -> np.ndarray:
    """Return the relative errors of terms that are always the same."""
    rows, asked = (
        np.stack([np.broadcast_to(column(term, part[0]), len(part[1])) for term in terms], axis=1)
        for part in (table.train, table.test)
    )
    found = nnls(rows / table.train[1][:, None], np.ones(len(rows)))[0]
    return np.asarray(asked @ found / table.test[1] - 1)


def _means(splits: list[Report]) -> Report:
    return {kind: float(np.mean([each[kind] for each in splits])) for kind in ("mean", "greatest")}


def _roll_off(table: TimesTable, model: TimingModel) -> Report:
    """Compare the P with the least predicted time with the one with the least measured time."""
    values = {
        name: np.concatenate([table.train[0][name], table.test[0][name]]) for name in ("N", "P")
    }
    measured = np.concatenate([table.train[1], table.test[1]])
    times = model.predict(values).times
    rows = []
    for size in np.unique(values["N"]):
        here = np.flatnonzero(values["N"] == size)
        best = [float(values["P"][here[np.argmin(each[here])]]) for each in (measured, times)]
        rows.append({"N": float(size), "measured": best[0], "predicted": best[1]})
    exact = sum(row["measured"] == row["predicted"] for row in rows)
    near = sum(0.5 <= row["predicted"] / row["measured"] <= 2 for row in rows)
    return {"exact": exact, "within_a_factor_of_2": near, "of": len(rows), "rows": rows}


def described(model: TimingModel) -> Report:
    """Return what a fit is, without its data."""
    return {
        "formula": model.fit.formula.text,
        "coefficients": model.fit.coefficients.tolist(),
        "misfit": model.fit.misfit,
        "breaks": list(model.fit.breaks),
        "doubt": model.fit.doubt,
    }


# -- the kernels ------------------------------------------------------------------------------


def kernel_tables(part: str, path: Path = FILE) -> dict[str, TimesTable]:
    """Read the measured times of the kernels in one of the sets."""
    with path.open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["part"] == part]
    return {name: _table(rows, name) for name in HELD_OUT["kernels"]["names"]}


def _table(rows: list[dict[str, str]], name: str) -> TimesTable:
    def some(held_out: str) -> tuple[Values, np.ndarray]:
        mine = [row for row in rows if row["kernel"] == name and row["held_out"] == held_out]
        values = {variable: np.array([float(row[variable]) for row in mine]) for variable in "np"}
        return values, np.array([float(row["seconds"]) for row in mine])

    return TimesTable(some("0"), some("1"))


def kernels(part: str, path: Path = FILE) -> Report:
    """Fit and predict all kernels of a set by the program and by Extra-P."""
    found: Report = {"kernels": {}}
    ours: list[Report] = []
    theirs: dict[str, list[np.ndarray]] = {}
    for name, table in kernel_tables(part, path).items():
        model = fit_timings(table.timings())
        cells = predicted_cells(table, model)
        ours += cells
        report = {**described(model), "errors": summary(errors_of(cells)), "cells": cells}
        if extrap.is_here():
            report["extrap"] = _extrap(table, cells, theirs)
        found["kernels"][name] = report
    found |= {"errors": summary(errors_of(ours)), **covered(ours)}
    found["extrap"] = {
        settings: summary(np.concatenate(errors)) for settings, errors in theirs.items()
    }
    return found


def _extrap(table: TimesTable, cells: list[Report], errors: dict[str, list[np.ndarray]]) -> Report:
    """Predict a table by Extra-P with each of its settings; note the errors."""
    found: Report = {}
    for settings in HELD_OUT["extrap"]["settings"]:
        name = ", ".join(f"{key} = {value}" for key, value in settings.items()) or "default"
        formula = extrap.formula_of(table.timings(), settings)
        times = extrap.predicted(formula, table.test[0])
        wrong = times / table.test[1] - 1
        errors.setdefault(name, []).append(wrong)
        found[name] = {"formula": formula, "errors": summary(wrong)}
        for cell, time in zip(cells, times, strict=True):
            cell[f"extrap, {name}"] = float(time)
    return found


def doubts(outcomes: Mapping[str, list[Report]]) -> Report:
    """Count the experiments that came out as they should."""
    return {
        kind: {
            "as_it_should": sum(each["as_it_should"] for each in experiments),
            "of": len(experiments),
            "experiments": experiments,
        }
        for kind, experiments in outcomes.items()
    }
