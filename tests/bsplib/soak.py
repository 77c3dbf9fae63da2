"""Hours of use in one go: random programs, random faults, and a million supersteps.

``python tests/bsplib/soak.py`` draws programs from seeds, runs each on every backend, that of MPI
on each MPI that is installed as a wheel, and compares it with what the contract says; then it
takes a machine through a million supersteps of all kinds and looks at its memory. It takes as
long as it takes.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
import numpy as np
from random_programs.checks import check, check_fault
from random_programs.faults import Breaker
from random_programs.seeded import program_of
from rich.progress import track

import bsplib
from bsplib.backends.mpi.launcher_environment import INSIDE

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.mpi_installations import MPICH, OPEN_MPI  # noqa: E402  # found by the line above
from tests.mpi_ranks import end, ranks_of  # noqa: E402  # as above

MPIS = {f"mpi on {mpi.name}": mpi for mpi in (MPICH, OPEN_MPI) if mpi.is_here()}
BACKENDS = ("shm", "sim", *MPIS)
TIMES_FEWER_ON_MPI = 10
"""How many times fewer supersteps are run on an MPI, which is slower."""
_ranks = ExitStack()
atexit.register(end)
LARGE = 300
"""Numbers of a message that is staged, and not part of its record."""


def chosen(backend: str) -> str:
    """Let the runs that follow be on one of BACKENDS; return what a run calls it."""
    if backend not in MPIS:
        return backend
    _ranks.close()
    os.environ[INSIDE] = "mpi"  # not by shared memory
    return _ranks.enter_context(ranks_of(MPIS[backend]))


def random_programs(count: int, first: int) -> dict[str, Any]:
    """Run right and wrong programs on each backend; return how many did what they should."""
    outcome: dict[str, Any] = {}
    for backend in BACKENDS:
        name, wrong = chosen(backend), list[str]()
        kinds: Counter[str] = Counter()
        # No thread refreshes the progress: beside one, processes could not be forked.
        seeds = track(range(first, first + count), f"programs on {backend}", auto_refresh=False)
        for seed in seeds:
            faulty = program_of(seed, Breaker)
            for what, program in (("right", program_of(seed)), ("faulty", faulty)):
                try:
                    (check if what == "right" else check_fault)(program, name, seed)
                except Exception as error:  # noqa: BLE001  # whatever it is, it counts
                    wrong.append(f"{what} program of seed {seed}: {error!r:.2000}")
            kinds[str(faulty.fault)] += 1
        outcome[backend] = {"different": wrong, "faults": dict(kinds)}
    return outcome


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
@click.option("--programs", default=2000, show_default=True, help="Programs of each kind.")
@click.option("--first", default=0, show_default=True, help="Seed of the first.")
@click.option("--supersteps", "count", default=10**6, show_default=True, help="For the memory.")
def command(programs: int, first: int, count: int) -> None:
    """Soak the machine, and write what came out as JSON."""
    outcome = {"random_programs": random_programs(programs, first), "memory": memory(count)}
    click.echo(json.dumps(outcome, indent=2))
    sys.exit(any(each["different"] for each in outcome["random_programs"].values()))


if __name__ == "__main__":
    command()
