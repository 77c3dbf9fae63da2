"""Name the run that narrows the band of a prediction, and make such runs until the time is over.

Several laws may hold for the runs at hand: a run at which they differ settles which one does. The
band of a fit grows with the doublings from the runs to the point: a run on the way leaves fewer.
Of the runs that would halve the band the cheapest is named; where none would, the one that leaves
least.
"""

from __future__ import annotations

import itertools
import math
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bsplib.errors import UsageError
from bsplib.experiments.grid import filled
from bsplib.profiler.predict.values import PROCESSES

if TYPE_CHECKING:
    from bsplib.profiler.predict.prediction import ChainPrediction, RunPrediction
    from bsplib.profiler.predict.program import Learned, Point

_NARROW = 1.1
"""A band whose upper limit is at most this times the lower one needs no further run."""
_PARTS = (256, 64, 16)
_PROCESSES = (1, 2, 4)
"""The first runs, where there are none: these parts of the size that is asked for."""
_LONG = 2**17
"""Powers of two from this on are written as powers."""


def run_to_make(prediction: RunPrediction) -> Point | None:
    """Return the run that narrows the band most for its cost; None where none has to be made."""
    if prediction.high_s <= _NARROW * prediction.low_s:
        return None
    found = []
    for point in _candidates(prediction):
        left = _left(prediction, point)
        there = prediction.at(point)
        found.append((left, point[PROCESSES] * there.total.total_s, point))
    halving = [each for each in found if each[0] <= 0.5]
    if halving:
        return min(halving, key=lambda each: each[1])[2]
    useful = [each for each in found if each[0] < 1]
    return min(useful, key=lambda each: each[:2])[2] if useful else None


def _candidates(prediction: RunPrediction) -> Iterator[Point]:
    """Yield the runs on the way from the largest run to the point, in doublings."""
    model, target = prediction.model, prediction.point
    axes = []
    for name, value in target.items():
        largest = model.largest[name]
        steps = range(1, int(math.log2(value / largest)) + 1) if value > largest > 0 else ()
        axes.append([largest, *(largest * 2.0**step for step in steps)])
    made = set(zip(*model.measured.values(), strict=True))
    for values in itertools.product(*axes):
        point = dict(zip(target, values, strict=True))
        if values not in made and point != target:
            yield point


def _left(prediction: RunPrediction, point: Point) -> float:
    """Return which part of the band would be left after a run at a point."""
    before, after = list[float](), list[float]()
    for each in prediction.chains:
        before.append(each.high_s - each.low_s)
        after.append(before[-1] * _part_left(each, prediction.point, point))
    whole = math.hypot(*before)  # it squares what is too great for that, too
    return math.hypot(*after) / whole if 0 < whole < math.inf else 1.0


def _part_left(chain: ChainPrediction, target: Point, point: Point) -> float:
    """Return which part of the band of a chain would be left."""
    parts = [
        _left_of(learned, target, point)
        for name, learned in chain.model.learned.items()
        if chain.values[name].low < chain.values[name].high and name in ("supersteps", "h", "comp")
    ]
    return max(parts, default=0.0)


def _left_of(learned: Learned, target: Point, point: Point) -> float:
    if learned.laws:
        settled = len({law.at(point) for law in learned.laws}) > 1
        alone = 0.0 if settled or len({law.at(target) for law in learned.laws}) == 1 else 1.0
        times = learned.times
        return max(alone, 0.0 if times is None else _left_of(times, target, point))
    fit = learned.fit
    assert fit is not None  # it has laws or a fit
    ranges = {name: (low, max(high, point[name])) for name, (low, high) in fit.measured.items()}
    whole, rest = (each.doublings(target)[0] for each in (fit, replace(fit, measured=ranges)))
    return math.sqrt((1 + rest**2) / (1 + whole**2))


def words(points: Sequence[Point]) -> str:
    """Return points in words: n = 1024, p = 8; n = 2048, p = 8."""
    return "; ".join(
        ", ".join(f"{name} = {number(value)}" for name, value in point.items()) for point in points
    )


def number(value: float) -> str:
    """Return a number as text: powers of two that are long as 2^30."""
    if value >= _LONG and math.log2(value).is_integer():
        return f"2^{int(math.log2(value))}"
    return f"{value:.12g}"


# -- making the runs ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Planner:
    """Makes runs by a command with {n}, {p} and the like, and learns from their traces."""

    command: str
    folder: Path
    """Where traces are written."""
    predict: Callable[[Sequence[Path]], RunPrediction]
    """Predicts the run that is asked for from traces."""

    def settle(self, paths: Sequence[Path], budget_s: float) -> list[Path]:
        """Make the runs that tell most, one after the other; return all traces.

        Args:
            paths: traces at hand.
            budget_s: for how long runs may be begun.

        Raises:
            UsageError: the command fails, or lacks the place of a variable.
        """
        every = list(paths)
        began = time.monotonic()
        while True:
            if time.monotonic() - began >= budget_s:
                return every
            point = run_to_make(self.predict(every))
            if point is None:
                return every
            every.append(self._run(point))

    def begin(self, target: Point, budget_s: float) -> list[Path]:
        """Make small runs on the way to a point, the smallest first; return their traces.

        Raises:
            UsageError: the point has no number of processes, the time is over before there are
                three runs, or as :meth:`settle`.
        """
        if PROCESSES not in target:
            raise UsageError("predict: --at needs the number of processes, as in --at n=2^20,p=64")
        began, made = time.monotonic(), []
        for part, nprocs in itertools.product(_PARTS, _PROCESSES):
            if time.monotonic() - began >= budget_s:
                break
            sizes = {name: max(round(value / part), 1) for name, value in target.items()}
            point = {name: float(size) for name, size in sizes.items()} | {PROCESSES: float(nprocs)}
            made.append(self._run(point))
        if len(made) < len(_PROCESSES):
            raise UsageError(
                f"predict: {len(made)} runs in {budget_s:g} s are too few to learn from; give them "
                "more time, as in --budget 2m"
            )
        return made

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
        values = {name: int(v) if v.is_integer() else v for name, v in point.items()}
        for name in point:
            if f"{{{name}}}" not in self.command:
                raise UsageError(
                    f"predict: --run has no place for {name}; write it as {{{name}}}, as in "
                    "--run 'bsp run -n {p} program.py {n}'"
                )
        if "{trace}" not in self.command:
            if Path(words_[0]).name != "bsp" or words_[1:2] != ["run"]:
                raise UsageError(
                    "predict: --run has no place for the file of the trace, and is no bsp run; "
                    "write it as {trace}, as in --run 'python program.py --profile {trace} {n} {p}'"
                )
            words_[2:2] = ["--profile", "{trace}"]
        return [filled(word, {**values, "trace": trace}) for word in words_]

    def _run(self, point: Point) -> Path:
        trace = self.trace_of(point)
        line = self.line(point, trace)
        click.echo(f"running {words([point])}", err=True)
        try:
            done = subprocess.run(line, capture_output=True, text=True, check=False)
        except OSError as error:
            raise UsageError(f"predict: {line[0]} cannot be run: {error.strerror}") from None
        if done.returncode or not trace.exists():
            last = (done.stderr.strip() or "it wrote no trace").splitlines()[-1]
            raise UsageError(f"predict: {shlex.join(line)} failed: {last}")
        return trace
