"""Thousands of runs of one program whose replies to gets were once overwritten.

``python tests/bsplib/soak_replies.py --runs 10000`` runs it 10,000 times on shm, on shm with the
interpreted core, and on each MPI that is installed as a wheel, whose ranks share memory. The
variants follow each other: 3, 4 and 6 processes; a partition, a split, and two partitions of other
members one after the other; recorded or not. Runs are those of a pool, since a process takes
longer to start than to run the program: a new pool begins after a number of runs that is chosen,
and with each recorded run, which is none of a pool. It prints one line of JSON for each backend,
with the number of runs, of those that were wrong, and of those that started processes.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import click
import numpy as np
from soak import BACKENDS, chosen

import bsplib
from bsplib.core import BUILD

COUNTS = (3, 4, 6)
WAYS = ("partition", "split", "other members")
SIZES = (4, 3000)
"""Elements of the array: the replies lie in a send buffer, or in a staging buffer."""


def serve(group: bsplib.Group, server: int, size: int, first: int) -> Any:
    """Let one process send nothing and serve all others; return what this one gets."""
    x = group.array(np.arange(first, first + size))
    group.sync()
    words = np.arange(size)[::-1]
    got = None if group.pid == server else group.get_at(server, words, x)
    group.sync()  # the server has nothing to send
    return got


def main(bsp: bsplib.Group, way: str, size: int, first: int) -> list[bool]:
    """Get from a process that leaves its sub-group at once, and then uses memory again."""
    right = []
    for turn in range(2):
        if way == "split":
            group = bsp.split(bsp.pid % 2)
        else:
            middle = bsp.nprocs // 2 + (turn if way == "other members" else 0)
            group = bsp.partition([bsp.nprocs] if way == "partition" else [middle, bsp.nprocs])
        with group as sub:
            begin = first + turn
            got = serve(sub, turn % sub.nprocs, size, begin)
        bsp.zeros(size)  # where a send buffer was, if that is free
        bsp.allgather(np.full(size, -1))  # where replies were staged
        right.append(got is None or np.array_equal(got, np.arange(begin, begin + size)[::-1]))
    return right


class Pools:
    """A pool for each number of processes, begun anew after some runs."""

    def __init__(self, backend: str, each: int) -> None:
        self._backend = backend
        self._each = each
        self._made: dict[int, tuple[bsplib.Pool, int]] = {}
        self.starts = 0

    def run(self, nprocs: int, *args: Any) -> list[list[bool]]:
        """Run the program."""
        pool, runs = self._made.get(nprocs, (None, self._each))
        if pool is None or runs >= self._each:
            self.drop(nprocs)
            pool, runs = bsplib.Pool(nprocs, backend=self._backend), 0
            self.starts += 1
        self._made[nprocs] = pool, runs + 1
        return pool.run(main, *args)

    def drop(self, nprocs: int) -> None:
        """End the processes of a pool."""
        if nprocs in self._made:
            self._made.pop(nprocs)[0].close()

    def close(self) -> None:
        """End all processes."""
        for nprocs in list(self._made):
            self.drop(nprocs)


def soak(backend: str, runs: int, each: int, recorded: int) -> dict[str, Any]:
    """Run the program on a backend; return what came out."""
    name, began = chosen(backend), time.monotonic()
    os.environ.pop("BSP_MPI_INSIDE", None)  # ranks of one host share memory
    pools, wrong, records = Pools(name, each), list[str](), 0
    variants = itertools.cycle(itertools.product(COUNTS, WAYS, SIZES))
    for number, (nprocs, way, size) in zip(range(runs), variants, strict=False):
        is_recorded = recorded > 0 and number % recorded == recorded - 1
        records += is_recorded
        try:
            if is_recorded:
                with tempfile.TemporaryDirectory() as folder:
                    path = Path(folder) / "run.bsp"
                    options: dict[str, Any] = {"backend": name, "profile": path}
                    found = bsplib.run(main, way, size, number, nprocs=nprocs, **options)
            else:
                found = pools.run(nprocs, way, size, number)
            if found != [[True, True]] * nprocs:
                wrong.append(f"run {number} ({nprocs}, {way}, {size}): other values")
        except Exception as error:  # noqa: BLE001  # whatever it is, it counts
            wrong.append(f"run {number} ({nprocs}, {way}, {size}): {error!r:.300}")
            pools.drop(nprocs)
    pools.close()
    return {
        "backend": backend,
        "core": BUILD,
        "runs": runs,
        "recorded": records,
        "starts_of_processes": pools.starts + records,
        "wrong": len(wrong),
        "examples": wrong[:3],
        "seconds": round(time.monotonic() - began, 1),
    }


def interpreted(options: list[str]) -> int:
    """Do the same in an interpreter with the interpreted core; return its status."""
    environment = {**os.environ, "BSPLIB_CORE": "python"}
    command = [sys.executable, __file__, "--backend", "shm", *options]
    return subprocess.run(command, env=environment, check=False).returncode


@click.command()
@click.option("--runs", default=1000, show_default=True, help="Runs on each backend.")
@click.option("--each", default=100, show_default=True, help="Runs of the processes of a pool.")
@click.option(
    "--recorded", default=49, show_default=True, help="Record one of this number of runs."
)
@click.option("--backend", type=click.Choice(BACKENDS), help="Only this one.")
def command(runs: int, each: int, recorded: int, backend: str | None) -> None:
    """Run the program many times on each backend; print what came out as lines of JSON."""
    status = 0
    for name in [backend] if backend else [each for each in BACKENDS if each != "sim"]:
        outcome = soak(name, runs, each, recorded)
        click.echo(json.dumps(outcome))
        status |= outcome["wrong"] > 0
    if backend is None and BUILD != "python":
        more = ["--runs", str(runs), "--each", str(each), "--recorded", str(recorded)]
        status |= interpreted(more)
    sys.exit(status)


if __name__ == "__main__":
    command()
