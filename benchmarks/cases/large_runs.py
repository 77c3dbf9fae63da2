"""Traces of runs that are too long to be made by running them.

Each process puts into its right neighbour in each superstep, so there is one row of traffic for
each record. The records are in the order of a trace that was recorded: process by process.

``python -m benchmarks.cases.large_runs FILE`` reads one; it prints the seconds until its losses are
there, and the greatest memory.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import Case
from benchmarks.timing import peak_bytes
from bsplib.directions import Direction
from bsplib.profiler.callgraph import build
from bsplib.profiler.graph_book import book_graph
from bsplib.recording.records import (
    FROM_SYSTEM,
    NOT_MEASURED,
    RECORD,
    TRAFFIC,
    Frame,
    Run,
    Stack,
    Trace,
    root_group,
)
from bsplib.recording.trace import read_trace, write_archive

LINES = 40
"""Places at which supersteps end."""
_ALONE = 0.1
"""Part of the records of a process that end at a line of their own."""


def stacks() -> tuple[Stack, ...]:
    """Return stacks that end at different lines of a few functions."""
    top = Frame("app.py", "main", 1, 3)
    return tuple(
        (top, Frame("app.py", f"step{line % 5}", 100 * (line % 5), 100 * (line % 5) + line))
        for line in range(LINES)
    )


def ring(nprocs: int, supersteps: int, places: tuple[Stack, ...] = ()) -> Run:
    """Return a run of global syncs in which some processes end some supersteps elsewhere.

    Args:
        nprocs: number of processes.
        supersteps: number of supersteps of each of them.
        places: the stacks at which supersteps end; by default lines of a few functions.
    """
    places = places or stacks()
    rng = np.random.default_rng(1)
    shape = nprocs, supersteps
    records = np.zeros(shape, RECORD)
    records["pid"] = np.arange(nprocs)[:, np.newaxis]
    records["superstep"] = np.arange(supersteps)
    records["stack"] = _lines(rng, shape, len(places))
    work = rng.integers(1000, 2000, shape)
    released = np.cumsum(work.max(axis=0) + 100)
    records["start"][:, 1:] = released[:-1] + 50
    records["arrive"] = records["start"] + work
    records["released"], records["end"] = released, released + 50
    records["comm_calls"] = 20
    for name in FROM_SYSTEM:
        records[name] = NOT_MEASURED
    records["comp_cpu"] = work - 20 - rng.integers(0, 200, shape)
    traffic = np.zeros(shape, TRAFFIC)
    traffic["record"] = np.arange(nprocs * supersteps).reshape(shape)
    traffic["partner"] = ((np.arange(nprocs) + 1) % nprocs)[:, np.newaxis]
    traffic["direction"], traffic["messages"] = Direction.OUT, 1
    traffic["bytes"] = 8 * rng.integers(1, 100, shape)
    meta = {"program": "ring.py", "backend": "sim"}
    return Run(nprocs, (root_group(nprocs),), places, records.ravel(), traffic.ravel(), meta=meta)


def _lines(rng: np.random.Generator, shape: tuple[int, int], count: int) -> NDArray[np.int64]:
    """Return the stack of each process in each superstep: of most of them the same."""
    lines = np.broadcast_to(rng.integers(0, count, shape[1]), shape).copy()
    alone = rng.random(shape) < _ALONE
    lines[alone] = rng.integers(0, count, np.count_nonzero(alone))
    return lines


class _Reading:
    """Samples of a trace, each from a new process, which reads it and books its losses."""

    def __init__(self, path: Path) -> None:
        self._command = [sys.executable, "-m", __name__, str(path)]
        self.peak_bytes = 0

    def sample(self) -> float:
        """Return the seconds from the file to its losses."""
        done = subprocess.run(self._command, capture_output=True, text=True, check=True)
        seconds, peak_bytes = done.stdout.split()
        self.peak_bytes = max(self.peak_bytes, int(peak_bytes))
        return float(seconds)


def losses_cases(stack: ExitStack) -> Sequence[Case]:
    """Write traces with as many rows of traffic as records, and read each in new processes."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    cases = []
    for name, nprocs, supersteps in (
        ("16 processes, 10^6 supersteps", 16, 10**6),
        ("65,536 processes, 16 supersteps", 2**16, 16),
    ):
        path = folder / f"{nprocs}.bsp"
        write_archive(path, Trace((ring(nprocs, supersteps),)))
        reading = _Reading(path)
        cases.append(
            Case(
                f"{name}: until the losses",
                reading.sample,
                peak_bytes=lambda reading=reading: reading.peak_bytes,
            )
        )
    return cases


def main(path: Path) -> None:
    """Read a trace; print the seconds until its losses are there, and the greatest memory."""
    began = time.perf_counter()
    (run,) = read_trace(path).runs
    book_graph(build(run)).verdict()
    print(time.perf_counter() - began, peak_bytes())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
