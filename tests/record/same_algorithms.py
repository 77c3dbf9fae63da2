"""Two algorithms, each once with mpi4py and once with bsplib, superstep by superstep alike.

In each, process 1 computes longer. As a program: ``same_algorithms.py NAME`` on ranks of MPI.
"""

from __future__ import annotations

import sys
import time

import numpy as np

ROUNDS, COLUMNS = 6, 50


def compute(pid):
    """Compute for some time, process 1 for longer."""
    until = time.thread_time() + (0.02 if pid == 1 else 0.002)
    while time.thread_time() < until:
        np.sqrt(np.arange(100.0))


def neighbours(pid, nprocs):
    return [other for other in (pid - 1, pid + 1) if 0 <= other < nprocs]


def values_of(pid):
    return np.random.default_rng(pid).random(400)


def jacobi_mpi(comm):
    """Halos by windows, and the greatest change by Allreduce."""
    from mpi4py import MPI  # noqa: PLC0415

    halo, total = np.zeros((2, COLUMNS)), np.zeros(1)
    window = MPI.Win.Create(halo, 8, comm=comm)
    window.Fence()
    for _ in range(ROUNDS):
        iterate_jacobi_mpi(comm, window, total)
    window.Free()


def iterate_jacobi_mpi(comm, window, total):
    row = np.ones(COLUMNS)
    for other in neighbours(comm.rank, comm.size):
        window.Put(row, other, target=COLUMNS * (other < comm.rank))
    window.Fence()
    compute(comm.rank)
    comm.Allreduce(np.ones(1), total)


def jacobi_bsp(bsp):
    halo = bsp.zeros((2, COLUMNS))
    bsp.sync()
    for _ in range(ROUNDS):
        iterate_jacobi_bsp(bsp, halo)


def iterate_jacobi_bsp(bsp, halo):
    row = np.ones(COLUMNS)
    for other in neighbours(bsp.pid, bsp.nprocs):
        bsp.put(other, row, halo, offset=COLUMNS * (other < bsp.pid))
    bsp.sync()
    compute(bsp.pid)
    bsp.allreduce(np.ones(1))


def sort_mpi(comm):
    iterate_sort_mpi(comm, np.sort(values_of(comm.rank)))


def iterate_sort_mpi(comm, mine):
    """Sample sort: samples to all, then each value to its process."""
    for _ in range(ROUNDS):
        compute(comm.rank)
        samples = np.empty(comm.size * comm.size)
        comm.Allgather(np.ascontiguousarray(mine[:: len(mine) // comm.size][: comm.size]), samples)
        splitters = np.sort(samples)[comm.size :: comm.size]
        counts = np.diff([0, *np.searchsorted(mine, splitters), len(mine)])
        theirs = np.empty(comm.size, np.int64)
        comm.Alltoall(counts, theirs)
        received = np.empty(theirs.sum())
        comm.Alltoallv([mine, counts], [received, theirs])


def sort_bsp(bsp):
    iterate_sort_bsp(bsp, np.sort(values_of(bsp.pid)))


def iterate_sort_bsp(bsp, mine):
    for _ in range(ROUNDS):
        compute(bsp.pid)
        samples = bsp.allgather(mine[:: len(mine) // bsp.nprocs][: bsp.nprocs])
        splitters = np.sort(np.concatenate(samples))[bsp.nprocs :: bsp.nprocs]
        at = np.searchsorted(mine, splitters)
        counts = np.diff([0, *at, len(mine)])
        bsp.alltoall([counts[other : other + 1] for other in range(bsp.nprocs)])
        bsp.alltoall(np.split(mine, at))


if __name__ == "__main__":
    from mpi4py import MPI

    globals()[f"{sys.argv[1]}_mpi"](MPI.COMM_WORLD)
