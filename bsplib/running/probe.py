"""Measures the parameters of this computer: speed, g, l, and g and L of six patterns.

Every pattern is a superstep of puts into shared memory with its sync, for h from 64
bytes to 1 MiB: l and L hold for supersteps that communicate; an empty one takes less. All
patterns and sizes are measured once in each of several rounds, so that other work of the
computer disturbs them equally; the first decile over the rounds is taken. g and L are
fitted by least squares on the relative error. g and l of the Machine are those of the
all-to-all, as in the Oxford BSP library. Where the processes are on several hosts, two levels
are measured in place of patterns (:mod:`bsplib.running.probe_levels`).

Source: Roda et al. 1999, section 3: the patterns, and the sizes of equation 4 with
@ = max; there without syncs.
"""

from __future__ import annotations

import functools
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
from bsplib.machine import PATTERNS, Level, Machine, Pattern
from bsplib.running.pool import Pool
from bsplib.running.probe_levels import (
    BETWEEN,
    INSIDE,
    host_of,
    measure_levels,
    relations_of_levels,
)
from bsplib.running.probe_supersteps import RELATIONS, speed_of, superstep_s
from bsplib.running.speed import VECTOR

if TYPE_CHECKING:
    from bsplib.group import Group

ROUNDS = 25


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
    """By pattern, or by level."""


def probe(
    nprocs: int,
    name: str,
    *,
    backend: str = backends.DEFAULT,
    rounds: int = ROUNDS,
    progress: Callable[[], object] = lambda: None,
) -> Probed:
    """Measure the computer, or the hosts, on which a backend runs a number of processes.

    Args:
        nprocs: 2 or more: with one nothing is communicated.
        name: name of the Machine.
        backend: one that has pools.
        rounds: how often everything is measured.
        progress: called after each round.

    Raises:
        ValueError: there are fewer than 2 processes, or no rounds.
        ProcessRangeError: there are more than the backend can have.
        OutOfSharedMemoryError: 1 MiB for each process does not fit.
    """
    if nprocs < 2 or rounds < 1:
        raise ValueError(f"{nprocs} processes in {rounds} rounds measure no communication")
    speeds, seconds = [], []
    with Pool(nprocs, backend=backend) as pool:
        hosts = pool.run(host_of)
        levels = len(set(hosts)) > 1
        measure = functools.partial(measure_levels, hosts=hosts) if levels else measure_round
        for _ in range(rounds):
            results = pool.run(measure)
            speeds.append(min(speed for speed, _ in results))
            seconds.append(np.max([times for _, times in results], axis=0))
            progress()
    relations = relations_of_levels(hosts) if levels else _relations_of_patterns(nprocs)
    typical = np.quantile(seconds, 0.1, axis=0)
    fits = {
        what: fit_line(np.array(h), times)
        for (what, h), times in zip(relations.items(), typical, strict=True)
        if len(h)
    }
    figures = _of_levels(fits) if levels else _of_patterns(fits)
    speed = float(np.quantile(speeds, 0.9))
    return Probed(_machine(name, backend, hosts, speed, figures), fits)


def _relations_of_patterns(nprocs: int) -> dict[str, list[int]]:
    return {pattern: [relation(pattern, h, nprocs) for h in RELATIONS] for pattern in PATTERNS}


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
    speed = speed_of(bsp)
    seconds = [
        superstep_s(bsp, functools.partial(_communicate, bsp, pattern, source, destination, h))
        for pattern, h in product(PATTERNS, RELATIONS)
    ]
    return speed, np.reshape(seconds, (len(PATTERNS), len(RELATIONS)))


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


def _of_patterns(fits: dict[str, Fit]) -> dict[str, Any]:
    """Return the figures of a Machine of one level."""
    total, source = fits["all-to-all"], "fitted to the all-to-all"
    patterns = {pattern: Pattern(fit.g, fit.l) for pattern, fit in fits.items()}
    return {
        "g": total.g,
        "l": total.l,
        "patterns": patterns,
        "sources": {"g": source, "l": source},
    }


def _of_levels(fits: dict[str, Fit]) -> dict[str, Any]:
    """Return the figures of a Machine of two levels, or of that between hosts alone."""
    wide, inside = fits[BETWEEN], fits.get(INSIDE)
    figures: dict[str, Any] = {"g": wide.g, "l": wide.l}
    source = "fitted to a total exchange between hosts"
    sources = {"g": source, "l": source}
    if inside is not None:
        figures["inside"] = Level(min(inside.g, wide.g), max(inside.l, 0.0))
        sources["inside"] = "fitted to all-to-alls inside the hosts, all at once"
    return figures | {"sources": sources}


def _machine(
    name: str, backend: str, hosts: list[str], speed: float, figures: dict[str, Any]
) -> Machine:
    cores = backends.own_cores()
    medium = backends.find(backend).probed_over
    date = datetime.now(UTC).date().isoformat()
    count = len(set(hosts))
    where = f" on {count} hosts" if count > 1 else ""
    sources = {"speed": f"y + a x on {VECTOR} doubles in numpy, all processes at once"}
    return Machine(
        name=name,
        source=(
            f"measured by bsp probe on {date}: {len(hosts)} processes{where} over {medium}, "
            f"{cores} cores of {processor()}"
        ),
        p=len(hosts),
        speed=speed,
        **figures | {"sources": sources | figures["sources"]},
    )


def processor() -> str:
    """Return the name of this computer's processor."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        text = ""
    names = re.findall(r"^model name\s*: (.*)$", text, re.MULTILINE)
    return str(names[0]) if names else platform.processor() or platform.machine()
