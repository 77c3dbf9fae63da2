"""Programs on real processes that each lose time for one planted cause.

Each returns its seconds: what is lost by one process and those that wait for it, as the kernel
measures it there. The sum over the processes, divided by their number, is a part of the elapsed
time. Nothing else in them takes long.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import inspect
import mmap
import multiprocessing
import os
import tempfile
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

import bsplib
from bsplib.profiler.callgraph import build
from bsplib.profiler.graph_book import book_graph
from bsplib.profiler.kinds import CORE
from bsplib.recording.trace import read_trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from bsplib.profiler.graph_book import GraphBook
    from bsplib.profiler.loss import Loss
    from bsplib.profiler.verdict import Verdict

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
    nprocs: int = 2
    lines: bool = False
    """Whether lines are sampled."""
    line: str = ""
    """The text of the line that has to be named: that of a caller, or one that is sampled."""
    beside: int = 0
    """How many other processes compute at the same time."""
    planted: int = 1
    """How many causes were planted, of which this is one."""
    has_seconds: bool = True
    """Whether the program returns its seconds."""

    @property
    def texts(self) -> tuple[str, ...]:
        """What the sentence has to contain, with the number of the line."""
        if not self.line:
            return self.words
        (number,) = (
            number for number, text in enumerate(_SOURCE, start=1) if text.strip() == self.line
        )
        return (*self.words, f"at line {number}")


class Spent(NamedTuple):
    """What a thread has spent until now, as the kernel says, in seconds."""

    elapsed: float
    cpu: float
    ready: float
    """Ready to run, and without a core."""

    @classmethod
    def now(cls) -> Spent:
        """Read what this thread has spent."""
        with open("/proc/thread-self/schedstat") as file:
            ready = int(file.read().split()[1])
        return cls(time.perf_counter(), time.thread_time(), ready / 1e9)

    def since(self, before: Spent) -> Spent:
        """Return what was spent between two moments."""
        return Spent(*(now - then for now, then in zip(self, before, strict=True)))

    @property
    def blocked(self) -> float:
        """What is neither on a core nor ready."""
        return self.elapsed - self.cpu - self.ready


@contextlib.contextmanager
def busy_beside(count: int) -> Iterator[None]:
    """Let other processes compute until the end of the block."""
    context = multiprocessing.get_context("fork")
    others = [context.Process(target=busy, args=(3600,), daemon=True) for _ in range(count)]
    for other in others:
        other.start()
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.join()


def busy(seconds: float) -> float:
    """Compute for some seconds of a core; return the seconds that it really was.

    To read the clock is a call of the system, which would take most of the time.
    """
    began = time.thread_time()
    while time.thread_time() < began + seconds:
        sum(range(1000))
    return time.thread_time() - began


def asleep(bsp: bsplib.Group) -> float:
    """Sleep on process 1, while process 0 waits: all of it is lost twice over two processes."""
    lost = 0.0
    for _ in range(ROUNDS):
        busy(SHORT_S)
        if bsp.pid == 1:
            began = Spent.now()
            time.sleep(LONG_S)
            lost += Spent.now().since(began).blocked
        bsp.sync()
    return 2 * lost


def at_a_disk(bsp: bsplib.Group) -> float:
    """Read from a disk on process 1, while process 0 waits; 0 where the disk is memory."""
    lost = 0.0
    with tempfile.NamedTemporaryFile() as file, mmap.mmap(-1, 2**21) as memory:
        memory.write(bytes(2**21))  # pages that were touched before; few, as each costs time
        file.write(memory)
        os.fsync(file.fileno())
        disk = os.open(file.name, os.O_RDONLY | os.O_DIRECT)
        bsp.sync()
        for _ in range(ROUNDS):
            busy(SHORT_S)
            if bsp.pid == 1:
                began = Spent.now()
                for _ in range(8):
                    os.preadv(disk, [memory], 0)
                lost += Spent.now().since(began).blocked
            bsp.sync()
        os.close(disk)
    return 2 * lost


def at_a_lock(bsp: bsplib.Group) -> float:
    """Let process 1 wait for a lock of a file while process 0 holds it, and compute as long."""
    path = bsp.broadcast(tempfile.mkstemp()[1] if bsp.pid == 0 else None)
    lost = 0.0
    with open(path, "w") as file:
        for _ in range(ROUNDS):
            if bsp.pid == 0:
                fcntl.flock(file, fcntl.LOCK_EX)
            bsp.sync()
            if bsp.pid == 1:
                began = Spent.now()
                fcntl.flock(file, fcntl.LOCK_EX)  # waits
                lost += Spent.now().since(began).blocked
            busy(LONG_S)
            fcntl.flock(file, fcntl.LOCK_UN)
            bsp.sync()
    return 2 * lost


class Awaited:
    """Values that whoever needs them waits for, as of a device."""

    def __init__(self) -> None:
        self.blocked_s = 0.0

    def __array__(self, dtype: object = None, copy: object = None) -> NDArray[np.float64]:
        began = Spent.now()
        time.sleep(LONG_S)  # in the call of put
        self.blocked_s += Spent.now().since(began).blocked
        return np.zeros(1)


def asleep_in_a_call(bsp: bsplib.Group) -> float:
    """Put values on process 1 that the call has to wait for."""
    x, values = bsp.zeros(1), Awaited()
    for _ in range(ROUNDS):
        busy(SHORT_S)
        if bsp.pid == 1:
            bsp.put(0, values, x)
        bsp.sync()
    return 2 * values.blocked_s


def without_a_core(bsp: bsplib.Group) -> float:
    """Compute equally long on all processes, of which some have no core for a while."""
    began = Spent.now()
    for _ in range(3 * ROUNDS):
        busy(LONG_S / 4)
        bsp.sync()
    return Spent.now().since(began).ready


def in_a_collection(bsp: bsplib.Group) -> float:
    """Collect garbage on process 1, which has a million objects."""
    began = time.thread_time()
    kept = [[number] for number in range(1_000_000)] if bsp.pid == 1 else []
    lost = time.thread_time() - began
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


def step(bsp: bsplib.Group, slow: int) -> float:
    """Compute long on one process, and on process 0 half as long."""
    lost = busy(LONG_S if slow == 1 else LONG_S / 2) if bsp.pid == slow else 0.0
    bsp.sync()
    return lost if slow == 1 else 0.0


def by_two_call_sites(bsp: bsplib.Group) -> float:
    """Wait for process 1 at one line of a loop, and for process 0 at the next one."""
    lost = 0.0
    for _ in range(ROUNDS):
        lost += step(bsp, 1)  # slow is 1
        lost += step(bsp, 0)  # slow is 0
    return lost


def prepare() -> float:
    """Compute long; this function does not sync."""
    began = time.thread_time()
    total = 0.0
    while time.thread_time() < began + LONG_S:
        total += sum(number * 0.5 for number in range(1000))
    return time.thread_time() - began


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


_SOURCE = inspect.getsource(inspect.getmodule(busy)).splitlines()  # type: ignore[arg-type]

CAUSES = {
    "sleep": Cause(asleep, "blocked", ("in asleep (", "by process 1")),
    "sleep, lines": Cause(
        asleep, "blocked", ("by process 1",), lines=True, line="time.sleep(LONG_S)"
    ),
    "disk": Cause(at_a_disk, "blocked", ("in at_a_disk (", "by process 1")),
    "disk, lines": Cause(
        at_a_disk,
        "blocked",
        ("by process 1",),
        lines=True,
        line="os.preadv(disk, [memory], 0)",
    ),
    "lock": Cause(at_a_lock, "blocked", ("in at_a_lock (", "by process 1")),
    "lock, lines": Cause(
        at_a_lock,
        "blocked",
        ("by process 1",),
        lines=True,
        line="fcntl.flock(file, fcntl.LOCK_EX)  # waits",
    ),
    "call": Cause(asleep_in_a_call, "blocked", ("in asleep_in_a_call (", "by process 1")),
    "noisy neighbour": Cause(
        without_a_core, "waiting for a core", ("others use the cores",), beside=2
    ),
    "too many processes": Cause(
        without_a_core,
        "waiting for a core",
        ("8 processes are more than the cores",),
        nprocs=8,
    ),
    "garbage": Cause(in_a_collection, "fixed", ("in in_a_collection (", "by process 1")),
    "first touch": Cause(in_new_memory, "fixed", ("in in_new_memory (", "by process 0")),
    "twelve callers": Cause(
        with_twelve_callers, "fixed", ("in guilty (", "and 11 other lines", "by process 1")
    ),
    "two callers": Cause(
        by_two_callers, "fixed", ("in sweep (", "called by alpha", "by process 1"), planted=2
    ),
    "two call sites": Cause(
        by_two_call_sites,
        "fixed",
        ("in step (", "called by by_two_call_sites", "by process 1"),
        line="lost += step(bsp, 1)  # slow is 1",
        planted=2,
    ),
    "no sync": Cause(in_a_function_without_sync, "fixed", ("in exchange (", "by process 0")),
    "no sync, lines": Cause(
        in_a_function_without_sync,
        "fixed",
        ("in exchange (", "prepare", "by process 0"),
        lines=True,
        line="total += sum(number * 0.5 for number in range(1000))",
    ),
    "bytes": Cause(by_bytes, "communication-bound", ("in pass_on (",), has_seconds=False),
    "supersteps": Cause(
        by_supersteps,
        "too many supersteps",
        ("in tick (", "supersteps follow"),
        has_seconds=False,
    ),
    "hidden": Cause(by_two_causes_that_hide_each_other, "fixed", ("process 0",), planted=2),
}

# -- what a verdict has to say ---------------------------------------------------------------------

DIFFERENCE = 0.05
"""Part of the planted seconds by which a sentence may miss them."""
LEAST_OTHER = 0.03
"""Part of the elapsed time of which nothing else may be told."""
LEAST_PLANTED_S = 0.02
"""Where less was planted, the computer has no disk that is waited for."""


def recorded(cause: Cause, path: Path) -> tuple[GraphBook, float]:
    """Return the book of a recorded run, and the seconds that were planted in it."""
    with busy_beside(cause.beside):
        lost = bsplib.run(
            cause.main, nprocs=cause.nprocs, backend="shm", profile=path, lines=cause.lines
        )
    (run,) = read_trace(path).runs
    book = book_graph(build(run))
    spent = book.book.whole()
    assert sum(spent.values()) == cause.nprocs * book.book.elapsed_ns
    return book, sum(lost) / cause.nprocs


def is_absent(cause: Cause, planted_s: float) -> bool:
    """Tell whether this computer has not what the cause needs, as a disk that is waited for."""
    return cause.has_seconds and planted_s < LEAST_PLANTED_S


def first_about(cause: Cause, verdict: Verdict) -> Loss | None:
    """Return the first sentence if it names the cause, at its line.

    Two causes that hide each other are of one size: either may be named first. That processes wait
    for a core, where others use them, is true, too.
    """
    told = [each for each in verdict.sentences if each.kind != CORE or cause.kind == CORE]
    return next((each for each in told[: cause.planted] if _names(cause, each)), None)


def doubts_about(cause: Cause, book: GraphBook, planted_s: float) -> list[str]:
    """Return what a verdict says wrongly about a cause."""
    verdict = book.verdict()
    first = first_about(cause, verdict)
    if first is None:
        return [f"the first sentence does not name {cause.kind}: {', '.join(cause.texts)}"]
    doubts = []
    waited_s = book.book.whole()["core"] / 1e9 / cause.nprocs
    most = DIFFERENCE * planted_s + waited_s
    if cause.has_seconds and abs(first.seconds - planted_s) > most:
        doubts.append(f"{planted_s:.3f} s were planted, and {first.seconds:.3f} s were named")
    others = [each for each in verdict.sentences if each.kind != CORE]
    own = cause.planted - (cause.kind == CORE)
    doubts += [
        f"this is named, too: {each.text}"
        for each in others[own:]
        if each.seconds > LEAST_OTHER * book.elapsed_s
    ]
    return doubts


def _names(cause: Cause, sentence: Loss) -> bool:
    return sentence.kind == cause.kind and all(text in sentence.text for text in cause.texts)
