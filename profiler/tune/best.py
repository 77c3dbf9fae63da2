"""The best value of a parameter: on the Machine of the runs, and on each that is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bsplib.errors import UsageError
from bsplib.machine import Machine, known_machines, load_machine
from bsplib.profiler.models.prices import ReplayPrices, choose_prices
from bsplib.profiler.models.replay import replay
from bsplib.profiler.models.timeline import Timeline, lay_out
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
