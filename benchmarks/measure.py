"""The method of all benchmarks: cases in turns, medians and quartiles.

The cases of a section take turns, A B A B, so that disturbances of the computer affect them
equally. A ratio is computed within each turn; its figure is the median of these ratios.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, NamedTuple

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from benchmarks.goals import compared_with

_QUICK_REPEATS = 3
"""The least number of samples that has quartiles."""


@dataclass(frozen=True)
class Case:
    """An operation that is measured."""

    name: str
    sample: Callable[[], float]
    """Measures once; returns the seconds of one operation."""
    peak_bytes: Callable[[], int] | None = None
    """Returns the greatest memory that the samples so far have taken, where it is measured."""


@dataclass(frozen=True)
class Section:
    """Cases that take turns."""

    title: str
    unit: str
    """The operation whose seconds are measured, such as ``superstep`` or ``put``."""
    prepare: Callable[[ExitStack], Sequence[Case]]
    """Creates the cases; their resources are kept until the stack is closed."""
    repeats: int = 9
    warm_up: int = 1

    def measured(self, *, quick: bool) -> dict[str, Any]:
        """Take all samples; return the figures in their form in the file of results."""
        repeats = min(self.repeats, _QUICK_REPEATS) if quick else self.repeats
        with ExitStack() as stack:
            cases = self.prepare(stack)
            samples = self._samples(cases, self.warm_up + repeats)
            figures = {}
            for case in cases:
                figures[case.name] = figure = {"seconds": summary(samples[case.name])}
                others = compared_with(self.title, case.name) & samples.keys()
                figure["against"] = {
                    other: comparison(samples[case.name], samples[other])
                    for other in sorted(others)
                }
                if case.peak_bytes is not None:
                    figure["peak_bytes"] = case.peak_bytes()
        return {"unit": self.unit, "cases": figures}

    def _samples(self, cases: Sequence[Case], turns: int) -> dict[str, list[float]]:
        found: dict[str, list[float]] = {case.name: [] for case in cases}
        columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
        # Without a thread that refreshes it, since processes are forked from this process.
        with Progress(*columns, auto_refresh=False) as progress:
            bar = progress.add_task(self.title, total=turns * len(cases))
            for turn in range(turns):
                for case in cases:
                    seconds = case.sample()
                    if turn >= self.warm_up:
                        found[case.name].append(seconds)
                    progress.advance(bar)
                    progress.refresh()
        return found


class Finding(NamedTuple):
    """A goal that is no time, and what was reached, both in words."""

    what: str
    reached: str
    goal: str
    met: bool | None
    """None if what it is compared with was not measured."""


@dataclass(frozen=True)
class Study:
    """What is not measured in turns: how right predictions and verdicts are."""

    title: str
    find: Callable[[bool], Iterable[Finding]]
    """Called with whether a quick look is enough."""

    def measured(self, *, quick: bool) -> dict[str, Any]:
        """Return what is found in its form in the file of results."""
        print(self.title, flush=True)
        return {"findings": [finding._asdict() for finding in self.find(quick)]}


def summary(samples: Iterable[float]) -> dict[str, float]:
    """Return the median, the quartiles (of the samples, not of a population) and the least."""
    ordered = sorted(samples)
    if len(ordered) == 1:
        ordered *= 2
    lower, median, upper = statistics.quantiles(ordered, n=4, method="inclusive")
    found = {"median": median, "low": lower, "high": upper, "least": ordered[0]}
    return {name: float(f"{value:.4g}") for name, value in found.items()}


def comparison(samples: Sequence[float], others: Sequence[float]) -> dict[str, dict[str, float]]:
    """Compare a case with another one, turn by turn."""
    pairs = list(zip(samples, others, strict=True))
    return {
        "times": summary(one / other if other else float("inf") for one, other in pairs),
        "more_s": summary(one - other for one, other in pairs),
    }
