"""Traces of runs that are too long to be made by running them.

Each process puts into its right neighbour in each superstep, so there is one row of traffic for
each record. The records are in the order of a trace that was recorded: process by process.

``python -m benchmarks.cases.large_runs FILE`` reads one; it prints the seconds until its losses are
there.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import Case
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


def losses_cases(stack: ExitStack) -> Sequence[Case]:
    """Write a trace with as many rows of traffic as records, and read it in new processes."""
    path = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "ring.bsp"
    write_archive(path, Trace((ring(16, 10**6),)))
    return [Case("16 processes, 10^6 supersteps: until the losses", partial(_seconds_of, path))]


def _seconds_of(path: Path) -> float:
    """Read a trace and book its losses in a new process; return the seconds that it took."""
    command = [sys.executable, "-m", __name__, str(path)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main(path: Path) -> None:
    """Read a trace; print the seconds until its losses are there."""
    began = time.perf_counter()
    (run,) = read_trace(path).runs
    book_graph(build(run)).verdict()
    print(time.perf_counter() - began)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
