"""The predicted times of a run under each model and its measured time, in total and by node."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.profiler.callgraph import CallGraph, build
from bsplib.profiler.models.replay import MODELS, Booking, measured, replay
from bsplib.profiler.prices import is_of, ratio_of_host, recorded_machine
from bsplib.profiler.timeline import lay_out

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bsplib.profiler.prices import ReplayPrices
    from bsplib.recording.records import Run

MEASURED = "measured"
"""Key of the measured time, beside the names of the models."""


@dataclass(frozen=True)
class TimeParts:
    """The parts of a total time, or of the share that a node has in it."""

    comp_s: float
    comm_s: float
    sync_s: float
    waiting_s: float = 0.0
    """Waiting for a core; only in the measured time."""
    recording_s: float = 0.0
    """What the recorder took between supersteps; only in the measured time."""

    @property
    def total_s(self) -> float:
        """The sum of the parts."""
        return self.comp_s + self.comm_s + self.sync_s + self.waiting_s + self.recording_s

    @property
    def busy_s(self) -> float:
        """Computation, and waiting for a core during it."""
        return self.comp_s + self.waiting_s

    @property
    def exchange_s(self) -> float:
        """Communication and synchronisation."""
        return self.comm_s + self.sync_s


class PartErrors(NamedTuple):
    """100 (measured - predicted) / measured, by part."""

    computation: float | None
    communication: float | None


@dataclass(frozen=True)
class Prediction:
    """The times of a run under the models, and its measured time."""

    callgraph: CallGraph
    prices: ReplayPrices
    totals: dict[str, TimeParts]
    """Total times, by ``MEASURED`` or the name of the model."""
    nodes: dict[str, dict[str, TimeParts]]
    """The share of each node in a total, by the same key and then by node id: the time
    that the path which determines the total spent under the node. The cost centres add up
    to the total, and so do the callees of a function if they have no other caller."""

    @property
    def is_elsewhere(self) -> bool:
        """Whether the prediction is for another Machine than the one that was measured."""
        run, machine = self.callgraph.run, self.prices.machine
        if machine == recorded_machine(run):
            return self.prices.ratio != 1
        return not is_of(machine, run) or self.prices.ratio != ratio_of_host(machine, run)

    def part_errors(self, model: str) -> PartErrors:
        """Return the errors of computation and of communication, with synchronisation.

        Waiting for a core counts as computation: a Machine whose processes share cores says
        how long a computation takes there.

        Args:
            model: name of the model.

        Returns:
            The errors as of :meth:`error_percent`, each None under the same conditions.
        """
        took, found = self.totals[MEASURED], self.totals[model]
        pairs = (took.busy_s, found.comp_s), (took.exchange_s, found.exchange_s)
        return PartErrors(*(self._percent(*pair) for pair in pairs))

    def _percent(self, took_s: float, found_s: float) -> float | None:
        return None if self.is_elsewhere or not took_s else 100 * (took_s - found_s) / took_s

    def error_percent(self, model: str) -> float | None:
        """Return 100 (measured - predicted) / measured.

        Returns:
            The error in percent; None if the prediction is for another Machine than the
            one that was measured, or if the run took no time.

        Source: Roda et al. 1999, equation 18.
        """
        return self._percent(self.totals[MEASURED].total_s, self.totals[model].total_s)


def predict(
    run: Run,
    prices: ReplayPrices,
    models: Iterable[str] = MODELS,
    *,
    progress: Callable[[], object] = lambda: None,
) -> Prediction:
    """Replay a run under models.

    Args:
        run: a run, as ``bsplib.recording.trace.read_trace`` returns it.
        prices: the figures of the Machine.
        models: names of models, from ``MODELS``.
        progress: is called when the timeline is ready, and after each model.

    Raises:
        ValueError: there is no such model.
        UsageError: the Machine lacks a figure.
    """
    timeline = lay_out(run)
    progress()
    bookings = {MEASURED: measured(timeline)}
    for model in models:
        bookings[model] = replay(timeline, model, prices)
        progress()
    callgraph = build(run)
    origins = _Origins(callgraph)
    return Prediction(
        callgraph,
        prices,
        {name: origins.total(booking) for name, booking in bookings.items()},
        {name: origins.by_node(booking) for name, booking in bookings.items()},
    )


class _Origins:
    """Adds up the booked times of the records of a run, in total and for each node."""

    def __init__(self, callgraph: CallGraph) -> None:
        self._origin = callgraph.origin_of_records()
        self._count = len(callgraph.origins)
        self._under = {node: sorted(origins) for node, origins in callgraph._passing.items()}

    def total(self, booking: Booking) -> TimeParts:
        """Return the sum over all records."""
        return TimeParts(*self._sums(booking).sum(axis=1).tolist())

    def by_node(self, booking: Booking) -> dict[str, TimeParts]:
        """Return for each node the sum over the records whose call chain contains it."""
        sums = self._sums(booking)
        return {
            node: TimeParts(*sums[:, origins].sum(axis=1).tolist())
            for node, origins in self._under.items()
        }

    def _sums(self, booking: Booking) -> NDArray[np.float64]:
        """Return the sum of each part for each origin (a call stack with the kind of its sync)."""
        parts = (
            *(booking.comp_s, booking.comm_s, booking.sync_s),
            *(booking.waiting_s, booking.recording_s),
        )
        return np.stack([np.bincount(self._origin, part, self._count) for part in parts])
