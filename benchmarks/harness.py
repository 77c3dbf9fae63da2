"""How all benchmarks measure: side by side, in turns, median and quartiles, into JSON.

The cases of a section take turns, A B A B, so that whatever disturbs the machine
disturbs them alike; a ratio is taken within each turn before its median is.
"""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from benchmarks import provenance
from benchmarks.goals import Goal

RESULTS = Path(__file__).parent / "results"
"""Of whole benchmarks, on a quiet machine."""
TRIALS = Path(__file__).parents[1] / "out" / "benchmarks"
"""Of quick and partial ones."""

_QUICK_REPEATS = 3


@dataclass(frozen=True)
class Case:
    """Something that is measured."""

    name: str
    sample: Callable[[], float]
    """Measures once; returns the seconds of one operation."""
    against: tuple[str, ...] = ()
    """Cases of the same section that it is compared with, beside those of its goals."""
    goals: tuple[Goal, ...] = ()

    def others(self) -> tuple[str, ...]:
        """Return the names of all cases that it is compared with."""
        of_goals = (goal.of for goal in self.goals if goal.of is not None)
        return tuple(dict.fromkeys((*of_goals, *self.against)))


@dataclass(frozen=True)
class Section:
    """Cases that take turns."""

    title: str
    unit: str
    """Of what the seconds are: ``superstep``, ``put``."""
    prepare: Callable[[ExitStack], Sequence[Case]]
    """Makes the cases; what they need stays until the stack is closed."""
    repeats: int = 9
    warm_up: int = 1

    def quick(self) -> Section:
        """Return the same section with the fewest repeats that have quartiles."""
        return replace(self, repeats=min(self.repeats, _QUICK_REPEATS))


@dataclass
class _Samples:
    """What has been measured in one section."""

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
        document = {
            "name": case.name,
            "seconds": summary(samples),
            "samples_s": [_rounded(sample) for sample in samples],
            "against": {
                other: comparison(samples, self.seconds[other])
                for other in case.others()
                if other in self.seconds
            },
        }
        return document | {"goals": [goal.judge(document) for goal in case.goals]}


def summary(samples: Iterable[float]) -> dict[str, float]:
    """Return the median, the quartiles (of all samples, not of a population) and the extremes."""
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
    """Compare a case with another turn by turn, and the least of each."""
    return {
        "ratio": summary(map(_ratio, samples, others)),
        "difference_s": summary(map(float.__sub__, samples, others)),
        "ratio_of_least": _rounded(_ratio(min(samples), min(others))),
        "difference_of_least_s": _rounded(min(samples) - min(others)),
    }


def measure(name: str, sections: Iterable[Section], results: Path) -> Path:
    """Measure all sections, show how far it is, write ``results/<name>.json``.

    Returns:
        The file.
    """
    before = os.getloadavg()
    started = datetime.now(UTC)
    commit = provenance.commit()  # as it is now: this may take minutes
    measured = [samples.as_json() for samples in _measure_sections(sections)]
    document = {
        "benchmark": name,
        "date": started.isoformat(timespec="seconds"),
        "seconds_taken": round((datetime.now(UTC) - started).total_seconds(), 1),
        "commit": commit,
        "versions": provenance.versions(),
        "machine": provenance.machine(),
        "load_average": {"before": list(before), "after": list(os.getloadavg())},
        "sections": measured,
    }
    results.mkdir(parents=True, exist_ok=True)
    path = results / f"{name}.json"
    text = json.dumps(document, indent=1, ensure_ascii=False)
    path.write_text(_on_one_line(text) + "\n", encoding="utf-8")
    return path


def _measure_sections(sections: Iterable[Section]) -> Iterator[_Samples]:
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        auto_refresh=False,  # no thread: processes are forked from this one
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


def _on_one_line(text: str) -> str:
    """Put the lists of numbers, one to a line, on one line each."""
    lines: list[str] = []
    inside = False
    for line in text.splitlines():
        if inside:
            lines[-1] += line.strip() + (" " if line.endswith(",") else "")
            inside = "]" not in line
        else:
            lines.append(line)
            inside = line.endswith(('"samples_s": [', '"before": [', '"after": ['))
    return "\n".join(lines)
