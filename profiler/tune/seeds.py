"""Tuning over several seeds: how much of the balance with a value is chance.

A parameter such as an oversampling factor decides how even random parts are on average. The
parts of one run can be much more or less even than that, so that one seed may not tell two
values apart. Each seed has a whole sweep of its own; here they are laid side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import mean, median
from typing import NamedTuple

from bsplib.profiler.tune.app import App
from bsplib.profiler.tune.best import TuneVerdict
from bsplib.profiler.tune.parameter import Parameter
from bsplib.profiler.tune.sweep import Point, SweepOptions, sweep
from bsplib.profiler.tune.trade_off import Centre, Trade, find_trade

SEED = "--seed"
"""Option of an application by which its random choices differ."""
SEEDS = 5
"""Seeds where the application has the option, unless another number is asked for."""

Sweeps = Sequence[Sequence[Point]]
"""For each seed one point for each value."""


class SeedBand(NamedTuple):
    """The least, the middle and the greatest of an amount over the seeds."""

    least: float
    median: float
    greatest: float

    @property
    def width(self) -> float:
        """The greatest minus the least."""
        return self.greatest - self.least


@dataclass(frozen=True)
class SeedSpread:
    """What differs over the seeds, for each value."""

    values: tuple[int, ...]
    seeds: int
    metric: str
    """``h`` or ``comp``: the imbalance of which is here."""
    imbalance: tuple[SeedBand, ...]
    """Maximum / average of the centres that become more balanced."""
    total_s: tuple[SeedBand, ...]
    """Cost on the Machine of the runs."""

    found: bool = True
    """Whether anything becomes more balanced; otherwise the imbalance is that of all centres."""

    @property
    def unclear(self) -> tuple[int, ...]:
        """Values of which the band overlaps that of a value beside it."""
        pairs = list(pairwise(zip(self.values, self.imbalance, strict=True)))
        overlap = {
            value
            for (one, band), (two, other) in pairs
            if band.least <= other.greatest and other.least <= band.greatest
            for value in (one, two)
        }
        return tuple(value for value in self.values if value in overlap)


def sweep_seeds(
    app: App,
    parameter: Parameter,
    options: SweepOptions,
    seeds: int,
    advance: Callable[[], object] = lambda: None,
) -> list[list[Point]]:
    """Run an application with all values of a parameter, and with each of several seeds.

    Args:
        app: the application.
        parameter: its parameter, as checked by :meth:`App.check`.
        options: how to run it.
        seeds: number of seeds: 0, 1 and so on are given by ``--seed``. If 1, the option is
            not given, and an application without it can be run.
        advance: is called after each run.

    Raises:
        UsageError: as :func:`bsplib.profiler.tune.sweep.sweep`.
    """
    if seeds == 1:
        return [sweep(app, parameter, options, advance)]
    return [
        sweep(app, parameter, _with_seed(options, seed), advance, warm_up=not seed)
        for seed in range(seeds)
    ]


def _with_seed(options: SweepOptions, seed: int) -> SweepOptions:
    keep = options.keep and options.keep / f"seed-{seed}"
    return replace(options, arguments=(*options.arguments, SEED, str(seed)), keep=keep)


def find_spread(sweeps: Sweeps, trade: Trade) -> SeedSpread:
    """Lay the sweeps of several seeds side by side.

    Args:
        sweeps: the points of each seed.
        trade: the trade-off, which says what becomes more balanced.
    """
    found = any(trade.evened.values())
    metric = "h" if trade.evened["h"] or not trade.evened["comp"] else "comp"
    centres = trade.evened[metric] or tuple(trade.costs)
    imbalances = [_imbalances(points, centres, metric) for points in sweeps]
    totals = [[point.total_s for point in points] for points in sweeps]
    return SeedSpread(
        values=trade.values,
        seeds=len(sweeps),
        metric=metric,
        imbalance=_bands(imbalances),
        total_s=_bands(totals),
        found=found,
    )


def confirmed(trade: Trade, sweeps: Sweeps) -> Trade:
    """Return a trade-off without the centres that become more balanced with some seeds only.

    A centre becomes more balanced if its max/avg falls with the parameter, with all seeds but one
    in five, by as much as a table of two decimals shows.

    Args:
        trade: what the first seed shows.
        sweeps: the points of each seed.
    """
    trades = [trade, *(find_trade(points) for points in sweeps[1:])]
    least = len(trades) - len(trades) // _SEEDS_FOR_ONE_EXCEPTION
    evened = {
        metric: tuple(
            centre
            for centre in centres
            if sum(_falls(each, centre, metric) for each in trades) >= least
        )
        for metric, centres in trade.evened.items()
    }
    return replace(trade, evened=evened)


_SEEDS_FOR_ONE_EXCEPTION = 5
_LEAST_FALL = 0.01


def _falls(trade: Trade, centre: Centre, metric: str) -> bool:
    series = [costs.imbalance(metric) for costs in trade.costs.get(centre, ())]
    third = -(-len(series) // 3)
    if len(series) < 2:  # a fall
        return False
    return mean(series[:third]) - mean(series[-third:]) >= _LEAST_FALL


def _imbalances(points: Sequence[Point], centres: Sequence[Centre], metric: str) -> list[float]:
    found = find_trade(points)
    there = [centre for centre in centres if centre in found.costs]
    return [costs.imbalance(metric) for costs in found.of(there)]


def _bands(amounts: Sequence[Sequence[float]]) -> tuple[SeedBand, ...]:
    return tuple(
        SeedBand(min(each), median(each), max(each)) for each in zip(*amounts, strict=True)
    )


def mean_verdicts(verdicts: Sequence[Sequence[TuneVerdict]]) -> list[TuneVerdict]:
    """Return for each Machine the mean costs over the seeds.

    Args:
        verdicts: of each seed those of all Machines, in the same order.
    """
    return [
        replace(
            each[0],
            totals_s=tuple(
                sum(totals) / len(totals)
                for totals in zip(*(one.totals_s for one in each), strict=True)
            ),
        )
        for each in zip(*verdicts, strict=True)
    ]
