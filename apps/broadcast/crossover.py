"""The crossover: the size from which a broadcast is faster in two stages than in one.

It is predicted by equation 8 of Jarvis et al. (2002), n > l / (p g - 2 g), and by the costs
from which this is derived, without the approximation of p - 1 by p and with the Machine's
own rule for h:

======== ======================================================= ===========================
stages   h of the root (out), of the others (in), by superstep   cost
======== ======================================================= ===========================
one      (p - 1) n, n                                            g h + l
two      (p - 1) n/p, n/p; then (p - 1) n/p in and out for all   g (h + h') + 2 l
======== ======================================================= ===========================

It is measured by broadcasts of sizes around the prediction, and of further sizes until the
crossover has been passed. On virtual processors only communication counts here, as in the
equations.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import numpy as np
from numpy.typing import NDArray

import bsplib
from bsplib import Machine
from bsplib.apps.progress import steps

Broadcast = Callable[[bsplib.Group, NDArray[np.float64]], None]

WORD = 8
"""Bytes of a value."""
_LEAST, _MOST = WORD, 1 << 24
"""Limits of the sizes, in bytes."""
_AROUND = 3
"""First sizes: this many powers of two below and above the predicted crossover."""
_WITHOUT_PREDICTION = 1 << 13


@dataclass(frozen=True)
class BroadcastSample:
    """Seconds of a broadcast of one size."""

    nbytes: int
    one_s: float
    two_s: float


@dataclass(frozen=True)
class Crossover:
    """The crossover in bytes, predicted and measured."""

    nprocs: int
    machine: Machine
    samples: tuple[BroadcastSample, ...]
    """Samples in the order of their sizes."""

    @property
    def equation_8(self) -> float:
        """The crossover by equation 8; infinite if two stages are never faster."""
        saved = self.machine.g * (self.nprocs - 2)
        return self.machine.need("l") / saved if saved > 0 else math.inf

    @property
    def predicted(self) -> float:
        """The crossover by the exact costs; infinite if two stages are never faster."""
        return predict(self.machine, self.nprocs)

    @property
    def fitted(self) -> tuple[float, float] | None:
        """The g and l of a line fitted to the one-stage broadcasts; None if it falls."""
        sizes = np.array([sample.nbytes for sample in self.samples], float)
        seconds = np.array([sample.one_s for sample in self.samples])
        if len(sizes) < 2 or not (seconds > 0).all():
            return None
        slope, start = np.polyfit(sizes, seconds, 1, w=1 / seconds)  # relative errors
        return (slope / (self.nprocs - 1), start) if slope > 0 and start > 0 else None

    @property
    def measured(self) -> tuple[int, int] | None:
        """The greatest size at which one stage was not slower, and the next size.

        The first is 0 if two stages were faster at all sizes. None if two stages were not
        faster at the greatest size.
        """
        last = max((i for i, one in enumerate(self.samples) if one.one_s <= one.two_s), default=-1)
        if last == len(self.samples) - 1:
            return None
        below = self.samples[last].nbytes if last >= 0 else 0
        return below, self.samples[last + 1].nbytes

    @property
    def interpolated(self) -> float | None:
        """The size between the two measured ones at which both would take the same time."""
        if self.measured is None or self.measured[0] == 0:
            return None
        low, high = (sample for sample in self.samples if sample.nbytes in self.measured)
        before, after = (math.log(sample.two_s / sample.one_s) for sample in (low, high))
        share = before / (before - after)
        return low.nbytes * (high.nbytes / low.nbytes) ** share


def costs(machine: Machine, nprocs: int, nbytes: float) -> tuple[float, float]:
    """Return the costs of a broadcast in one stage and in two, in seconds.

    Raises:
        UsageError: l is a gap.

    Source: Jarvis et al. 2002, equations 6 and 7, without the approximation of p - 1 by p.
    """
    one, two = _relations(machine, nprocs, nbytes, nbytes / nprocs)
    latency = machine.need("l")
    return machine.g * one + latency, machine.g * two + 2 * latency


def predict(machine: Machine, nprocs: int) -> float:
    """Return the crossover in bytes by :func:`costs`; infinite if two stages never win."""
    one, two = _relations(machine, nprocs, nprocs, 1)  # whole numbers, without rounding
    saved = machine.g * (one - two) / nprocs  # for each byte
    return machine.need("l") / saved if saved > 0 else math.inf


def _relations(machine: Machine, nprocs: int, whole: float, part: float) -> tuple[float, float]:
    """Return the sum of h over the supersteps of one stage, and of two."""
    others = nprocs - 1
    one = max(machine.relation(0, others * whole), machine.relation(whole, 0))
    scatter = max(machine.relation(0, others * part), machine.relation(part, 0))
    exchange = machine.relation(others * part, others * part)
    return one, scatter + exchange


def main(
    bsp: bsplib.Group,
    one: Broadcast,
    two: Broadcast,
    *,
    repeats: int = 15,
    progress: bool = False,
) -> Crossover | None:
    """Broadcast alternately in one stage and in two, until the crossover is passed.

    Args:
        bsp: the group, of 3 processes or more.
        one: a function that broadcasts process 0's array in one stage.
        two: a function that broadcasts it in two stages.
        repeats: number of broadcasts of each size and kind; the median of the times counts.
        progress: whether to show a progress bar on a terminal.

    Returns:
        The measured crossover on process 0; None on the others.

    Raises:
        ValueError: there are fewer than 3 processes, or the g of the Machine is 0.
        UsageError: the Machine lacks l.

    Source: Jarvis et al. 2002, section 3.2.
    """
    if bsp.nprocs < 3:
        raise ValueError(
            f"there is no crossover with nprocs = {bsp.nprocs}, where two stages are never faster; "
            f"use 3 processes or more"
        )
    if bsp.machine.g == 0:
        raise ValueError(
            f"there is no crossover on the Machine {bsp.machine.name!r}, whose g is 0; name another"
        )
    samples: dict[int, BroadcastSample] = {}
    found = Crossover(bsp.nprocs, bsp.machine, ())
    sizes = _first_sizes(found.predicted)
    with steps(bsp, len(sizes), shown=progress) as begin:
        while sizes:
            for nbytes in sizes:
                begin(f"{nbytes} bytes")
                samples[nbytes] = _sample(bsp, one, two, nbytes, repeats)
            ordered = tuple(samples[nbytes] for nbytes in sorted(samples))
            found = bsp.broadcast(Crossover(bsp.nprocs, bsp.machine, ordered), stages=1)
            sizes = _next_sizes(found)
    return found if bsp.pid == 0 else None


def _first_sizes(predicted: float) -> list[int]:
    middle = predicted if predicted < math.inf else _WITHOUT_PREDICTION
    exponent = round(math.log2(max(middle, _LEAST)))
    sizes = (1 << power for power in range(exponent - _AROUND, exponent + _AROUND + 1))
    return [size for size in sizes if _LEAST <= size <= _MOST] or [_MOST]


def _next_sizes(found: Crossover) -> list[int]:
    """Return one further size if the crossover is outside the measured sizes."""
    if found.measured is None:
        greater = found.samples[-1].nbytes * 2
        return [greater] if greater <= _MOST else []
    below, first = found.measured
    return [first // 2] if below == 0 and first // 2 >= _LEAST else []


def _sample(
    bsp: bsplib.Group, one: Broadcast, two: Broadcast, nbytes: int, repeats: int
) -> BroadcastSample:
    """Measure broadcasts of one size; the first of each kind does not count."""
    seconds: dict[Broadcast, list[float]] = {one: [], two: []}
    with bsp.scope():
        values = bsp.zeros(nbytes // WORD)
        bsp.charge(0.0)
        for _ in range(repeats + 1):
            for broadcast, taken in seconds.items():
                began = bsp.time()
                broadcast(bsp, values)
                taken.append(bsp.time() - began)
    return BroadcastSample(nbytes, *(median(taken[1:]) for taken in seconds.values()))
