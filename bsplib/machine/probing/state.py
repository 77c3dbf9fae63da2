"""Measures what a superstep costs by what came before it, and computation by the memory it uses.

The other times of a probe are of supersteps in a row, with buffers in the caches and processes
that spin. In a program a process computes first: meanwhile others wait, and go to sleep, and what
was in the caches makes room for other data. So here

- one process comes later than the others by some time, and the time counts from its arrival until
  the last process goes on;
- all processes compute for some time, come together, and the time counts that the sync takes more
  than one of many in a row: its own code and words have left the caches meanwhile;
- all processes touch more memory than a cache has next to a core, exchange, and the time counts
  beside that of an exchange in turn with it that nothing came before.

And while all processes compute, one pass over arrays takes longer the more memory they have: first
they fit into the cache next to a core, then into one that cores share, then into none.

Times of different processes are compared, so they have to have one clock: they are on one host.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.machine.measured import Curve
from bsplib.running.options import BackendName
from bsplib.running.pool import Pool

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bsplib.group import Group

    Seconds = NDArray[np.float64]

WAITS_S = (0.0, 5e-5, 2e-4, 1e-3, 5e-3)
"""How much later one process comes to a sync than the others."""
APART_S = (0.0, 2e-5, 1e-4, 5e-4, 2e-3, 1e-2, 3e-2)
"""How long all processes compute before a sync; after a longer time it takes no longer."""
SIZES = tuple(4**power for power in range(5, 12))
"""Bytes that are exchanged after the caches were swept: 1 KiB to 4 MiB."""
PASSES = tuple(2**power for power in range(15, 26))
"""Bytes of the arrays of a process over which it passes: 32 KiB to 32 MiB."""
_LATE_REPEATS, _APART_REPEATS, _SWEPT_REPEATS, _PASS_REPEATS = 15, 11, 9, 7
_MOST_APART_NS = 10**9
_PART_BYTES, _PARTS = 2**18, 2**7
"""While they compute, processes make a new array from each part of 32 MiB in turn."""
_LEAST_PASSED_BYTES = 2**21
"""Bytes that are passed over between two readings of the clock: some 0.1 ms."""
_SWEEP_BYTES = 2**23
_CACHE_BYTES = 2**20
"""Size of the cache next to a core, where the system does not tell it."""
_CACHE = Path("/sys/devices/system/cpu/cpu0/cache/index2/size")
_QUARTILE = 0.25
MESSAGES, PUTS, COLLECTIVES = "messages", "puts", "collectives"
_WAYS = MESSAGES, PUTS, COLLECTIVES
"""Ways of an exchange: with a neighbour by messages or puts, and with all by a collective."""


class PricesBefore(NamedTuple):
    """What a Machine says of supersteps by what came before; see :class:`Measured`."""

    late: Curve
    apart: Curve
    evicted: Curve
    evicted_puts: Curve
    evicted_collectives: Curve
    evicting_s: float


class ProbedMoments(NamedTuple):
    """When a process came to a meeting and when it went on, by what was measured and repeat."""

    came: Seconds
    went: Seconds


class _Swept(NamedTuple):
    """Exchanges with buffers in the caches, and after a sweep, which took so long."""

    warm: ProbedMoments
    swept: ProbedMoments
    sweep_s: float


def measure_before(nprocs: int, backend: BackendName, empty_s: float) -> PricesBefore:
    """Measure supersteps after waits, and after computations that sweep the caches.

    Args:
        nprocs: 2 or more processes on one host.
        backend: starts them.
        empty_s: an empty superstep in a row of them.
    """
    with Pool(nprocs, backend=backend) as pool:
        late = lasted(pool.run(_come_late))
        apart = lasted(pool.run(_come_after_computing))
        messages, puts, collectives = (pool.run(_exchange_swept, way) for way in _WAYS)
    sweep_s = max(each.sweep_s for each in messages)
    apart_s = _added(apart, empty_s)
    return PricesBefore(
        Curve(_ns(WAITS_S), _added(late, empty_s)),
        Curve((*_ns(APART_S), _MOST_APART_NS), (*apart_s, apart_s[-1])),
        _evicted(messages),
        _evicted(puts),
        _evicted_collectives(collectives, nprocs),
        sweep_s * min(cache_bytes() / _SWEEP_BYTES, 1.0),
    )


def _evicted(results: list[_Swept]) -> Curve:
    """Return what exchanges take more after a sweep, by their bytes."""
    return Curve((0, *SIZES), tuple(_more(results).tolist()))


def _evicted_collectives(results: list[_Swept], nprocs: int) -> Curve:
    """Return the same of collectives, whose code has left the caches, however few the bytes are."""
    nbytes = tuple((nprocs - 1) * size for size in SIZES)
    return Curve(nbytes, tuple(_more(results)[1:].tolist()))


def _more(results: list[_Swept]) -> Seconds:
    """Return the additional seconds after a sweep: first of no bytes, then of each size."""
    warm, swept = (
        lasted([each.warm for each in results]),
        lasted([each.swept for each in results]),
    )
    more = swept - warm
    more -= more[0]  # without anything to send, processes only come a little later than others
    ascending: Seconds = np.maximum.accumulate(np.maximum(more, 0.0))
    return ascending


def _ns(times_s: tuple[float, ...]) -> tuple[int, ...]:
    return tuple(round(time_s * 1e9) for time_s in times_s)


def _added(taken: Seconds, empty_s: float) -> tuple[float, ...]:
    """Return what a sync takes more than an empty one; nothing where nothing came before.

    A disturbed time is too long, so that a shorter wait counts with no more than a longer one.
    """
    added = np.minimum.accumulate(np.maximum(taken - empty_s, 0.0)[::-1])[::-1]
    added[0] = 0.0
    return tuple(added.tolist())


def measure_passes(nprocs: int, backend: BackendName) -> Curve:
    """Measure a pass over arrays by their bytes, while all processes make it.

    Args:
        nprocs: processes on one host.
        backend: starts them.
    """
    with Pool(nprocs, backend=backend) as pool:
        taken = np.max(pool.run(_pass_over), axis=0)
    typical = np.quantile(taken, _QUARTILE, axis=-1)
    # Of small arrays the call of numpy takes most of the time. So a byte of a smaller array counts
    # with no more than a byte of a greater one.
    each = np.minimum.accumulate((typical / PASSES)[::-1])[::-1]
    return Curve(PASSES, tuple((each * PASSES).tolist()))


def cache_bytes() -> int:
    """Return the size of the second cache of a core, as the system tells it."""
    try:
        text = _CACHE.read_text(encoding="ascii").strip()
        return int(text.removesuffix("K")) * 1024
    except (OSError, ValueError):
        return _CACHE_BYTES


def lasted(moments: list[ProbedMoments]) -> Seconds:
    """Return how long it took from the last arrival until all went on: the lower quartile."""
    came = np.max([each.came for each in moments], axis=0)
    went = np.max([each.went for each in moments], axis=0)
    found: Seconds = np.quantile(went - came, _QUARTILE, axis=-1)
    return found


# -- in the processes ---------------------------------------------------------------------------


def _come_late(bsp: Group) -> ProbedMoments:
    """Come to a sync later than the others, in turn with them."""
    shape = len(WAITS_S), _LATE_REPEATS
    came, went = np.zeros(shape), np.zeros(shape)
    for repeat in range(_LATE_REPEATS):
        for place, wait in enumerate(WAITS_S):
            bsp.sync()
            bsp.sync()  # now all processes are awake, and leave together
            if repeat % bsp.nprocs == bsp.pid:
                until = bsp.time() + wait
                while bsp.time() < until:
                    pass
            came[place, repeat] = bsp.time()
            bsp.sync()
            went[place, repeat] = bsp.time()
    return ProbedMoments(came, went)


def _come_after_computing(bsp: Group) -> ProbedMoments:
    """Compute for some time, the same on all processes, and come to a sync together."""
    shape = len(APART_S), _APART_REPEATS
    came, went = np.zeros(shape), np.zeros(shape)
    memory = np.ones((_PARTS, _PART_BYTES // 8))
    part = 0
    for repeat in range(_APART_REPEATS):
        for place, apart in enumerate(APART_S):
            bsp.sync()
            bsp.sync()  # now all processes are awake, and leave together
            until = bsp.time() + apart
            while bsp.time() < until - 1e-4:  # longer than for one part, so that none is late
                part = (part + 1) % _PARTS
                np.add(memory[part], 1.0)
            while bsp.time() < until:
                np.add(memory[part, :64], 1.0)
            came[place, repeat] = bsp.time()
            bsp.sync()
            went[place, repeat] = bsp.time()
    return ProbedMoments(came, went)


def _exchange_swept(bsp: Group, way: str) -> _Swept:
    """Exchange in one of ``_WAYS``, with buffers in the caches and after a sweep in turn."""
    there = bsp.zeros(SIZES[-1], np.uint8)
    shape = 1 + len(SIZES), _SWEPT_REPEATS
    turns = (
        ProbedMoments(np.zeros(shape), np.zeros(shape)),
        ProbedMoments(np.zeros(shape), np.zeros(shape)),
    )
    memory = np.ones(_SWEEP_BYTES // 8)
    source = np.ones(SIZES[-1], np.uint8)
    sweeps = []
    for repeat in range(_SWEPT_REPEATS):
        for place, size in enumerate((0, *SIZES)):
            for turn, moments in enumerate(turns):
                for _ in range(2):  # the first one brings the buffers into the caches
                    _exchange(bsp, way, source[:size], there)
                if turn:
                    began = bsp.time()
                    np.add(memory, 1.0, out=memory)
                    sweeps.append(bsp.time() - began)
                moments.came[place, repeat] = bsp.time()
                _exchange(bsp, way, source[:size], there)
                moments.went[place, repeat] = bsp.time()
    return _Swept(*turns, float(np.quantile(sweeps, _QUARTILE)))


def _pass_over(bsp: Group) -> Seconds:
    """Return the seconds of a pass over two arrays, by their bytes together and by repeat."""
    taken = np.zeros((len(PASSES), _PASS_REPEATS))
    for place, size in enumerate(PASSES):
        x, y = np.ones(size // 16), np.zeros(size // 16)
        passes = max(_LEAST_PASSED_BYTES // size, 1)
        np.add(x, y, out=y)  # the first pass brings the arrays into the caches
        for repeat in range(_PASS_REPEATS):
            bsp.sync()
            began = bsp.time()
            for _ in range(passes):
                np.add(x, y, out=y)
            taken[place, repeat] = (bsp.time() - began) / passes
    return taken


def _exchange(bsp: Group, way: str, source: NDArray[np.uint8], there: NDArray[np.uint8]) -> None:
    """Send an array, or put it there."""
    if len(source) and way == COLLECTIVES:
        bsp.allgather(source)
        return
    partner = pid if (pid := bsp.pid ^ 1) < bsp.nprocs else bsp.pid
    if len(source) and partner != bsp.pid:
        if way == PUTS:
            bsp.put(partner, source, there, offset=0)
        else:
            bsp.send(partner, source)
    bsp.sync()
    while bsp.hpmove() is not None:
        pass
