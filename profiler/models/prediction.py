"""The predicted times of a run under each model and its measured time, in total and by node."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bsplib.profiler.callgraph import CallGraph, build
from bsplib.profiler.models.replay import MODELS, measured, replay
from bsplib.profiler.prices import is_of, ratio_of_host, recorded_machine
from bsplib.profiler.timeline import Timeline

if TYPE_CHECKING:
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

    def error_percent(self, model: str) -> float | None:
        """Return 100 (measured - predicted) / measured.

        Returns:
            The error in percent; None if the prediction is for another Machine than the
            one that was measured, or if the run took no time.

        Source: Roda et al. 1999, equation 18.
        """
        took_s, found_s = self.totals[MEASURED].total_s, self.totals[model].total_s
        return None if self.is_elsewhere or not took_s else 100 * (took_s - found_s) / took_s


def predict(run: Run, prices: ReplayPrices, models: Iterable[str] = MODELS) -> Prediction:
    """Replay a run under models.

    Args:
        run: a run, as ``bsplib.recording.trace.read_trace`` returns it.
        prices: the figures of the Machine.
        models: names of models, from ``MODELS``.

    Raises:
        ValueError: there is no such model.
        UsageError: the Machine lacks a figure.
    """
    timeline = Timeline(run)
    bookings = {MEASURED: measured(timeline)}
    bookings |= {model: replay(timeline, model, prices) for model in models}
    callgraph = build(run)
    origin, count = callgraph.origin_of_records(), len(callgraph.origins)
    totals, nodes = {}, {}
    for name, booking in bookings.items():
        # The sum of each part for each origin, a call stack with the kind of its sync.
        sums = np.stack([np.bincount(origin, part, count) for part in booking])
        totals[name] = TimeParts(*sums.sum(axis=1).tolist())
        nodes[name] = {
            node: TimeParts(*sums[:, sorted(callgraph.passing[node])].sum(axis=1).tolist())
            for node in callgraph.graph
        }
    return Prediction(callgraph, prices, totals, nodes)
