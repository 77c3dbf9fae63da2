"""How right predictions from tables of times are.

A formula is fitted to some cells and asked for the others, which ``held_out.toml`` has named before
the first fit. Beside it stands Extra-P, where it is installed (``make bench``).
"""

from __future__ import annotations

import csv
import os
import subprocess
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import Finding
from bsplib.experiments.formula import read_formula
from bsplib.profiler.predict import TimingModel, Timings, fit_timings, write_timings

HERE = Path(__file__).parents[1] / "prediction"
HELD_OUT: dict[str, Any] = tomllib.loads((HERE / "held_out.toml").read_text(encoding="utf-8"))
"""What is held out, as it was fixed before the first fit."""
Numbers = NDArray[np.float64]


class TimesTable(NamedTuple):
    """Times by the values of variables, of which some are fitted and the others predicted."""

    values: dict[str, Numbers]
    times: Numbers
    train: NDArray[np.bool_]

    def part(self, chosen: NDArray[np.bool_]) -> dict[str, Numbers]:
        """Return the values of some cells."""
        return {name: every[chosen] for name, every in self.values.items()}

    def timings(self) -> Timings:
        """Return the times to fit, without variables that have one value."""
        values = {name: each for name, each in self.part(self.train).items() if np.ptp(each) > 0}
        return Timings.of(values, self.times[self.train], time="t")

    def errors(self, times: Numbers) -> Numbers:
        """Return the absolute relative errors of predicted times of the cells held out."""
        return np.abs(times / self.times[~self.train] - 1)


class Judged(NamedTuple):
    """The predictions of the cells that are held out."""

    errors: Numbers
    inside: NDArray[np.bool_]
    """Which times are inside of their band."""
    widths: Numbers
    """Half widths of the bands, as parts of the predicted times."""

    @classmethod
    def by(cls, table: TimesTable, model: TimingModel) -> Judged:
        """Predict by a model."""
        asked = {name: table.values[name][~table.train] for name in model.timings.values}
        found = model.predict(asked, confidence=HELD_OUT["bands"]["confidence"])
        times = table.times[~table.train]
        inside = (found.low <= times) & (times <= found.high)
        widths = (found.high - found.low) / 2 / found.times
        return cls(table.errors(found.times), inside, widths)

    def band(self, title: str) -> Finding:
        """Compare how often bands are right, and their width, with the goal."""
        goal = HELD_OUT["bands"]["goal"]
        covered, width = float(np.mean(self.inside)), float(np.median(self.widths))
        return Finding(
            f"{title}: bands of 90% cover, half of their width (median)",
            f"{covered:.0%}, {width:.0%}",
            f"at least {goal['covered']:.0%}, {goal['half_width']:.0%}",
            covered >= goal["covered"] and width <= goal["half_width"],
        )


def chittor_table() -> TimesTable:
    """Read the table of the thesis."""
    settings = HELD_OUT["chittor"]
    with (HERE / settings["file"]).open(encoding="utf-8") as file:
        rows = np.array([[float(cell) for cell in row] for row in list(csv.reader(file))[1:]])
    train = np.isin(rows[:, 0], settings["train"]["N"])
    train &= np.isin(rows[:, 1], settings["train"]["P"])
    return TimesTable({"N": rows[:, 0], "P": rows[:, 1]}, rows[:, 2], train)


def _chittor() -> Iterator[Finding]:
    settings, table = HELD_OUT["chittor"], chittor_table()
    ways = {
        "no formula given": (None, settings["goals"]["by_the_program"]),
        "a user's formula": (settings["formulas"]["revised"], settings["goals"]["by_the_user"]),
    }
    for name, (formula, goal) in ways.items():
        judged = Judged.by(table, fit_timings(table.timings(), formula))
        least, most = judged.errors.mean(), judged.errors.max()
        yield Finding(
            f"Table 6 of Chittor's thesis, {name}: mean and greatest error",
            f"{least:.1%}, {most:.1%}",
            f"{goal['mean']:.0%}, {goal['greatest']:.0%}",
            bool(least <= goal["mean"] and most <= goal["greatest"]),
        )
        if formula is None:
            yield judged.band("Table 6 of Chittor's thesis, no formula given")


def kernel_table(file_name: str, part: str, kernel: str) -> TimesTable:
    """Read the measured times of a kernel in one of the sets."""
    with (HERE / file_name).open(encoding="utf-8") as file:
        rows = [
            row for row in csv.DictReader(file) if (row["part"], row["kernel"]) == (part, kernel)
        ]
    values = {name: np.array([float(row[name]) for row in rows]) for name in "np"}
    times = np.array([float(row["seconds"]) for row in rows])
    return TimesTable(values, times, np.array([row["held_out"] == "0" for row in rows]))


def _kernels() -> Iterator[Finding]:
    """Compare with Extra-P, of which in each series the better one of two settings counts."""
    series, is_better = [], []
    for computer in ("kernels.csv", "kernels_epyc.csv"):
        for part in HELD_OUT["kernels"]["sets"]:
            tables = [kernel_table(computer, part, name) for name in HELD_OUT["kernels"]["names"]]
            judged = [Judged.by(table, fit_timings(table.timings())) for table in tables]
            ours = float(np.concatenate([each.errors for each in judged]).mean())
            series.append(f"{ours:.0%}")
            if EXTRAP.exists():
                ways = HELD_OUT["extrap"]["settings"]
                theirs = min(_of_extrap(tables, settings) for settings in ways)
                series[-1] += f" and {theirs:.0%}"
                is_better.append(ours <= theirs)
    yield Finding(
        "five kernels in six series: mean error, and that of Extra-P",
        f"less in {sum(is_better)} of {len(is_better)} ({', '.join(series)})",
        "less in all",
        all(is_better) if is_better else None,
    )


EXTRAP = Path(os.environ.get("EXTRAP", ".venv/extrap/bin/extrap"))
"""Extra-P has an environment of its own, since it needs an older numpy."""


def _of_extrap(tables: Sequence[TimesTable], settings: dict[str, Any]) -> float:
    """Return the mean error of Extra-P over the cells that are held out of all tables."""
    errors = []
    for table in tables:
        found = read_formula(f"({_extrap_formula(table.timings(), settings)})*extrap[0]")
        asked = table.part(~table.train)
        times = np.broadcast_to(found.columns(asked)[0][:, 0], np.count_nonzero(~table.train))
        errors.append(table.errors(times))
    return float(np.concatenate(errors).mean())


def _extrap_formula(timings: Timings, settings: dict[str, Any]) -> str:
    """Return the formula that Extra-P finds for a table, as text."""
    options = [f"{name}={value}" for name, value in settings.items()]
    if options and len(timings.varied) > 1:
        options = ["#spm=Basic", *(f"#spo={option}" for option in options)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "times.jsonl")
        write_timings(timings, path)
        command = [str(EXTRAP), "--json", str(path), "--disable-progress"]
        command += ["--print", "functions-python", *(["--options", *options] if options else [])]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def tables(_: bool) -> Iterator[Finding]:
    """Judge predictions from tables of times."""
    yield from _chittor()
    yield from _kernels()
