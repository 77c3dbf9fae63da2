"""What each line of the program takes, from the samples of a run.

A sample is booked to the superstep that it falls into, by the times of the records, and to what
its process did then. It stands for the CPU time, or the time without a core, since the one before.

A process that is blocked has slept since it was last looked at, and is in a call of the system. One
that has not slept, and yet had a core for less than half of that time, was without one.

The error of a line with n samples is about sqrt(n) of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from posixpath import basename
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.profiler.costs import once
from bsplib.recording.records import Doing
from bsplib.visible import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from bsplib.profiler._arrays import Floats, Rows
    from bsplib.profiler.callgraph import Node
    from bsplib.recording.records import Frame, Run, Stack

_INSTALLED = ("/site-packages/", "/dist-packages/", "/lib/python3")
"""Parts of the names of files that are no part of a program."""

COMPREHENSIONS = frozenset({"<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>"})
"""Frames that Python creates inside a function; their calls count as the function's."""

PART_NAMES = {
    "computing": "computing",
    "calls": "in calls",
    "waiting": "waiting",
    "blocked": "blocked",
    "no_core": "without a core",
}
"""What a process does in the seconds of a line, and its names in texts for users."""
PARTS = tuple(PART_NAMES)
_PART_OF = np.array(list(Doing), np.intp)
"""The part in which a sample is booked, by its Doing: the parts are in this order."""


class LineSeconds(NamedTuple):
    """Seconds of one line, summed over the processes."""

    computing: float
    calls: float
    """Seconds in communication primitives."""
    waiting: float
    """Seconds in syncs."""
    blocked: float
    """Asleep, or waiting for a disk, a lock or another program."""
    no_core: float
    """Ready, while others had the cores."""

    @property
    def total(self) -> float:
        """Sum of the parts."""
        return sum(self)


class LinePlace(NamedTuple):
    """A line of the program."""

    file: str
    line: int
    function: str

    @property
    def text(self) -> str:
        """The line in words, to stand behind a verb in a sentence."""
        return f"at line {self.line} of {visible(self.function)} ({visible(basename(self.file))})"

    def inside(self, function: Node, _: int) -> str:
        """Return the line in words, in a sentence that has named a function."""
        is_here = (self.file, self.function) == (function.file, function.name)
        return f"at line {self.line}" if is_here else self.text


class Line(NamedTuple):
    """A line of the program, and what it took."""

    file: str
    line: int
    function: str
    own: LineSeconds
    """While the line itself was executed, or what it called outside the program."""
    whole: LineSeconds
    """The same with all functions of the program that it called."""
    pid: int
    """The process in which it took most."""
    greatest_s: float
    """What it took there, by itself."""


def records_of_samples(run: Run) -> NDArray[np.intp]:
    """Return the position of the record into which each sample of a run falls.

    It is -1 after the last one. Of a run that was not sampled there are none.
    """
    nothing = np.zeros(0, np.intp)
    return once(
        run,
        "records of samples",
        lambda: nothing if run.samples is None else _records_of(run, run.samples),
    )


def seconds_of(samples: Rows) -> Floats:
    """Return for how many seconds samples stand, by sample and part (``PARTS``)."""
    seconds = np.zeros((len(samples), len(PARTS)))
    seconds[np.arange(len(samples)), _PART_OF[samples["doing"]]] = samples["spent"] / 1e9
    return seconds


def _records_of(run: Run, samples: Rows) -> NDArray[np.intp]:
    """Return for each sample the position of the first record of its process that ends later.

    The superstep of a sub-group ends before the one around it, so that a sample there is its own.
    """
    record = np.full(len(samples), -1, np.intp)
    left = {
        pid: np.flatnonzero(samples["pid"] == pid) for pid in np.unique(samples["pid"]).tolist()
    }
    for first, rows in run.table("records").chunks(("pid", "end")):
        for pid in np.unique(rows["pid"]).tolist():
            mine = left.get(pid, record[:0])
            at = np.flatnonzero(rows["pid"] == pid)
            place = np.searchsorted(rows["end"][at], samples["time"][mine], side="right")
            within = place < len(at)
            record[mine[within]] = first + at[place[within]]
            left[pid] = mine[~within]
    return record


def lines_of(run: Run) -> list[Line]:
    """Return the lines of the program that were sampled, the one that took most first.

    Args:
        run: a run; one without samples has no lines.
    """
    if run.samples is None:
        return []
    sums = np.zeros((len(run.stacks), run.nprocs, len(PARTS)))
    np.add.at(sums, (run.samples["stack"], run.samples["pid"]), seconds_of(run.samples))
    return _of_stacks(run.stacks, sums)


def _of_stacks(stacks: Sequence[Stack], sums: Floats) -> list[Line]:
    """Return the lines for the sums of each stack, by process and part."""
    own: defaultdict[LinePlace, Floats]
    own = defaultdict(lambda: np.zeros(sums.shape[1:]))
    whole: defaultdict[LinePlace, Floats]
    whole = defaultdict(lambda: np.zeros(sums.shape[2]))
    for number in np.flatnonzero(sums.sum((1, 2))).tolist():
        places = list(dict.fromkeys(places_of(stacks[number])))
        if places:
            own[places[0]] += sums[number]
        for place in places:
            whole[place] += sums[number].sum(0)
    lines = []
    for place, total in whole.items():
        mine = own[place] if place in own else np.zeros(sums.shape[1:])
        by_pid = mine.sum(1)
        pid = int(by_pid.argmax())
        own_s, whole_s = LineSeconds(*mine.sum(0).tolist()), LineSeconds(*total.tolist())
        lines.append(Line(*place, own_s, whole_s, pid, float(by_pid[pid])))
    return sorted(lines, key=lambda line: (-line.own.total, -line.whole.total, line[:2]))


def places_of(stack: Stack) -> Iterator[LinePlace]:
    """Yield the lines of a stack that are part of the program, the innermost first."""
    for frame in reversed(stack):
        if is_of_program(frame, stack[0]):
            yield LinePlace(frame.file, frame.line, _around_comprehensions(frame.function))


def is_comprehension(frame: Frame) -> bool:
    """Tell whether a frame is one that Python creates for a comprehension."""
    return frame.function.rpartition(".")[2] in COMPREHENSIONS


def _around_comprehensions(name: str) -> str:
    """Return the function around a comprehension; of another function its own name."""
    outer, _, last = name.rpartition(".")
    return (
        _around_comprehensions(outer.removesuffix(".<locals>")) if last in COMPREHENSIONS else name
    )


def is_of_program(frame: Frame, outermost: Frame) -> bool:
    """Tell whether a frame is part of the program, not of Python, another package or bsplib.

    Args:
        frame: any frame of a stack.
        outermost: that of ``main``, whose package is the program where it was installed.
    """
    if frame.library or not frame.file or frame.file.startswith("<frozen"):
        return False
    return frame.file.startswith(_package(outermost.file)) or not any(
        part in frame.file for part in _INSTALLED
    )


def _package(file: str) -> str:
    """Return how the files of the package of a file begin; of one that is in none, its name."""
    for part in _INSTALLED:
        folder, found, inside = file.rpartition(part)
        if found and "/" in inside:
            return f"{folder}{found}{inside.partition('/')[0]}/"
    return file or "<"
