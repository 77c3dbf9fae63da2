"""Measures the times of a Machine with one number of processes: see :class:`Measured`.

Everything is measured once in each of several rounds, so that other work of the computer
disturbs all of it equally. Of the times of the rounds the lower quartile is taken: disturbances
only make a superstep slower, but the least time of all is a rare one, since some supersteps are
faster by a third when the processes happen to arrive in the right order.

The six patterns are supersteps of messages, as in Roda et al. 1999, section 3, whose receivers
read them in place. The curve of a pattern has a knot at each power of two: more of them, where
messages outgrow the caches or their records, made no replay of a whole program better. How well
messages of these sizes fit into the caches depends on where the system places their memory: so each
round is made by new processes, where that is quick.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsplib.backends import table as backends
from bsplib.machine.measured import Curve, Measured
from bsplib.machine.pattern import PATTERNS
from bsplib.machine.speed import axpy_flops
from bsplib.running.launch import run
from bsplib.running.options import BackendName
from bsplib.running.pool import Pool

if TYPE_CHECKING:
    from bsplib.group import Group


SIZES = tuple(2**power for power in range(6, 25))
"""h in bytes, at the knots of the curves."""
LEAST_ROUNDS, MOST_ROUNDS = 4, 25
_QUARTILE = 0.25
_WORK_KEYS = 2**22
"""Number of keys whose memory the C library gives back to the system each time."""
_WARM_UPS = 4
_STARTS = 4
_BATCH_S = 5e-4
"""A batch is short beside the time slice of a core, so that most batches are not interrupted."""
_CALLS = 65
"""Puts of a superstep, against one put: 64 more show the time of a call beside that of the sync."""
_SHARE_OF_MEMORY = 4
"""The largest messages need at most the free shared memory divided by this number."""


class Round(NamedTuple):
    """What one round measures in a process."""

    speed: float
    """flop/s."""
    work_s: tuple[float, float]
    """CPU time of a computation of process 0 alone (0 in others), and while all compute."""
    empty_s: float
    puts_s: tuple[float, float]
    """Seconds of a superstep with one small put, and with several."""
    patterns_s: NDArray[np.float64]
    """Seconds of a superstep by pattern and size; empty for one process."""


class ProbeTimes(NamedTuple):
    """What was measured with one number of processes, by round: the slowest process counts."""

    nprocs: int
    sizes: tuple[int, ...]
    speed: list[float]
    slower: list[float]
    """CPU time of a computation while all compute, divided by its time in one alone."""
    empty_s: list[float]
    puts_s: list[NDArray[np.float64]]
    patterns_s: list[NDArray[np.float64]]


def measure_times(
    nprocs: int,
    backend: BackendName,
    *,
    budget_s: float,
    most_rounds: int = MOST_ROUNDS,
    progress: Callable[[float], object] = lambda _: None,
) -> ProbeTimes:
    """Measure in rounds, until the budget is spent or there have been enough of them.

    Args:
        nprocs: number of processes.
        backend: one that has pools.
        budget_s: seconds; at least a few rounds are made.
        most_rounds: the rounds that are enough.
        progress: called after each round with the part that is done, from 0 to 1.
    """
    sizes = sizes_that_fit(nprocs)
    times = ProbeTimes(nprocs, sizes, *([] for _ in range(5)))
    began = time.monotonic()
    if backends.find(backend).is_spread:
        began = run(_now, nprocs=nprocs, backend=backend)[0]
    for number, (results, now) in enumerate(_rounds(nprocs, backend, sizes, most_rounds), 1):
        _add(times, results)
        spent = now - began
        progress(min(1.0, max(number / most_rounds, spent / budget_s)))
        if spent > budget_s and number >= LEAST_ROUNDS:
            break
    return times


def _rounds(
    nprocs: int, backend: BackendName, sizes: tuple[int, ...], count: int
) -> Iterator[tuple[list[Round], float]]:
    """Yield the results of rounds, each by new processes where these can be started, and the time.

    Where ranks execute this program, all have the time of process 0, and make as many rounds.
    """
    if backends.find(backend).is_spread:
        with Pool(nprocs, backend=backend) as pool:
            for _ in range(count):
                yield pool.run(measure_round, sizes), pool.run(_now)[0]
    else:
        for _ in range(count):
            with Pool(nprocs, backend=backend) as pool:
                yield pool.run(measure_round, sizes), time.monotonic()


def sizes_that_fit(nprocs: int) -> tuple[int, ...]:
    """Return all sizes for which there is enough shared memory, and those of at most 1 MiB."""
    try:
        free = shutil.disk_usage("/dev/shm").free
    except OSError:  # no such folder: the system has another kind of shared memory
        free = 0
    most = max(free // (_SHARE_OF_MEMORY * nprocs), 2**20)
    return tuple(size for size in SIZES if size <= most)


def _add(times: ProbeTimes, results: list[Round]) -> None:
    times.speed.append(min(each.speed for each in results))
    alone, together = np.max([each.work_s for each in results], axis=0).tolist()
    times.slower.append(together / alone)
    times.empty_s.append(max(each.empty_s for each in results))
    for name in ("puts_s", "patterns_s"):
        getattr(times, name).append(np.max([getattr(each, name) for each in results], axis=0))


# -- from times to what a Machine says ----------------------------------------------------------


def measured_of(times: ProbeTimes, cores: int, backend: BackendName) -> Measured:
    """Return what a Machine says of one number of processes; measures what needs new processes.

    Over MPI nothing is measured that needs new processes: starting them takes seconds.

    Args:
        times: of the rounds.
        cores: how many there are for the processes.
        backend: starts processes.
    """
    one, several = typical(times.puts_s)
    seconds = _ascending(typical(times.patterns_s))
    curves = {
        pattern: Curve(times.sizes, tuple(row.tolist()))
        for pattern, row in zip(PATTERNS, seconds, strict=False)
    }
    return Measured(
        p=times.nprocs,
        empty=float(typical(times.empty_s)),
        call=max(float(several - one), 0.0) / (_CALLS - 1),
        start=None if backends.find(backend).is_spread else start_s(times.nprocs, backend),
        slowdown=max(float(np.median(times.slower)), 1.0) * max(times.nprocs / cores, 1.0),
        patterns=curves,
        spread=spread_of(times),
    )


def _ascending(seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return times by size, where a disturbed one was too long: a smaller h takes no longer."""
    return np.minimum.accumulate(seconds[:, ::-1], axis=1)[:, ::-1]


def typical(rounds: Any) -> Any:
    """Return the lower quartile over rounds, which are the first dimension."""
    return np.quantile(rounds, _QUARTILE, axis=0)


def spread_of(times: ProbeTimes) -> float | None:
    """Return the mean relative difference between one half of the rounds and the other.

    Returns:
        None if there was one round only.
    """
    if len(times.empty_s) < 2:  # halves
        return None
    values = np.array(
        [
            [empty, *np.ravel(patterns)]
            for empty, patterns in zip(times.empty_s, times.patterns_s, strict=True)
        ]
    )
    one, other = typical(values[::2]), typical(values[1::2])
    return float(np.mean(np.abs(one - other) / np.minimum(one, other)))


def start_s(nprocs: int, backend: BackendName) -> float:
    """Return the seconds of a run that does nothing."""
    seconds = []
    for _ in range(_STARTS):
        began = time.perf_counter()
        run(_nothing, nprocs=nprocs, backend=backend)
        seconds.append(time.perf_counter() - began)
    return min(seconds)


# -- in the processes ---------------------------------------------------------------------------


def _nothing(_: Group) -> None:
    """Return at once."""


def _now(_: Group) -> float:
    """Return the time."""
    return time.monotonic()


def measure_round(bsp: Group, sizes: tuple[int, ...]) -> Round:
    """Measure everything once, in a process of the pool."""
    speed = speed_of(bsp)
    work = _work_s(bsp)
    empty = superstep_s(bsp, lambda: None, _BATCH_S, batches=3)
    puts = _puts_s(bsp, 1), _puts_s(bsp, _CALLS)
    if bsp.nprocs == 1:
        return Round(speed, work, empty, puts, np.zeros((0, 0)))
    source = np.ones(sizes[-1], np.uint8)
    for _ in range(_WARM_UPS):  # memory is touched for the first time, which is not counted
        communicate(bsp, "all-to-all", source, sizes[-1])
        bsp.sync()
    seconds = [
        superstep_s(bsp, partial(communicate, bsp, pattern, source, h), _BATCH_S, batches=2)
        for pattern, h in product(PATTERNS, sizes)
    ]
    return Round(speed, work, empty, puts, np.reshape(seconds, (len(PATTERNS), len(sizes))))


def _work_s(bsp: Group) -> tuple[float, float]:
    """Return the CPU time of a computation on process 0 alone (0 on others), and on all at once."""
    _work(_WORK_KEYS)  # lets the host of a virtual machine lend the memory
    bsp.sync()
    alone = _work(_WORK_KEYS) if bsp.pid == 0 else 0.0
    bsp.sync()
    return alone, _work(_WORK_KEYS) if bsp.nprocs > 1 else alone


def _work(count: int) -> float:
    """Return the CPU time of making, sorting and adding keys.

    Each result is in new memory, as in most programs with numpy: processes that compute at the
    same time slow each other down by their memory traffic, and most of all at a first touch.
    """
    began = time.thread_time()
    keys = np.sort(np.random.default_rng(1).random(count))
    np.add(keys, 1.0)
    return time.thread_time() - began


def _puts_s(bsp: Group, count: int) -> float:
    """Return the seconds of a superstep with a number of puts of arrays of one element."""
    there, here = bsp.zeros(count), list(np.ones((count, 1)))
    right = (bsp.pid + 1) % bsp.nprocs
    bsp.sync()

    def put() -> None:
        for place in range(count):
            bsp.put(right, here[place], there, offset=place)

    seconds = superstep_s(bsp, put, _BATCH_S, batches=2)
    bsp.pop_reg(there)
    bsp.sync()
    return seconds


def message_bytes(pattern: str, h: int, nprocs: int) -> int:
    """Return the bytes of each message with which a pattern is an h-relation.

    Source: Roda et al. 1999, equation 4 with @ = max.
    """
    return h if pattern in ("exchange", "ping-pong") else h // (nprocs - 1)


def communicate(bsp: Group, pattern: str, source: NDArray[np.uint8], h: int) -> None:
    """Read the messages of the last superstep in place, and send those of a pattern."""
    while bsp.hpmove() is not None:
        pass
    size = message_bytes(pattern, h, bsp.nprocs)
    for pid in receivers(pattern, bsp.pid, bsp.nprocs) if size else ():
        start = size * (pid - 1) if pattern == "personalised-one-to-all" else 0
        bsp.send(pid, source[start : start + size])


def receivers(pattern: str, pid: int, nprocs: int) -> list[int]:
    """Return the processes to which a process sends in a superstep of a pattern.

    Source: Roda et al. 1999, section 1.
    """
    others = [other for other in range(nprocs) if other != pid]
    partner = [pid ^ 1] if pid ^ 1 < nprocs else []
    return {
        "exchange": partner,
        "ping-pong": partner if pid % 2 == 0 else [],
        "one-to-all": others if pid == 0 else [],
        "personalised-one-to-all": others if pid == 0 else [],
        "all-to-one": [0] if pid else [],
        "all-to-all": others,
    }[pattern]


# -- what every probe measures in its processes: the speed, and the time of a superstep -----------


_MOST_SUPERSTEPS = 200
_SINGLE = 4
"""Supersteps that are timed in place of a batch, if each takes longer."""


def speed_of(bsp: Group) -> float:
    """Return the flop/s of this process while all compute."""
    bsp.sync()
    return axpy_flops(bsp.time)


def superstep_s(
    bsp: Group,
    communicate: Callable[[], object],
    batch_s: float,
    batches: int = 1,
) -> float:
    """Return the seconds of a superstep: the least over some batches of them.

    Supersteps that take longer than a batch are timed one by one, since few of them in a row
    are undisturbed on a busy computer.

    Args:
        bsp: the group whose processes measure together.
        communicate: makes the transfers of this process in one superstep.
        batch_s: about how long a batch takes.
        batches: number of batches.
    """

    def batch(count: int) -> float:
        bsp.sync()
        began = bsp.time()
        for _ in range(count):
            communicate()
            bsp.sync()
        return (bsp.time() - began) / count

    # All processes need the same number: they take the largest of their estimates.
    estimate = bsp.allreduce(batch(2), np.maximum)
    count = min(int(batch_s / estimate), _MOST_SUPERSTEPS)
    if count < 2:  # no batch
        return min(batch(1) for _ in range(_SINGLE * batches))
    return min(batch(count) for _ in range(batches))
