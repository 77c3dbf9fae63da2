"""Totals of real runs that nobody made: node models on a probed Machine, against the clock.

``python -m benchmarks.bench_totals`` probes this computer, records the programs of
:mod:`benchmarks.beyond.programs` on real processes at three small sizes, predicts the total at 8
times the largest size on 2 processes and on twice as many as there are cores, and runs it there.
Where the prediction names a run that would narrow its band, it makes this run, too, and predicts
again; the large run is repeated beside it, as the host may have become slower since. All runs are
made by one process that fits nothing, so that they begin in the same state, whatever a fit
imports. It takes some minutes, and its figures are worth something on an idle computer only.
``--quick`` shows that it works: two programs, without repeats. The result is
``benchmarks/results/totals.json``.
"""

from __future__ import annotations

import contextlib
import io
import os
import statistics
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import click

import bsplib
from benchmarks.accuracy import AccuracyGoal, Report, keep
from benchmarks.beyond.programs import PROGRAMS, SIZES, WorkOf
from benchmarks.provenance import Circumstances
from bsplib.backends.table import own_cores
from bsplib.machine import Machine
from bsplib.machine.probing.probe import counts_of, load_average, probe
from bsplib.profiler.models.prediction import MEASURED, predict
from bsplib.profiler.predict import RunPrediction, learn, predict_run
from bsplib.profiler.predict.planning import run_to_make
from bsplib.profiler.prices import choose_prices
from bsplib.recording.trace import read_trace

_MODEL = "BSP"
_FACTOR = 8
_SEED = 1
_MEAN, _WORST, _SHARED = 0.10, 0.25, 0.20
"""The goals: mean and greatest error of totals on 2 processes, and greatest where they share
cores."""
_QUICK = ("power", "butterfly")


def counts() -> tuple[int, int]:
    """Return the numbers of processes at which totals are predicted."""
    return 2, 2 * own_cores()


class TotalsRecorder:
    """Records runs of a program, in a process that does nothing else."""

    def __init__(self, folder: Path, program: str, process: Executor) -> None:
        self._folder = folder
        self._program = program
        self._process = process
        self._made = 0

    def run(self, n: int, p: int) -> Any:
        """Record a run."""
        self._made += 1
        path = self._folder / f"{self._program}-{self._made}.bsp"
        self._process.submit(_record, path, self._program, n, p).result()
        return read_trace(path).runs[0]


def _record(path: Path, program: str, n: int, p: int) -> None:
    WorkOf.is_charged = False
    with contextlib.redirect_stderr(io.StringIO()):
        bsplib.run(PROGRAMS[program], n, _SEED, nprocs=p, backend="shm", profile=path)


def measured_s(runs: Iterable[Any], machine: Machine) -> float:
    """Return the median of the total times of runs."""
    found = [predict(run, choose_prices(run, machine), [_MODEL]) for run in runs]
    return statistics.median(each.totals[MEASURED].total_s for each in found)


def judged(recorder: TotalsRecorder, program: str, machine: Machine, repeats: int) -> list[Report]:
    """Predict the total of a program beyond its runs, and measure it."""
    far = _FACTOR * SIZES[program][-1]
    small: list[Any] = []
    large: dict[int, list[Any]] = {p: [] for p in counts()}
    for _ in range(repeats):  # in turns, so that disturbances are shared
        for n in SIZES[program]:
            small += [(recorder.run(n, p), {"n": float(n)}, ()) for p in sorted({1, *counts()})]
        for p, found in large.items():
            found.append(recorder.run(far, p))
    model = learn(small)
    cells = []
    for p, found in large.items():
        prediction = predict_run(model, p, {"n": float(far)}, machine)
        measured = measured_s(found, machine)
        settling, again = _settling(recorder, prediction, (far, p), repeats)
        measured_again = measured_s([*found, *again], machine)
        settled = predict_run(learn([*small, *settling]), p, {"n": float(far)}, machine)
        cells.append(
            {
                "program": program,
                "n": far,
                "p": p,
                "measured_s": measured,
                "predicted_s": prediction.total.total_s,
                "inside": bool(prediction.low_s <= measured <= prediction.high_s),
                "settling_n": settling[0][1]["n"] if settling else None,
                "measured_again_s": measured_again,
                "settled_s": settled.total.total_s,
                "settled_inside": bool(settled.low_s <= measured_again <= settled.high_s),
                "refused": sorted(model.nodes[node].name for node in prediction.refused),
            }
        )
    return cells


def _settling(
    recorder: TotalsRecorder, prediction: RunPrediction, large: tuple[int, int], repeats: int
) -> tuple[list[Any], list[Any]]:
    """Make the run that would narrow the band, if one is named, in turns with the large one."""
    named = run_to_make(prediction)
    if named is None:
        return [], []
    n, p = int(named["n"]), int(named["p"])
    pairs = [(recorder.run(n, p), recorder.run(*large)) for _ in range(repeats)]
    return [(one, {"n": float(n)}, ()) for one, _ in pairs], [other for _, other in pairs]


def goals(cells: Sequence[Report]) -> list[AccuracyGoal]:
    """Return the goals with what was reached."""
    rows = []
    for p in sorted({cell["p"] for cell in cells}):
        some = [cell for cell in cells if cell["p"] == p]
        shares = p > min(counts())
        limits = (_SHARED, _SHARED) if shares else (_MEAN, _WORST)
        for field, truth, inside, what in (
            ("predicted_s", "measured_s", "inside", ""),
            ("settled_s", "measured_again_s", "settled_inside", ", after the run that is named"),
        ):
            errors = [abs(cell[field] / cell[truth] - 1) for cell in some]
            mean, worst = statistics.mean(errors), max(errors)
            held = sum(cell[inside] for cell in some)
            rows.append(
                AccuracyGoal(
                    f"total of real runs, n x {_FACTOR}, p = {p}{what}: mean and greatest error; "
                    f"in their bands",
                    f"{mean:.0%}, {worst:.0%}; {held} of {len(some)}",
                    f"{limits[0]:.0%}, {limits[1]:.0%}",
                    bool(mean <= limits[0] and worst <= limits[1]),
                )
            )
    return rows


@click.command()
@click.option("--repeats", default=5, show_default=True, help="Repeats of each run.")
@click.option("--quick", is_flag=True, help="Two programs without repeats; implies --trial.")
@click.option("--trial", is_flag=True, help="Write the result into out/benchmarks.")
def main(repeats: int, quick: bool, trial: bool) -> None:
    """Probe, record small runs, predict large ones, and run them."""
    circumstances = Circumstances()
    before = load_average()
    machine = probe(2, "here", counts=counts_of(None)).machine
    with (
        ProcessPoolExecutor(1, get_context("fork")) as process,
        tempfile.TemporaryDirectory(prefix="bsp-totals-") as folder,
    ):
        cells = []
        for program in _QUICK if quick else PROGRAMS:
            recorder = TotalsRecorder(Path(folder), program, process)
            cells += judged(recorder, program, machine, 1 if quick else repeats)
    load = {"before": before, "after": load_average(), "cores": os.cpu_count()}
    report: Report = {"load": load, "cells": cells, "machine": machine.text()}
    keep(circumstances.document("totals"), report, goals(cells), trial=trial or quick)


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.bench_totals")
