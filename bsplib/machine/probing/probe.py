"""Measures the parameters of this computer: what a Machine says of it.

With several numbers of processes it measures an empty sync, small puts, messages of the six
patterns by size, and the start of a run (:mod:`bsplib.machine.probing.times`). These times price
supersteps. Beside them stand the figures of the models: g and L of each pattern, fitted by least
squares on the relative error with L not below zero; g and l of the Machine are those of the
all-to-all, as in the Oxford BSP library. Where the processes are on several hosts, two levels are
measured instead (:func:`measure_levels`).

Source: Roda et al. 1999, section 3: the patterns, and the sizes of equation 4 with
@ = max; there without syncs.
"""

from __future__ import annotations

import functools
import os
import platform
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bsplib.backends import table as backends
from bsplib.machine import Level, Machine, Pattern
from bsplib.machine.probing.times import (
    MOST_ROUNDS,
    ProbeTimes,
    measure_times,
    measured_of,
    speed_of,
    superstep_s,
)
from bsplib.machine.speed import VECTOR
from bsplib.running.options import BackendName
from bsplib.running.pool import Pool

if TYPE_CHECKING:
    from bsplib.group import Group


ROUNDS = MOST_ROUNDS
BUDGET_S = 60.0
"""Seconds for the rounds of all numbers of processes together."""
_FEW = 8
"""Numbers of processes up to which each of them is measured."""
_BUSY = 0.5
"""Load average for each core from which on a probe says that the computer was busy."""
_UNSTEADY = 0.05
"""Spread of the rounds from which on a probe says that the computer was busy."""


@dataclass(frozen=True)
class LineFit:
    """A line through measured times of a pattern."""

    g: float
    l: float  # noqa: E741  # as of a Machine
    misfit: float
    """The greatest relative error of the line over the sizes."""


@dataclass(frozen=True)
class Probed:
    """The Machine that a probe measured, and how well its lines fit."""

    machine: Machine
    fits: dict[str, LineFit]
    """By pattern, or by level."""
    load: float = 0.0
    """Load average of the system before the probe."""

    @property
    def doubt(self) -> str:
        """A sentence if the computer was busy or the times scattered; otherwise empty."""
        if self.machine.cores is not None and self.load > _BUSY * self.machine.cores:
            return (
                f"Other programs kept the cores busy before the probe (load average "
                f"{self.load:.1f} on {self.machine.cores} cores): these times are too long; probe "
                f"again when the computer is idle."
            )
        spreads = [entry.spread for entry in self.machine.measured if entry.spread is not None]
        if not spreads or max(spreads) <= _UNSTEADY:
            return ""
        return (
            f"The times scatter: those of one half of the rounds differ from the others by "
            f"{100 * max(spreads):.0f}%. Other programs may have used the cores; probe again when "
            f"the computer is idle."
        )


def counts_of(nprocs: int | None) -> list[int]:
    """Return the numbers of processes to measure.

    Args:
        nprocs: the number for which g and l hold; None: the cores, and also twice as many, and
            all between where these are few.
    """
    cores = backends.own_cores()
    if nprocs is None:
        most = 2 * max(2, cores)
        between = range(1, most) if most <= _FEW else ()
        return sorted({1, 2, max(2, cores), most, *between})
    return sorted({1, 2, nprocs})


def probe(
    nprocs: int,
    name: str,
    *,
    counts: Sequence[int] = (),
    backend: BackendName = backends.DEFAULT,
    rounds: int = ROUNDS,
    budget_s: float = BUDGET_S,
    progress: Callable[[float], object] = lambda _: None,
) -> Probed:
    """Measure the computer, or the hosts, on which a backend runs a number of processes.

    Args:
        nprocs: 2 or more: with one nothing is communicated. For it g and l hold.
        name: name of the Machine.
        counts: further numbers of processes that are measured, except over MPI.
        backend: one that has pools.
        rounds: how often everything is measured at most.
        budget_s: seconds after which no more rounds are made.
        progress: called with the part that is done, from 0 to 1.

    Raises:
        ValueError: there are fewer than 2 processes, or no rounds.
        ProcessRangeError: there are more than the backend can have.
        OutOfSharedMemoryError: the messages do not fit.
    """
    if nprocs < 2 or rounds < 1:
        raise ValueError(f"{nprocs} processes in {rounds} rounds measure no communication")
    load = load_average()
    with Pool(nprocs, backend=backend) as pool:
        hosts = pool.run(host_of)
        if len(set(hosts)) > 1:
            return _probe_levels(pool, hosts, name, backend, rounds, progress)
    # Where a launcher has started the processes, there are as many as it started.
    every = [nprocs] if backends.find(backend).is_spread else sorted({1, nprocs, *counts})
    found: dict[int, ProbeTimes] = {}
    for number, count in enumerate(every):
        found[count] = measure_times(
            count,
            backend,
            budget_s=budget_s / len(every),
            most_rounds=rounds,
            progress=lambda part, number=number: progress((number + part) / len(every)),  # type: ignore[misc]
        )
    cores = backends.own_cores()
    measured = tuple(measured_of(times, cores, backend) for times in found.values())
    (chosen,) = (entry for entry in measured if entry.p == nprocs)
    fits = {
        pattern: fit_line(np.array(curve.nbytes), np.array(curve.seconds))
        for pattern, curve in chosen.patterns.items()
    }
    speed = max(found[nprocs].speed)
    figures = _of_patterns(fits) | {"measured": measured, "host": hosts[0], "cores": cores}
    found_with = f", load average {load:.1f} before"
    return Probed(_machine(name, backend, hosts, speed, figures, found_with), fits, load)


def load_average() -> float:
    """Return how many processes ran, or wanted to, in the last minute; 0 if it is not known."""
    try:
        return os.getloadavg()[0]
    except (AttributeError, OSError):  # the system does not tell it
        return 0.0


def _probe_levels(
    pool: Pool,
    hosts: list[str],
    name: str,
    backend: BackendName,
    rounds: int,
    progress: Callable[[float], object],
) -> Probed:
    """Measure the levels of several hosts."""
    speeds, seconds = [], []
    measure = functools.partial(measure_levels, hosts=hosts)
    for number in range(1, rounds + 1):
        results = pool.run(measure)
        speeds.append(min(speed for speed, _ in results))
        seconds.append(np.max([times for _, times in results], axis=0))
        progress(number / rounds)
    least = np.min(seconds, axis=0)  # a disturbed time is too long
    fits = {
        what: fit_line(np.array(h), times)
        for (what, h), times in zip(relations_of_levels(hosts).items(), least, strict=True)
        if len(h)
    }
    speed = float(np.quantile(speeds, 0.9))
    return Probed(_machine(name, backend, hosts, speed, _of_levels(fits)), fits)


def fit_line(h: NDArray[Any], seconds: NDArray[np.float64]) -> LineFit:
    """Fit seconds = g h + l by least squares on the relative error.

    Args:
        h: bytes; at least two different values.
        seconds: the time for each h, greater than 0.

    Returns:
        The line; neither g nor l is below zero.
    """
    columns = np.stack([h, np.ones(len(h))], axis=1) / seconds[:, None]
    g, latency = np.linalg.lstsq(columns, np.ones(len(h)), rcond=None)[0]
    if g < 0:
        g, latency = 0.0, float((1 / seconds).sum() / (1 / seconds**2).sum())
    elif latency < 0:
        g, latency = float((h / seconds).sum() / ((h / seconds) ** 2).sum()), 0.0
    errors = np.abs((g * h + latency) / seconds - 1)
    return LineFit(float(g), float(latency), float(errors.max()))


# -- the Machine --------------------------------------------------------------------------------


def _of_patterns(fits: dict[str, LineFit]) -> dict[str, Any]:
    """Return the figures of a Machine of one level."""
    total, source = fits["all-to-all"], "fitted to the all-to-all"
    patterns = {pattern: Pattern(fit.g, fit.l) for pattern, fit in fits.items()}
    return {
        "g": total.g,
        "l": total.l,
        "patterns": patterns,
        "sources": {"g": source, "l": source},
    }


def _of_levels(fits: dict[str, LineFit]) -> dict[str, Any]:
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
    name: str,
    backend: BackendName,
    hosts: list[str],
    speed: float,
    figures: dict[str, Any],
    found_with: str = "",
) -> Machine:
    cores = backends.own_cores()
    date = datetime.now(UTC).date().isoformat()
    count = len(set(hosts))
    over = backends.find(backend).probed_over
    medium = backend if over is None else over(count)
    where = f" on {count} hosts" if count > 1 else ""
    sources = {"speed": f"y + a x on {VECTOR} doubles in numpy, all processes at once"}
    return Machine(
        name=name,
        source=(
            f"measured by bsp machine probe on {date}: {len(hosts)} processes{where} over "
            f"{medium}, {cores} cores of {processor()}{found_with}"
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


# -- measures g and l between hosts, and inside them ----------------------------------------------
#
# Between hosts, every process puts equally much into each process of all other hosts; inside,
# the processes of each host make a group, and all groups make all-to-alls at the same time.


BETWEEN, INSIDE = "between hosts", "inside a host"
RELATIONS = tuple(4**power for power in range(3, 12))
"""h in bytes, also large enough that a link of a millisecond shows its g."""
_BATCH_S = 3e-2
"""Between hosts: a process may begin a superstep as much later as a message travels. Over several
supersteps in a row this evens out.
"""


def host_of(_: Group) -> str:
    """Return the name of the host of this process."""
    return platform.node()


def relations_of_levels(hosts: Sequence[str]) -> dict[str, list[int]]:
    """Return the h of each superstep that is measured, by level; none inside hosts of one process.

    Args:
        hosts: of the processes, by pid.
    """
    sizes = Counter(hosts).values()
    most = {BETWEEN: len(hosts) - min(sizes), INSIDE: max(sizes) - 1}
    return {level: [h // n * n for h in RELATIONS] if n else [] for level, n in most.items()}


def measure_levels(bsp: Group, *, hosts: Sequence[str]) -> tuple[float, NDArray[np.float64]]:
    """Measure both levels with every h once, in a process of the pool.

    Args:
        bsp: the group of all processes.
        hosts: of the processes, by pid.

    Returns:
        flop/s of this process, and the seconds of a superstep by level and h; those inside a
        host are 0 for a process that is alone on its host.
    """
    speed = speed_of(bsp)
    sizes = Counter(hosts)
    here = hosts[bsp.pid]
    others = [pid for pid, host in enumerate(hosts) if host != here]
    between = _measured(bsp, others, len(hosts) - min(sizes.values()))
    inside = np.zeros(len(RELATIONS))
    with bsp.split(list(sizes).index(here)) as sub:
        if sub is not None and sub.nprocs > 1:
            near = [pid for pid in range(sub.nprocs) if pid != sub.pid]
            inside = _measured(sub, near, max(sizes.values()) - 1)
    return speed, np.stack([between, inside])


def _measured(bsp: Group, receivers: Sequence[int], most: int) -> NDArray[np.float64]:
    """Return the seconds of supersteps in which h bytes are shared out among receivers.

    Args:
        bsp: the group.
        receivers: the processes into which this one puts.
        most: the number of receivers of the process that has most.
    """
    source = np.ones(RELATIONS[-1] // most, np.uint8)
    destination = bsp.zeros(bsp.nprocs * len(source), np.uint8)

    def exchange(size: int) -> None:
        for pid in receivers if size else ():
            bsp.put(pid, source[:size], destination, offset=bsp.pid * size)

    return np.array([superstep_s(bsp, partial(exchange, h // most), _BATCH_S) for h in RELATIONS])
