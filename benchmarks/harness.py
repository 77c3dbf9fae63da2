"""The method of all benchmarks: cases in turns, medians and quartiles, results as JSON.

The cases of a section take turns, A B A B, so that disturbances of the computer affect them
equally. A ratio is computed within each turn; its figure is the median of these ratios.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from benchmarks.document import Document, merged
from benchmarks.document import read as read_document
from benchmarks.document import write as write_document
from benchmarks.goals import Goal
from benchmarks.provenance import Circumstances

RESULTS = Path(__file__).parent / "results"
"""Results of complete benchmarks, on a computer that does nothing else."""
TRIALS = Path(__file__).parents[1] / "out" / "benchmarks"
"""Results of quick and partial benchmarks."""

_QUICK_REPEATS = 3


@dataclass(frozen=True)
class Case:
    """An operation that is measured."""

    name: str
    sample: Callable[[], float]
    """Measures once; returns the seconds of one operation."""
    against: tuple[str, ...] = ()
    """Names of cases of the same section to compare with, in addition to those of the goals."""
    goals: tuple[Goal, ...] = ()
    peak_bytes: Callable[[], int] | None = None
    """Returns the greatest memory that the samples so far have taken, where it is measured."""
    lines: int | None = None
    """Lines of code of the program, where they are counted."""
    repeats: int | None = None
    """Number of samples, in the last turns, where each takes long; one in each turn if None."""
    facts: Callable[[], dict[str, Any]] | None = None
    """Returns what else is known of the case when its samples have been taken."""

    def others(self) -> tuple[str, ...]:
        """Return the names of all cases that it is compared with."""
        of_goals = (goal.of for goal in self.goals if goal.of is not None)
        return tuple(dict.fromkeys((*of_goals, *self.against)))


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

    def quick(self) -> Section:
        """Return the same section with the least number of repeats that has quartiles."""
        return replace(self, repeats=min(self.repeats, _QUICK_REPEATS))


@dataclass
class _Samples:
    """The samples of one section."""

    section: Section
    cases: Sequence[Case]
    seconds: dict[str, list[float]] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {
            "title": self.section.title,
            "unit": self.section.unit,
            "cases": [self._case(case) for case in self.cases],
        }

    def _case(self, case: Case) -> dict[str, Any]:
        samples = self.seconds[case.name]
        document: dict[str, Any] = {
            "name": case.name,
            "seconds": summary(samples),
            "samples": len(samples),
            "against": {
                other: comparison(samples, self.seconds[other])
                for other in case.others()
                if other in self.seconds
            },
        }
        if case.peak_bytes is not None:
            document["peak_bytes"] = case.peak_bytes()
        if case.lines is not None:
            document["lines"] = case.lines
        if case.facts is not None:
            document["facts"] = case.facts()
        return document | {"goals": [goal.judge(document) for goal in case.goals]}


def summary(samples: Iterable[float]) -> dict[str, float]:
    """Return the median, the quartiles (of the samples, not of a population) and the extremes."""
    ordered = sorted(samples)
    lower, median, upper = statistics.quantiles(ordered, n=4, method="inclusive")
    values = {
        "median": median,
        "lower_quartile": lower,
        "upper_quartile": upper,
        "least": ordered[0],
        "greatest": ordered[-1],
    }
    return {name: _rounded(value) for name, value in values.items()}


def comparison(samples: Sequence[float], others: Sequence[float]) -> dict[str, Any]:
    """Compare a case with another: turn by turn, and by the least sample of each.

    Where one has fewer samples than the other, they are those of the last turns.
    """
    common = min(len(samples), len(others))
    samples, others = samples[-common:], others[-common:]
    return {
        "ratio": summary(map(_ratio, samples, others)),
        "difference_s": summary(map(float.__sub__, samples, others)),
        "ratio_of_least": _rounded(_ratio(min(samples), min(others))),
        "difference_of_least_s": _rounded(min(samples) - min(others)),
    }


def measure(name: str, sections: Iterable[Section], results: Path) -> Path:
    """Measure all sections with a progress bar, and write ``results/<name>.json``.

    Returns:
        The path of the file.
    """
    return write(_measured(name, sections), results)


def measure_again(
    name: str, sections: Iterable[Section], titles: Sequence[str], results: Path
) -> Path:
    """Measure some sections of a benchmark, and replace them in ``results/<name>.json``.

    Args:
        name: of the benchmark.
        sections: that are measured.
        titles: of all sections of the benchmark; others are removed from the file.
        results: the folder of the file, which need not be there.

    Returns:
        The path of the file.
    """
    path = results / f"{name}.json"
    before = read_document(path) if path.exists() else None
    return write(merged(before, _measured(name, sections), titles), results)


def _measured(name: str, sections: Iterable[Section]) -> Document:
    circumstances = Circumstances()
    measured = [samples.as_json() for samples in _measure_sections(sections)]
    return circumstances.document(name) | {"sections": measured}


def write(document: dict[str, Any], results: Path) -> Path:
    """Write the JSON file of a benchmark into a folder; return its path."""
    path = results / f"{document['benchmark']}.json"
    write_document(document, path)
    return path


def _measure_sections(sections: Iterable[Section]) -> Iterator[_Samples]:
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        auto_refresh=False,  # no thread, since processes are forked from this process
    ) as progress:
        for section in sections:
            yield _measure_section(section, progress)


def _measure_section(section: Section, progress: Progress) -> _Samples:
    with ExitStack() as stack:
        cases = section.prepare(stack)
        turns = section.warm_up + section.repeats
        bar = progress.add_task(section.title, total=turns * len(cases))
        samples = _Samples(section, cases, {case.name: [] for case in cases})
        for turn in range(turns):
            for case in cases:
                if turn >= turns - (case.repeats or turns):
                    seconds = case.sample()
                    if turn >= section.warm_up:
                        samples.seconds[case.name].append(seconds)
                progress.advance(bar)
                progress.refresh()
    return samples


def _ratio(one: float, other: float) -> float:
    return one / other if other else float("inf")


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")
