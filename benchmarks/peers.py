"""The peers of bsplib: multiprocessing, and programs that show the limits of the computer."""

from __future__ import annotations

import mmap
import multiprocessing
import os
import time
from collections.abc import Callable
from multiprocessing.connection import Connection

import numpy as np
from numpy.typing import NDArray

from benchmarks.rereading import seconds_of_transfer
from benchmarks.timing import seconds_each

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


def spin_barrier(nprocs: int, count: int) -> float:
    """Return the seconds of a barrier that spins."""
    flags = shared_flags(nprocs)
    return forked(nprocs, lambda pid: seconds_each(count, spinning(flags, nprocs, pid)))


def library_barrier(nprocs: int, count: int) -> float:
    """Return the seconds of a ``multiprocessing.Barrier``."""
    barrier = FORK.Barrier(nprocs)
    return forked(nprocs, lambda _: seconds_each(count, barrier.wait))


# -- copies ---------------------------------------------------------------------------------


def shared_bytes(nbytes: int) -> NDArray[np.uint8]:
    """Return bytes that this process shares with its forked processes."""
    return np.frombuffer(mmap.mmap(-1, nbytes), np.uint8)


def copies_between_barriers(nprocs: int, nbytes: int, count: int) -> float:
    """Return the seconds of a copy to the next process's memory between two barriers."""
    flags = shared_flags(nprocs)
    targets = [shared_bytes(nbytes) for _ in range(nprocs)]

    def body(pid: int) -> float:
        wait, copy = spinning(flags, nprocs, pid), np.copyto
        source, target = np.ones(nbytes, np.uint8), targets[(pid + 1) % nprocs]

        def turn() -> None:
            wait()
            copy(target, source)
            wait()

        return seconds_each(count, turn)

    return forked(nprocs, body)


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


def copies_by_an_outbox(nprocs: int, nbytes: int, count: int) -> float:
    """Return the seconds of the two copies that a put needs, with two barriers.

    A put copies its values at the call, and writes them at the end of the superstep: each
    process copies its source into shared memory, and the receiver copies it from there.
    """
    flags = shared_flags(nprocs)
    outboxes = [shared_bytes(nbytes) for _ in range(nprocs)]

    def body(pid: int) -> float:
        wait, copy, outbox = spinning(flags, nprocs, pid), np.copyto, outboxes[pid]
        source, target = np.zeros(nbytes, np.uint8), np.zeros(nbytes, np.uint8)
        left = outboxes[(pid - 1) % nprocs]

        def transfer(_: int) -> None:
            wait()  # all have copied what was there before
            copy(outbox, source)
            wait()
            copy(target, left)

        return seconds_of_transfer(count, source, [target], transfer)

    return forked(nprocs, body)


def random_words(nprocs: int, count: int, number: int) -> float:
    """Return the seconds for each word that ``np.put`` writes to a random place.

    Every process works alone, in memory as large as that of all processes together.
    """

    def body(pid: int) -> float:
        random = np.random.default_rng(pid)
        places, values = random.integers(nprocs * number, size=number), random.random(number)
        words = np.zeros(nprocs * number)
        return seconds_each(count, lambda: np.put(words, places, values)) / number

    return forked(nprocs, body)


# -- messages -------------------------------------------------------------------------------


def pipe_messages(count: int, number: int) -> float:
    """Return the seconds of a message of 8 bytes through a ``multiprocessing.Pipe``.

    The messages are sent in batches, and the receiver answers each batch once.
    """
    ends = FORK.Pipe()

    def body(pid: int) -> float:
        return seconds_each(count, lambda: _batch(ends[pid], number, sends=pid == 0)) / number

    return forked(2, body)


def _batch(end: Connection, number: int, *, sends: bool) -> None:
    if sends:
        for _ in range(number):
            end.send_bytes(b"8 bytes.")
        end.recv_bytes()
    else:
        for _ in range(number):
            end.recv_bytes()
        end.send_bytes(b"")


# -- starts ---------------------------------------------------------------------------------


def empty(_: int) -> None:
    """Do nothing, in a process of a pool."""


def library_pool(nprocs: int) -> None:
    """Start a ``multiprocessing.Pool``, run an empty function in each process, and end it."""
    with FORK.Pool(nprocs) as pool:
        pool.map(empty, range(nprocs), chunksize=1)
        pool.close()
        pool.join()


def two_reads_of_the_cpu_clock(count: int = 10_000) -> float:
    """Return the seconds that two reads of the clock of a thread's CPU time take."""
    began = time.perf_counter()
    for _ in range(count):
        time.thread_time_ns()
        time.thread_time_ns()
    return (time.perf_counter() - began) / count
