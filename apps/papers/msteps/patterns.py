"""g and L of this computer, from the times of patterns of communication.

Every pattern moves an h-relation of one size, by the sum of words in and out (equation 4). Their
times are averaged over numbers of processes and over patterns, and a line is fitted to the
averages (equations 11 and 12).

Source: Roda et al. 1999, section 3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import Literal

import numpy as np
from numpy.typing import NDArray

import bsplib
from bsplib.apps.command import Place
from bsplib.apps.papers.msteps.model import Network
from bsplib.apps.spans import Span, keep_memory, least, timed, waiting

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
        place = Place(nprocs, backend, machine, reports_times=False)
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
