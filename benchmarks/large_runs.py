"""Traces of runs that are too long to be made by running them.

Each process puts into its right neighbour in each superstep, so there is one row of traffic for
each record. The records are in the order of a trace that was recorded: process by process.

``python -m benchmarks.large_runs write FILE NPROCS SUPERSTEPS`` writes such a trace;
``python -m benchmarks.large_runs read FILE`` prints in JSON what reading it takes.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
    Trace,
    root_group,
)
from bsplib.recording.trace import read_trace, write_archive

LINES = 40
"""Places at which supersteps end."""
_ALONE = 0.1
"""Part of the records of a process that end at a line of their own."""


def stacks() -> tuple[tuple[Frame, ...], ...]:
    """Return stacks that end at different lines of a few functions."""
    top = Frame("app.py", "main", 1, 3)
    return tuple(
        (top, Frame("app.py", f"step{line % 5}", 100 * (line % 5), 100 * (line % 5) + line))
        for line in range(LINES)
    )


def ring(nprocs: int, supersteps: int) -> Run:
    """Return a run of global syncs in which some processes end some supersteps elsewhere.

    Args:
        nprocs: number of processes.
        supersteps: number of supersteps of each of them.
    """
    rng = np.random.default_rng(1)
    shape = nprocs, supersteps
    records = np.zeros(shape, RECORD)
    records["pid"] = np.arange(nprocs)[:, np.newaxis]
    records["superstep"] = np.arange(supersteps)
    records["stack"] = _lines(rng, shape)
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
    return Run(nprocs, (root_group(nprocs),), stacks(), records.ravel(), traffic.ravel(), meta=meta)


def _lines(rng: np.random.Generator, shape: tuple[int, int]) -> NDArray[np.int64]:
    """Return the stack of each process in each superstep: of most of them the same."""
    lines = np.broadcast_to(rng.integers(0, LINES, shape[1]), shape).copy()
    alone = rng.random(shape) < _ALONE
    lines[alone] = rng.integers(0, LINES, np.count_nonzero(alone))
    return lines


def in_new_process(*arguments: object) -> dict[str, Any]:
    """Run this module with arguments; return what it prints, from JSON."""
    command = [sys.executable, "-m", "benchmarks.large_runs", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    taken: dict[str, Any] = json.loads(done.stdout)
    return taken


def _write(path: Path, nprocs: int, supersteps: int) -> dict[str, int]:
    """Write the trace of a ring."""
    write_archive(path, Trace((ring(nprocs, supersteps),)))
    return {"bytes": path.stat().st_size}


def _read(path: Path) -> dict[str, dict[str, float]]:
    """Return what has been taken when the trace, the call graph and the losses are there."""
    began, cpu_began = time.perf_counter(), time.process_time()

    def taken() -> dict[str, float]:
        return {
            "seconds": time.perf_counter() - began,
            "cpu_s": time.process_time() - cpu_began,
            "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        }

    stages = {}
    (run,) = read_trace(path).runs
    stages["trace"] = taken()
    callgraph = build(run)
    stages["graph"] = taken()
    book_graph(callgraph).verdict()
    stages["losses"] = taken()
    return stages


if __name__ == "__main__":
    what, file, *numbers = sys.argv[1:]
    do: Callable[..., object] = _write if what == "write" else _read
    print(json.dumps(do(Path(file), *map(int, numbers))))
