"""From what size on a broadcast is faster in two stages than in one.

Predicted by equation 8 of Jarvis et al. (2002), n > l / (p g - 2 g), and by the costs
that it is derived from without putting p for p - 1, with the Machine's own rule for h:

======== ======================================================= ===========================
stages   h of the root (out), of the others (in), by superstep   cost
======== ======================================================= ===========================
one      (p - 1) n, n                                            g h + l
two      (p - 1) n/p, n/p; then (p - 1) n/p in and out for all   g (h + h') + 2 l
======== ======================================================= ===========================

Measured by broadcasting: sizes around the prediction, and beyond them until the
crossover has been passed. Virtual processors count communication alone here, as the
equations do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import numpy as np
from numpy.typing import NDArray

import bsplib
from apps.progress import steps
from bsplib import Machine

Broadcast = Callable[[bsplib.Group, NDArray[np.float64]], None]

WORD = 8
"""Bytes of a value."""
_LEAST, _MOST = WORD, 1 << 24
"""Bytes of the sizes that may be broadcast."""
_AROUND = 3
"""Powers of two below and above the predicted crossover to begin with."""
_WITHOUT_PREDICTION = 1 << 13


@dataclass(frozen=True)
class Sample:
    """Seconds of a broadcast of one size."""

    nbytes: int
    one_s: float
    two_s: float


@dataclass(frozen=True)
class Crossover:
    """Where two stages begin to pay, in bytes: predicted and measured."""

    nprocs: int
    machine: Machine
    samples: tuple[Sample, ...]
    """By size."""

    @property
    def equation_8(self) -> float:
        """Predicted by the equation as it is printed; infinite if they never pay."""
        saved = self.machine.g * (self.nprocs - 2)
        return self.machine.need("l") / saved if saved > 0 else math.inf

    @property
    def predicted(self) -> float:
        """Predicted by the costs of both; infinite if they never pay."""
        return predict(self.machine, self.nprocs)

    @property
    def fitted(self) -> tuple[float, float] | None:
        """The g and l of a line through the one-stage broadcasts; None if it falls."""
        sizes = np.array([sample.nbytes for sample in self.samples], float)
        seconds = np.array([sample.one_s for sample in self.samples])
        if len(sizes) < 2 or not (seconds > 0).all():
            return None
        slope, start = np.polyfit(sizes, seconds, 1, w=1 / seconds)  # relative errors
        return (slope / (self.nprocs - 1), start) if slope > 0 and start > 0 else None

    @property
    def measured(self) -> tuple[int, int] | None:
        """The greatest size at which one stage was no slower, and the next one.

        0 stands for the first where two stages were faster at all sizes; None where
        they were not at the greatest.
        """
        last = max((i for i, one in enumerate(self.samples) if one.one_s <= one.two_s), default=-1)
        if last == len(self.samples) - 1:
            return None
        below = self.samples[last].nbytes if last >= 0 else 0
        return below, self.samples[last + 1].nbytes

    @property
    def interpolated(self) -> float | None:
        """Where, between the two measured sizes, both would take the same time."""
        if self.measured is None or self.measured[0] == 0:
            return None
        low, high = (sample for sample in self.samples if sample.nbytes in self.measured)
        before, after = (math.log(sample.two_s / sample.one_s) for sample in (low, high))
        share = before / (before - after)
        return low.nbytes * (high.nbytes / low.nbytes) ** share


def costs(machine: Machine, nprocs: int, nbytes: float) -> tuple[float, float]:
    """Return what broadcasts in one stage and in two cost, in seconds.

    Raises:
        UsageError: l is a gap.

    Source: Jarvis et al. 2002, equations 6 and 7, before p is put for p - 1.
    """
    one, two = _relations(machine, nprocs, nbytes, nbytes / nprocs)
    latency = machine.need("l")
    return machine.g * one + latency, machine.g * two + 2 * latency


def predict(machine: Machine, nprocs: int) -> float:
    """Return from how many bytes on two stages pay by :func:`costs`; infinite if never."""
    one, two = _relations(machine, nprocs, nprocs, 1)  # whole numbers, and exact
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
    """Broadcast in one stage and in two, by turns, until the crossover is passed.

    Args:
        bsp: the group, of 3 processes or more.
        one: broadcasts process 0's array in one stage.
        two: the same in two stages.
        repeats: broadcasts of each size and kind, of whose times the median counts.
        progress: show on a terminal how far it is.

    Returns:
        What was found, on process 0; None on the others.

    Raises:
        ValueError: there are two processes or one, or communication is free.
        UsageError: the Machine lacks l.

    Source: Jarvis et al. 2002, section 3.2.
    """
    if bsp.nprocs < 3:
        raise ValueError(
            f"there is no crossover with nprocs = {bsp.nprocs}, where two stages never pay; take 3 "
            f"processes or more"
        )
    if bsp.machine.g == 0:
        raise ValueError(
            f"there is no crossover on the Machine {bsp.machine.name!r}, whose g is 0; name another"
        )
    samples: dict[int, Sample] = {}
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
    """One size more where the crossover lies beyond all that were measured."""
    if found.measured is None:
        greater = found.samples[-1].nbytes * 2
        return [greater] if greater <= _MOST else []
    below, first = found.measured
    return [first // 2] if below == 0 and first // 2 >= _LEAST else []


def _sample(bsp: bsplib.Group, one: Broadcast, two: Broadcast, nbytes: int, repeats: int) -> Sample:
    """Time broadcasts of one size; the first of each kind does not count."""
    seconds: dict[Broadcast, list[float]] = {one: [], two: []}
    with bsp.scope():
        values = bsp.zeros(nbytes // WORD)
        bsp.charge(0.0)
        for _ in range(repeats + 1):
            for broadcast, taken in seconds.items():
                began = bsp.time()
                broadcast(bsp, values)
                taken.append(bsp.time() - began)
    return Sample(nbytes, *(median(taken[1:]) for taken in seconds.values()))
