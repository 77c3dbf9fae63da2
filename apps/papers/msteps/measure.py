"""Both programs on this computer: constants of as many processes as run, and the times of runs.

The constants of an equation depend on how many processes work at the same time: two share the
memory, and more than there are cores take turns. So they are measured with the processes of the
run, all at once where the program has them work at once, as the paper adjusts those of the sort
to the number of processors. Constants of one process tell what that changes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

import bsplib
from bsplib.apps.command import ProgramRun
from bsplib.apps.fourier.common import Values
from bsplib.apps.papers.msteps import fft, psrs
from bsplib.apps.papers.msteps.model import (
    Network,
    Sort,
    Transform,
    error_percent,
    fft_time,
    psrs_time,
)
from bsplib.apps.spans import Span, keep_memory, least, timed, waiting

_ROUNDS = 25
RELATIONS = (1 << 14, 1 << 16, 1 << 18, 1 << 20)
"""Words of the h-relations that are measured; the paper has 4330 to 4,945,920."""

Prepare = Callable[[], Callable[[], object]]
"""Makes ready, and returns what is to be timed."""


@dataclass(frozen=True)
class ModelledTime:
    """A predicted and a measured time."""

    nprocs: int
    model_s: float
    """Predicted with constants of ``nprocs`` processes that work at the same time."""
    alone_s: float
    """Predicted with constants of one process, as if each had a core and the memory to itself."""
    actual_s: float

    @property
    def error_percent(self) -> float:
        """The error by equation 18."""
        return error_percent(self.actual_s, self.model_s)

    @property
    def alone_error_percent(self) -> float:
        """The error with the constants of one process."""
        return error_percent(self.actual_s, self.alone_s)


def network(nprocs: int) -> Network:
    """Return g and L of this computer, of as many processes, or 2; L is 0 or more."""
    found = measure_network(RELATIONS, (max(nprocs, 2),))
    return Network(found.g, max(found.L, 0.0))


def constants(n: int, nprocs: int = 1, busy: int | None = None) -> Transform:
    """Return D, F and R of this computer.

    Process 0 alone combines, as in the last step of the program, which is the longest one.

    Args:
        n: number of values; a power of two.
        nprocs: p, a power of two: each process divides and transforms n/p values.
        busy: number of processes that do so at the same time; default: p.
    """
    values = bsplib.shared(signal(n))
    found = _measured(_transform_parts, values, nprocs, busy)
    own = n // nprocs
    return Transform(
        found["D"] / own,
        found["F"] / (own * max(math.log2(own), 1.0)),
        found["R"] / (n // 2),
    )


def sort_constants(n: int, nprocs: int, busy: int | None = None) -> Sort:
    """Return B and I of this computer, for blocks of n/p keys: they depend on p, as the paper says.

    The other constants are for P or P squared words, and count as nothing here.

    Args:
        n: number of keys.
        nprocs: P.
        busy: number of processes that work at the same time; default: P.
    """
    found = _measured(_sort_parts, bsplib.shared(keys(n)), nprocs, busy)
    block = n // nprocs
    return Sort(B=found["B"] / (block * math.log2(block)), I=found["I"] / block)


def _measured(
    parts: Callable[..., Mapping[str, Prepare]], given: Any, nprocs: int, busy: int | None
) -> dict[str, float]:
    """Return the least seconds of each part."""
    running = busy or nprocs
    found = bsplib.run(_rounds, parts, given, nprocs, nprocs=running, wait=waiting(running))
    return {name: least([spans[name][1:] for spans in found]) for name in found[0]}


def _rounds(
    bsp: bsplib.Group, parts: Callable[..., Mapping[str, Prepare]], given: Any, among: int
) -> dict[str, list[Span]]:
    keep_memory()
    spans: dict[str, list[Span]] = {}
    for _ in range(_ROUNDS + 1):
        for name, prepare in parts(given, among, bsp.pid).items():
            spans.setdefault(name, []).append(timed(bsp, prepare()))
    return spans


def _transform_parts(values: Values, nprocs: int, pid: int) -> dict[str, Prepare]:
    own = values[pid::nprocs]
    half = len(values) // 2

    def combine() -> Callable[[], object]:
        return partial(fft.combine, values[:half].copy(), values[half:].copy())

    return {
        "D": lambda: own.copy,
        "F": lambda: partial(np.fft.fft, own.copy()),
        "R": combine if pid == 0 else lambda: _nothing,
    }


def _sort_parts(given: psrs.Keys, nprocs: int, pid: int) -> dict[str, Prepare]:
    size = len(given) // nprocs
    block = given[pid * size : (pid + 1) * size]

    def merge() -> Callable[[], object]:
        return partial(psrs.merge, [np.sort(part) for part in np.array_split(block, nprocs)])

    return {"B": lambda: block.copy().sort, "I": merge}


def _nothing() -> None:
    """Have no part in the work."""


def signal(n: int) -> Values:
    """Return random complex values."""
    random = np.random.default_rng(n)
    return random.random(n) + 1j * random.random(n)


def keys(n: int) -> psrs.Keys:
    """Return random keys."""
    return np.random.default_rng(n).integers(0, 2**31 - 1, n, np.int32)


def compare(n: int, counts: Sequence[int], repeats: int = 25) -> list[ModelledTime]:
    """Predict and measure the transform with several numbers of processes.

    Args:
        n: number of values.
        counts: numbers of processes.
        repeats: runs of each; the fastest counts.

    Raises:
        ValueError: a number is no power of two, or there are more processes than values.

    Source: Roda et al. 1999, equations 15 to 18, Figures 9 to 11.
    """
    for nprocs in counts:
        fft_time(n, nprocs, Transform(0.0, 0.0, 0.0), Network(0.0, 0.0))  # refuses what cannot run
    values = bsplib.shared(signal(n))

    def predicted(nprocs: int, busy: int, of: Network) -> float:
        return fft_time(n, nprocs, constants(n, nprocs, busy), of, fft.WORDS)

    return [_row(nprocs, predicted, fft.main, values, repeats) for nprocs in counts]


def compare_sorts(n: int, counts: Sequence[int], repeats: int = 25) -> list[ModelledTime]:
    """Predict and measure the sort with several numbers of processes.

    Args:
        n: number of keys.
        counts: numbers of processes.
        repeats: runs of each; the fastest counts.

    Raises:
        ValueError: there are fewer than two processes, or fewer keys than their square.

    Source: Roda et al. 1999, equations 18 to 25, Figure 12.
    """
    for nprocs in counts:
        psrs_time(n, nprocs, Sort(), Network(0.0, 0.0))  # refuses what cannot run
    given = bsplib.shared(keys(n))

    def predicted(nprocs: int, busy: int, of: Network) -> float:
        return psrs_time(n, nprocs, sort_constants(n, nprocs, busy), of)[-1]

    return [_row(nprocs, predicted, psrs.main, given, repeats) for nprocs in counts]


def _row(
    nprocs: int,
    predicted: Callable[[int, int, Network], float],
    program: Callable[..., object],
    given: Any,
    repeats: int,
) -> ModelledTime:
    of = network(nprocs)
    spans = bsplib.run(_runs, program, given, repeats, nprocs=nprocs, wait=waiting(nprocs))
    return ModelledTime(
        nprocs, predicted(nprocs, nprocs, of), predicted(nprocs, 1, of), least(spans)
    )


def _runs(
    bsp: bsplib.Group, program: Callable[..., object], given: Any, repeats: int
) -> list[Span]:
    keep_memory()
    return [timed(bsp, partial(program, bsp, given)) for _ in range(repeats + 1)][1:]


# -- g and L of this computer, from the times of patterns of communication ------------------------
#
# Every pattern moves an h-relation of one size, by the sum of words in and out (equation 4). Their
# times are averaged over numbers of processes and over patterns, and a line is fitted to the
# averages (equations 11 and 12).
#
# Source: Roda et al. 1999, section 3.


PATTERNS = ("E", "PP", "POA", "AO", "AA")
"""Exchange, ping-pong, personalised one-to-all, all-to-one, all-to-all."""
Words = NDArray[np.int32]

Times = Mapping[str, Mapping[int, float]]
"""Seconds by pattern and number of processes."""


def message_words(pattern: str, h: int, nprocs: int) -> int:
    """Return how many words a message of a pattern has, for an h-relation: equation 4."""
    parts = {"PP": 1, "E": 2, "POA": nprocs - 1, "AO": nprocs - 1, "AA": 2 * (nprocs - 1)}
    return h // parts[pattern]


def communicate(bsp: bsplib.Group, pattern: str, message: Words) -> None:
    """Make one superstep of a pattern, and read what has come."""
    partner = bsp.pid ^ 1
    if pattern == "E" or (pattern == "PP" and bsp.pid % 2 == 0):
        receivers = [partner] if partner < bsp.nprocs else []
    elif pattern == "AO":
        receivers = [0] if bsp.pid else []
    elif pattern == "AA" or (pattern == "POA" and bsp.pid == 0):
        receivers = [pid for pid in range(bsp.nprocs) if pid != bsp.pid]
    else:
        receivers = []
    for pid in receivers:
        bsp.send(pid, message)
    bsp.sync()
    for _ in bsp.messages():
        pass


def average(times: Times) -> float:
    """Return the average over numbers of processes, and then over patterns: equations 11, 12."""
    return fmean(fmean(of.values()) for of in times.values())


def fit(relations: Sequence[int], averages: Sequence[float]) -> Network:
    """Fit a line to the average times of h-relations: g for a word, and L.

    The relative errors count, so that L is that of short messages, too.

    Raises:
        ValueError: there are fewer than two sizes.
    """
    if len(set(relations)) < 2:
        raise ValueError(f"a line takes two sizes of h-relations, and there is {len(relations)}")
    g, latency = np.polyfit(relations, averages, 1, w=1 / np.asarray(averages))
    return Network(float(g), float(latency))


def measure_network(
    relations: Sequence[int],
    counts: Sequence[int] = (2, 4),
    repeats: int = 25,
    *,
    backend: Literal["shm", "sim"] = "shm",
    machine: str | None = None,
) -> Network:
    """Measure all patterns here, and fit g and L.

    Args:
        relations: h in words.
        counts: even numbers of processes; with two there are only exchange and ping-pong.
        repeats: supersteps of each size; the fastest counts.
        backend: where to run.
        machine: of virtual processors: a name or a file.
    """
    found: dict[int, dict[str, dict[int, float]]] = {h: {} for h in relations}
    for nprocs in counts:
        patterns = PATTERNS if nprocs > 2 else PATTERNS[:2]
        place = ProgramRun(nprocs, backend, machine, reports_times=False)
        how = (relations, patterns, repeats, backend == "shm")
        results = place.run(_timed, *how, wait=waiting(nprocs))
        for key in results[0]:
            pattern, h = key
            found[h].setdefault(pattern, {})[nprocs] = least([result[key] for result in results])
    return fit(relations, [average(found[h]) for h in relations])


def _timed(
    bsp: bsplib.Group,
    relations: Sequence[int],
    patterns: Sequence[str],
    repeats: int,
    is_real: bool,
) -> dict[tuple[str, int], list[Span]]:
    """Return when each superstep began and ended, by pattern and h."""
    if is_real:
        keep_memory()
    times = {}
    for pattern in patterns:
        for h in relations:
            words = np.arange(message_words(pattern, h, bsp.nprocs), dtype=np.int32)
            once = partial(communicate, bsp, pattern, words)
            once()  # the first touch of memory
            times[pattern, h] = [timed(bsp, once) for _ in range(repeats)]
    return times
