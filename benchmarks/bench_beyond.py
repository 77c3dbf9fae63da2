"""How far node models can be trusted: eight programs, recorded small and predicted large.

``python -m benchmarks.bench_beyond`` records each program of :mod:`benchmarks.beyond.programs` on
virtual processors at a dozen small sizes, predicts it at 8 and 16 times the largest size on up to
64 processes, and compares cost centre by cost centre: supersteps, h-relations, computation, and
how many true values the bands hold. It also fits series that are constant but for noise, and asks
whether the runs that a refusal names settle it. The result is ``benchmarks/results/beyond.json``.
"""

from __future__ import annotations

import contextlib
import io
import math
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any

import click
import numpy as np

import bsplib
from benchmarks.accuracy import (
    AccuracyGoal,
    Report,
    keep,
    law_text,
    observed_values,
    predicted_value,
)
from benchmarks.beyond.programs import DATA, FAR, PROCESSES, PROGRAMS, SEEDS, SIZES, WorkOf
from benchmarks.provenance import Circumstances
from bsplib.profiler.predict import ProgramModel, Timings, fit_timings, learn
from bsplib.profiler.predict.observed import Observation, observe
from bsplib.recording.trace import read_trace

_QUANTITIES = ("supersteps", "h", "comp")
_EXACT = 1e-9
_NOISES = (0.05, 0.15)
_TINY_PART = 0.01
"""Part of the computation of a run below which a cost centre is not judged."""

_Run = tuple[Any, dict[str, float], tuple[float, ...]]


def _record(folder: Path, program: str, n: int, p: int, seed: int) -> _Run:
    path = folder / f"{program}-{n}-{p}-{seed}.bsp"
    if not path.exists():
        with contextlib.redirect_stderr(io.StringIO()):
            bsplib.run(PROGRAMS[program], n, seed, nprocs=p, backend="sim", profile=path)
    (run,) = read_trace(path).runs
    return run, {"n": float(n)}, (float(seed),)


def _judge(folder: Path, program: str) -> Report:
    seeds = SEEDS if program in DATA else SEEDS[:1]
    runs = [
        _record(folder, program, n, p, seed)
        for n in SIZES[program]
        for p in PROCESSES[program]
        for seed in seeds
    ]
    model = learn(runs)
    cells = []
    for factor, p in FAR:
        n = factor * SIZES[program][-1]
        observed = observe([_record(folder, program, n, p, seed) for seed in seeds]).observations
        cells += list(_cells(model, program, observed))
    return {"runs": len(runs), "cells": cells}


def _cells(model: ProgramModel, program: str, observed: Sequence[Observation]) -> Any:
    point = observed[0].values
    leaves = model.leaves()
    work = {leaf: observed_values(chains, "comp", observed) for leaf, chains in leaves.items()}
    total = sum(mean(each) for each in work.values())
    for leaf, chains in leaves.items():
        for quantity in _QUANTITIES:
            true = work[leaf] if quantity == "comp" else observed_values(chains, quantity, observed)
            if quantity == "comp" and mean(true) < _TINY_PART * total:
                continue
            value = predicted_value(chains, quantity, point)
            yield {
                "program": program,
                "node": model.nodes[leaf].name,
                "quantity": quantity,
                "at": point,
                "law": law_text(chains, quantity),
                "true": true,
                "predicted": None if value.why else value.value,
                "low": None if value.why else value.low,
                "high": None if value.why else value.high,
                "why": value.why,
            }


# -- series that are constant but for noise -------------------------------------------------------


def constants(count: int) -> Report:
    """Fit series that are constant but for noise; count those whose formulas grow."""
    generator = np.random.default_rng(20)
    grown = 0
    for number in range(count):
        n = 2.0 ** np.arange(8, 14)
        times = np.exp(generator.normal(0, _NOISES[number % 2], len(n))) * 1e-3
        grown += "n" in fit_timings(Timings.of({"n": n}, times)).fit.formula.variables
    return {"series": count, "grown": grown}


# -- goals ----------------------------------------------------------------------------------------


def _error(cell: Report) -> float:
    true = mean(cell["true"])
    if not true:
        return 0.0 if not cell["predicted"] else math.inf
    return float(cell["predicted"] / true - 1)


def _is_inside(cell: Report) -> bool:
    """Whether the band holds the mean of the true values, but for rounding."""
    true = mean(cell["true"])
    return bool(cell["low"] * (1 - _EXACT) <= true <= cell["high"] * (1 + _EXACT))


def _rows(report: Report) -> list[AccuracyGoal]:
    cells = [cell for part in report["programs"].values() for cell in part["cells"]]
    fixed = [c for c in cells if c["program"] not in DATA or c["quantity"] == "supersteps"]
    data = [c for c in cells if c["program"] in DATA and c["quantity"] == "h" and mean(c["true"])]
    data = [c for c in data if len(set(c["true"])) > 1]
    work = [c for c in cells if c["quantity"] == "comp"]
    rows = [
        _exact_goal(name, [c for c in fixed if c["quantity"] == name])
        for name in ("supersteps", "h")
    ]
    known = [c for c in data if c["predicted"] is not None]
    near = [c for c in known if abs(_error(c)) <= 0.05]
    rows.append(
        AccuracyGoal(
            "h that depends on data: within 5%, in band",
            f"{len(near)} of {len(data)}, {sum(map(_is_inside, known))} in band, "
            f"{len(data) - len(known)} refused",
            "all",
            len(near) == len(data),
        )
    )
    rows += _work_goals(work)
    count, grown = report["constants"]["series"], report["constants"]["grown"]
    rows.append(
        AccuracyGoal(
            "constants with 5 and 15% noise that grow",
            f"{grown} of {count}",
            "6%",
            grown <= 0.06 * count,
        )
    )
    return rows


def _exact_goal(name: str, cells: Sequence[Report]) -> AccuracyGoal:
    known = [c for c in cells if c["predicted"] is not None]
    exact = sum(abs(_error(c)) <= _EXACT for c in known)
    inside = sum(map(_is_inside, known))
    return AccuracyGoal(
        f"{name} that do not depend on data: exact",
        f"{exact} of {len(cells)}, {inside} in band, {len(cells) - len(known)} refused",
        "all",
        exact == len(cells),
    )


def _work_goals(cells: Sequence[Report]) -> list[AccuracyGoal]:
    known = [c for c in cells if c["predicted"] is not None]
    errors = [abs(_error(c)) for c in known]
    inside = sum(map(_is_inside, known)) / max(len(known), 1)
    widths = [math.sqrt(c["high"] / max(c["low"], 1e-300)) - 1 for c in known]
    refused = len(cells) - len(known)
    return [
        AccuracyGoal(
            f"computation: mean and greatest error of {len(known)} cells",
            f"{mean(errors):.1%}, {max(errors):.0%}; {refused} refused",
            "10%, 40%",
            mean(errors) <= 0.1 and max(errors) <= 0.4,
        ),
        AccuracyGoal(
            "computation: bands of 90% cover, and their median",
            f"{inside:.0%}, +-{median(widths):.0%}",
            "85 to 97%, under +-20%",
            0.85 <= inside <= 0.97 and median(widths) < 0.2,
        ),
    ]


@click.command()
@click.option("--traces", type=click.Path(path_type=Path), help="Folder for the traces, kept.")
@click.option("--program", "programs", multiple=True, type=click.Choice(list(PROGRAMS)))
@click.option("--series", default=1000, help="Number of constant series.")
@click.option("--measured", is_flag=True, help="Time computation rather than charge for it.")
@click.option("--trial", is_flag=True, help="Write the result into out/benchmarks.")
def main(
    traces: Path | None, programs: tuple[str, ...], series: int, measured: bool, trial: bool
) -> None:
    """Record small runs, predict large ones, and compare with the goals.

    Computation is charged, with noise of 5%, so that the result does not depend on what else this
    computer does.
    """
    WorkOf.is_charged = not measured
    circumstances = Circumstances()
    with tempfile.TemporaryDirectory() as temporary:
        folder = traces or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        report: Report = {
            "programs": {name: _judge(folder, name) for name in programs or PROGRAMS},
            "measured": measured,
            "constants": constants(series),
        }
    keep(circumstances.document("beyond"), report, _rows(report), trial=trial or bool(programs))


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.bench_beyond")
