"""What a collective returns belongs to its caller, who may write into it at once."""

from __future__ import annotations

import numpy as np
import pytest

LOOPS = 12
"""How often each is tried: another process would have to read just after the write."""

SIZES = [1, 1_000, 9_000, 40_000]
"""Numbers in an array: in a record, in a send buffer, staged, and large."""


def value_of(bsp, loop, n, pid=None):
    return np.full(n, float(100 * loop + (bsp.pid if pid is None else pid)))


def broadcast(bsp, loop, n):
    return [(bsp.broadcast(value_of(bsp, loop, n) if bsp.pid == 0 else None), 100 * loop)]


def allgather(bsp, loop, n):
    found = bsp.allgather(value_of(bsp, loop, n))
    return [(each, 100 * loop + pid) for pid, each in enumerate(found)]


def gather(bsp, loop, n):
    found = bsp.gather(value_of(bsp, loop, n), root=loop % bsp.nprocs)
    return [(each, 100 * loop + pid) for pid, each in enumerate(found or [])]


def alltoall(bsp, loop, n):
    parts = [value_of(bsp, loop, n, bsp.pid * bsp.nprocs + to) for to in range(bsp.nprocs)]
    found = bsp.alltoall(parts)
    return [(x, 100 * loop + pid * bsp.nprocs + bsp.pid) for pid, x in enumerate(found)]


def scatter(bsp, loop, n):
    parts = [value_of(bsp, loop, n, to) for to in range(bsp.nprocs)] if bsp.pid == 0 else None
    return [(bsp.scatter(parts), 100 * loop + bsp.pid)]


def allreduce(bsp, loop, n):
    total = sum(100 * loop + pid for pid in range(bsp.nprocs))
    return [(bsp.allreduce(value_of(bsp, loop, n)), total)]


def reduce(bsp, loop, n):
    found = bsp.reduce(value_of(bsp, loop, n), root=loop % bsp.nprocs)
    total = sum(100 * loop + pid for pid in range(bsp.nprocs))
    return [] if found is None else [(found, total)]


def scan(bsp, loop, n):
    total = sum(100 * loop + pid for pid in range(bsp.pid + 1))
    return [(bsp.scan(value_of(bsp, loop, n)), total)]


def exscan(bsp, loop, n):
    total = sum(100 * loop + pid for pid in range(bsp.pid))
    return [(bsp.exscan(value_of(bsp, loop, n)), total)]


def message(bsp, loop, n):
    bsp.send((bsp.pid + 1) % bsp.nprocs, value_of(bsp, loop, n))
    bsp.sync()
    return [(bsp.move(), 100 * loop + (bsp.pid - 1) % bsp.nprocs)]


CALLS = [broadcast, allgather, gather, alltoall, scatter, allreduce, reduce, scan, exscan, message]


def main(bsp, call, n):
    """Return the loops in which a process got other values than were sent, or lost its own."""
    wrong, kept = [], []
    for loop in range(LOOPS):
        for found, expected in call(bsp, loop, n):
            if not (found == expected).all():
                wrong.append(loop)
            found[:] = -1.0 - len(kept)
            kept.append((loop, found))
    bsp.sync()
    return wrong + [
        loop for number, (loop, found) in enumerate(kept) if not (found == -1.0 - number).all()
    ]


@pytest.mark.every_count
@pytest.mark.procs(1, 2, 3)
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("call", CALLS)
def test_nobody_sees_what_a_process_writes_into_what_a_collective_returned(run, call, n):
    assert not any(run(main, call, n))
