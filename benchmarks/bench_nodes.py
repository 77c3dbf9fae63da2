"""The accuracy of node models: what small runs tell of large ones, cost centre by cost centre.

``make bench-nodes`` records the runs that ``benchmarks/nodes/held_out.toml``
names, fits the small ones, predicts the large ones, and writes every cost centre into
``benchmarks/results/nodes.json``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any

import click

from benchmarks.accuracy import (
    AccuracyGoal,
    Report,
    keep,
    law_text,
    observed_values,
    predicted_value,
)
from benchmarks.document import read
from benchmarks.harness import RESULTS
from benchmarks.nodes.settings import HELD_OUT
from benchmarks.nodes.traces import VirtualRun, cells, record, record_real
from benchmarks.provenance import Circumstances
from bsplib.profiler.predict import ProgramModel, learn
from bsplib.profiler.predict.observed import Observation, observe
from bsplib.profiler.predict.program import BoundedValue, ChainModel
from bsplib.recording.trace import read_trace

_SAME = 1e-9


def virtual(folder: Path, part: str, programs: Sequence[str]) -> Report:
    """Fit and predict programs on virtual processors."""
    return {program: _virtual(program, folder, part) for program in programs}


def _virtual(program: str, folder: Path, part: str) -> Report:
    fitted, there = cells(program, "fitted"), cells(program, part)
    for cell in (*fitted, *there):
        record(cell, folder)
    runs = [_run(cell, folder) for cell in fitted]
    began = time.perf_counter()
    model = learn(runs)
    seconds = time.perf_counter() - began
    observed = observe([_run(cell, folder) for cell in there]).observations
    return {
        "fitted_runs": len(fitted),
        "predicted_runs": len(there),
        "at": observed[0].values,
        "fit_s": round(seconds, 3),
        "cost_centres": [_centre(model, chains, observed) for chains in model.leaves().values()],
    }


def _run(cell: VirtualRun, folder: Path) -> tuple[Any, dict[str, float], tuple[float, ...]]:
    (run,) = read_trace(cell.path(folder)).runs
    return run, {"n": float(cell.size)}, () if cell.seed is None else (float(cell.seed),)


def _centre(model: ProgramModel, chains: list[ChainModel], observed: list[Observation]) -> Report:
    node = model.nodes[chains[0].chain[-1]]
    point = observed[0].values
    report: Report = {"name": node.name, "ends_with": node.sync}
    for quantity in ("supersteps", "h"):
        true = observed_values(chains, quantity, observed)
        value = predicted_value(chains, quantity, point)
        report[quantity] = {
            "measured": true,
            "law": law_text(chains, quantity),
            "exact": value.is_exact,
            **_judged(value, mean(true)),
        }
    return report


def _judged(value: BoundedValue, true: float) -> Report:
    if value.why:
        return {"predicted": None, "why": value.why}
    error = value.value / true - 1 if true else (0.0 if not value.value else None)
    return {
        "predicted": value.value,
        "low": value.low,
        "high": value.high,
        "error": error,
    }


# -- computation of real processes ----------------------------------------------------------------


def real(folder: Path) -> Report:
    """Fit and predict the computation of programs on two real processes, under each condition."""
    return {
        condition: {
            program: _real(program, folder, condition) for program in HELD_OUT["real"]["programs"]
        }
        for condition in HELD_OUT["real"]["conditions"]
    }


def _real(program: str, folder: Path, condition: str) -> Report:
    settings = HELD_OUT["real"]
    paths = {
        size: [
            folder / f"real_{condition}_{program}_{size}_{turn}.bsp"
            for turn in range(settings["repeats"])
        ]
        for size in (*settings["sizes"], settings["held_out"])
    }
    for turn in range(settings["repeats"]):  # in turns, so that disturbances are shared
        for size, files in paths.items():
            record_real(program, size, condition, files[turn])

    def runs(size: int) -> list[Any]:
        return [(read_trace(path).runs[0], {"n": float(size)}, ()) for path in paths[size]]

    model = learn([run for size in settings["sizes"] for run in runs(size)])
    (observed,) = observe(runs(settings["held_out"])).observations
    leaves = model.leaves()
    true = {leaf: observed_values(chains, "comp", [observed])[0] for leaf, chains in leaves.items()}
    total = sum(true.values())
    found = []
    for leaf, chains in leaves.items():
        value = predicted_value(chains, "comp", observed.values)
        found.append(
            {
                "name": model.nodes[leaf].name,
                "ends_with": model.nodes[leaf].sync,
                "part": true[leaf] / total,
                "law": law_text(chains, "comp"),
                "measured": true[leaf],
                **_judged(value, true[leaf]),
            }
        )
    return {"at": observed.values, "cost_centres": found}


# -- the time of bsp predict --------------------------------------------------------------------


def duration(folder: Path) -> Report:
    """Time ``bsp predict`` on some traces, from its start to its end."""
    files = [cell.path(folder) for cell in cells("sample_sort", "fitted")]
    files = files[: HELD_OUT["time"]["traces"]]
    command = [sys.executable, "-m", "bsplib", "predict", *map(str, files)]
    command += ["--by", "n=size", "--model-out", "-"]
    taken, used = [], []
    for _ in range(7):
        before, began = os.times(), time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)  # our own command
        taken.append(round(time.perf_counter() - began, 3))
        after = os.times()
        children = after.children_user + after.children_system
        used.append(round(children - before.children_user - before.children_system, 3))
    return {"traces": len(files), "seconds": taken, "cpu_seconds": used}


# -- goals --------------------------------------------------------------------------------


def goals(report: Report) -> list[AccuracyGoal]:
    """Return every goal with what was reached."""
    rows = [*_virtual_goals(report["virtual"])]
    if "real" in report:
        rows += [_real_goal(name, found) for name, found in report["real"].items()]
    if "time" in report:
        least, goal = min(report["time"]["seconds"]), HELD_OUT["time"]["goal_s"]
        what = f"bsp predict on {report['time']['traces']} traces"
        cpu = min(report["time"]["cpu_seconds"])
        reached = f"{least:.2f} s, of which {cpu:.2f} s of CPU time (the least of 7)"
        rows.append(AccuracyGoal(what, reached, f"{goal} s", least <= goal))
    return rows


def _virtual_goals(found: Report) -> Iterator[AccuracyGoal]:
    centres = [(program, each) for program, part in found.items() for each in part["cost_centres"]]
    refused = sum(
        any(each[name]["predicted"] is None for name in ("supersteps", "h")) for _, each in centres
    )
    for quantity in ("supersteps", "h"):
        fixed = [each[quantity] for _, each in centres if _is_fixed(each[quantity])]
        known = [each for each in fixed if each["predicted"] is not None]
        exact = sum(_is_exact(each) for each in known)
        yield AccuracyGoal(
            f"{quantity} that do not depend on the data: exact, of those not refused",
            f"{exact} of {len(known)}; {len(fixed) - len(known)} refused",
            "all",
            exact == len(known),
        )
    free = [
        each[name]
        for _, each in centres
        for name in ("supersteps", "h")
        if not _is_fixed(each[name])
    ]
    known = [each for each in free if each["predicted"] is not None]
    limit = HELD_OUT["virtual"]["goals"]["data_dependent"]
    near = sum(each["error"] is not None and abs(each["error"]) <= limit for each in known)
    yield AccuracyGoal(
        "what depends on the data: within 5%, of those not refused",
        f"{near} of {len(known)}; {len(free) - len(known)} refused",
        "all",
        near == len(known),
    )
    most = HELD_OUT["virtual"]["goals"]["refused"]
    yield AccuracyGoal(
        "cost centres refused",
        f"{refused} of {len(centres)}",
        f"{most:.0%}",
        refused <= most * len(centres),
    )


def _is_fixed(found: Report) -> bool:
    """Whether a quantity is the same for all seeds, and has an exact law."""
    return len(set(found["measured"])) == 1 and (len(found["measured"]) == 1 or found["exact"])


def _is_exact(found: Report) -> bool:
    return abs(found["predicted"] - found["measured"][0]) <= _SAME * max(found["measured"][0], 1)


def _real_goal(condition: str, found: Report) -> AccuracyGoal:
    settings = HELD_OUT["real"]
    errors = [
        abs(each["error"])
        for part in found.values()
        for each in part["cost_centres"]
        if each["part"] > settings["above"] and each["predicted"] is not None
    ]
    reached = mean(errors)
    return AccuracyGoal(
        f"computation, p = 2, n x 8, {condition.replace('_', ' ')}: mean error of {len(errors)} "
        "cost centres above 5%",
        f"{reached:.1%}, median {median(errors):.1%}, at most {max(errors):.1%}",
        f"{settings['goal']:.0%}",
        reached <= settings["goal"],
    )


def _last_real() -> Report:
    """Return what the last result says of real processes, and from which commit that is."""
    last = read(RESULTS / "nodes.json")
    origin = last.get("real_of") or {key: last[key] for key in ("commit", "date")}
    return {"real": last["real"], "real_of": origin}


@click.command()
@click.option("--traces", type=click.Path(path_type=Path), help="Folder for the traces, kept.")
@click.option("--part", default="held_out", type=click.Choice(["develop", "held_out"]))
@click.option(
    "--program",
    "programs",
    multiple=True,
    type=click.Choice(list(HELD_OUT["virtual"]["programs"])),
    help="Only these programs on virtual processors; the result names those left out.",
)
@click.option("--no-real", is_flag=True, help="Leave out the real processes.")
@click.option(
    "--kept-real",
    is_flag=True,
    help="Keep the real processes of the last result, which then names their commit and date.",
)
@click.option("--trial", is_flag=True, help="Write the result into out/benchmarks.")
def main(
    traces: Path | None,
    part: str,
    programs: tuple[str, ...],
    no_real: bool,
    kept_real: bool,
    trial: bool,
) -> None:
    """Fit small runs, predict the large ones, and compare with the goals."""
    circumstances = Circumstances()
    with tempfile.TemporaryDirectory() as temporary:
        folder = traces or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        every = tuple(HELD_OUT["virtual"]["programs"])
        chosen = programs or every
        report: Report = {
            "part": part,
            "left_out": [program for program in every if program not in chosen]
            + (["real processes"] if no_real else []),
            "virtual": virtual(folder, part, chosen),
        }
        if kept_real:
            report |= _last_real()
        elif not no_real:
            report["real"] = real(folder)
        report["time"] = duration(folder)
    partial = trial or part != "held_out"
    keep(circumstances.document("nodes"), report, goals(report), trial=partial)


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.bench_nodes")
