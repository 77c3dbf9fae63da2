"""The best value of a parameter on each Machine, and which value to choose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bsplib.errors import UsageError
from bsplib.machine import Machine, known_machines, load_machine
from bsplib.profiler.models.replay import replay
from bsplib.profiler.prices import ReplayPrices, choose_prices
from bsplib.profiler.timeline import Timeline, lay_out
from bsplib.profiler.tune.sweep import MODEL

if TYPE_CHECKING:
    from bsplib.profiler.tune.sweep import Point
    from bsplib.recording.records import Run

NEAR = 0.02
"""Values whose cost is at most this fraction above the least cost count as equally good."""


@dataclass(frozen=True)
class TuneVerdict:
    """The costs of all values on a Machine."""

    name: str
    """Name of the Machine."""
    values: tuple[int, ...]
    totals_s: tuple[float, ...]
    """Cost of each value; empty if no l is known."""
    ratio: float | None = 1.0
    """Time of a computation on the Machine, divided by the measured time; None if it is not
    known: the measured time is used then."""
    too_small: bool = False
    """Whether the Machine has fewer processes than the runs."""

    @property
    def best(self) -> int:
        """The value with the least cost."""
        return self.values[self.totals_s.index(self.best_s)]

    @property
    def best_s(self) -> float:
        """The least cost."""
        return min(self.totals_s)

    @property
    def near(self) -> tuple[int, ...]:
        """Other values that are equally good."""
        pairs = zip(self.values, self.totals_s, strict=True)
        limit = self.best_s * (1 + NEAR)
        return tuple(value for value, cost in pairs if cost <= limit and value != self.best)


def judge(points: Sequence[Point]) -> list[TuneVerdict]:
    """Price all runs on their own Machine, and then on each Machine that comes with bsplib.

    A Machine without l gives no costs. Where a speed is not known, the measured time of the
    computation is used.
    """
    own = points[0].machine
    known = {name: load_machine(name) for name in known_machines()}
    name = next((name for name, machine in known.items() if machine == own), own.label)
    if known.get(name, own) != own:  # figures were given after the name
        name = f"{name} as given"
    timelines = [lay_out(point.run) for point in points]
    machines = {name: own} | known
    return [_verdict(name, machine, points, timelines) for name, machine in machines.items()]


def measured(points: Sequence[Point]) -> TuneVerdict:
    """Return the verdict for the measured times."""
    return TuneVerdict(
        "as measured",
        tuple(point.value for point in points),
        tuple(point.measured_s for point in points),
    )


def _verdict(
    name: str, machine: Machine, points: Sequence[Point], timelines: Sequence[Timeline]
) -> TuneVerdict:
    values = tuple(point.value for point in points)
    run = points[0].run
    try:
        machine.need("l")
    except UsageError:
        return TuneVerdict(name, values, ())
    prices = _prices(run, machine)
    ratio = None if prices is None else prices.ratio
    prices = prices or ReplayPrices(machine)
    totals = tuple(replay(timeline, MODEL, prices).total_s for timeline in timelines)
    too_small = machine.p is not None and machine.p < run.nprocs
    return TuneVerdict(name, values, totals, ratio, too_small)


def _prices(run: Run, machine: Machine) -> ReplayPrices | None:
    try:
        return choose_prices(run, machine)
    except UsageError:  # the speed of one of the two Machines is not known
        return None


# -- which value to choose, and which ones the runs do not tell from it ---------------------------


@dataclass(frozen=True)
class Advice:
    """The value with the least mean cost, and how sure that is."""

    values: tuple[int, ...]
    best: int
    wins: int
    """Number of seeds with which no other value costs less."""
    seeds: int
    alike: tuple[int, ...]
    """Other values of which the costs overlap with those of the best, or are within 2% of it."""

    @property
    def is_open(self) -> bool:
        """Whether no value is told from the best."""
        return len(self.values) > 1 and len(self.alike) == len(self.values) - 1


def advise(values: Sequence[int], totals: Sequence[Sequence[float]]) -> Advice:
    """Compare the costs of the values over the seeds.

    A value is told from the best if it costs more with each of its seeds than the best with any,
    as the table of costs shows, and by more than 2% on average.

    Args:
        values: the values.
        totals: for each seed the cost of each value.
    """
    means = [sum(each) / len(totals) for each in zip(*totals, strict=True)]
    place = means.index(min(means))
    dearest = max(row[place] for row in totals)
    alike = tuple(
        value
        for number, value in enumerate(values)
        if number != place
        and (
            min(row[number] for row in totals) <= dearest
            or means[number] <= means[place] * (1 + NEAR)
        )
    )
    wins = sum(row[place] <= min(row) for row in totals)
    return Advice(tuple(values), values[place], wins, len(totals), alike)
