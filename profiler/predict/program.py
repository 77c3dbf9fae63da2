"""A program learnt from its runs: the laws of each call chain, and the fit of its computation."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bsplib.machine.measured import HRelation
from bsplib.profiler.predict.collectives import laws_of_collective, ratio_of
from bsplib.profiler.predict.fit import Fit, choose
from bsplib.profiler.predict.laws import Law, depends_on, laws_of
from bsplib.profiler.predict.observed import Chain, ObservedProgram, Quantities, observe
from bsplib.profiler.predict.values import PROCESSES
from bsplib.profiler.prices import is_virtual, recorded_machine
from bsplib.recording.records import CHARGED, RECORD, TRAFFIC, Run, root_group

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bsplib.machine import Machine
    from bsplib.profiler.callgraph import Node

    Vector = NDArray[np.float64]

Point = dict[str, float]
QUANTITIES = ("supersteps", "h", "h_sum", "calls", "comp", "imports")
_SMALL_PART = 1e-4
"""Part of the time of all runs below which computation is none."""


class BoundedValue(NamedTuple):
    """A predicted value."""

    value: float
    low: float
    high: float
    is_exact: bool = False
    """Whether all laws that the runs allow give it."""

    def within(self, low: float, high: float) -> BoundedValue:
        """Return the value with its limits, none of them below or above others."""
        value, least, most = (min(max(each, low), high) for each in self[:3])
        return BoundedValue(value, least, most, self.is_exact)


ZERO = BoundedValue(0.0, 0.0, 0.0, is_exact=True)


@dataclass(frozen=True)
class Learned:
    """How a quantity depends on the variables: by laws, or by a fit."""

    laws: tuple[Law, ...] = ()
    """All that hold for the runs, the simplest first."""
    fit: Fit | None = None
    times: Learned | None = None
    """How often the laws count, such as the passages of a loop that depend on the data."""
    whole: bool = False
    """Whether it is a whole number: a law such as a root may give others between those of runs."""

    def at(self, point: Mapping[str, float]) -> BoundedValue:
        """Return the value at a point, and its limits."""
        if self.times is not None:
            each, often = replace(self, times=None).at(point), self.times.at(point)
            return BoundedValue(
                each.value * often.value,
                each.low * often.low,
                each.high * often.high,
                each.is_exact and often.is_exact,
            )
        if self.laws:
            found = [max(law.at(point), 0.0) for law in self.laws]
            low, high = min(found), max(found)
            if self.whole:  # programs cut off what is beyond: n // 3, isqrt(n)
                low, high = math.floor(low + 1e-9), math.ceil(high - 1e-9)
                found[0] = math.floor(found[0] + 1e-9)
            return BoundedValue(found[0], low, high, low == high)
        assert self.fit is not None  # it has laws or a fit
        (low,), (high,) = self.fit.band(point)
        return BoundedValue(float(self.fit.predict(point)[0]), float(low), float(high))

    @property
    def text(self) -> str:
        """The simplest law, or the formula with its coefficients."""
        if self.times is not None:
            each, often = replace(self, times=None).text, self.times.text
            return each if often == "1" else f"({each})*({often})"
        if self.laws:
            return " or ".join(law.text for law in self.laws[:2])
        assert self.fit is not None  # it has laws or a fit
        text = self.fit.formula.text
        for name, factor in zip(self.fit.formula.parameters, self.fit.coefficients, strict=True):
            text = text.replace(name, f"{factor:.3g}")
        return text


@dataclass(frozen=True)
class ChainModel:
    """What is known of a call chain."""

    chain: Chain
    learned: Mapping[str, Learned]
    """By quantity."""
    ends: bool = False
    """Whether it is an end of ``main``, which has computation and no superstep."""

    def at(self, point: Mapping[str, float]) -> dict[str, BoundedValue]:
        """Return all quantities at a point; where there are no supersteps there is nothing.

        What is counted in and out together is between h and twice as much.
        """
        steps = self.learned["supersteps"].at(point)
        if not self.ends and steps.is_exact and steps.value == 0:
            return dict.fromkeys(QUANTITIES, ZERO)
        alone = ("h", "h_sum") if point[PROCESSES] == 1 else ()  # there is nobody to send to
        found = {
            name: ZERO if name in alone else self.learned[name].at(point) for name in QUANTITIES
        }
        least, most = found["h"].low, 2 * found["h"].high
        found["h_sum"] = found["h_sum"].within(least, most)
        return found


@dataclass(frozen=True)
class ProgramModel:
    """The laws of a program."""

    program: str
    runs: int
    measured: Mapping[str, tuple[float, ...]]
    """The values of each variable, by observation; the number of processes last, as ``p``."""
    nodes: Mapping[str, Node]
    chains: tuple[ChainModel, ...]
    meta: Mapping[str, Any]
    """How the runs were made."""
    observed: ObservedProgram = field(repr=False)
    """What the runs had."""

    least_s = 0.05
    """Runs have to be as long as this unless they charge: caches and first calls decide shorter
    ones, on virtual processors, too."""

    @property
    def root(self) -> str:
        """The id of ``main``."""
        return next(iter(self.nodes))

    @property
    def variables(self) -> list[str]:
        """The variables without the number of processes."""
        return [name for name in self.measured if name != PROCESSES]

    def leaves(self) -> dict[str, list[ChainModel]]:
        """Return the chains of each cost centre."""
        found: dict[str, list[ChainModel]] = {}
        for each in self.chains:
            found.setdefault(each.chain[-1], []).append(each)
        return found

    def edges(self) -> list[tuple[str, str]]:
        """Return caller and callee of each edge of the call graph, each once."""
        pairs = (pair for each in self.chains for pair in itertools.pairwise(each.chain))
        return list(dict.fromkeys(pairs))

    @property
    def longest_s(self) -> float:
        """The time of the longest run without imports; infinite where programs charge theirs."""
        if self.meta.get("charged"):
            return math.inf
        return max(
            each.elapsed_s - sum(row.imports for row in each.chains.values())
            for each in self.observed.observations
        )

    @property
    def largest(self) -> Point:
        """The greatest value of each variable."""
        return {name: max(values) for name, values in self.measured.items()}


def learn(
    runs: Sequence[tuple[Run, Mapping[str, float], tuple[float, ...]]],
) -> ProgramModel:
    """Learn the laws of a program.

    Args:
        runs: runs with their variables, without the number of processes, and their seeds.
    """
    meta = _meta([run for run, *_ in runs])
    return learn_observed(observe(runs), len(runs), meta)


def learn_observed(
    program: ObservedProgram, runs: int, meta: Mapping[str, Any], priced_by: Machine | None = None
) -> ProgramModel:
    """Learn the laws of a program from what its runs had.

    Args:
        program: what they had.
        runs: how many they were.
        meta: how they were made.
        priced_by: what communication took beyond the prices of this Machine, of the computer of the
            runs, is work; default: that of the runs.
    """
    names = list(program.observations[0].values)
    measured = {name: tuple(each.values[name] for each in program.observations) for name in names}
    values = {name: np.array(column) for name, column in measured.items()}
    learner = _Learner(program, values, empty_run(meta), priced_by)
    return ProgramModel(
        str(meta.get("program") or "unknown"),
        runs,
        measured,
        program.nodes,
        tuple(learner.chain(chain) for chain in program.chains),
        meta,
        program,
    )


def empty_run(meta: Mapping[str, Any]) -> Run:
    """Return a run without records that names the Machine and the host of some runs."""
    known = {key: value for key, value in meta.items() if value is not None}
    return Run(1, (root_group(1),), (), np.empty(0, RECORD), np.empty(0, TRAFFIC), meta=known)


def counted_h(machine: Machine) -> str:
    """Name the h-relation that the prices of a Machine are for."""
    return "h_sum" if machine.h == "sum" else "h"


def communication_s(
    machine: Machine, nprocs: int, h: float, supersteps: float, calls: float
) -> tuple[float, float]:
    """Return the seconds of transfers and of supersteps.

    Where a probe has measured the Machine, each superstep is one of the mean h-relation, with
    the mean number of calls; by its pattern no whole program was predicted better.
    """
    if supersteps <= 0:
        return 0.0, 0.0
    each = h / supersteps
    moved = HRelation(each, calls=max(calls / supersteps, float(each > 0)))
    transfer_s, sync_s = machine.parts_of(moved, None, nprocs)
    return float(transfer_s) * supersteps, float(sync_s) * supersteps


def _meta(runs: Sequence[Run]) -> dict[str, Any]:
    """Return what is kept of how runs were made: what all of them have in common."""
    names = ("program", "machine", "backend", "virtual_time", "host")
    first = {name: runs[0].meta.get(name) for name in names}
    return {
        name: value if all(run.meta.get(name) == value for run in runs) else None
        for name, value in first.items()
    } | {
        "program": first["program"],
        "charged": all(run.measured.get("cpu") == CHARGED for run in runs),
    }


class _Learner:
    """Learns the quantities of chains from all observations."""

    def __init__(
        self,
        program: ObservedProgram,
        values: dict[str, Vector],
        run: Run,
        priced_by: Machine | None,
    ) -> None:
        self._program = program
        self._values = values
        machine = recorded_machine(run)
        self._ratio = None if machine is None else ratio_of(machine.g, machine.l)
        self._machine = None if is_virtual(run) else priced_by or machine
        total = [each.elapsed_s for each in program.observations]
        # What a program charges has no noise, and so no part of it is too small.
        is_noisy = total and not run.meta.get("charged")
        self._least_s = _SMALL_PART * float(np.median(total)) if is_noisy else 0.0

    def chain(self, chain: Chain) -> ChainModel:
        """Return what is known of a chain."""
        rows = [each.of(chain) for each in self._program.observations]
        node = self._program.nodes[chain[-1]]
        ends = node.sync == "end"
        learned = {} if chain in self._program.told else self._collective(node.name, rows)
        passed = np.array([row.supersteps > 0 or ends for row in rows])
        stages = bool(learned)  # a call may have more of them, and computes as much
        if not learned:
            learned["supersteps"] = self._counted(rows, "supersteps", chain)
        for name in ("h", "h_sum", "calls"):
            if name not in learned:
                learned[name] = self._per_step(rows, name, learned["supersteps"], chain)
        learned["comp"] = self._computation(
            rows, passed, Learned() if stages else learned["supersteps"]
        )
        # Imports take as long with little data as with much, but not all numbers of p have them.
        learned["imports"] = self._typical([row.imports for row in rows])
        return ChainModel(chain, learned, ends)

    def _collective(self, name: str, rows: Sequence[Quantities]) -> dict[str, Learned]:
        """Return what the known form of a collective gives; nothing if it is none.

        It may be called from some size or number of processes on: then how often needs a law.
        """
        passed = np.array([row.supersteps > 0 for row in rows])
        if self._ratio is None or not passed.any():
            return {}
        part = {each: column[passed] for each, column in self._values.items()}
        some = [row for row in rows if row.supersteps > 0]
        found = laws_of_collective(name, part, some, self._ratio)
        if found is None:
            return {}
        calls = np.zeros(len(rows))
        calls[passed] = found.calls
        counts = laws_of(self._values, calls)
        if not counts and not passed.all():
            return {}
        times = Learned(counts, whole=True) if counts else self._unknown(calls, passed)
        learned = {name: Learned(laws, times=times) for name, laws in found.laws.items()}
        # It calls nothing beyond the pattern of a superstep, which is what calls are counted for.
        return learned | {"calls": learned["supersteps"]}

    def _counted(self, rows: Sequence[Quantities], name: str, chain: Chain) -> Learned:
        counts = np.array([getattr(row, name) for row in rows])
        laws = laws_of(self._values, counts, inside=chain in self._program.inside)
        return Learned(laws, whole=True) if laws else self._unknown(counts, counts > 0)

    def _per_step(
        self, rows: Sequence[Quantities], name: str, steps: Learned, chain: Chain
    ) -> Learned:
        """Return the law of what a quantity is in each superstep, or that of its sum.

        A loop may make as many supersteps as its data want, each with the same h-relation; and
        with each of the other processes a process may exchange as much as with any. Where
        supersteps have no law, neither has their sum, and in each only a single term is one.
        """
        counts = np.array([getattr(row, name) for row in rows])
        passed = np.array([row.supersteps for row in rows])
        inside = chain in self._program.inside
        known = steps.fit is None
        if counts[passed == 0].any() or not counts.any():
            laws = laws_of(self._values, counts) if known else ()
            return Learned(laws) if laws else self._unknown(counts, counts > 0)
        some = passed > 0
        part = {each: column[some] for each, column in self._values.items()}
        each = counts[some] / passed[some]
        laws = laws_of(part, each, inside=inside)
        if laws and (known or laws[0].terms == 1):
            return Learned(laws, times=steps)
        if known and (laws := laws_of(self._values, counts)):
            return Learned(laws)
        fitted = self._unknown(counts / np.maximum(passed, 1), some & (counts > 0))
        return replace(fitted, times=steps)

    def _unknown(self, counts: Vector, some: NDArray[np.bool_]) -> Learned:
        """Return the fit of what is counted and has no law: how it goes on nobody has seen.

        Counts have no noise, and so a close fit is no evidence of its terms.
        """
        found = self._fitted(counts, some)
        if found.fit is None:
            return found
        return replace(found, fit=replace(found.fit, few=frozenset(found.fit.measured)))

    def _fitted(self, counts: Vector, some: NDArray[np.bool_]) -> Learned:
        """Return the fit of what has no law, in the variables on which it depends."""
        if not some.any():
            return Learned((Law("0", 0),))
        if np.ptp(counts[some]) == 0:
            text = f"{counts[some][0]:.17g}"
            texts = [text] if some.all() else [text, "0", *self._from_there_on(text, some)]
            return Learned(tuple(Law(each, 0) for each in texts))
        part = {name: column[some] for name, column in self._values.items()}
        used = depends_on(part, counts[some])
        return Learned(fit=choose({name: part[name] for name in used}, counts[some], PROCESSES))

    def _from_there_on(self, text: str, some: NDArray[np.bool_]) -> Iterator[str]:
        """Yield laws that grow with a variable of which one value alone has something."""
        for name, column in self._values.items():
            if np.ptp(column) > 0 and np.ptp(column[some]) == 0 and column[some][0] > 0:
                yield f"{text}*{name}/{column[some][0]:.12g}"

    def _typical(self, seconds: Sequence[float]) -> Learned:
        return Learned((Law(f"{float(np.median(seconds)):.6g}", 0),))

    def _computation(
        self, rows: Sequence[Quantities], passed: NDArray[np.bool_], steps: Learned
    ) -> Learned:
        """Return the fit of the computation, or of that in each superstep where it fits better."""
        counts = self._values[PROCESSES].astype(int).tolist()
        seconds = np.array([self._worked_s(*each) for each in zip(rows, counts, strict=True)])
        some = passed & (seconds > self._least_s)
        found = self._fitted(seconds, some)
        if some.any() and not some[passed].all():
            return replace(found, times=self._whether(passed, some))
        counts = np.array([row.supersteps for row in rows])
        if steps.laws and found.fit is not None and np.ptp(counts[some]) > 0 and counts[some].all():
            each = self._fitted(seconds / np.maximum(counts, 1), some)
            if each.fit is not None and each.fit.score < found.fit.score:
                return replace(each, times=steps)
        return found

    def _worked_s(self, row: Quantities, nprocs: int) -> float:
        """Return the computation, with what communication took beyond its price, or below it.

        Only real runs show it: what a process copies for itself is no h-relation, and new memory
        for large messages has no price.
        """
        if self._machine is None:
            return row.comp
        h = getattr(row, counted_h(self._machine))
        priced = communication_s(self._machine, nprocs, h, row.supersteps, row.calls)
        return max(row.comp + row.comm - sum(priced), 0.0)

    def _whether(self, passed: NDArray[np.bool_], some: NDArray[np.bool_]) -> Learned:
        """Return where there is anything, as 0 or 1; both if the larger runs do not tell."""
        part = {name: column[passed] for name, column in self._values.items()}
        counts = some[passed].astype(float)
        if laws := laws_of(part, counts):
            return Learned(laws)
        for column in part.values():  # as a branch: of its larger side two values suffice
            larger = counts[column >= np.unique(column)[-2:][0]]
            if np.ptp(column) > 0 and np.ptp(larger) == 0:
                return Learned((Law(f"{larger[0]:g}", 0),))
        return Learned((Law("1", 0), Law("0", 0)))
