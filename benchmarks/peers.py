"""What bsplib is measured against: multiprocessing, and the limits of the machine."""

from __future__ import annotations

import mmap
import multiprocessing
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from numpy.typing import NDArray

FORK = multiprocessing.get_context("fork")
"""The start method of all peers: the fastest there is."""


def forked(nprocs: int, body: Callable[[int], float]) -> float:
    """Run ``body(pid)`` in processes of their own; return what process 0 returned."""
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


def per_turn(count: int, turn: Callable[[], Any]) -> float:
    """Call something many times; return the seconds of one."""
    began = time.perf_counter()
    for _ in range(count):
        turn()
    return (time.perf_counter() - began) / count


class SpinBarrier:
    """The least that two processes on a core each can wait for each other from Python."""

    def __init__(self, nprocs: int) -> None:
        self._turns = memoryview(mmap.mmap(-1, 64 * nprocs)).cast("q")
        self._others = nprocs
        self._turn = 0

    def wait(self, pid: int) -> None:
        """Return when all processes are here."""
        self._turn = turn = self._turn + 1
        turns = self._turns
        turns[8 * pid] = turn
        for other in range(self._others):
            while turns[8 * other] < turn:
                pass


def spin_barrier(nprocs: int, count: int) -> float:
    """Return the seconds of one meeting at a spin barrier."""
    barrier = SpinBarrier(nprocs)
    return forked(nprocs, lambda pid: per_turn(count, lambda: barrier.wait(pid)))


def library_barrier(nprocs: int, count: int) -> float:
    """Return the seconds of one meeting at a ``multiprocessing.Barrier``."""
    barrier = FORK.Barrier(nprocs)

    def body(_: int) -> float:
        barrier.wait()
        return per_turn(count, barrier.wait)

    return forked(nprocs, body)


def shared_bytes(nbytes: int) -> NDArray[np.uint8]:
    """Return bytes that this process shares with those that it forks."""
    return np.frombuffer(mmap.mmap(-1, nbytes), np.uint8)


def copy_between_barriers(nbytes: int, count: int) -> float:
    """Return the seconds of a copy into shared memory between two spin barriers."""
    barrier, target = SpinBarrier(2), shared_bytes(nbytes)

    def body(pid: int) -> float:
        source = np.ones(nbytes, np.uint8)

        def turn() -> None:
            barrier.wait(pid)
            if pid == 0:
                np.copyto(target, source)
            barrier.wait(pid)

        turn()
        return per_turn(count, turn)

    return forked(2, body)


def plain_copy(nbytes: int, count: int) -> float:
    """Return the seconds of ``np.copyto`` in a process alone."""

    def body(_: int) -> float:
        source, target = np.ones(nbytes, np.uint8), shared_bytes(nbytes)
        np.copyto(target, source)
        return per_turn(count, lambda: np.copyto(target, source))

    return forked(1, body)


def pipe_messages(messages: int, count: int) -> float:
    """Return the seconds of a message of 8 bytes through a ``multiprocessing.Pipe``.

    They go in batches; the receiver answers each batch once.
    """
    ends = FORK.Pipe()

    def body(pid: int) -> float:
        return per_turn(count, lambda: _batch(ends[pid], messages, sends=pid == 0)) / messages

    return forked(2, body)


def _batch(end: Connection, messages: int, *, sends: bool) -> None:
    if sends:
        for _ in range(messages):
            end.send_bytes(b"8 bytes.")
        end.recv_bytes()
    else:
        for _ in range(messages):
            end.recv_bytes()
        end.send_bytes(b"")


def empty(_: int) -> None:
    """Do nothing, in a process of a pool."""


def library_pool(nprocs: int) -> None:
    """Start a ``multiprocessing.Pool``, have each process do nothing, end it."""
    with FORK.Pool(nprocs) as pool:
        pool.map(empty, range(nprocs), chunksize=1)
        pool.close()
        pool.join()
