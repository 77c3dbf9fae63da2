"""The g, l, rule for h and ratio of speeds by which the book of a run is made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bsplib.errors import UsageError
from bsplib.profiler import format as fmt
from bsplib.profiler.costs import once
from bsplib.profiler.prices import choose_prices, recorded_machine
from bsplib.profiler.survey import FEW_BYTES, is_virtual, shares_cores, survey

if TYPE_CHECKING:
    from bsplib.machine import Machine
    from bsplib.profiler._arrays import Floats
    from bsplib.recording.records import Run


NO_SOURCE = "none"
"""Source of rates of 0, where the figures are not known: a note says why."""
FITTED = "fitted to this run"
"""Source of rates that were fitted to the run itself."""


@dataclass(frozen=True)
class Rates:
    """What computation, bytes and supersteps cost: a superstep costs ``ratio w + g h + l``."""

    g: float
    """Seconds for each byte of the h-relation."""
    l: float  # noqa: E741  # the name in the field
    """Seconds for each superstep."""
    rule: str = "max"
    """h of a process: ``max`` or ``sum`` of the bytes in and the bytes out."""
    ratio: float = 1.0
    """Time of a computation, divided by the recorded time."""
    source: str = ""
    """Where the figures come from: the name of a Machine, or ``FITTED``."""
    note: str = ""
    """A sentence where figures are missing or are not to be trusted, otherwise empty."""

    def sentence(self) -> str:
        """Return the rates in a sentence, with what is missing."""
        if self.source == NO_SOURCE:
            return f"transfers and latency: {fmt.visible(self.note)}"
        ratio = f", computation takes {self.ratio:.3g} times as long" if self.ratio != 1 else ""
        g, latency = fmt.seconds_per_byte(self.g), fmt.seconds(self.l)
        figures = f"g = {g} for each byte ({self.rule} of in and out), l = {latency}{ratio}"
        note = f" {fmt.visible(self.note)}" if self.note else ""
        return f"transfers and latency: {figures}; {fmt.visible(self.source)}.{note}"


def rates_of_run(run: Run) -> Rates:
    """Return the rates of a run by default.

    These are the figures of the Machine that was given to the run, and for virtual
    processors of the Machine whose time they kept. Otherwise g and l are fitted to the
    communication times of the run.
    """
    return once(run, "rates", lambda: _rates_of_run(run))


def _rates_of_run(run: Run) -> Rates:
    machine = recorded_machine(run)
    if machine is not None and (run.meta.get("machine_given") is True or is_virtual(run)):
        try:
            return rates_on(machine, run)
        except UsageError:  # it has no l, so that a fit says more
            pass
    return fitted_to(run)


def rates_on(machine: Machine, run: Run, *, speed: str | None = None) -> Rates:
    """Return the rates of a run on a Machine.

    Args:
        machine: the Machine.
        run: the run, for the speed of the computer that recorded it.
        speed: speed of a process of the Machine: in flop/s, as ``3e8``, or as a multiple
            of the speed of the computer that recorded the run, as ``0.5x``.

    Raises:
        UsageError: the Machine has no l, or one of the speeds is not known.
    """
    prices = choose_prices(run, machine, speed=speed)
    g, latency = prices.machine.costs()
    return Rates(g, latency, machine.h, prices.ratio, machine.label)


def fitted_to(run: Run) -> Rates:
    """Fit g and l to the communication times of a run.

    Times are medians over supersteps of equal h, for the slowest process of each. What the
    system calls time without a core is left out. It does not tell all of it where processes
    share cores; there the times are lower quartiles over processes of equal h.

    Returns:
        Rates with a note where the run does not determine them. Where each superstep moves the
        same bytes, all is the cost of bytes if they are many, otherwise that of supersteps.
    """
    times = survey(run).times
    shared = _shared_cores(run)
    h, comm_s, count = times.points(0.25 if shared else 0.5)
    if len(h) == 0:
        return Rates(0.0, 0.0, source=NO_SOURCE, note=f"g and l are 0: the run has {_NO_SYNC}.")
    g, latency = fit_line(h, comm_s, count)
    return Rates(g, latency, source=FITTED, note=shared or _inseparable(h, g))


def _inseparable(h: Floats, g: float) -> str:
    """Return a sentence for a run in which all h are equal; empty for others, and for h = 0."""
    if len(h) > 1 or h[0] == 0:
        return ""
    which = "bytes" if g else "supersteps"
    return f"All is said to be the cost of {which}, since each superstep moves {h[0]:.0f} bytes."


def _shared_cores(run: Run) -> str:
    """Return a sentence for a run with more processes than cores; empty for others."""
    if not shares_cores(run):
        return ""
    cores = run.meta["cores"]
    which = f"{run.nprocs} processes shared {cores} core{'s' * (cores != 1)}"
    return f"g and l are rough, since {which}, and transfers contain waiting for a core."


_NO_SYNC = "no superstep that ended with a sync"


def fit_line(h: Floats, comm_s: Floats, count: Floats) -> tuple[float, float]:
    """Fit g h + l to times, with g and l not negative.

    The line has the least sum of |log(line / time)|, where more seconds weigh more: about as many
    are spent in supersteps that are slower than it as in quicker ones. The square of relative
    errors, on the other hand, would follow a few quick supersteps, since a line that is too high
    for them is off by many times their time, and one that is too low for all others by less than
    theirs. Where h hardly differs, bytes and supersteps explain the times alike, and of many bytes
    it is rather these.

    Args:
        h: bytes.
        comm_s: seconds.
        count: how often each pair was measured.

    Returns:
        g in seconds per byte and l in seconds.
    """
    if not comm_s.any():
        return 0.0, 0.0
    times = np.maximum(comm_s, comm_s.max() * _LEAST_TIME)
    weight = count * (times / times.max()) ** _BY_TIME
    columns = np.stack([h, np.ones_like(h)])
    fits = []
    for chosen in ([0, 1], [0], [1]):
        part = columns[chosen]
        if np.linalg.matrix_rank(part) < len(chosen):
            continue
        values = np.zeros(2)
        values[chosen] = _least_logarithms(part, times, weight)
        if values.min() >= 0:
            error = float((weight * _logarithms(values @ columns, times)).sum())
            is_doubtful = values[0] == 0 and (weight @ h) > FEW_BYTES * weight.sum()
            fits.append((error + is_doubtful * _CLEARLY * weight.sum(), *values.tolist()))
    return min(fits)[1:]


_LEAST_TIME = 1e-6
"""The least time that is told from none, and the least value of a line, as a part of a time."""
_BY_TIME = 0.75
"""The power of its time by which a superstep weighs. With 0 the line would be that of most
supersteps, which may be the quick ones that take the least of the time, and with 1 that of a single
slow one in a short run."""
_CLEARLY = 0.1
"""Supersteps of more than a few bytes in the mean are said to cost latency alone only where the
logarithms of all other lines are off by more than this in the mean."""
_ROUNDS, _NEAR = 30, 1e-4
"""How often weights are found anew, and the logarithm below which a time counts as met."""


def _least_logarithms(columns: Floats, times: Floats, weight: Floats) -> Floats:
    """Return the coefficients with the least weighted sum of logarithms, by weights found anew."""
    line: Floats = times
    found: Floats = np.zeros(len(columns))
    for _ in range(_ROUNDS):
        scale = np.sqrt(weight / np.maximum(_logarithms(line, times), _NEAR) / (line * times))
        solved = np.linalg.lstsq((columns * scale).T, times * scale, rcond=None)[0]
        found = np.asarray(solved, np.float64)
        line = np.maximum(found @ columns, _LEAST_TIME * times)
    return found


def _logarithms(line: Floats, times: Floats) -> Floats:
    off: Floats = np.abs(np.log(np.maximum(line, _LEAST_TIME * times) / times))
    return off
