"""What a run takes under each model, beside what it took: in total and by node."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from profiler.callgraph import CallGraph, build
from profiler.models.prices import recorded_machine
from profiler.models.replay import MODELS, Booking, measured, replay
from profiler.models.timeline import lay_out

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bsplib.recording.records import Run
    from profiler.models.prices import Prices

MEASURED = "measured"
"""Stands beside the names of the models."""


@dataclass(frozen=True)
class Parts:
    """Seconds of a total, or of the part of it that is a node's."""

    comp_s: float
    comm_s: float
    sync_s: float
    waiting_s: float = 0.0
    """Waiting for a core, of what was measured."""

    @property
    def total_s(self) -> float:
        """All of it."""
        return self.comp_s + self.comm_s + self.sync_s + self.waiting_s


@dataclass(frozen=True)
class Prediction:
    """What a run takes under the models."""

    callgraph: CallGraph
    prices: Prices
    totals: dict[str, Parts]
    """By ``MEASURED`` or name of the model."""
    nodes: dict[str, dict[str, Parts]]
    """By the same, then by node id. Of a node it is what the path that decides the
    total spent under it: cost centres add up to the total, and so do the callees of a
    function that are called by nothing else."""

    @property
    def is_elsewhere(self) -> bool:
        """Whether the Machine is another one than that of the run: nothing was measured there."""
        recorded = recorded_machine(self.callgraph.run)
        return self.prices.machine != recorded or self.prices.ratio != 1

    def error_percent(self, model: str) -> float | None:
        """Return 100 (measured - predicted) / measured.

        Returns:
            None where there is no error to speak of: the prediction is for another
            Machine than the one that was measured, or the run took no time.

        Source: Roda et al. 1999, equation 18.
        """
        took = self.totals[MEASURED].total_s
        if self.is_elsewhere or not took:
            return None
        return 100 * (took - self.totals[model].total_s) / took


def predict(
    run: Run,
    prices: Prices,
    models: Iterable[str] = MODELS,
    *,
    progress: Callable[[], object] = lambda: None,
) -> Prediction:
    """Replay a run under models.

    Args:
        run: as ``bsplib.recording.trace.read_trace`` returns it.
        prices: of the Machine.
        models: names out of ``MODELS``.
        progress: is called when the run is laid out, and after each model.

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
    sites = _Sites(callgraph)
    return Prediction(
        callgraph,
        prices,
        {name: sites.total(booking) for name, booking in bookings.items()},
        {name: sites.by_node(booking) for name, booking in bookings.items()},
    )


class _Sites:
    """The call stacks of a run, each with the kind of its sync, and the nodes they pass."""

    def __init__(self, callgraph: CallGraph) -> None:
        self._site = callgraph._ledger.site
        self._count = len(callgraph._ledger.sites)
        self._under = {node: sorted(sites) for node, sites in callgraph._passing.items()}

    def total(self, booking: Booking) -> Parts:
        """The whole."""
        return Parts(*self._sums(booking).sum(axis=1).tolist())

    def by_node(self, booking: Booking) -> dict[str, Parts]:
        """What is under each node."""
        sums = self._sums(booking)
        return {
            node: Parts(*sums[:, sites].sum(axis=1).tolist()) for node, sites in self._under.items()
        }

    def _sums(self, booking: Booking) -> NDArray[np.float64]:
        """Sums of each part at each site."""
        parts = booking.comp_s, booking.comm_s, booking.sync_s, booking.waiting_s
        return np.stack([np.bincount(self._site, part, self._count) for part in parts])
