"""What the trace of each run of a sweep tells: its time, its cost centres, other Machines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import TYPE_CHECKING, NamedTuple

from bsplib.errors import UsageError
from bsplib.machine import Machine, known_machines, load_machine
from bsplib.profiler import format as fmt
from bsplib.profiler.models.replay import replay
from bsplib.profiler.prices import ReplayPrices, choose_prices
from bsplib.profiler.profile import RunProfile
from bsplib.profiler.timeline import Timeline

if TYPE_CHECKING:
    from bsplib.recording.records import Run

Key = tuple[float, ...]
"""The values of the parameters of a run, in their order."""
METRICS = ("h", "comp")
"""What may be out of balance."""


class Centre(NamedTuple):
    """A cost centre that is the same in all runs."""

    function: str
    """The function that contains the sync."""
    line: str
    """File and line, as in ``sort.py line 31``."""

    def __str__(self) -> str:
        return f"{self.function} ({self.line})"


class Costs(NamedTuple):
    """What a cost centre takes in a run, or on average over several."""

    seconds: float = 0.0
    h: float = 0.0
    """Sum of the greatest h over the supersteps, in bytes."""
    h_average: float = 0.0
    comp: float = 0.0
    """Likewise of the computation, in seconds."""
    comp_average: float = 0.0

    def maximum(self, metric: str) -> float:
        """Return the maximum of ``h`` or ``comp``."""
        return float(getattr(self, metric))

    def excess(self, metric: str) -> float:
        """Return maximum - average."""
        return self.maximum(metric) - float(getattr(self, f"{metric}_average"))

    def ratio(self, metric: str) -> float:
        """Return maximum / average; 1 if there is nothing."""
        average = float(getattr(self, f"{metric}_average"))
        return self.maximum(metric) / average if average else 1.0


class Point(NamedTuple):
    """One run of a sweep."""

    key: Key
    seed: float
    seconds: float
    centres: dict[Centre, Costs]
    elsewhere: dict[str, float]
    """Its time on other Machines, under BSP."""


def point_of(run: Run, key: Key, seed: float) -> Point:
    """Return what a run tells."""
    profile = RunProfile(run, 1)
    graph, book = profile.callgraph.graph, profile.book()
    found: dict[Centre, Costs] = {}
    for name, node in graph.nodes(data="node"):
        if node.kind == "cost_centre":
            cost, seconds = graph.nodes[name]["cost"], book.nodes[name].time_s
            callers = sorted({graph.nodes[caller]["node"].name for caller in graph.pred[name]})
            centre = Centre(fmt.visible(", ".join(callers)), fmt.label(node))
            sums = (cost.h.maximum, cost.h.average, cost.comp.maximum, cost.comp.average)
            found[centre] = added([found.get(centre, Costs()), Costs(seconds, *sums)])
    return Point(key, seed, profile.elapsed_s, found, _elsewhere(run))


def added(several: Iterable[Costs]) -> Costs:
    """Return the sum of costs."""
    return Costs(*map(sum, zip(*several, strict=True)))


def _elsewhere(run: Run) -> dict[str, float]:
    """Return the time of a run on the Machines that come with bsplib and have an l."""
    timeline = Timeline(run)
    return {
        name: replay(timeline, "BSP", _prices(run, machine)).total_s
        for name, machine in ((name, load_machine(name)) for name in known_machines())
        if machine.l is not None and machine.l >= 0 and machine.g + machine.l > 0
    }


def _prices(run: Run, machine: Machine) -> ReplayPrices:
    try:
        return choose_prices(run, machine)
    except UsageError:  # its speed is not known: computation as measured
        return ReplayPrices(machine)


@dataclass(frozen=True)
class Sweep:
    """All runs of a sweep."""

    parameters: tuple[str, ...]
    points: Sequence[Point]
    theory: Mapping[Key, Mapping[str, object]]
    """What a function of the program says of each combination, by title."""

    @property
    def keys(self) -> list[Key]:
        """The combinations of values, in order."""
        return list(dict.fromkeys(each.key for each in self.points))

    def samples(self, machine: str = "") -> dict[Key, list[float]]:
        """Return the times of each combination: of each seed the least of its repeats.

        Where there is one seed, the times of all repeats.

        Args:
            machine: name of another Machine.
        """
        found: dict[Key, dict[float, list[float]]] = {}
        for each in self.points:
            time = each.elsewhere[machine] if machine else each.seconds
            found.setdefault(each.key, {}).setdefault(each.seed, []).append(time)
        return {
            key: list(map(min, seeds.values())) if len(seeds) > 1 else next(iter(seeds.values()))
            for key, seeds in found.items()
        }

    def costs(self, key: Key) -> dict[Centre, Costs]:
        """Return the costs of a combination, on average over its runs."""
        runs = [each.centres for each in self.points if each.key == key]
        centres = dict.fromkeys(centre for run in runs for centre in run)
        return {
            centre: Costs(*map(mean, zip(*(run.get(centre, Costs()) for run in runs), strict=True)))
            for centre in centres
        }

    def series(self, best: Key) -> list[Key]:
        """Return the combinations with all values of the first parameter, and of others the best.

        The first parameter that has several values counts, and not the number of processes if
        there is another.
        """
        place = self.place
        return sorted(
            key
            for key in self.keys
            if [*key[:place], *key[place + 1 :]] == [*best[:place], *best[place + 1 :]]
        )

    @property
    def place(self) -> int:
        """The position of the parameter that the tables follow."""
        several = [
            at for at in range(len(self.parameters)) if len({key[at] for key in self.keys}) > 1
        ]
        return min(several, key=lambda at: self.parameters[at] == "nprocs", default=0)

    def named(self, key: Key) -> str:
        """Return a combination in words, as in ``s = 8, nprocs = 4``."""
        pairs = zip(self.parameters, key, strict=True)
        return ", ".join(f"{name} = {value:g}" for name, value in pairs)
