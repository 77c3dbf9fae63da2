"""Five programs whose times are fitted and predicted, and the tables of their times.

``python -m benchmarks.prediction.kernels`` measures the cells of ``held_out.toml`` and writes
``kernels.csv``. A program is prepared once, and then run several times from sync to sync; the
least time counts, since disturbances only make a run slower. Disturbances may last for longer
than all runs of a cell: so all cells are measured again, as often as there is time.
"""

from __future__ import annotations

import csv
import itertools
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from rich.progress import track
from scipy import sparse

import bsplib
from benchmarks.prediction.settings import HELD_OUT, HERE
from benchmarks.whole.parts import cut
from bsplib.apps.fourier import common, fft

Step = Callable[[], object]
Kernel = Callable[[bsplib.Group, int, int], Step]
FILE = HERE / "kernels.csv"
OF_ANOTHER_COMPUTER = HERE / "kernels_epyc.csv"
_LEAST_S, _MOST_S = 0.02, 0.5
"""The least time for which each cell is repeated, and the most if it has its repeats."""
_MOST_TURNS = 3
"""Greatest number of turns, in each of which all cells are measured."""
_ENOUGH_S = 480.0
"""Time after which no further turn is begun."""


class KernelCell(NamedTuple):
    """One time to measure."""

    kernel: str
    part: str
    """``one``, ``two`` or ``both``, as in ``held_out.toml``."""
    n: int
    p: int
    held_out: bool


def sort(bsp: bsplib.Group, n: int, seed: int) -> Step:
    """Sort n numbers by regular samples: sort, divide, exchange, sort again."""
    mine = cut(n, bsp.pid, bsp.nprocs)
    keys = np.random.default_rng([seed, bsp.pid]).random(mine.stop - mine.start)

    def step() -> object:
        block = np.sort(keys)
        places = np.arange(bsp.nprocs) * len(block) // bsp.nprocs
        sample = np.sort(np.concatenate(bsp.allgather(block[places])))
        pivots = sample[np.arange(1, bsp.nprocs) * bsp.nprocs + bsp.nprocs // 2 - 1]
        parts = np.split(block, np.searchsorted(block, pivots))
        return np.sort(np.concatenate(bsp.alltoall(parts)), kind="stable")

    return step


def transform(bsp: bsplib.Group, n: int, seed: int) -> Step:
    """Transform n complex values, as Gonzalez et al. do."""
    values = common.signal(n, seed)
    plan = fft.prepare(bsp, n)
    out = np.ones_like(values)
    return lambda: fft.transform(bsp, out, values, plan)


def matmul(bsp: bsplib.Group, n: int, seed: int) -> Step:
    """Multiply two n x n matrices, of which each process has some rows."""
    mine = cut(n, bsp.pid, bsp.nprocs)
    left, right = np.random.default_rng([seed, bsp.pid]).random((2, mine.stop - mine.start, n))
    return lambda: left @ np.concatenate(bsp.allgather(right))


def spmv(bsp: bsplib.Group, n: int, seed: int) -> Step:
    """Multiply a sparse n x n matrix, eight elements in a row, by a vector, and iterate once."""
    mine = cut(n, bsp.pid, bsp.nprocs)
    rows = mine.stop - mine.start
    random = np.random.default_rng([seed, bsp.pid])
    columns = random.integers(n, size=8 * rows)
    matrix = sparse.csr_matrix(
        (random.random(8 * rows), columns, np.arange(0, 8 * rows + 1, 8)), (rows, n)
    )
    vector = random.random(rows)

    def step() -> object:
        result = matrix @ np.concatenate(bsp.allgather(vector))
        return result / np.sqrt(bsp.allreduce(float(result @ result)))

    return step


def wordcount(bsp: bsplib.Group, n: int, seed: int) -> Step:
    """Count the words of a text of n words, each on the process that its checksum names."""
    mine = cut(n, bsp.pid, bsp.nprocs)
    random = np.random.default_rng([seed, bsp.pid])
    places = 20_000 ** random.random(mine.stop - mine.start)
    words = [f"word{place}" for place in places.astype(int).tolist()]

    def step() -> object:
        parts: list[Counter[str]] = [Counter() for _ in range(bsp.nprocs)]
        for word, number in Counter(words).items():
            parts[crc32(word.encode()) % bsp.nprocs][word] = number
        return sum(bsp.alltoall(parts), Counter())

    return step


KERNELS: dict[str, Kernel] = {
    "sort": sort,
    "fft": transform,
    "matmul": matmul,
    "spmv": spmv,
    "wordcount": wordcount,
}


def main(bsp: bsplib.Group, name: str, n: int, seed: int, repeats: int) -> float:
    """Return the least time of a program, of the slowest process, in seconds."""
    step = KERNELS[name](bsp, n, seed)
    least, spent, done = float("inf"), 0.0, 0
    began = time.perf_counter()
    while done < repeats or spent < _LEAST_S:
        bsp.sync()
        start = bsp.time()
        step()
        bsp.sync()
        took = bsp.allreduce(bsp.time() - start, max)
        least, spent, done = min(least, took), spent + took, done + 1
        if bsp.allreduce(time.perf_counter() - began, max) > _MOST_S and done >= repeats:
            break
    return least


def cells() -> Iterator[KernelCell]:
    """Return the cells of all programs and sets."""
    kernels = HELD_OUT["kernels"]
    for part, name in itertools.product(kernels["sets"], kernels["names"]):
        settings = kernels["sets"][part]
        chosen = settings.get(name, settings)
        train = set(itertools.product(chosen["train"]["n"], chosen["train"]["p"]))
        sizes = [*chosen["train"]["n"], *chosen["test"]["n"]]
        counts = dict.fromkeys([*chosen["train"]["p"], *chosen["test"]["p"]])
        for n, p in itertools.product(sizes, counts):
            yield KernelCell(name, part, n, p, (n, p) not in train)


def measure(cell: KernelCell) -> float:
    """Run one cell; return its time in seconds."""
    kernels = HELD_OUT["kernels"]
    settings = kernels["sets"][cell.part]
    options: dict[str, Any] = {"machine": settings["machine"]} if "machine" in settings else {}
    found = bsplib.run(
        main,
        cell.kernel,
        cell.n,
        kernels["seed"],
        settings.get("repeats", kernels["repeats"]),
        nprocs=cell.p,
        backend=settings["backend"],
        **options,
    )
    return float(found[0])


def write(path: Path = FILE, chosen: Sequence[KernelCell] | None = None) -> int:
    """Measure cells and write the least time of each as CSV.

    Args:
        path: the file, which is replaced whenever all cells have been measured once more.
        chosen: the cells; default: all.

    Returns:
        How often the cells were measured.
    """
    chosen = list(cells()) if chosen is None else chosen
    least = dict.fromkeys(chosen, float("inf"))
    began = time.monotonic()
    for turn in range(1, _MOST_TURNS + 1):
        for cell in track(chosen, f"measuring the kernels, turn {turn}"):
            least[cell] = min(least[cell], measure(cell))
        _save(path, least)
        if time.monotonic() - began > _ENOUGH_S:
            break
    return turn


def _save(path: Path, least: dict[KernelCell, float]) -> None:
    unfinished = path.with_suffix(".part")
    with unfinished.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*KernelCell._fields, "seconds"])
        writer.writerows([*cell[:-1], int(cell.held_out), f"{s:.6g}"] for cell, s in least.items())
    unfinished.replace(path)


def measure_alone(path: Path = FILE, every: int = 1) -> None:
    """Measure cells in a process of its own, in which BLAS has one thread.

    A process is one of p. With BLAS threads of its own it would take the cores of the others,
    and in virtual time the waiting of these threads for each other would count as computation.

    Args:
        path: the file to write.
        every: take every n-th cell only, to try it out.
    """
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    command = [sys.executable, "-m", "benchmarks.prediction.kernels", str(path), str(every)]
    subprocess.run(command, env={**os.environ, **one}, check=True)


if __name__ == "__main__":
    into, step = (*sys.argv[1:], *(str(FILE), "1")[len(sys.argv) - 1 :])
    write(Path(into), list(cells())[:: int(step)])
