"""A node model: what every cost centre of a program costs at any size and number of processes."""

from __future__ import annotations

import io
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bsplib.console import Console
from bsplib.profiler.models.nested_regions import distance
from bsplib.profiler.models.nodes.collectives import kinds_of, ratio_of
from bsplib.profiler.models.nodes.laws import EXACT, REFUSED, Law, Point, PredictedValue
from bsplib.profiler.models.nodes.learn import Learner, Points, learn_memory, learn_work, taking
from bsplib.profiler.models.nodes.moves import PLAIN, Moves
from bsplib.profiler.models.nodes.observed import Chain, Observation, ObservedProgram, observe
from bsplib.profiler.models.nodes.outside import learn_outside
from bsplib.profiler.models.nodes.parts import parts_of
from bsplib.profiler.models.nodes.values import PROCESSES
from bsplib.profiler.models.nodes.work import REAL_GROWTH, ChainWork
from bsplib.profiler.prices import recorded_machine

if TYPE_CHECKING:
    from bsplib.profiler.callgraph import Node
    from bsplib.recording.records import Run

PRICED = ("supersteps", "h", "h_sum", "comp")
"""The quantities that add up to the run; of those that the page shows, see ``shown``."""
CALLS = "calls"
"""A further quantity, for chains in which a process makes more calls of put, get or send in a
superstep than there are other processes. Each call has a price, which adds to the time."""


@dataclass(frozen=True)
class ChainModel:
    """The laws of one call chain."""

    chain: Chain
    laws: Mapping[str, Law]
    """Of ``PRICED``, and of ``CALLS`` where there are many. Each superstep counts once, so that
    chains add up."""
    shown: Mapping[str, Law] = field(default_factory=dict)
    """Of ``supersteps`` and ``h`` as the page shows them, where they differ from ``laws``."""
    pattern: str | None = None
    """Pattern of its communication, for Machines that have prices by pattern; if it is known."""
    moves: Moves = PLAIN
    """What its prices on a probed Machine depend on beside h."""

    def law(self, quantity: str) -> Law:
        """Return the law of a quantity as the page shows it."""
        return self.shown.get(quantity, self.laws[quantity])


@dataclass(frozen=True)
class NodeModel:
    """The laws of all call chains of a program; ``print`` shows them."""

    program: str
    nodes: Mapping[str, Node]
    chains: tuple[ChainModel, ...]
    measured: Mapping[str, tuple[float, ...]]
    """For each variable its value in each run; the number of processes is ``p``."""
    origins: Mapping[str, str] = field(default_factory=dict)
    """Where the values of a variable come from, as in ``--size``."""
    runs: int = 0
    meta: Mapping[str, Any] = field(default_factory=dict)
    """Of the first run: machine, backend, virtual_time; and the host, if all runs have the same."""
    notes: tuple[str, ...] = ()
    """What a user should know, a sentence each."""
    memory: Law | None = None
    """Bytes that the process with most uses at most because of the sizes; None if not known."""
    outside: Law | None = None
    """Seconds before and after ``main``, in which processes start and end; None if not known."""

    @property
    def variables(self) -> list[str]:
        """The variables without the number of processes."""
        return [name for name in self.measured if name != PROCESSES]

    @property
    def root(self) -> str:
        """Id of ``main``."""
        return self.chains[0].chain[0]

    def leaves(self) -> dict[str, list[ChainModel]]:
        """Return the chains of each cost centre."""
        found: dict[str, list[ChainModel]] = {}
        for each in self.chains:
            found.setdefault(each.chain[-1], []).append(each)
        return found

    def edges(self) -> list[tuple[str, str]]:
        """Return caller and callee of all calls."""
        pairs = [
            pair for each in self.chains for pair in zip(each.chain, each.chain[1:], strict=False)
        ]
        return list(dict.fromkeys(pairs))

    def distance(self, point: Point) -> float:
        """Return how far a point is from the runs; infinite where a constant has another value."""
        columns = {name: np.array(column) for name, column in self.measured.items()}
        return float(distance(columns, {name: np.array([point[name]]) for name in columns})[0])

    def value(self, law: Law, point: Point) -> PredictedValue:
        """Return the value of a law at a point, which has all variables.

        A law from runs with one value of a variable holds at this value only.
        """
        return self._value(law, point, self.distance(point), self._strange(point))

    def _value(self, law: Law, point: Point, away: float, strange: str) -> PredictedValue:
        if law.kind != REFUSED and strange and not law.is_zero:
            return PredictedValue(math.nan, math.nan, math.nan, strange)
        return law.at(point, away)

    def _strange(self, point: Point) -> str:
        for name, column in self.measured.items():
            if min(column) == max(column) and point[name] != column[0]:
                return f"{name} is {column[0]:g} in all runs; what depends on it is not known"
        return ""

    def values(self, chains: Iterable[ChainModel], quantity: str, point: Point) -> PredictedValue:
        """Return the sum of a quantity, as the page shows it, over chains."""
        away, strange = self.distance(point), self._strange(point)
        return total(self._value(each.law(quantity), point, away, strange) for each in chains)

    def priced(self, point: Point) -> Iterator[tuple[ChainModel, dict[str, PredictedValue]]]:
        """Yield the quantities of each chain that add up to the run."""
        away, strange = self.distance(point), self._strange(point)
        for each in self.chains:
            yield (
                each,
                {CALLS: _NO_CALLS}
                | {name: self._value(law, point, away, strange) for name, law in each.laws.items()},
            )

    def refused(self) -> dict[str, list[tuple[str, Law]]]:
        """Return what is refused of each cost centre: quantity and law."""
        found: dict[str, list[tuple[str, Law]]] = {}
        for leaf, chains in self.leaves().items():
            for quantity in ("supersteps", "h", "comp"):
                for each in chains:
                    law = each.law(quantity)
                    if law.kind == REFUSED or law.inside or _is_open(law):
                        found.setdefault(leaf, []).append((quantity, law))
        return found

    def save(self, path: str | Path) -> None:
        """Write the model as JSON.

        Raises:
            UsageError: the file cannot be written.
        """
        from bsplib.profiler.models.nodes.document import write_model  # noqa: PLC0415  # imports this

        write_model(self, path)

    def __str__(self) -> str:
        from bsplib.profiler.models.nodes.show import show_model  # noqa: PLC0415  # it imports this module

        with io.StringIO() as text:
            show_model(self, Console(file=text, width=110, no_color=True))
            return text.getvalue().rstrip()


_NO_CALLS = PredictedValue(0.0, 0.0, 0.0)


def _is_open(law: Law) -> bool:
    """Whether one of the pieces has several forms."""
    return law.kind == EXACT and any(len(piece.forms) > 1 for piece in law.pieces)


def total(values: Iterable[PredictedValue]) -> PredictedValue:
    """Return the sum of values; where one is refused, the sum is."""
    found = list(values)
    for each in found:
        if not each.is_known:
            return each
    return PredictedValue(
        sum(v.value for v in found), sum(v.low for v in found), sum(v.high for v in found)
    )


def fit_nodes(
    runs: Sequence[tuple[Run, Mapping[str, float], tuple[float, ...]]],
    origins: Mapping[str, str] | None = None,
) -> NodeModel:
    """Learn the laws of a program's cost centres from runs.

    Args:
        runs: runs of one program, each with its variables (without the number of processes,
            which is always ``p``) and with its seeds. Runs with the same variables and seeds
            are repeats, of which the median times count.
        origins: where the values of a variable come from, for the reader.
    """
    program, observations = observe(runs)
    points = Points(observations)
    learner = Learner(points)
    chains = program.chains
    jobs = [
        (chain, quantity, booked)
        for chain in chains
        for quantity in PRICED[:3]
        for booked in (True, False)
        if booked or quantity != "h_sum"
    ]
    shared = any(each.seen is not each.booked for each in observations)
    known = _of_collectives(program, learner, _ratio(runs), (True, False) if shared else (True,))
    jobs = [job for job in jobs if (job[2] or shared) and job not in known]
    jobs += [(chain, CALLS, True) for chain in chains if _calls_often(observations, chain)]
    found = learner.laws(
        [taking(*job[:2], booked=job[2]) for job in jobs],
        whole=[job[1] == "supersteps" for job in jobs],
        steps=[taking(job[0], "supersteps", booked=job[2]) for job in jobs],
        shares=[_shares(*job) for job in jobs],
    )
    every = known | dict(zip(jobs, found, strict=True))
    laws = {job: _inside(law, program, job[0], points) for job, law in every.items()}
    takes = {
        chain: [taking(chain, name, booked=True) for name in ChainWork.TAKEN] for chain in chains
    }
    is_virtual = all(run.meta.get("backend") == "sim" for run, *_ in runs)
    work = learn_work(points, takes, 0.0 if is_virtual else REAL_GROWTH)
    return NodeModel(
        _name(runs[0][0]),
        _in_order(program),
        tuple(
            ChainModel(
                chain,
                {name: laws[chain, name, True] for name in PRICED[:3]}
                | {"comp": work[chain]}
                | _law_of_calls(laws, chain),
                {name: laws[chain, name, False] for name in PRICED[:2] if shared},
                program.patterns.get(chain),
                program.moves.get(chain, PLAIN),
            )
            for chain in chains
        ),
        {name: tuple(column.tolist()) for name, column in points.values.items()},
        origins or {},
        len(runs),
        _meta([run for run, *_ in runs]),
        tuple(_notes(points, learner)),
        learn_memory(points, work.values()),
        learn_outside(run for run, *_ in runs),
    )


def _calls_often(observations: Sequence[Observation], chain: Chain) -> bool:
    """Whether a process calls put, get or send more often in a superstep than there are others."""
    return any(
        each.booked[chain].calls
        > each.booked[chain].supersteps * max(each.values[PROCESSES] - 1, 1)
        for each in observations
        if chain in each.booked
    )


def _law_of_calls(laws: Mapping[_Job, Law], chain: Chain) -> dict[str, Law]:
    """Return the law of the calls of a chain; nothing where it has few, or they are not known."""
    law = laws.get((chain, CALLS, True))
    return {} if law is None or law.kind == REFUSED else {CALLS: law}


_Job = tuple[Chain, str, bool]
"""A chain, a quantity, and whether each superstep counts once."""


def _ratio(runs: Sequence[tuple[Run, Mapping[str, float], tuple[float, ...]]]) -> float | None:
    """Return l / g in bytes of the Machine of all runs; None if it is not the same."""
    machines = [recorded_machine(run) for run, *_ in runs]
    found = {None if each is None else ratio_of(each.g, each.l) for each in machines}
    return found.pop() if len(found) == 1 else None


def _of_collectives(
    program: ObservedProgram, learner: Learner, ratio: float | None, sides: Sequence[bool]
) -> dict[_Job, Law]:
    """Return the laws of the collectives whose cost has a formula that the runs bear out."""
    found: dict[_Job, Law] = {}
    for chain, booked in itertools.product(program.chains, sides):
        laws = _of_collective(program.nodes[chain[-1]].name, chain, learner, ratio, booked)
        found |= {
            (chain, quantity, booked): law
            for quantity, law in laws.items()
            if booked or quantity != "h_sum"
        }
    return found


def _of_collective(
    name: str, chain: Chain, learner: Learner, ratio: float | None, booked: bool
) -> dict[str, Law]:
    """Return the laws that the formulas of a collective give by quantity, if they give any."""

    def take(*quantities: str) -> list[Callable[[Observation], float]]:
        return [taking(chain, quantity, booked=booked) for quantity in quantities]

    kind = parts_of(name)
    if kind is not None:
        takes = take("supersteps", "h", "share", "deviation", "h_sum")
        return learner.divided(kind, chain, takes)
    for cost in kinds_of(name) if ratio is not None else ():
        laws = learner.collective(cost, take("supersteps", "h", "share", "h_sum"), ratio or 0.0)
        if laws:
            return laws
    return {}


def _meta(runs: Sequence[Run]) -> dict[str, Any]:
    """Return what a model keeps of how its runs were made."""
    meta = {key: runs[0].meta.get(key) for key in ("machine", "backend", "virtual_time")}
    hosts = {run.meta.get("host") for run in runs}
    return meta | {"host": hosts.pop() if len(hosts) == 1 else None}


def _shares(chain: Chain, quantity: str, booked: bool) -> list[Callable[[Observation], float]]:
    """Return functions that take what a process contributes: mean and standard deviation."""
    factor = 2 if quantity == "h_sum" else 1

    def of(name: str) -> Callable[[Observation], float]:
        take = taking(chain, name, booked=booked)
        return lambda each: factor * take(each)

    return [of("share"), of("deviation")]


def _inside(law: Law, program: ObservedProgram, chain: Chain, points: Points) -> Law:
    """Return a law; if no run came to all places of its loop, one that holds inside the runs."""
    where = program.unpassed.get(chain)
    if where is None or law.kind == REFUSED:
        return law
    why = (
        f"{Path(where.file).name} line {where.line} communicates in the same loop, and no run came "
        "there, which a larger one may"
    )
    larger = {name: 4 * float(column.max()) for name, column in points.varied.items()}
    smallest = {name: float(column.min()) for name, column in points.values.items()}
    return replace(law, inside=why, settle=(*law.settle, smallest | larger))


def _in_order(program: ObservedProgram) -> dict[str, Node]:
    """Return the nodes in the order in which the chains name them."""
    order = dict.fromkeys(node for chain in program.chains for node in chain)
    return {name: program.nodes[name] for name in order}


def _name(run: Run) -> str:
    return str(run.meta.get("program", "unknown"))


def _notes(points: Points, learner: Learner) -> Iterator[str]:
    for name, column in points.values.items():
        if name not in points.varied:
            yield f"{name} is {column[0]:g} in all runs: what depends on it is not known."
    if learner.powers_of_two and PROCESSES in points.varied:
        yield (
            "p is a power of two in all runs: for others log2(p) is rounded up, and whether they "
            "divide the data evenly is not known."
        )
    if points.seeds == 1:
        yield "Each point has one seed: how far data change the h-relations is not known."
