"""Choose the run that would tell most, and make such runs until the time is over.

Several laws may fit the runs at hand, and differ for other runs. The run that tells most is the one
for which they differ most in proportion to its cost: the differences of all cost centres are
weighted by the part of the run that each takes, added, and divided by the processor time of the
run. A law that is refused counts for the runs that would show which law is right. The search ends
when no law is open, or when the time is over.
"""

from __future__ import annotations

import itertools
import math
import shlex
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bsplib.errors import UsageError
from bsplib.profiler.models.band import Reach
from bsplib.profiler.models.nodes.laws import REFUSED, Law, Point
from bsplib.profiler.models.nodes.settle import number, words
from bsplib.profiler.models.nodes.values import PROCESSES

if TYPE_CHECKING:
    from bsplib.profiler.models.nodes.model import NodeModel

_TOLD_APART = 0.05
"""Laws that differ by less, as a part of the run, need no further run."""
_REFUSED = 1.0
"""What a law counts that is refused, as the logarithm by which others differ."""
_MOST_VALUES = 6
_LAWS = ("supersteps", "h", "comp")


@dataclass(frozen=True)
class NextRun:
    """The run that tells most."""

    point: Point
    apart: float
    """How far the laws differ there, as a logarithm, each by its part of the run."""


def next_run(model: NodeModel) -> NextRun | None:
    """Return the run that tells most for its cost; None if no run tells anything."""
    best: tuple[float, NextRun] | None = None
    for point in _candidates(model):
        apart = _apart(model, point)
        if apart < _TOLD_APART:
            continue
        worth = apart / _cost(model, point)
        if best is None or worth > best[0]:
            best = worth, NextRun(point, apart)
    return None if best is None else best[1]


def _candidates(model: NodeModel) -> list[Point]:
    """Return points that no run has: between the values of the runs, and up to twice as large."""
    named = [point for each in model.chains for law in each.laws.values() for point in law.settle]
    axes = {}
    for name, values in model.measured.items():
        known = sorted(set(values))
        more = [2 * known[-1]] if len(known) > 1 else []
        axes[name] = [*known[-_MOST_VALUES:], *more]
    points = [dict(zip(axes, each, strict=True)) for each in itertools.product(*axes.values())]
    points += [point for point in named if set(point) == set(axes)]
    made = set(zip(*model.measured.values(), strict=True))
    order = list(model.measured)
    found = {tuple(point[name] for name in order): point for point in points}
    return [{name: p[name] for name in order} for key, p in found.items() if key not in made]


def _apart(model: NodeModel, point: Point) -> float:
    """Return how far laws differ at a point, each by its part of the run."""
    whole = _seconds(model, point)
    apart = 0.0
    for each in model.chains:
        part = _value(model, each.laws["comp"], point) / whole if whole else 0.0
        for quantity in _LAWS:
            weight = part if quantity == "comp" else 1.0
            apart += weight * _difference(model, each.laws[quantity], point)
    return apart


def _difference(model: NodeModel, law: Law, point: Point) -> float:
    if law.kind == REFUSED or law.inside:
        return _REFUSED if point in law.settle else 0.0
    alone = replace(law, reach=Reach(), largest=())
    value = model.value(alone, point)  # the band between its forms alone
    if not value.is_known or value.high <= 0:
        return 0.0
    return math.log(value.high / max(value.low, value.high * math.exp(-_REFUSED)))


def _value(model: NodeModel, law: Law, point: Point) -> float:
    value = model.value(law, point)
    return value.value if value.is_known else 0.0


def _seconds(model: NodeModel, point: Point) -> float:
    return sum(_value(model, each.laws["comp"], point) for each in model.chains)


def _cost(model: NodeModel, point: Point) -> float:
    """Return the processor time of a run, with what each costs to start."""
    return point[PROCESSES] * (_seconds(model, point) + 0.01) + 0.1


# -- making the runs ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Planner:
    """Makes runs by a command with {n}, {p} and the like, and learns from their traces."""

    command: str
    folder: Path
    """Where traces are written."""
    learn: Callable[[Sequence[Path]], NodeModel]
    told: Callable[[str], object]
    """Is called with each sentence."""

    def settle(self, paths: Sequence[Path], budget_s: float) -> tuple[NodeModel, list[Path]]:
        """Make the runs that tell most, one after the other.

        Args:
            paths: traces at hand.
            budget_s: for how long runs may be begun; 0: only name the run that would tell most.

        Returns:
            The model, and all traces.

        Raises:
            UsageError: the command fails, or lacks the place of a variable.
        """
        every = list(paths)
        began = time.monotonic()
        while True:
            model = self.learn(every)
            chosen = next_run(model)
            if chosen is None:
                self.told("No further run would tell more: the laws that fit hardly differ.")
                return model, every
            line = self.line(chosen.point, self.trace_of(chosen.point))
            if time.monotonic() - began >= budget_s:
                at = words([chosen.point])
                self.told(f"The run that would tell most is at {at}: {shlex.join(line)}")
                return model, every
            self.told(f"running {words([chosen.point])}")
            every.append(self._run(chosen.point, line))

    def trace_of(self, point: Point) -> Path:
        """Return the file of the trace of a run."""
        values = "-".join(f"{name}{number(value)}" for name, value in point.items())
        return self.folder / f"run-{values.replace('^', 'to')}.bsp"

    def line(self, point: Point, trace: Path) -> list[str]:
        """Return the command of a run.

        Raises:
            UsageError: a variable that varies has no place in it.
        """
        words_ = shlex.split(self.command)
        values = {name: _plain(value) for name, value in point.items()} | {"trace": str(trace)}
        for name in point:
            if f"{{{name}}}" not in self.command:
                raise UsageError(
                    f"fit: --run has no place for {name}; write it as {{{name}}}, as in "
                    "--run 'bsp run -n {p} program.py {n}'"
                )
        if "{trace}" not in self.command:
            if Path(words_[0]).name != "bsp" or words_[1:2] != ["run"]:
                raise UsageError(
                    "fit: --run has no place for the file of the trace, and is no bsp run; write "
                    "it as {trace}, as in --run 'python program.py --profile {trace} {n} {p}'"
                )
            words_[2:2] = ["--profile", "{trace}"]
        return [_filled(word, values) for word in words_]

    def _run(self, point: Point, line: Sequence[str]) -> Path:
        trace = self.trace_of(point)
        try:
            done = subprocess.run(line, capture_output=True, text=True, check=False)
        except OSError as error:
            raise UsageError(f"fit: {line[0]} cannot be run: {error.strerror}") from None
        if done.returncode or not trace.exists():
            last = (done.stderr.strip() or "it wrote no trace").splitlines()[-1]
            raise UsageError(f"fit: {shlex.join(line)} failed: {last}")
        return trace


def _plain(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)


def _filled(word: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        word = word.replace(f"{{{name}}}", value)
    return word
