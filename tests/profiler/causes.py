"""Programs on two real processes that each lose time for one planted cause.

Each names its seconds: what is lost of the elapsed time on average over the processes, as the
program itself measures it. Nothing else in them takes long.
"""

from __future__ import annotations

import fcntl
import gc
import tempfile
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

import bsplib

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 20
LONG_S = 0.02
"""What is planted in a superstep."""
SHORT_S = 0.002
"""What each process computes in a superstep."""


@dataclass(frozen=True)
class Cause:
    """A program, and what the first sentence about it has to be."""

    main: Callable[[bsplib.Group], float]
    kind: str
    words: tuple[str, ...]


def busy(seconds: float) -> float:
    """Compute for some seconds of a core; return the seconds that it really was."""
    began = time.thread_time()
    while time.thread_time() < began + seconds:
        pass
    return time.thread_time() - began


def asleep(bsp: bsplib.Group) -> float:
    """Sleep on process 1, while process 0 waits: all of it is lost twice over two processes."""
    lost = 0.0
    for _ in range(ROUNDS):
        busy(SHORT_S)
        if bsp.pid == 1:
            began = time.perf_counter()
            time.sleep(LONG_S)
            lost += time.perf_counter() - began
        bsp.sync()
    return 2 * lost


def at_a_lock(bsp: bsplib.Group) -> float:
    """Let process 1 wait for a lock of a file that process 0 holds while it sleeps."""
    path = bsp.broadcast(tempfile.mkstemp()[1] if bsp.pid == 0 else None)
    lost = 0.0
    with open(path, "w") as file:
        for _ in range(ROUNDS):
            bsp.sync()
            began = time.perf_counter()
            if bsp.pid == 0:
                fcntl.flock(file, fcntl.LOCK_EX)
                time.sleep(LONG_S)
            else:
                time.sleep(LONG_S / 10)
                fcntl.flock(file, fcntl.LOCK_EX)
            fcntl.flock(file, fcntl.LOCK_UN)
            lost += time.perf_counter() - began
            bsp.sync()
    return lost


def in_a_collection(bsp: bsplib.Group) -> float:
    """Collect garbage on process 1, which has a million objects."""
    kept = [[number] for number in range(1_000_000)] if bsp.pid == 1 else []
    lost = 0.0
    for _ in range(ROUNDS):
        bsp.sync()
        if bsp.pid == 1:
            began = time.thread_time()
            gc.collect()
            lost += time.thread_time() - began
    bsp.sync()
    return lost if kept else 0.0


def in_new_memory(bsp: bsplib.Group) -> float:
    """Touch 64 MiB for the first time on process 0, in each superstep."""
    lost = 0.0
    for _ in range(ROUNDS):
        if bsp.pid == 0:
            began = time.thread_time()
            np.ones(8 * 2**20)
            lost += time.thread_time() - began
        bsp.sync()
    return lost


def guilty(bsp: bsplib.Group) -> float:
    """Compute long on process 1, whoever calls."""
    lost = busy(LONG_S) if bsp.pid == 1 else 0.0
    bsp.sync()
    return lost


def with_twelve_callers(bsp: bsplib.Group) -> float:
    """Call one function from twelve others."""
    callers = []
    for number in range(12):
        names: dict[str, object] = {"guilty": guilty}
        exec(f"def caller{number}(bsp):\n    return guilty(bsp)", names)
        callers.append(names[f"caller{number}"])
    return sum(caller(bsp) for _ in range(3) for caller in callers)  # type: ignore[operator]


def sweep(bsp: bsplib.Group, slow: int) -> float:
    """Compute long on one process."""
    lost = busy(LONG_S if slow == 1 else LONG_S / 2) if bsp.pid == slow else 0.0
    bsp.allreduce(1)
    return lost if slow == 1 else 0.0


def alpha(bsp: bsplib.Group) -> float:
    """Wait for process 1."""
    return sweep(bsp, 1)


def beta(bsp: bsplib.Group) -> float:
    """Wait for process 0."""
    return sweep(bsp, 0)


def by_two_callers(bsp: bsplib.Group) -> float:
    """Wait for process 1 when alpha calls, and for half as long for process 0 when beta does."""
    return sum(alpha(bsp) + beta(bsp) for _ in range(ROUNDS))


def prepare() -> float:
    """Compute long; this function does not sync."""
    return busy(LONG_S)


def in_a_function_without_sync(bsp: bsplib.Group) -> float:
    """Prepare on process 0, and sync in another function."""
    lost = 0.0
    for _ in range(ROUNDS):
        if bsp.pid == 0:
            lost += prepare()
        exchange(bsp)
    return lost


def exchange(bsp: bsplib.Group) -> None:
    """Send a little, and sync."""
    bsp.send(1 - bsp.pid, b"x")
    bsp.sync()


def pass_on(bsp: bsplib.Group, block: bytes) -> None:
    """Send all of it to the other process."""
    bsp.send(1 - bsp.pid, block)
    bsp.sync()


def by_bytes(bsp: bsplib.Group) -> float:
    """Send 16 MB, then half of it; and nothing, so that g and l can be told apart."""
    for number in range(ROUNDS):
        pass_on(bsp, bytes(16_000_000 if number % 2 else 8_000_000))
        for _ in range(3):
            bsp.sync()
    return 0.0


def tick(bsp: bsplib.Group) -> None:
    """End a superstep in which nothing is done."""
    bsp.sync()


def by_supersteps(bsp: bsplib.Group) -> float:
    """End twenty thousand needless supersteps."""
    for _ in range(20_000):
        tick(bsp)
    return 0.0


def by_two_causes_that_hide_each_other(bsp: bsplib.Group) -> float:
    """Compute long on process 0 while process 1 is asleep for nearly as long."""
    lost = 0.0
    for _ in range(ROUNDS):
        if bsp.pid == 0:
            lost += busy(LONG_S)
        else:
            time.sleep(LONG_S / 2)
        bsp.sync()
    return lost / 2


CAUSES = {
    "sleep": Cause(asleep, "blocked", ("process 1 is blocked in asleep",)),
    "lock": Cause(at_a_lock, "blocked", ("blocked in at_a_lock",)),
    "garbage": Cause(in_a_collection, "fixed", ("process 1 in in_a_collection",)),
    "first touch": Cause(in_new_memory, "fixed", ("process 0 in in_new_memory",)),
    "twelve callers": Cause(
        with_twelve_callers, "fixed", ("process 1 in guilty", "and from 11 other lines")
    ),
    "two callers": Cause(by_two_callers, "fixed", ("process 1 in sweep", "called by alpha")),
    "no sync": Cause(
        in_a_function_without_sync, "fixed", ("process 0 in exchange", "without_sync")
    ),
    "bytes": Cause(by_bytes, "communication-bound", ("in transfers in pass_on",)),
    "supersteps": Cause(
        by_supersteps, "too many supersteps", ("in tick", "20000 of which move no bytes")
    ),
    "hidden": Cause(by_two_causes_that_hide_each_other, "fixed", ("process 0",)),
}
