"""Processes take no more memory the longer they run; ``make soak`` lets them run for long."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bsplib
from tests import drawn

ROUNDS = drawn.times(500)
LARGE = 100_000
"""Values that an MPI sends by another protocol than small ones."""

pytestmark = [pytest.mark.lengthy, pytest.mark.slow]


def resident_bytes():
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096


def main(bsp, rounds):
    """Return the memory of this process after a tenth of the rounds and at the end."""
    right = (bsp.pid + 1) % bsp.nprocs
    x, values, found = bsp.zeros(LARGE), np.arange(float(LARGE)), []
    for number in range(rounds):
        bsp.put(right, values[: 1 + number % 300], x, offset=0)
        bsp.sync()
        if number % 10 == 0:
            bsp.hpput(right, values, x)
            bsp.send(right, values[: number % LARGE])
            bsp.sync()
            assert [payload.size for _, _, payload in bsp.messages()] == [number % LARGE]
        bsp.get(right, x)
        bsp.put_at(right, np.arange(100), 1.0, x, op=np.add)
        bsp.sync()
        bsp.send(right, values[:300])
        bsp.oblsync(1)
        with bsp.partition([1, bsp.nprocs]) as sub:
            sub.allreduce(sub.pid)
        if number % 10 == 5:
            with bsp.split(bsp.pid % 2) as sub:
                y = sub.zeros(1 + number % LARGE)
                sub.put(sub.nprocs - 1, values[: y.size], y)
                sub.sync()
        if number == rounds // 10:
            found.append(resident_bytes())
    return [*found, resident_bytes()]


def check(backend):
    for early, late in bsplib.run(main, ROUNDS, nprocs=3, backend=backend):
        assert late - early < 8 << 20


@pytest.mark.usefixtures("mpi", "exchange")
def test_the_memory_of_ranks_does_not_grow_with_their_supersteps():
    check("mpi")


@pytest.mark.parametrize("kind", ["shm", "sim"])
def test_the_memory_of_processes_does_not_grow_with_their_supersteps(kind):
    check(kind)
