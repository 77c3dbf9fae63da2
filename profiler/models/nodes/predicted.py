"""What a node model says of a run that nobody made: time, speedup, roll-off, who causes it."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.console import Console
from bsplib.errors import UsageError
from bsplib.profiler.models.nodes.laws import FITTED, Point, PredictedValue
from bsplib.profiler.models.nodes.memory import memory_use
from bsplib.profiler.models.nodes.model import CALLS
from bsplib.profiler.models.nodes.moves import Moves
from bsplib.profiler.models.nodes.observed import Chain
from bsplib.profiler.models.nodes.stages import on_machine, shift_of
from bsplib.profiler.models.nodes.values import PROCESSES
from bsplib.profiler.prices import (
    ReplayPrices,
    choose_prices,
    recorded_machine,
    slowdowns_here,
)
from bsplib.recording.records import RECORD, TRAFFIC, Run, root_group

if TYPE_CHECKING:
    from pathlib import Path

    from bsplib.machine import Machine
    from bsplib.profiler.models.nodes.model import NodeModel

MOST_PROCESSES = 2**20


class Seconds(NamedTuple):
    """The time of a part of a run."""

    comp_s: float
    comm_s: float
    sync_s: float

    @property
    def total_s(self) -> float:
        """The sum of the parts."""
        return self.comp_s + self.comm_s + self.sync_s


_NOTHING = Seconds(0.0, 0.0, 0.0)


@dataclass(frozen=True)
class NodePrediction:
    """A program at one point on a Machine, under the BSP model; ``print`` shows it."""

    model: NodeModel
    point: Point
    prices: ReplayPrices
    nodes: Mapping[str, Seconds]
    """The time of each node; the cost centres add up to the run."""
    paths: Mapping[Chain, Seconds]
    """The part of a node that came through a path from ``main``."""
    low_s: float
    high_s: float
    """The true time of the run is expected between these, as far as the laws tell."""
    refused: Mapping[str, PredictedValue]
    """Cost centres of which something is not known; their known parts are counted."""
    outside: PredictedValue | None = None
    """Seconds before and after ``main``, which the time of the run does not have; None if they are
    not known, as on another computer than that of the runs."""

    @property
    def total(self) -> Seconds:
        """The time of the run; at least this, where something is refused."""
        return self.nodes[self.model.root]

    @property
    def is_calibrated(self) -> bool:
        """Whether the bands of all computations come from trials inside the runs."""
        laws = [each.laws["comp"] for each in self.model.chains]
        return all(law.reach.calibrated for law in laws if law.kind == FITTED)

    @property
    def critical_path(self) -> list[str]:
        """The nodes from ``main`` to a cost centre, each the most expensive callee."""
        path = [self.model.root]
        chains = [each.chain for each in self.model.chains]
        while True:
            further = {c[len(path)] for c in chains if list(c[: len(path)]) == path < list(c)}
            if not further:
                return path
            path.append(max(sorted(further), key=lambda node: self._through(path, node)))

    def _through(self, path: list[str], node: str) -> float:
        return self.paths[*path, node].total_s

    def __str__(self) -> str:
        from bsplib.profiler.models.nodes.show import show_prediction  # noqa: PLC0415  # imports this

        with io.StringIO() as text:
            show_prediction(self, scaling(self), Console(file=text, width=100, no_color=True))
            return text.getvalue().rstrip()


@dataclass(frozen=True)
class Scaling:
    """The same program at other numbers of processes."""

    predictions: tuple[NodePrediction, ...]
    """By number of processes, ascending."""
    roll_off: int | None
    """The number of processes from which more do not help; None if there is none."""
    cause: str | None
    """The cost centre whose time grows most from there on."""

    def speedup(self, prediction: NodePrediction) -> float | None:
        """Return how much faster it is than with one process; None if that is not known."""
        first = self.predictions[0]
        if first.point[PROCESSES] != 1 or first.refused or not prediction.total.total_s:
            return None
        return first.total.total_s / prediction.total.total_s

    def plot(self, path: str | Path, *, force: bool = False) -> None:
        """Draw the times of the cost centres over the number of processes into a file.

        Args:
            path: the file; its suffix names the format.
            force: replace a file that exists.

        Raises:
            ValueError: the file cannot be written, or its suffix names no format.
        """
        from bsplib.profiler.models.nodes.plot import plot_scaling  # noqa: PLC0415  # an extra

        plot_scaling(self, path, force=force)


def predict_nodes(
    model: NodeModel,
    nprocs: int,
    values: Mapping[str, float] | None = None,
    machine: Machine | None = None,
    *,
    speed: str | None = None,
    latency_s: float | None = None,
) -> NodePrediction:
    """Predict a run of a program.

    Args:
        model: the laws of the program.
        nprocs: number of processes.
        values: values of the variables; those that are the same in all runs may be left out.
        machine: the Machine; default: the one on which the program was recorded.
        speed: as for :func:`bsplib.profiler.prices.choose_prices`.
        latency_s: replaces the Machine's l.

    Raises:
        UsageError: a variable has no value, or the Machine lacks a figure.
    """
    point = point_of(model, nprocs, values or {})
    run = recorded_run(model)
    prices = choose_prices(run, machine, speed=speed, latency_s=latency_s)
    if speed is None:
        prices = replace(prices, slowdowns=slowdowns_here(run, machine))
    shift = shift_of(recorded_machine(run), prices.machine)
    return _predict(on_machine(model, shift), point, prices)


def recorded_run(model: NodeModel) -> Run:
    """Return a run without records that names the Machine and the host of the runs of a model."""
    meta = {key: value for key, value in model.meta.items() if value is not None}
    return Run(1, (root_group(1),), (), np.empty(0, RECORD), np.empty(0, TRAFFIC), meta=meta)


def point_of(model: NodeModel, nprocs: int, values: Mapping[str, float]) -> Point:
    """Return a point from the values that are given, with those that all runs have.

    Raises:
        UsageError: a variable has no value, or does not exist.
    """
    for name in values:
        if name not in model.measured or name == PROCESSES:
            known = ", ".join(model.variables) or "none"
            raise UsageError(f"predict: there is no variable {name}; the variables are: {known}")
    point = {}
    for name in model.variables:
        measured = model.measured[name]
        if name in values:
            point[name] = float(values[name])
        elif len(set(measured)) == 1:
            point[name] = measured[0]
        else:
            raise UsageError(f"predict: {name} has no value; give one as in --at {name}=2^20")
    return {**point, PROCESSES: float(nprocs)}


def _predict(model: NodeModel, point: Point, prices: ReplayPrices) -> NodePrediction:
    rule = "h_sum" if prices.machine.h == "sum" else "h"
    nodes, paths = dict.fromkeys(model.nodes, _NOTHING), dict[Chain, Seconds]()
    refused: dict[str, PredictedValue] = {}
    slowdown = memory_use(model, point, prices.machine).slowdown
    low = high = 0.0
    for each, values in model.priced(point):
        used = [values[quantity] for quantity in ("comp", rule, "supersteps", CALLS)]
        unknown = [value for value in used if not value.is_known]
        if unknown:
            refused.setdefault(each.chain[-1], unknown[0])
        known = [value if value.is_known else _UNKNOWN for value in used]
        price = _Price(prices, each.pattern, int(point[PROCESSES]), each.moves)
        parts = price(*(value.value for value in known))
        low += sum(price(*(value.low for value in known)))
        comp, *others = (value.high for value in known)
        high += math.inf if unknown else sum(price(comp * slowdown, *others))
        for depth, node in enumerate(each.chain, 1):
            nodes[node] = _sum(nodes[node], parts)
            paths[each.chain[:depth]] = _sum(paths.get(each.chain[:depth], _NOTHING), parts)
    outside = _outside(model, point, prices.machine)
    return NodePrediction(model, point, prices, nodes, paths, low, high, refused, outside)


def _outside(model: NodeModel, point: Point, machine: Machine) -> PredictedValue | None:
    """Return the seconds outside of ``main``, where the Machine is that of the runs."""
    if model.outside is None or machine.host != model.meta.get("host"):
        return None
    return model.outside.at(point)


_UNKNOWN = PredictedValue(0.0, 0.0, 0.0)


class _Price(NamedTuple):
    """What a chain costs with a number of processes."""

    prices: ReplayPrices
    pattern: str | None
    nprocs: int
    moves: Moves

    def __call__(
        self, comp_s: float, h: float, supersteps: float, calls: float
    ) -> tuple[float, float, float]:
        """Return the seconds of computation, of transfers, and of supersteps.

        Where a probe has measured the Machine, each superstep is one of the mean h-relation after
        the mean computation, in the pattern of the chain, with the mean number of calls where it is
        more than the pattern needs, and no process comes late. Of those that were new to a process
        in the runs there are as many.
        """
        machine = self.prices.machine.for_group(self.nprocs)
        computed = comp_s * self.prices.ratio_at(self.nprocs)
        if not machine.measured:
            g, latency = machine.costs()
            return computed, h * g, supersteps * latency
        if supersteps <= 0:
            return computed, 0.0, 0.0
        new = min(len(self.moves.new), int(supersteps))
        moved = self.moves.relation(h / supersteps, calls / supersteps, computed / supersteps, new)
        transfer_s, sync_s = machine.parts_of(moved, self.pattern, self.nprocs)
        counts = np.array([*[1.0] * new, supersteps - new])
        transfers = float(np.broadcast_to(transfer_s, counts.shape) @ counts)
        return computed, transfers, float(sync_s) * supersteps


def _sum(one: Seconds, parts: Sequence[float]) -> Seconds:
    return Seconds(*(first + other for first, other in zip(one, parts, strict=True)))


def scaling(prediction: NodePrediction, most: int = MOST_PROCESSES) -> Scaling:
    """Return the program at other numbers of processes, with the same values.

    Args:
        prediction: at one number of processes.
        most: greatest number of processes that is tried.
    """
    asked = int(prediction.point[PROCESSES])
    powers = {2**power for power in range(max(most, asked).bit_length())} | {asked}
    found = {count: _at(prediction, count) for count in sorted(powers)}
    usable = [count for count in found if not _has_holes(found[count], prediction)]
    best = min(usable, key=lambda count: found[count].total.total_s, default=asked)
    if best in usable and 1 < best < max(usable):
        between = np.unique(np.geomspace(max(best // 2, 1), 2 * best, 33).round().astype(int))
        found |= {count: _at(prediction, count) for count in between.tolist() if count not in found}
        near = [count for count in found if not _has_holes(found[count], prediction)]
        best = min(near, key=lambda count: found[count].total.total_s)
    if not usable or best >= max(usable):
        return Scaling(tuple(found[count] for count in sorted(found)), None, None)
    cause = _cause(found[best], _at(prediction, 2 * best))
    return Scaling(tuple(found[count] for count in sorted(found)), best, cause)


def _at(prediction: NodePrediction, count: int) -> NodePrediction:
    point = {**prediction.point, PROCESSES: float(count)}
    return _predict(prediction.model, point, prediction.prices)


def _has_holes(one: NodePrediction, asked: NodePrediction) -> bool:
    """Whether more is refused than where the user asked: then times cannot be compared."""
    return not set(one.refused) <= set(asked.refused)


def _cause(before: NodePrediction, after: NodePrediction) -> str | None:
    """Return the cost centre whose time grows most."""
    leaves = before.model.leaves()
    growth = {leaf: after.nodes[leaf].total_s - before.nodes[leaf].total_s for leaf in leaves}
    worst = max(growth, key=lambda leaf: growth[leaf])
    return worst if growth[worst] > 0 else None
