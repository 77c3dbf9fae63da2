"""The peers of bsplib: multiprocessing, and programs that show the limits of the computer."""

from __future__ import annotations

import mmap
import multiprocessing
import os
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from benchmarks.timing import seconds_each, seconds_of_transfer

FORK = multiprocessing.get_context("fork")
"""The start method of all peers, which is the fastest one."""

_LINE = 8
"""Number of words in a cache line."""


def forked(nprocs: int, body: Callable[[int], float]) -> float:
    """Run ``body(pid)`` in forked processes; return the result of process 0."""
    here, there = FORK.Pipe(duplex=False)

    def run(pid: int) -> None:
        seconds = body(pid)
        if pid == 0:
            there.send(seconds)

    processes = [FORK.Process(target=run, args=(pid,)) for pid in range(nprocs)]
    for process in processes:
        process.start()
    seconds: float = here.recv()
    for process in processes:
        process.join()
    return seconds


# -- barriers -------------------------------------------------------------------------------


def shared_flags(nprocs: int) -> memoryview:
    """Return a shared word for each process, each on its own cache line."""
    return memoryview(mmap.mmap(-1, max(mmap.PAGESIZE, 8 * _LINE * nprocs))).cast("q")


def spinning(flags: memoryview, nprocs: int, pid: int) -> Callable[[], None]:
    """Return a barrier that spins: the fastest one that can be written in Python.

    With more processes than cores, a waiting process yields its core after every test.
    """
    mine, others = _LINE * pid, [_LINE * other for other in range(nprocs) if other != pid]
    crowded, give_way = nprocs > len(os.sched_getaffinity(0)), os.sched_yield
    turn = 0

    def wait() -> None:
        nonlocal turn
        flags[mine] = turn = turn + 1
        for other in others:
            while flags[other] < turn:
                if crowded:
                    give_way()

    return wait


def library_barrier(nprocs: int, count: int) -> float:
    """Return the seconds of a ``multiprocessing.Barrier``."""
    barrier = FORK.Barrier(nprocs)
    return forked(nprocs, lambda _: seconds_each(count, barrier.wait))


# -- copies ---------------------------------------------------------------------------------


def shared_bytes(nbytes: int) -> NDArray[np.uint8]:
    """Return bytes that this process shares with its forked processes."""
    return np.frombuffer(mmap.mmap(-1, nbytes), np.uint8)


def copies_that_are_read(nprocs: int, nbytes: int, count: int) -> float:
    """Return the seconds of a copy into the next process's memory, and a barrier.

    Each process rewrites its source before the copy, and reads what has come after the barrier.
    Two targets take turns, so that one barrier is enough: no process writes where another one
    may still read.
    """
    flags = shared_flags(nprocs)
    targets = [[shared_bytes(nbytes) for _ in range(2)] for _ in range(nprocs)]

    def body(pid: int) -> float:
        wait, copy, there = spinning(flags, nprocs, pid), np.copyto, targets[(pid + 1) % nprocs]
        source = np.zeros(nbytes, np.uint8)

        def transfer(target: int) -> None:
            copy(there[target], source)
            wait()

        return seconds_of_transfer(count, source, targets[pid], transfer)

    return forked(nprocs, body)


# -- starts ---------------------------------------------------------------------------------


def empty(_: int) -> None:
    """Do nothing, in a process of a pool."""


def library_pool(nprocs: int) -> None:
    """Start a ``multiprocessing.Pool``, run an empty function in each process, and end it."""
    with FORK.Pool(nprocs) as pool:
        pool.map(empty, range(nprocs), chunksize=1)
        pool.close()
        pool.join()
