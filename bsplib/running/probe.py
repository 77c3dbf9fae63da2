"""Measures the parameters of this computer: speed, g, l, and g and L of six patterns.

Every pattern is a superstep of puts into shared memory with its sync, for h from 64
bytes to 1 MiB: l and L hold for supersteps that communicate; an empty one takes less. All
patterns and sizes are measured once in each of several rounds, so that other work of the
computer disturbs them equally; the first decile over the rounds is taken. g and L are
fitted by least squares on the relative error. g and l of the Machine are those of the
all-to-all, as in the Oxford BSP library.

Source: Roda et al. 1999, section 3: the patterns, and the sizes of equation 4 with
@ = max; there without syncs.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bsplib.backends import table as backends
from bsplib.machine import PATTERNS, Machine, Pattern
from bsplib.running.pool import Pool
from bsplib.running.speed import VECTOR, axpy_flops

if TYPE_CHECKING:
    from bsplib.group import Group

ROUNDS = 25
RELATIONS = tuple(4**power for power in range(3, 11))
"""h in bytes."""

_BATCH_S = 2e-3
_MOST_SUPERSTEPS = 200


@dataclass(frozen=True)
class Fit:
    """A line through measured times of a pattern."""

    g: float
    l: float  # noqa: E741  # as of a Machine
    misfit: float
    """The greatest relative error of the line over the sizes."""


@dataclass(frozen=True)
class Probed:
    """The Machine that a probe measured, and how well its lines fit."""

    machine: Machine
    fits: dict[str, Fit]
    """By pattern."""


def probe(
    nprocs: int,
    name: str,
    *,
    rounds: int = ROUNDS,
    progress: Callable[[], object] = lambda: None,
) -> Probed:
    """Measure this computer with a number of processes over shared memory.

    Args:
        nprocs: 2 or more: with one nothing is communicated.
        name: name of the Machine.
        rounds: how often everything is measured.
        progress: called after each round.

    Raises:
        ValueError: there are fewer than 2 processes, or no rounds.
        ProcessRangeError: there are more than 256.
        OutOfSharedMemoryError: 1 MiB for each process does not fit.
    """
    if nprocs < 2 or rounds < 1:
        raise ValueError(f"{nprocs} processes in {rounds} rounds measure no communication")
    speeds, seconds = [], []
    with Pool(nprocs) as pool:
        for _ in range(rounds):
            results = pool.run(measure_round)
            speeds.append(min(speed for speed, _ in results))
            seconds.append(np.max([times for _, times in results], axis=0))
            progress()
    typical = np.quantile(seconds, 0.1, axis=0)
    fits = {
        pattern: fit_line(np.array([relation(pattern, h, nprocs) for h in RELATIONS]), times)
        for pattern, times in zip(PATTERNS, typical, strict=True)
    }
    return Probed(_machine(name, nprocs, float(np.quantile(speeds, 0.9)), fits), fits)


def fit_line(h: NDArray[Any], seconds: NDArray[np.float64]) -> Fit:
    """Fit seconds = g h + l by least squares on the relative error.

    Args:
        h: bytes; at least two different values.
        seconds: the time for each h, greater than 0.

    Returns:
        The line; g is not negative, and l may be below zero.
    """
    columns = np.stack([h, np.ones(len(h))], axis=1) / seconds[:, None]
    g, latency = np.linalg.lstsq(columns, np.ones(len(h)), rcond=None)[0]
    if g < 0:
        g, latency = 0.0, float((1 / seconds).sum() / (1 / seconds**2).sum())
    errors = np.abs((g * h + latency) / seconds - 1)
    return Fit(float(g), float(latency), float(errors.max()))


# -- in the processes -------------------------------------------------------------------------


def measure_round(bsp: Group) -> tuple[float, NDArray[np.float64]]:
    """Measure every pattern with every h once, in a process of the pool.

    Returns:
        flop/s of this process, and the seconds of a superstep by pattern and h.
    """
    destination = bsp.zeros(RELATIONS[-1], np.uint8)
    source = np.ones(RELATIONS[-1], np.uint8)
    speed = _speed(bsp)
    seconds = [
        _superstep_s(bsp, pattern, source, destination, h)
        for pattern, h in product(PATTERNS, RELATIONS)
    ]
    return speed, np.reshape(seconds, (len(PATTERNS), len(RELATIONS)))


def _speed(bsp: Group) -> float:
    """Return the flop/s of this process while all compute."""
    bsp.sync()
    return axpy_flops(bsp.time)


def _superstep_s(
    bsp: Group, pattern: str, source: NDArray[np.uint8], destination: NDArray[np.uint8], h: int
) -> float:
    """Return the seconds of a superstep, from a batch of them."""

    def batch(count: int) -> float:
        bsp.sync()
        began = bsp.time()
        for _ in range(count):
            _communicate(bsp, pattern, source, destination, h)
            bsp.sync()
        return (bsp.time() - began) / count

    # All processes need the same number: they take the largest of their estimates.
    estimate = bsp.allreduce(batch(2), np.maximum)
    return batch(min(max(2, int(_BATCH_S / estimate)), _MOST_SUPERSTEPS))


def message_bytes(pattern: str, h: int, nprocs: int) -> int:
    """Return the bytes of each message with which a pattern is an h-relation.

    Source: Roda et al. 1999, equation 4 with @ = max.
    """
    return h if pattern in ("exchange", "ping-pong") else h // (nprocs - 1)


def relation(pattern: str, h: int, nprocs: int) -> int:
    """Return the h of a pattern whose messages have :func:`message_bytes`: h rounded down."""
    size = message_bytes(pattern, h, nprocs)
    return size if pattern in ("exchange", "ping-pong") else size * (nprocs - 1)


def _communicate(
    bsp: Group, pattern: str, source: NDArray[np.uint8], destination: NDArray[np.uint8], h: int
) -> None:
    """Make the puts of this process in a superstep of a pattern."""
    size = message_bytes(pattern, h, bsp.nprocs)
    if size == 0:
        return
    for pid in receivers(pattern, bsp.pid, bsp.nprocs):
        start = size * (pid - 1) if pattern == "personalised-one-to-all" else 0
        rank = bsp.pid - (bsp.pid > pid) if pattern in ("all-to-one", "all-to-all") else 0
        bsp.put(pid, source[start : start + size], destination, offset=rank * size)


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


# -- the Machine --------------------------------------------------------------------------------


def _machine(name: str, nprocs: int, speed: float, fits: dict[str, Fit]) -> Machine:
    cores = backends.own_cores()
    medium = backends.find(backends.DEFAULT).probed_over
    date = datetime.now(UTC).date().isoformat()
    total = fits["all-to-all"]
    return Machine(
        name=name,
        source=(
            f"measured by bsp probe on {date}: {nprocs} processes over {medium}, "
            f"{cores} cores of {processor()}"
        ),
        g=total.g,
        l=total.l,
        p=nprocs,
        speed=speed,
        patterns={pattern: Pattern(fit.g, fit.l) for pattern, fit in fits.items()},
        sources={
            "speed": f"y + a x on {VECTOR} doubles in numpy, all processes at once",
            "g": "fitted to the all-to-all",
            "l": "fitted to the all-to-all",
        },
    )


def processor() -> str:
    """Return the name of this computer's processor."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        text = ""
    names = re.findall(r"^model name\s*: (.*)$", text, re.MULTILINE)
    return str(names[0]) if names else platform.processor() or platform.machine()
