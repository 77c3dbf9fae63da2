"""The g, l and rule for h by which the losses of a run are priced."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bsplib.errors import UsageError
from bsplib.profiler import format as fmt
from bsplib.profiler._numbering import blocks, by_blocks, stable_order
from bsplib.profiler.costs import (
    communication_ns,
    h_relation,
    superstep_numbers,
    without_core_ns,
)
from bsplib.profiler.models.prices import choose_prices, recorded_machine
from bsplib.sync_kinds import Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bsplib.machine import Machine
    from bsplib.recording.records import Run

    Values = NDArray[np.float64]

NO_SOURCE = "none"
"""Source of rates of 0, where the figures are not known: a note says why."""
FITTED = "fitted to this run"
"""Source of rates that were fitted to the run itself."""

_MOST_POINTS = 1000
"""Greatest number of points into which supersteps are summed up for a fit."""


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
            return f"loss and cost: {fmt.visible(self.note)}"
        ratio = f", computation takes {self.ratio:.3g} times as long" if self.ratio != 1 else ""
        g, latency = fmt.seconds_per_byte(self.g), fmt.seconds(self.l)
        figures = f"g = {g} for each byte ({self.rule} of in and out), l = {latency}{ratio}"
        note = f" {fmt.visible(self.note)}" if self.note else ""
        return f"loss and cost: {figures}; {fmt.visible(self.source)}.{note}"


def rates_of_run(run: Run) -> Rates:
    """Return the rates of a run by default.

    These are the figures of the Machine that was given to the run, and for virtual
    processors of the Machine whose time they kept. Otherwise g and l are fitted to the
    communication times of the run.
    """
    machine = recorded_machine(run)
    if machine is not None and (run.meta.get("machine_given") is True or _is_virtual(run)):
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


def _is_virtual(run: Run) -> bool:
    return "virtual_time" in run.meta or run.meta.get("backend") == "sim"


def fitted_to(run: Run) -> Rates:
    """Fit g and l to the communication times of a run.

    Times are medians over supersteps of equal h, for the slowest process of each. What the
    system calls time without a core is left out. It does not tell all of it where processes
    share cores; there the times are lower quartiles over processes of equal h.

    Returns:
        Rates of 0 with a note where the run does not determine them.
    """
    shared = _shared_cores(run)
    h, comm_s = _processes(run) if shared else _syncs(run)
    if len(h) == 0:
        return Rates(0.0, 0.0, source=NO_SOURCE, note=f"g and l are 0: the run has {_NO_SYNC}.")
    h, comm_s, count = _points(h, comm_s, 0.25 if shared else 0.5)
    if len(h) == 1 and h[0] > 0:
        note = f"g and l are 0: every superstep moves {h[0]:.0f} bytes, {_INSEPARABLE}."
        return Rates(0.0, 0.0, source=NO_SOURCE, note=note)
    g, latency = fit_line(h, comm_s, count)
    return Rates(g, latency, source=FITTED, note=shared)


def _shared_cores(run: Run) -> str:
    """Return a sentence for a run with more processes than cores; empty for others."""
    cores = run.meta.get("cores")
    if not isinstance(cores, int) or run.nprocs <= cores or _is_virtual(run):
        return ""
    which = f"{run.nprocs} processes shared {cores} core{'s' * (cores != 1)}"
    return f"g and l are rough, since {which}, and transfers contain waiting for a core."


_NO_SYNC = "no superstep that ended with a sync"
_INSEPARABLE = "so that the cost of bytes cannot be told from that of a superstep"


def _syncs(run: Run) -> tuple[Values, Values]:
    """Return h and the time of communication of each superstep with a sync, in bytes and s.

    Both are the greatest among the processes of the superstep.
    """
    step = superstep_numbers(run)
    h_out, h_in = h_relation(run, step)
    h, comm = np.zeros((2, int(step.max(initial=-1)) + 1))
    present = np.zeros(len(h), bool)
    for part in blocks(len(step)):
        records = run.records[part]
        rows = np.flatnonzero(records["kind"] != Kind.END)
        steps = step[part][rows]
        present[steps] = True
        np.maximum.at(h, steps, np.maximum(h_out[part], h_in[part])[rows])
        np.maximum.at(comm, steps, _on_core_ns(records)[rows])
    return h[present], comm[present] / 1e9


def _processes(run: Run) -> tuple[Values, Values]:
    """Return h and the time of communication of each record of a sync, in bytes and s."""
    rows = np.flatnonzero(run.records["kind"] != Kind.END)
    comm_ns = by_blocks(len(run.records), lambda part: _on_core_ns(run.records[part]))
    return np.maximum(*h_relation(run))[rows], comm_ns[rows] / 1e9


def _on_core_ns(records: NDArray[np.void]) -> Values:
    """Return the time of communication of records without that for want of a core."""
    comm = communication_ns(records) - without_core_ns(records)[1]
    return comm.astype(np.float64)


def _points(h: Values, comm_s: Values, quantile: float) -> tuple[Values, Values, Values]:
    """Sum up times of similar h: the median h, a quantile of the times, and their number.

    Quantiles, since a process that waits for a core communicates a thousand times longer.
    """
    order = stable_order(h.astype(np.int64))
    h, comm_s = h[order], comm_s[order]
    distinct = np.flatnonzero(np.diff(h, prepend=-1.0))
    if len(distinct) > _MOST_POINTS:
        distinct = np.unique(np.linspace(0, len(h), _MOST_POINTS, endpoint=False).astype(int))
    pieces = np.split(np.arange(len(h)), distinct[1:])
    points = [
        (np.median(h[piece]), np.quantile(comm_s[piece], quantile), len(piece)) for piece in pieces
    ]
    h, comm_s, count = np.array(points, np.float64).T
    return h, comm_s, count


def fit_line(h: Values, comm_s: Values, count: Values) -> tuple[float, float]:
    """Fit g h + l to times, with g and l not negative, by the least relative errors.

    Args:
        h: bytes.
        comm_s: seconds.
        count: how often each pair was measured.

    Returns:
        g in seconds per byte and l in seconds.
    """
    weight = np.sqrt(count) / np.maximum(comm_s, comm_s.max() * 1e-6 or 1.0)
    columns = np.stack([h, np.ones_like(h)]) * weight
    target = comm_s * weight
    fits = []
    for chosen in ([0, 1], [0], [1]):
        part = columns[chosen]
        if np.linalg.matrix_rank(part) < len(chosen):
            continue
        values = np.zeros(2)
        values[chosen] = np.linalg.lstsq(part.T, target, rcond=None)[0]
        if values.min() >= 0:
            error = float(((values @ columns - target) ** 2).sum())
            fits.append((error, float(values[0]), float(values[1])))
    return min(fits)[1:]
