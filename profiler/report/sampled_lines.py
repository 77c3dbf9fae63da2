"""The part of a report about a run that was sampled: what the lines of the program take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bsplib.profiler import format as fmt
from bsplib.profiler.executed import Executed, executed_below
from bsplib.profiler.kinds import LEAST_TOLD
from bsplib.profiler.lines import PART_NAMES, PARTS, Line, LineSeconds, lines_of
from bsplib.profiler.report.lines import print_wrapped
from bsplib.profiler.survey import is_virtual

if TYPE_CHECKING:
    from bsplib.console import Console
    from bsplib.profiler.profile import RunProfile

MOST_LINES = 8


def print_places(profile: RunProfile, console: Console) -> None:
    """Print the lines that took most; of a run that could not be sampled, why."""
    reason = profile.run.measured.get("lines", "")
    if reason and not is_virtual(profile.run):
        print_wrapped(console, f"no line was sampled: {fmt.visible(reason)}")
    lines = [line for line in lines_of(profile.run) if line.own.total]
    whole_s = sum(line.own.total for line in lines)
    shown = [line for line in lines if line.own.total >= LEAST_TOLD * whole_s][:MOST_LINES]
    if shown:
        print_wrapped(console, "lines that take most, average of the processes, from samples:")
    for line in shown:
        print_wrapped(console, _sentence(line, profile.nprocs, whole_s))


def print_executed(profile: RunProfile, centre: str, console: Console) -> None:
    """Print the functions that were executed below a cost centre of a run that was sampled."""
    found = executed_below(profile.callgraph)
    depth: dict[int, int] = {-1: 0}
    for position, each in enumerate(found):
        depth[position] = depth[each.caller] + 1
    here = [position for position, each in enumerate(found) if each.centre == centre]
    if here:
        title = "functions executed in the supersteps that end here, average of the processes"
        print_wrapped(console, f"{title}, from samples:")
    for position in here[:MOST_LINES]:
        print_wrapped(console, "  " * depth[position] + _of_function(found[position]))
    if len(here) > MOST_LINES:
        print_wrapped(console, f"  and {fmt.counted(len(here) - MOST_LINES, 'more function')}")


def _of_function(each: Executed) -> str:
    nprocs = len(each.by_process)
    file = fmt.visible(each.file.rpartition("/")[2])
    most_s = max(each.by_process)
    pid = each.by_process.index(most_s)
    most = f"; most in process {pid}: {fmt.seconds(most_s)}" if nprocs > 1 else ""
    parts = _parts(each.seconds, nprocs)
    return f"{fmt.visible(each.function)} ({file}:{each.first_line}): {parts}{most}"


def _parts(seconds: LineSeconds, nprocs: int) -> str:
    """Return seconds by what was done, as average of the processes."""
    return ", ".join(
        f"{fmt.seconds(value / nprocs)} {PART_NAMES[part]}"
        for part, value in zip(PARTS, seconds, strict=True)
        if value >= LEAST_TOLD * seconds.total
    )


def _sentence(line: Line, nprocs: int, whole_s: float) -> str:
    file = fmt.visible(line.file.rpartition("/")[2])
    most = f"; most in process {line.pid}: {fmt.seconds(line.greatest_s)}" if nprocs > 1 else ""
    share, parts = f"{100 * line.own.total / whole_s:.0f}%", _parts(line.own, nprocs)
    return f"  {file}:{line.line} in {fmt.visible(line.function)}, {share}: {parts}{most}"
