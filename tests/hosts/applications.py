"""Applications that move much between hosts, each run and recorded in the same way everywhere.

``python -m tests.hosts.applications NAME SIZE BACKEND TRACE OUTCOME`` runs one of them, records it
in the file TRACE, and writes an :class:`Outcome` in JSON to the file OUTCOME. The program of a
run is the application itself, with nothing around it.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import bsplib
from bsplib.apps.broadcast import broadcast
from bsplib.apps.fourier import fft, fft_cyclic
from bsplib.apps.sorting import sample_sort
from bsplib.apps.sql import program as queries
from bsplib.apps.sql.arrow import pa
from bsplib.apps.sql.files import to_arrow, write_tables
from bsplib.apps.sql.generate import Generator
from bsplib.apps.sql.queries import INPUTS
from bsplib.backends.table import own_rank
from bsplib.profiler.callgraph import Cost, build
from bsplib.profiler.costs import partner_records
from bsplib.recording.records import Run
from bsplib.recording.trace import read_trace
from tests.hosts.hosts import Hosts
from tests.hosts.launching import on_ranks_of
from tests.mpi_installations import Mpi

HOSTS = 4


@dataclass(frozen=True)
class Application:
    """A program, and the arguments of a small run and of a large one."""

    title: str
    main: Callable[..., Any]
    small: tuple[Any, ...]
    large: tuple[Any, ...]
    """With these it moves more than 100 MB between hosts."""
    nprocs: int = HOSTS
    options: Mapping[str, Any] = field(default_factory=dict)

    def sized(self, size: str) -> tuple[Any, ...]:
        """Return the arguments of a size, ``small`` or ``large``."""
        return {"small": self.small, "large": self.large}[size]


def _relations(size: int) -> Generator:
    """Return a source of relations with enough items that most rows are sent."""
    return Generator(size, items=size // 2)


APPLICATIONS = {
    "sort": Application("Sample sort", sample_sort.main, (20_000,), (20_000_000,)),
    "queries": Application(
        "SQL queries", queries.main, (_relations(20_000),), (_relations(8_000_000),)
    ),
    "broadcasts": Application(
        "Broadcasts of one and of two stages", broadcast.main, (1000, 1, 2), (1_000_000, 2, 4)
    ),
    "figure-3": Application(
        "Figure 3 of Jarvis et al.", broadcast.main, (4096, 2, 4), (4096, 250, 500), nprocs=16
    ),
    "fft": Application("FFT by recursion", fft.main, (4096,), (1 << 22,)),
    "fft-cyclic": Application("FFT, cyclic", fft_cyclic.main, (4096,), (1 << 23,)),
}


@dataclass(frozen=True)
class Outcome:
    """What a run returned, and how long it took."""

    results: list[str]
    """A digest of what each process returned, by pid."""
    called_s: float
    """Seconds of the call of ``bsplib.run``, with the start of the processes."""


def run(name: str, size: str, backend: str, trace: Path) -> Outcome:
    """Run an application here."""
    one = APPLICATIONS[name]
    arguments = [_prepared(each, trace.parent / size) for each in one.sized(size)]
    began = time.perf_counter()
    results = bsplib.run(
        one.main,
        *arguments,
        nprocs=one.nprocs,
        backend=backend,
        profile=trace,
        **one.options,
    )
    seconds = time.perf_counter() - began
    return Outcome([_digest(result) for result in results], seconds)


def run_across(hosts: Hosts, mpi: Mpi, name: str, size: str, trace: Path) -> Outcome:
    """Run an application with as many ranks on each host; the caller is on host 0.

    Raises:
        subprocess.CalledProcessError: it failed; ``stderr`` says why.
    """
    outcome = trace.with_suffix(".json")
    words = "-m", __spec__.name, name, size, "mpi", trace, outcome
    line = on_ranks_of(hosts, mpi, APPLICATIONS[name].nprocs // HOSTS, *words)
    subprocess.run(line, capture_output=True, text=True, timeout=500, check=True)
    return Outcome(**json.loads(outcome.read_text(encoding="utf-8")))


def _prepared(argument: Any, folder: Path) -> Any:
    """Return an argument; of a generator, the files of its relations, which all hosts see.

    Each process would draw most of the relations by itself.
    """
    if not isinstance(argument, Generator):
        return argument
    folder.mkdir(exist_ok=True)
    files = {name: folder / f"{name}.parquet" for name in INPUTS}
    for name, file in files.items():
        if not file.exists():
            own = file.with_name(f"{os.getpid()}-{file.name}")  # all ranks of a run write the same
            write_tables([_table(argument, name)], own)
            own.replace(file)
    return files


def _table(generator: Generator, name: str) -> pa.Table:
    """Return a relation with the columns that are read; TRAN names all items equally often."""
    if name != "TRAN":
        return to_arrow(generator.relation(name).only(INPUTS[name]))
    random = np.random.default_rng(generator.seed)
    item = random.integers(generator.rows["ITEM"], size=generator.size, dtype=np.int32)
    return pa.table({"item": item, "units": random.integers(1, 10, len(item), np.int32)})


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


def cost_centres(run: Run) -> int:
    """Return the number of cost centres."""
    nodes = build(run).graph.nodes(data="node")
    return sum(node.kind == "cost_centre" for _, node in nodes)


def read(trace: Path) -> Run:
    """Return the only run of a trace."""
    (run,) = read_trace(trace).runs
    return run


if __name__ == "__main__":
    which, how_large, where, into, told = sys.argv[1:]
    done = run(which, how_large, where, Path(into))
    if not own_rank():
        Path(told).write_text(json.dumps(asdict(done)), encoding="utf-8")
