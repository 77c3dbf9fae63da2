"""A program of mpi4py with one fault, which its first argument names."""

from __future__ import annotations

import sys
import time

import numpy as np
from mpi4py import MPI

WORLD = MPI.COMM_WORLD
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 10
LONG_S, SHORT_S = 0.03, 0.003


def work(seconds):
    """Compute for so long."""
    until = time.thread_time() + seconds
    values = np.arange(1000.0)
    while time.thread_time() < until:
        values = np.sqrt(values + 1)


def straggler():
    """Process 1 computes longer than the others."""
    total = np.zeros(1)
    for _ in range(ROUNDS):
        work(LONG_S if WORLD.rank == 1 else SHORT_S)
        WORLD.Allreduce(np.ones(1), total)  # named


def late_sender():
    """Process 1 computes before it sends."""
    value = np.zeros(10)
    for _ in range(ROUNDS):
        if WORLD.rank == 1:
            work(LONG_S)
            for other in {*range(WORLD.size)} - {1}:
                WORLD.Send(value, other)  # named
        else:
            WORLD.Recv(value, 1)


def late_receiver():
    """Process 1 computes before it receives, and the others send what no buffer holds."""
    value = np.zeros(10**6)
    for _ in range(ROUNDS):
        if WORLD.rank == 1:
            work(LONG_S)
            for other in {*range(WORLD.size)} - {1}:
                WORLD.Recv(value, other)  # named
        else:
            WORLD.Ssend(value, 1)


def fan_in():
    """All send much to process 0."""
    mine = np.zeros(10**6 // WORLD.size)
    every = np.zeros((WORLD.size, len(mine))) if WORLD.rank == 0 else None
    for _ in range(ROUNDS):
        work(SHORT_S)
        WORLD.Gather(mine, every)  # named
        WORLD.Barrier()


def sleep():
    """Process 1 sleeps."""
    for _ in range(ROUNDS):
        work(SHORT_S)
        if WORLD.rank == 1:
            time.sleep(LONG_S)
        WORLD.Barrier()  # named


if __name__ == "__main__":
    WORLD.Barrier()
    globals()[sys.argv[1]]()
