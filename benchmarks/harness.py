"""How all benchmarks measure: side by side, in turns, median and quartiles, into JSON.

The cases of a section take turns, A B A B, so that whatever disturbs the machine
disturbs them alike; a ratio is taken within each turn before its median is.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

import bsplib

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Case:
    """Something that is measured."""

    name: str
    sample: Callable[[], float]
    """Measures once; returns the seconds of one operation."""
    against: tuple[str, ...] = ()
    """Cases of the same section that it is compared with."""


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
        return {
            "name": case.name,
            "seconds": summary(samples),
            "samples_s": [_rounded(sample) for sample in samples],
            "against": {
                other: {
                    "ratio": summary(map(_ratio, samples, self.seconds[other])),
                    "difference_s": summary(map(float.__sub__, samples, self.seconds[other])),
                }
                for other in case.against
            },
        }


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


def measure(name: str, sections: Sequence[Section], results: Path = RESULTS) -> Path:
    """Measure all sections, show how far it is, write ``results/<name>.json``.

    Returns:
        The file.
    """
    before = os.getloadavg()
    started = datetime.now(UTC)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        auto_refresh=False,  # no thread: processes are forked from this one
    ) as progress:
        measured = [_measure_section(section, progress).as_json() for section in sections]
    document = {
        "benchmark": name,
        "date": started.isoformat(timespec="seconds"),
        "seconds_taken": round((datetime.now(UTC) - started).total_seconds(), 1),
        "commit": commit(),
        "versions": versions(),
        "machine": machine(),
        "load_average": {"before": list(before), "after": list(os.getloadavg())},
        "sections": measured,
    }
    results.mkdir(exist_ok=True)
    path = results / f"{name}.json"
    text = json.dumps(document, indent=1, ensure_ascii=False)
    path.write_text(_on_one_line(text) + "\n", encoding="utf-8")
    return path


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


# -- where it was measured ------------------------------------------------------------------


def commit() -> str:
    """Return the commit that was measured, with ``+`` where the working tree differs."""
    folder = Path(__file__).parent
    head = _git(folder, "rev-parse", "HEAD")
    changed = _git(folder, "status", "--porcelain", "--", "../bsplib", "../apps", ".")
    return (head or "unknown") + ("+" if changed else "")


def _git(folder: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=folder, capture_output=True, text=True, check=False
        )
    except OSError:
        return ""
    return done.stdout.strip()


def versions() -> dict[str, str]:
    """Return the versions of what was measured."""
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "bsplib": bsplib.__version__,
    }


def machine() -> dict[str, Any]:
    """Return what can be said of this machine without naming it."""
    return {
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": f"{platform.system()} {platform.release()}",
    }


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()
