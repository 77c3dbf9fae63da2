"""The part of a report about a run that was sampled: what the lines of the program take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bsplib.profiler import format as fmt
from bsplib.profiler.lines import PARTS, Line, lines_of
from bsplib.profiler.report.lines import print_wrapped

if TYPE_CHECKING:
    from rich.console import Console

    from bsplib.profiler.profile import RunProfile

MOST_LINES = 8
_LEAST_SHARE = 0.01
"""Lines with less of the whole are left out."""
_NAMES = {
    "computing": "computing",
    "calls": "in calls",
    "waiting": "waiting",
    "blocked": "blocked",
    "no_core": "without a core",
}


def print_places(profile: RunProfile, console: Console) -> None:
    """Print the lines that took most, of a run that was sampled."""
    lines = [line for line in lines_of(profile.run) if line.own.total]
    whole_s = sum(line.own.total for line in lines)
    shown = [line for line in lines if line.own.total >= _LEAST_SHARE * whole_s][:MOST_LINES]
    if shown:
        print_wrapped(console, "lines that take most, average of the processes, from samples:")
    for line in shown:
        print_wrapped(console, _sentence(line, profile.nprocs, whole_s))


def _sentence(line: Line, nprocs: int, whole_s: float) -> str:
    parts = [
        f"{fmt.seconds(seconds / nprocs)} {_NAMES[part]}"
        for part, seconds in zip(PARTS, line.own, strict=True)
        if seconds >= _LEAST_SHARE * line.own.total
    ]
    file = fmt.visible(line.file.rpartition("/")[2])
    most = f"; most in process {line.pid}: {fmt.seconds(line.greatest_s)}" if nprocs > 1 else ""
    share = f"{100 * line.own.total / whole_s:.0f}%"
    return (
        f"  {file}:{line.line} in {fmt.visible(line.function)}, {share}: {', '.join(parts)}{most}"
    )
