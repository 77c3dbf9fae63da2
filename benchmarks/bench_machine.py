"""The accuracy of a probed Machine: the probe, replays of other runs, sim against shm, OBSP*.

``python -m benchmarks.bench_machine`` takes about ten minutes on an idle computer and writes
``benchmarks/results/machine.json`` with every cell. What is held out is fixed in
``benchmarks/prediction/held_out_machine.toml``.
"""

from __future__ import annotations

import multiprocessing
import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from pathlib import Path

import click
import numpy as np
import numpy.random  # loaded before all runs, since it takes 10 ms, which no model is about

import bsplib
from benchmarks.accuracy import AccuracyGoal, Report, keep
from benchmarks.lent import borrow_memory
from benchmarks.prediction.settings import MACHINE as SETTINGS
from benchmarks.provenance import Circumstances
from bsplib.apps.fourier import fft
from bsplib.apps.prediction.experiments import EXPERIMENTS, RunSetup, Shape
from bsplib.apps.prediction.prediction import predict as predict_large
from bsplib.apps.sorting import bitonic_sort, psrs, sample_sort
from bsplib.apps.sql import arrow
from bsplib.apps.sql import program as sql
from bsplib.backends.sim.port import SimPort
from bsplib.machine import Machine
from bsplib.machine.probing.probe import counts_of, probe
from bsplib.profiler.models.prediction import MEASURED, predict
from bsplib.profiler.prices import choose_prices
from bsplib.recording.trace import read_trace

_PROGRAMS: dict[str, Callable[..., object]] = {
    "bitonic sort": bitonic_sort.main,
    "sample sort": sample_sort.main,
    "PSRS": psrs.main,
    "FFT": fft.main,
    "SQL": sql.main,
}
_MODEL = "OBSP*"


def timed(bsp: bsplib.Group, name: str, size: int) -> float:
    """Run a program; return the seconds from the start of the run to its end here."""
    _PROGRAMS[name](bsp, size)
    return bsp.time()


# -- the probe --------------------------------------------------


def measure_probe() -> tuple[Machine, Report]:
    """Probe twice; return the first Machine, and how well it fits and how far they differ."""
    first, second = (probe(2, "here", counts=counts_of(None)).machine for _ in range(2))
    rows = []
    for one, two in zip(first.measured, second.measured, strict=True):
        times = [(one.empty, two.empty)]
        for pattern, curve in one.patterns.items():
            times += zip(curve.seconds, two.patterns[pattern].seconds, strict=True)
        pairs = np.array(times)
        between = np.abs(pairs[:, 0] - pairs[:, 1]) / pairs.min(axis=1)
        rows.append(
            {
                "p": one.p,
                "misfit": one.misfit,
                "spread_of_rounds": one.spread,
                "spread_of_two_probes": {
                    "mean": float(between.mean()),
                    "greatest": float(between.max()),
                },
            }
        )
    return first, {"counts": rows, "machine": first.text()}


# -- runs on shm and sim ----------------------------------------


def _uncharged(port: SimPort, seconds: float) -> None:
    """Do nothing, in place of :meth:`SimPort.charge`."""


@contextmanager
def measured_computation() -> Iterator[None]:
    """Let virtual processors measure their computation although a program charges for it."""
    before = SimPort.charge
    SimPort.charge = _uncharged  # type: ignore[method-assign]
    try:
        yield
    finally:
        SimPort.charge = before  # type: ignore[method-assign]


def virtual_s(name: str, size: int, nprocs: int, machine: Machine) -> float:
    """Return the virtual seconds of a run, which is made in a new process."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def run() -> None:
        with measured_computation():
            how: Report = {"nprocs": nprocs, "backend": "sim", "machine": machine}
            sender.send(max(bsplib.run(timed, name, size, **how)))

    process = context.Process(target=run)
    process.start()
    sender.close()
    try:
        return float(receiver.recv())
    finally:
        process.join()


def measure_programs(
    machine: Machine, repeats: int, advance: Callable[[str], object]
) -> list[Report]:
    """Run every cell on shm and sim in turns; return their times, and the replays of the traces."""
    settings = SETTINGS["programs"]
    cells = [
        {"program": name, "size": size, "p": nprocs, "shm_s": [], "sim_s": [], "replays": []}
        for name, sizes in settings["sizes"].items()
        for size, nprocs in product(sizes, settings["nprocs"])
    ]
    with tempfile.TemporaryDirectory(prefix="bsp-machine-") as folder:
        path = Path(folder, "run.bsp")
        for number in range(repeats):
            for cell in cells:
                what = cell["program"], cell["size"]
                advance(f"repeat {number + 1}: {what[0]}, {what[1]}, p = {cell['p']}")
                borrow_memory()
                took = bsplib.run(timed, *what, nprocs=cell["p"], profile=path)
                cell["shm_s"].append(max(took))
                cell["replays"].append(replayed(path, machine))
                path.unlink()
                borrow_memory()
                cell["sim_s"].append(virtual_s(*what, cell["p"], machine))
    return [_summary(cell) for cell in cells]


def replayed(path: Path, machine: Machine) -> Report:
    """Replay the run in a trace on the Machine; return totals and cost centres."""
    (run,) = read_trace(path).runs
    prediction = predict(run, choose_prices(run, machine), [_MODEL])
    took, found = prediction.totals[MEASURED], prediction.totals[_MODEL]
    graph = prediction.callgraph.graph
    leaves = []
    for node, parts in prediction.nodes[MEASURED].items():
        if graph.succ[node]:
            continue
        leaves.append(
            {
                "cost_centre": graph.nodes[node]["node"].name,
                "measured_s": parts.exchange_s,
                "predicted_s": prediction.nodes[_MODEL][node].exchange_s,
            }
        )
    return {
        "measured_s": took.total_s,
        "predicted_s": found.total_s,
        "comp_s": [took.comp_s, found.comp_s],
        "comm_s": [took.exchange_s, found.exchange_s],
        "cost_centres": leaves,
    }


def _summary(cell: Report) -> Report:
    """Add medians, and keep the replay of the run with the median time."""
    order = np.argsort(cell["shm_s"])
    middle = int(order[len(order) // 2])
    shm_s, sim_s = statistics.median(cell["shm_s"]), statistics.median(cell["sim_s"])
    replays = cell.pop("replays")
    return cell | {"error": abs(sim_s - shm_s) / shm_s, "replay": replays[middle]}


# -- OBSP* ------------------------------------------------------


def measure_obsp() -> list[Report]:
    """Predict large runs of the FFT and the sample sort from small ones."""
    settings = SETTINGS["obsp"]
    place = RunSetup("shm", "shared-memory", settings["repeats"])
    rows = []
    for name in settings["programs"]:
        experiment = EXPERIMENTS[name]
        small = experiment.small(2**17, 2, fine=True)
        large = [Shape(2**power, 2) for power in settings["powers"]]
        for row in predict_large(experiment, place, small, large).rows:
            pairs = {
                "total": (row.measured.total_s, row.predicted.total_s),
                "computation": (row.measured.comp_s, row.predicted.comp_s),
                "communication": (row.measured.comm_s, row.predicted.comm_s),
            }
            rows.append(
                {"program": name, "size": row.size} | {k: list(v) for k, v in pairs.items()}
            )
    return rows


# -- goals ------------------------------------------------------


def goals(report: Report) -> list[AccuracyGoal]:
    """Return every goal with what was reached."""
    return [
        *_probe_goals(report["probe"]),
        *_replay_goals(report["programs"]),
        *_sim_goals(report["programs"]),
        *_obsp_goals(report["obsp"]),
    ]


def _probe_goals(found: Report) -> Iterator[AccuracyGoal]:
    wanted = SETTINGS["probe"]["goals"]
    for row in found["counts"]:
        title = f"probe, p = {row['p']}"
        spread = row["spread_of_two_probes"]["mean"]
        if row["misfit"] is not None:
            reached, goal = row["misfit"], wanted["misfit"]
            yield AccuracyGoal(f"{title}: misfit", f"{reached:.1%}", f"{goal:.0%}", reached <= goal)
        goal = wanted["spread"]
        yield AccuracyGoal(
            f"{title}: mean difference of two probes",
            f"{spread:.1%}",
            f"{goal:.0%}",
            spread <= goal,
        )


def _replay_goals(cells: list[Report]) -> Iterator[AccuracyGoal]:
    settings = SETTINGS["replay"]
    wanted = settings["goals"]
    errors, totals = [], []
    for cell in cells:
        replay = cell["replay"]
        if cell["p"] == 1:
            continue
        totals.append(abs(replay["predicted_s"] / replay["measured_s"] - 1))
        errors += [
            abs(each["predicted_s"] / each["measured_s"] - 1)
            for each in replay["cost_centres"]
            if each["measured_s"] > settings["least_part"] * replay["measured_s"]
        ]
    within = sum(error <= wanted["within"] for error in errors)
    part = within / len(errors) if errors else 1.0
    yield AccuracyGoal(
        f"replay: communication of cost centres within {wanted['within']:.0%}",
        f"{within} of {len(errors)}",
        f"{wanted['part_within']:.0%}",
        part >= wanted["part_within"],
    )
    yield AccuracyGoal(
        "replay: greatest error of a total",
        f"{max(totals):.1%}",
        f"{wanted['total']:.0%}",
        max(totals) <= wanted["total"],
    )


def _sim_goals(cells: list[Report]) -> Iterator[AccuracyGoal]:
    settings = SETTINGS["sim"]
    wanted = settings["goals"]
    chosen = {(cell["program"], cell["p"]): cell for cell in cells}  # the longer size is last
    long = [
        cell for cell in chosen.values() if statistics.median(cell["shm_s"]) >= settings["least_s"]
    ]
    within = sum(cell["error"] <= wanted["within"] for cell in long)
    goal = f"{wanted['cells']} of {wanted['of']}"
    yield AccuracyGoal(
        f"sim against shm: cells within {wanted['within']:.0%}",
        f"{within} of {len(long)}",
        goal,
        within >= wanted["cells"],
    )
    errors = [abs(min(cell["sim_s"]) / min(cell["shm_s"]) - 1) for cell in long]
    least = sum(error <= wanted["within"] for error in errors)
    yield AccuracyGoal(
        "sim against shm, the least of the repeats in place of the median",
        f"{least} of {len(long)}, at most {max(errors):.1%}",
        goal,
        None,  # the median counts; this tells what other work of the computer adds to it
    )
    spread = statistics.median(max(cell["shm_s"]) / min(cell["shm_s"]) - 1 for cell in long)
    yield AccuracyGoal("runs of shm: median spread of the repeats", f"{spread:.1%}", "", None)


def _obsp_goals(rows: list[Report]) -> Iterator[AccuracyGoal]:
    wanted = SETTINGS["obsp"]["goals"]
    for name in sorted({row["program"] for row in rows}):
        for part, goal in wanted.items():
            pairs = np.array([row[part] for row in rows if row["program"] == name])
            error = float(np.mean(np.abs(pairs[:, 1] / pairs[:, 0] - 1)))
            yield AccuracyGoal(
                f"OBSP*, {name}: mean error, {part}", f"{error:.1%}", f"{goal:.0%}", error <= goal
            )


@click.command()
@click.option("--repeats", default=SETTINGS["programs"]["repeats"], help="Repeats of each program.")
@click.option("--trial", is_flag=True, help="Write the result into out/benchmarks.")
@click.option("--without-obsp", is_flag=True, help="Leave out OBSP*, which takes minutes.")
def main(repeats: int, trial: bool, without_obsp: bool) -> None:
    """Probe, run, simulate and replay; compare with the goals."""
    circumstances = Circumstances()
    arrow.load()  # as numpy.random
    machine, found = measure_probe()
    machine = replace(machine, name="here")
    report: Report = {"probe": found}
    report["programs"] = measure_programs(machine, repeats, lambda what: click.echo(what, err=True))
    report["obsp"] = [] if without_obsp else measure_obsp()
    keep(circumstances.document("machine"), report, goals(report), trial=trial)


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.bench_machine")
