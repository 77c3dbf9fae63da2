"""A program of mpi4py with one fault, which its first argument names; it knows nothing of bsplib.

The line of the fault has the mark ``# named``. The program measures itself what the fault costs, as
seconds of the elapsed time on average over the processes, and process 0 prints them at the end.
"""

from __future__ import annotations

import os
import sys
import time

import numpy as np
from mpi4py import MPI

WORLD = MPI.COMM_WORLD
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 10
LONG_S, SHORT_S = 0.03, 0.003
MESSAGES = 2000
"""In a round, where they are too many: on a fast MPI the program is in Python most of the time."""


def work(seconds):
    """Compute for so long; return the CPU time of it."""
    begin = time.thread_time()
    values = np.arange(1000.0)
    while time.thread_time() < begin + seconds:
        values = np.sqrt(values + 1)
    return time.thread_time() - begin


def on_a_core(seconds, ready):
    """Return elapsed seconds without those since ``ready`` in which the process had no core."""
    return seconds - (without_core() - ready)


def without_core():
    """Return the seconds for which this thread could run and had no core."""
    with open("/proc/thread-self/schedstat", encoding="ascii") as file:
        return int(file.read().split()[1]) / 1e9


def waited_for(seconds):
    """Return what is lost if all processes wait for the one that needs most."""
    each = WORLD.allgather(seconds)
    return max(each) - sum(each) / len(each)


def straggler():
    """Process 1 computes longer than the others."""
    total, spent = np.zeros(1), 0.0
    for _ in range(ROUNDS):
        spent += work(LONG_S if WORLD.rank == 1 else SHORT_S)
        WORLD.Allreduce(np.ones(1), total)  # named
    return waited_for(spent)


def late_sender():
    """Process 1 computes before it sends."""
    value, spent = np.zeros(10), 0.0
    for _ in range(ROUNDS):
        if WORLD.rank == 1:
            spent += work(LONG_S)
            for other in {*range(WORLD.size)} - {1}:
                WORLD.Send(value, other)  # named
        else:
            WORLD.Recv(value, 1)
    return waited_for(spent)


def late_receiver():
    """Process 1 computes before it receives, and the others send what no buffer holds."""
    value, spent = np.zeros(10**6), 0.0
    for _ in range(ROUNDS):
        if WORLD.rank == 1:
            spent += work(LONG_S)
            for other in {*range(WORLD.size)} - {1}:
                WORLD.Recv(value, other)  # named
        else:
            WORLD.Ssend(value, 1)
    return waited_for(spent)


def fan_in():
    """All send much to process 0."""
    mine, spent = np.ones(2 * 10**6), 0.0  # no zeros: the system gives memory at the first write
    every = np.ones((WORLD.size, len(mine))) if WORLD.rank == 0 else None
    WORLD.Gather(mine, every)  # the first one opens the ways between the processes
    for _ in range(ROUNDS):
        work(SHORT_S)
        WORLD.Barrier()
        begin, ready = time.perf_counter(), without_core()
        WORLD.Gather(mine, every)  # named
        spent += on_a_core(time.perf_counter() - begin, ready)
        WORLD.Barrier()
    return waited_for(spent)


def small_messages():
    """Neighbours exchange numbers one by one."""
    there, mine, value = WORLD.rank ^ 1, np.ones(1), np.zeros(1)
    begin, ready = time.perf_counter(), without_core()
    for _ in range(ROUNDS * MESSAGES):
        WORLD.Sendrecv(mine, there, 0, value, there)  # named
    spent = on_a_core(time.perf_counter() - begin, ready)
    return WORLD.allreduce(spent) / WORLD.size


def core():
    """All processes have one core together."""
    # A launcher may have bound each of them to another one.
    os.sched_setaffinity(0, {min(WORLD.allgather(min(os.sched_getaffinity(0))))})
    WORLD.Barrier()
    begin, spent = time.perf_counter(), 0.0
    for _ in range(ROUNDS):
        spent += work(LONG_S)
        WORLD.Barrier()
    elapsed = time.perf_counter() - begin
    return WORLD.allreduce(elapsed - spent) / WORLD.size


def sleep():
    """Process 1 sleeps."""
    spent = 0.0
    for _ in range(ROUNDS):
        work(SHORT_S)
        if WORLD.rank == 1:
            begin = time.perf_counter()
            time.sleep(LONG_S)
            spent += time.perf_counter() - begin
        WORLD.Barrier()  # named
    return WORLD.allreduce(spent)


if __name__ == "__main__":
    WORLD.Barrier()
    lost_s = globals()[sys.argv[1]]()
    if WORLD.rank == 0:
        print(lost_s)
