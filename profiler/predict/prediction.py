"""What a learnt program says of a run that nobody made: its time, with a band, node by node."""

from __future__ import annotations

import contextlib
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from bsplib.console import Console
from bsplib.errors import UsageError
from bsplib.experiments.formula import FormulaError
from bsplib.profiler.predict.observed import Chain
from bsplib.profiler.predict.planning import number
from bsplib.profiler.predict.program import (
    BoundedValue,
    ChainModel,
    Point,
    ProgramModel,
    communication_s,
    counted_h,
    empty_run,
    learn_observed,
)
from bsplib.profiler.predict.values import PROCESSES
from bsplib.profiler.prices import (
    ReplayPrices,
    choose_prices,
    is_of,
    recorded_machine,
    slowdowns_here,
)

if TYPE_CHECKING:
    from pathlib import Path

    from bsplib.machine import Machine

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
class ChainPrediction:
    """A call chain at a point."""

    model: ChainModel
    values: Mapping[str, BoundedValue]
    """By quantity."""
    seconds: Seconds
    low_s: float
    high_s: float


@dataclass(frozen=True)
class RunPrediction:
    """A program at one point on a Machine, under the BSP model."""

    model: ProgramModel
    point: Point
    prices: ReplayPrices
    chains: tuple[ChainPrediction, ...]
    nodes: Mapping[str, Seconds]
    """The time of each node; the cost centres add up to the run."""
    paths: Mapping[Chain, Seconds]
    """The part of a node that came through a path from ``main``."""
    low_s: float
    high_s: float
    """The true time of the run is expected between these."""

    @property
    def total(self) -> Seconds:
        """The time of the run."""
        return self.nodes[self.model.root]

    @property
    def too_short_s(self) -> float | None:
        """How long the longest of the runs was, if it is too short to tell; otherwise None."""
        short = self.model.longest_s
        is_beyond = any(value > self.model.largest[name] for name, value in self.point.items())
        return short if short < self.model.least_s and is_beyond else None

    @property
    def opening(self) -> str:
        """What the time rests on: laws that hold for all runs, formulas fitted to them, or less."""
        if self.too_short_s is not None:
            return "Not known beyond the runs:"
        used = [each.values[name] for each in self.chains for name in ("supersteps", "h", "comp")]
        return "Known" if all(value.is_exact for value in used) else "Believed"

    def at(self, point: Point) -> RunPrediction:
        """Return the prediction at another point, with the same prices."""
        return predict_at(self.model, point, self.prices)

    def __str__(self) -> str:
        from bsplib.profiler.predict.show import show_prediction  # noqa: PLC0415  # it imports this

        with io.StringIO() as text:
            show_prediction(self, scaling(self), Console(file=text, width=100, no_color=True))
            return text.getvalue().rstrip()

    @property
    def worst(self) -> str:
        """The id of the cost centre that takes most."""
        return max(self.model.leaves(), key=lambda leaf: self.nodes[leaf].total_s)


def predict_run(
    model: ProgramModel,
    nprocs: int,
    values: Mapping[str, float] | None = None,
    machine: Machine | None = None,
    *,
    speed: str | None = None,
) -> RunPrediction:
    """Predict a run of a program.

    Args:
        model: the laws of the program.
        nprocs: number of processes.
        values: values of the variables; those that are the same in all runs may be left out.
        machine: the Machine; default: the one on which the program was recorded.
        speed: as for :func:`bsplib.profiler.prices.choose_prices`.

    Raises:
        UsageError: a variable has no value, or the Machine lacks a figure.
    """
    point = point_of(model, {**(values or {}), PROCESSES: nprocs})
    run = empty_run(model.meta)
    prices = choose_prices(run, machine, speed=speed)
    if machine is not None and is_of(machine, run) and machine != recorded_machine(run):
        model = learn_observed(model.observed, model.runs, model.meta, machine)
    if speed is None:
        prices = replace(prices, slowdowns=slowdowns_here(run, machine))
    return predict_at(model, point, prices)


def point_of(model: ProgramModel, given: Mapping[str, float]) -> Point:
    """Return a point from the values that are given, with those that all runs have.

    Raises:
        UsageError: a variable has no value, or does not exist.
    """
    for name in given:
        if name not in model.measured:
            known = ", ".join(model.measured)
            raise UsageError(f"predict: there is no variable {name}; the variables are: {known}")
    point = {}
    for name, measured in model.measured.items():
        if name not in given and len(set(measured)) > 1:
            twice = number(2 * max(measured))
            raise UsageError(f"predict: {name} has no value; give one as in --at {name}={twice}")
        point[name] = float(given.get(name, measured[0]))
    if point[PROCESSES] < 1 or point[PROCESSES] % 1:
        raise UsageError(
            f"predict: p is {point[PROCESSES]:g}; it has to be a whole number from 1 on"
        )
    return point


def predict_at(model: ProgramModel, point: Point, prices: ReplayPrices) -> RunPrediction:
    """Predict a run at a point for which all variables have a value.

    Raises:
        UsageError: a law or a formula has no value there.
    """
    try:
        chains = tuple(_chain(each, point, prices) for each in model.chains)
    except FormulaError as error:
        _, _, why = str(error).partition(" is not finite")
        raise UsageError(f"predict: a law or a formula is not finite{why}") from None
    nodes = dict.fromkeys(model.nodes, _NOTHING)
    paths: dict[Chain, Seconds] = {}
    for each in chains:
        for depth, node in enumerate(each.model.chain, 1):
            path = each.model.chain[:depth]
            nodes[node] = _sum(nodes[node], each.seconds)
            paths[path] = _sum(paths.get(path, _NOTHING), each.seconds)
    total = sum(each.seconds.total_s for each in chains)
    # The fits of different chains err independently, and so their squares add up.
    below = math.hypot(*(each.seconds.total_s - each.low_s for each in chains))
    above = math.hypot(*(each.high_s - each.seconds.total_s for each in chains))
    return RunPrediction(model, point, prices, chains, nodes, paths, total - below, total + above)


def _chain(model: ChainModel, point: Point, prices: ReplayPrices) -> ChainPrediction:
    values = model.at(point)
    names = ("comp", counted_h(prices.machine), "supersteps", "calls", "imports")
    used = [values[name] for name in names]
    price = partial(_price, prices, int(point[PROCESSES]))
    seconds, low, high = (price(*each) for each in zip(*(v[:3] for v in used), strict=True))
    return ChainPrediction(model, values, seconds, low.total_s, high.total_s)


def _price(
    prices: ReplayPrices,
    nprocs: int,
    comp_s: float,
    h: float,
    supersteps: float,
    calls: float,
    imports_s: float,
) -> Seconds:
    """Return the seconds of computation, of transfers, and of supersteps."""
    computed = (comp_s + imports_s) * prices.ratio_at(nprocs)
    return Seconds(computed, *communication_s(prices.machine, nprocs, h, supersteps, calls))


def _sum(one: Seconds, other: Sequence[float]) -> Seconds:
    return Seconds(*(first + second for first, second in zip(one, other, strict=True)))


# -- other numbers of processes -------------------------------------------------------------------


@dataclass(frozen=True)
class Scaling:
    """The same program at other numbers of processes."""

    predictions: tuple[RunPrediction, ...]
    """By number of processes, ascending."""
    roll_off: int | None
    """The number of processes from which more do not help; None if there is none."""
    cause: str | None
    """The cost centre whose time grows most from there on."""

    def speedup(self, prediction: RunPrediction) -> float | None:
        """Return how much faster it is than with one process; None if that is not known."""
        first = self.predictions[0]
        if first.point[PROCESSES] != 1 or not prediction.total.total_s:
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
        from bsplib.profiler.predict.plot import plot_scaling  # noqa: PLC0415  # matplotlib is an extra

        plot_scaling(self, path, force=force)


def scaling(prediction: RunPrediction) -> Scaling:
    """Return the program at powers of two of processes, as far as its runs tell anything.

    That is up to 64 times the most processes of a run, or twice as many as were asked for; of runs
    with one number of processes it is what was asked for.
    """
    if len(set(prediction.model.measured[PROCESSES])) == 1:
        return Scaling((prediction,), None, None)
    asked = int(prediction.point[PROCESSES])
    most = max(64 * int(prediction.model.largest[PROCESSES]), 2 * asked)
    counts = sorted({2**power for power in range(most.bit_length())} | {asked})
    found = []
    for count in counts:
        if count <= MOST_PROCESSES:
            with contextlib.suppress(UsageError):  # a formula has no value there
                found.append(prediction.at({**prediction.point, PROCESSES: float(count)}))
    least = min(found, key=lambda each: each.total.total_s)
    if least is found[-1]:
        return Scaling(tuple(found), None, None)
    after = found[found.index(least) + 1]
    growth = {
        leaf: after.nodes[leaf].total_s - least.nodes[leaf].total_s
        for leaf in prediction.model.leaves()
    }
    cause = max(growth, key=lambda leaf: growth[leaf])
    return Scaling(tuple(found), int(least.point[PROCESSES]), cause)
