"""The memory of processes during a million supersteps of all kinds.

``python -m tests.bsplib.soak`` takes processes through them on every backend, that of MPI on each
MPI that is installed as a wheel, and prints by how many bytes they grow.
"""

from __future__ import annotations

import atexit
import json
import os
from contextlib import ExitStack
from pathlib import Path

import click
import numpy as np

import bsplib
from bsplib.backends.mpi.ranks import INSIDE
from tests.mpi_installations import MPICH, OPEN_MPI
from tests.mpi_ranks import end, ranks_of

MPIS = {f"mpi on {mpi.name}": mpi for mpi in (MPICH, OPEN_MPI) if mpi.is_here()}
TIMES_FEWER_ON_MPI = 10
"""How many times fewer supersteps are run on an MPI, which is slower."""
_ranks = ExitStack()
atexit.register(end)
LARGE = 300
"""Numbers of a message that is staged, and not part of its record."""


def chosen(backend: str) -> str:
    """Let the runs that follow be on a backend, or on one of MPIS; return what a run calls it."""
    if backend not in MPIS:
        return backend
    _ranks.close()
    os.environ[INSIDE] = "mpi"  # not by shared memory
    return _ranks.enter_context(ranks_of(MPIS[backend]))


def resident_bytes() -> int:
    """Return the memory of this process that is in RAM, shared memory among it."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096


def supersteps(bsp: bsplib.Group, count: int) -> list[int]:
    """Take a process through supersteps of all kinds; return its memory at ten moments."""
    right = (bsp.pid + 1) % bsp.nprocs
    x, values, found = bsp.zeros(1000), np.arange(1000.0), []
    bsp.sync()
    for number in range(count):
        kind = number % 10
        if kind < 4:
            bsp.put(right, float(number), x, offset=number % 1000)
            bsp.sync()
        elif kind < 6:
            bsp.send(right, values[:LARGE])
            bsp.send(bsp.pid, values[:LARGE])
            bsp.oblsync(2)
        elif kind == 6:
            assert sum(payload.size for _, _, payload in bsp.messages()) == 2 * LARGE
            bsp.hpput(right, values, x)
            bsp.sync()
        elif kind == 7:
            bsp.get(right, x)
            bsp.sync()
        elif number % 100 == 8:
            with bsp.scope():
                bsp.zeros(500)
                bsp.sync()
        elif number % 100 == 9:
            with bsp.split(bsp.pid % 2) as sub:
                sub.allreduce(sub.pid)
        else:
            bsp.sync()
        if number % max(count // 10, 1) == 0:
            found.append(resident_bytes())
    return found


def memory(usual: int) -> dict[str, int]:
    """Take each backend through supersteps; return by how many bytes its processes grow."""
    outcome = {}
    for backend, nprocs in (("shm", 2), ("sim", 4), *((mpi, 3) for mpi in MPIS)):
        count = usual // TIMES_FEWER_ON_MPI if backend in MPIS else usual
        click.echo(f"{count} supersteps on {backend}, {nprocs} processes", err=True)
        found = bsplib.run(supersteps, count, nprocs=nprocs, backend=chosen(backend))
        outcome[backend] = max(each[-1] - each[1] for each in found)
    return outcome


@click.command()
@click.option("--supersteps", default=10**6, show_default=True)
def command(supersteps: int) -> None:
    """Print by how many bytes processes grow, as JSON."""
    click.echo(json.dumps(memory(supersteps), indent=2))


if __name__ == "__main__":
    command()
