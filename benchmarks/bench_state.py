"""Communication of cost centres on real processes, priced with and without what came before.

``python -m benchmarks.bench_state`` probes this computer and runs four programs on 2 processes and
on twice as many as there are cores. It takes two minutes on an idle computer. For each cost centre
whose communication takes at least 1% of the run it compares the price with what was measured:
by the Machine with its state (syncs with late processes and after computations, exchanges after
the caches were swept, the first supersteps of a process), and by the same Machine without.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import click
import numpy as np

import bsplib
from benchmarks.accuracy import AccuracyGoal, Report, keep
from benchmarks.provenance import Circumstances
from bsplib.backends.table import own_cores
from bsplib.machine import Machine
from bsplib.machine.probing.probe import counts_of, load_average, probe
from bsplib.profiler.models.prediction import MEASURED, predict
from bsplib.profiler.prices import choose_prices
from bsplib.recording.trace import read_trace

_MODEL = "BSP"
_LEAST_PART = 0.01
_WITHIN = 1.5
_NODES, _TOTAL = 0.9, 0.2
"""The goals: the part of the cost centres within the factor, and the error of totals."""


def jacobi(bsp: bsplib.Group, n: int = 600, steps: int = 40) -> None:
    """Average neighbours in blocks of rows, with a halo."""
    grid = bsp.zeros((n // bsp.nprocs + 2, n))
    for _ in range(steps):
        if bsp.pid:
            bsp.put(bsp.pid - 1, grid[1], grid, at=np.s_[-1])
        if bsp.pid < bsp.nprocs - 1:
            bsp.put(bsp.pid + 1, grid[-2], grid, at=np.s_[0])
        bsp.sync()
        inner = grid[:-2, 1:-1] + grid[2:, 1:-1] + grid[1:-1, :-2] + grid[1:-1, 2:]
        grid[1:-1, 1:-1] = inner / 4


def k_means(bsp: bsplib.Group, n: int = 40_000, k: int = 16, steps: int = 20) -> None:
    """Move centres to the means of their points."""
    points = bsp.rng(1).random((n // bsp.nprocs, 4))
    centres = bsp.broadcast(points[:k] if bsp.pid == 0 else None)
    for _ in range(steps):
        nearest = ((points[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
        sums = np.zeros((k, 5))
        np.add.at(sums, nearest, np.column_stack([points, np.ones(len(points))]))
        total = bsp.allreduce(sums)
        centres = total[:, :4] / np.maximum(total[:, 4:], 1)


def sparse(bsp: bsplib.Group, n: int = 200_000, steps: int = 15) -> None:
    """Multiply an irregular sparse matrix by a vector: fetch what is needed, then add."""
    rng, own = bsp.rng(2), n // bsp.nprocs
    x = bsp.zeros(own)
    columns = rng.integers(0, own * bsp.nprocs, 4 * own)
    owner, place = columns // own, columns % own
    far = owner != bsp.pid
    for _ in range(steps):
        got = bsp.get_at(owner[far], place[far], x)
        bsp.sync()
        values = np.empty(len(columns))
        values[far], values[~far] = got, x[place[~far]]
        x[:] = values.reshape(own, 4).sum(axis=1) / 4
        bsp.sync()


def quicksort(bsp: bsplib.Group, n: int = 400_000) -> None:
    """Divide keys at a pivot between halves of the group, and go on in each."""
    _divide(bsp, bsp.rng(3).random(n // bsp.nprocs))


def _divide(bsp: bsplib.Group, keys: np.ndarray) -> None:
    if bsp.nprocs == 1:
        keys.sort()
        return
    pivot = float(bsp.allreduce(float(np.median(keys)) if len(keys) else 0.5)) / bsp.nprocs
    half, low = bsp.nprocs // 2, keys < pivot
    mine, other = (low, ~low) if bsp.pid < half else (~low, low)
    bsp.send((bsp.pid + half) % bsp.nprocs, keys[other])
    bsp.sync()
    kept = np.concatenate([keys[mine], *(part for _, _, part in bsp.messages())])
    with bsp.partition([half, bsp.nprocs]) as sub:
        _divide(sub, kept)


PROGRAMS: tuple[Callable[..., None], ...] = (jacobi, k_means, sparse, quicksort)


def stateless(machine: Machine) -> Machine:
    """Return a Machine whose supersteps cost the same whatever came before."""
    names = ("late", "apart", "evicted", "evicted_puts", "evicted_collectives", "first")
    nothing = dict.fromkeys((*names, "first_messages", "first_collectives"))
    entries = [replace(entry, **nothing) for entry in machine.measured]
    return replace(machine, measured=tuple(entries))


def compared(path: Path, machine: Machine) -> Report:
    """Return totals and communication of the cost centres of a run, with and without the state."""
    (run,) = read_trace(path).runs
    found = {
        name: predict(run, choose_prices(run, each), [_MODEL])
        for name, each in (("state", machine), ("stateless", stateless(machine)))
    }
    one = found["state"]
    took = one.totals[MEASURED].total_s
    graph = one.callgraph.graph
    leaves = [
        {
            "cost_centre": graph.nodes[node]["node"].name,
            "measured_s": parts.exchange_s,
            **{name: each.nodes[_MODEL][node].exchange_s for name, each in found.items()},
        }
        for node, parts in one.nodes[MEASURED].items()
        if not graph.succ[node] and parts.exchange_s >= _LEAST_PART * took
    ]
    totals = {name: each.totals[_MODEL].total_s for name, each in found.items()}
    return {"measured_s": took, **totals, "cost_centres": leaves}


def measure(machine: Machine, repeats: int) -> list[Report]:
    """Run all programs in turns, and keep of each the run with the median time."""
    counts = (2, 2 * own_cores())
    cells: dict[tuple[str, int], list[Report]] = {}
    with tempfile.TemporaryDirectory(prefix="bsp-state-") as folder:
        path = Path(folder, "run.bsp")
        for _ in range(repeats):
            for program in PROGRAMS:
                for p in counts:
                    bsplib.run(program, nprocs=p, profile=path)
                    cells.setdefault((program.__name__, p), []).append(compared(path, machine))
                    path.unlink()
    return [
        {"program": name, "p": p} | sorted(found, key=lambda each: each["measured_s"])[repeats // 2]
        for (name, p), found in cells.items()
    ]


def goals(cells: list[Report]) -> list[AccuracyGoal]:
    """Return the goals with what was reached, each with and without the state."""
    found = []
    for name in ("state", "stateless"):
        factors = [
            max(each[name] / each["measured_s"], each["measured_s"] / max(each[name], 1e-12))
            for cell in cells
            if cell["p"] == 2
            for each in cell["cost_centres"]
        ]
        within = sum(factor <= _WITHIN for factor in factors)
        middle = statistics.median(factors) if factors else 1.0
        found.append(
            AccuracyGoal(
                f"p = 2, communication within {_WITHIN} x, {name}",
                f"{within} of {len(factors)}, median {middle:.2f} x",
                f"{_NODES:.0%}" if name == "state" else "",
                within >= _NODES * len(factors) if name == "state" else None,
            )
        )
        errors = [abs(cell[name] / cell["measured_s"] - 1) for cell in cells if cell["p"] > 2]
        found.append(
            AccuracyGoal(
                f"more processes than cores, error of the total, {name}",
                ", ".join(f"{error:.0%}" for error in errors),
                f"{_TOTAL:.0%}" if name == "state" else "",
                max(errors) <= _TOTAL if name == "state" else None,
            )
        )
    return found


@click.command()
@click.option("--repeats", default=5, show_default=True, help="Repeats of each program.")
@click.option("--trial", is_flag=True, help="Write the result into out/benchmarks.")
def main(repeats: int, trial: bool) -> None:
    """Probe, run and compare."""
    circumstances = Circumstances()
    before = load_average()
    machine = probe(2, "here", counts=counts_of(None)).machine
    cells = measure(machine, repeats)
    load = {"before": before, "after": load_average(), "cores": os.cpu_count()}
    report: Report = {"load": load, "programs": cells, "machine": machine.text()}
    keep(circumstances.document("state"), report, goals(cells), trial=trial)


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.bench_state")
