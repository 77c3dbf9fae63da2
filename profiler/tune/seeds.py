"""Tuning over several seeds: how much of the balance with a value is chance.

A parameter such as an oversampling factor decides how even random parts are on average. The
parts of one run can be much more or less even than that, so that one seed may not tell two
values apart. Each seed has a whole sweep of its own; here they are laid side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import NamedTuple

from bsplib.profiler.tune.app import App
from bsplib.profiler.tune.best import TuneVerdict
from bsplib.profiler.tune.parameter import Parameter
from bsplib.profiler.tune.sweep import Point, SweepOptions, sweep
from bsplib.profiler.tune.trade import Centre, Trade, find_trade

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

    @property
    def unclear(self) -> tuple[int, ...]:
        """Values whose band is wider than the medians of their two neighbours are apart."""
        middles = [band.median for band in self.imbalance]
        inner = zip(
            self.values[1:-1], self.imbalance[1:-1], middles, middles[2:], strict=False
        )  # the last two have no neighbour on one side
        return tuple(
            value for value, band, before, after in inner if band.width > abs(before - after)
        )


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
    )


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
