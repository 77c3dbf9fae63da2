"""Applications that move much between hosts, each run and recorded in the same way everywhere.

``python -m tests.hosts.applications NAME BACKEND TRACE FILE`` runs one of them, records it in the
file TRACE, and writes a digest of each result to FILE. The program of a run is the application
itself, with nothing around it.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import bsplib
from bsplib.apps.broadcast import broadcast
from bsplib.apps.fourier import fft, fft_cyclic
from bsplib.apps.sorting import sample_sort
from bsplib.apps.sql import program as queries
from bsplib.apps.sql.arrow import pa
from bsplib.apps.sql.generate import Generator
from bsplib.backends.table import own_rank
from bsplib.profiler.callgraph import Cost, build
from bsplib.profiler.costs import partner_records
from bsplib.recording.records import Run
from bsplib.recording.trace import read_trace
from tests.hosts.hosts import Hosts
from tests.hosts.launching import on_ranks_of
from tests.mpi_installations import Mpi
from tests.processes import run_command

HOSTS = 4


class Application(NamedTuple):
    """A program, its arguments, and its number of processes."""

    main: Callable[..., Any]
    arguments: tuple[Any, ...]
    nprocs: int = HOSTS


APPLICATIONS = {
    "sort": Application(sample_sort.main, (20_000_000,)),
    "queries": Application(queries.main, (Generator(20_000, items=10_000),)),
    "broadcasts": Application(broadcast.main, (1_000_000, 2, 4)),
    "figure-3": Application(broadcast.main, (4096, 2, 4), nprocs=16),
    "fft": Application(fft.main, (4096,)),
    "fft-cyclic": Application(fft_cyclic.main, (1 << 23,)),
}


def run(name: str, backend: str, trace: Path) -> list[str]:
    """Run an application here; return a digest of what each process returned, by pid."""
    main, arguments, nprocs = APPLICATIONS[name]
    results = bsplib.run(main, *arguments, nprocs=nprocs, backend=backend, profile=trace)
    return [_digest(result) for result in results]


def run_across(hosts: Hosts, mpi: Mpi, name: str, trace: Path) -> list[str]:
    """Run an application with as many ranks on each host; the caller is on host 0.

    Raises:
        subprocess.CalledProcessError: it failed; ``stderr`` says why.
    """
    told = trace.with_suffix(".json")
    words = "-m", __spec__.name, name, "mpi", trace, told
    line = on_ranks_of(hosts, mpi, APPLICATIONS[name].nprocs // HOSTS, *words)
    run_command(*line, timeout=500, check=True)
    found: list[str] = json.loads(told.read_text(encoding="utf-8"))
    return found


def _digest(result: Any) -> str:
    """Return a digest of all bits of a result, but for the times in it."""
    found = hashlib.sha256()
    if isinstance(result, queries.ProcessAnswer):
        found.update(repr(result.rows).encode())
        for name, table in result.tables.items():
            found.update(f"{name} {table.schema} {table.num_rows}".encode())
            with pa.ipc.new_stream(sink := pa.BufferOutputStream(), table.schema) as stream:
                stream.write_table(table.combine_chunks())
            found.update(sink.getvalue())
    else:
        found.update(f"{result.dtype} {result.shape}".encode())
        found.update(np.ascontiguousarray(result))
    return found.hexdigest()


# -- what was recorded ----------------------------------------------------------------------------


def bytes_between_hosts(run: Run) -> int:
    """Return the bytes of all transfers whose processes are on different hosts."""
    _, host = np.unique(run.meta["hosts"], return_inverse=True)
    pids = run.records["pid"]
    caller, partner = run.traffic["record"], partner_records(run)
    moved = host[pids[caller]] != host[pids[partner]]
    return int(run.traffic["bytes"][moved].sum())


@dataclass(frozen=True)
class Centre:
    """The part of a node's cost that neither the computer nor its load can change."""

    count: int
    h: tuple[float, float, float]
    """Maximum, average and minimum."""
    by_process: tuple[float, ...]
    """The h of each process."""

    @classmethod
    def of(cls, cost: Cost) -> Centre:
        """Return it, given all of the cost."""
        h = cost.h
        return cls(cost.count, (h.maximum, h.average, h.minimum), tuple(h.pie))


def centres(run: Run) -> dict[str, Centre]:
    """Return supersteps and h of all nodes of the call graph: functions and cost centres."""
    nodes = build(run).graph.nodes(data=True)
    return {
        f"{attributes['node'].name} ({name})": Centre.of(attributes["cost"])
        for name, attributes in nodes
    }


def read(trace: Path) -> Run:
    """Return the only run of a trace."""
    (run,) = read_trace(trace).runs
    return run


if __name__ == "__main__":
    which, where, into, file = sys.argv[1:]
    done = run(which, where, Path(into))
    if not own_rank():
        Path(file).write_text(json.dumps(done), encoding="utf-8")
