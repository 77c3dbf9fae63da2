"""What each line of the program takes, and functions that never sync, from the samples of a run.

A sample is booked to the superstep that it falls into, by the times of the records, and to what
its process did then. It stands for the CPU time, or the time without a core, since the one before.

A process that is blocked has slept since it was last looked at, and is in a call of the system. One
that has not slept, and yet had a core for less than half of that time, was without one.

The error of a line with n samples is about sqrt(n) of them.

The call graph has the functions that led to a sync. What they called, and what returned before the
sync, is known from samples only: it stands below the cost centre that ended the superstep.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache, partial
from posixpath import basename
from typing import TYPE_CHECKING, NamedTuple

import networkx
import numpy as np

from bsplib.profiler.kinds import LEAST_TOLD
from bsplib.recording.chunk_ranges import RecordsOfSamples
from bsplib.recording.tables import Columns
from bsplib.visible import visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Set

    from bsplib.profiler._arrays import Floats, Ints, Table
    from bsplib.profiler.callgraph import CallGraph, Node
    from bsplib.recording.records import Frame, Run, Stack


_INSTALLED = ("/site-packages/", "/dist-packages/", "/lib/python3")
"""Parts of the names of files that are no part of a program."""

COMPREHENSIONS = frozenset({"<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>"})
"""Frames that Python creates inside a function; their calls count as the function's."""


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

    @classmethod
    def of(cls, sums: Floats) -> LineSeconds:
        """Return the seconds of all processes together."""
        return cls(*sums.sum(axis=0).tolist())


PARTS = LineSeconds._fields
"""What a process does in the seconds of a line, in the order of ``Doing``."""
PART_NAMES = dict(
    zip(PARTS, ("computing", "in calls", "waiting", "blocked", "without a core"), strict=True)
)
"""Its names in texts for users."""


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
    by_process: tuple[float, ...]
    """What it took by itself, by pid."""


def _summed(run: Run, samples: Table, place: Ints, count: int) -> Floats:
    """Sum up the seconds of samples by the places where they are, by process and part."""
    sums = np.zeros((count, run.nprocs, len(PARTS)))
    np.add.at(sums, (place, samples["pid"], samples["doing"]), samples["spent"] / 1e9)
    return sums


def lines_of(run: Run) -> list[Line]:
    """Return the lines of the program that were sampled, the one that took most first.

    Args:
        run: a run; one without samples has no lines.
    """
    if run.samples is None:
        return []
    sums = _summed(run, run.samples, run.samples["stack"], len(run.stacks))
    own, whole = (
        defaultdict[LinePlace, "Floats"](lambda: np.zeros(sums.shape[1:])) for _ in range(2)
    )
    for number in np.flatnonzero(sums.sum((1, 2))).tolist():
        places = list(dict.fromkeys(places_of(run.stacks[number])))
        for place in places[:1]:
            own[place] += sums[number]
        for place in places:
            whole[place] += sums[number]
    lines = [
        Line(*place, LineSeconds.of(mine), LineSeconds.of(total), tuple(mine.sum(axis=1).tolist()))
        for place, mine, total in ((place, own[place], total) for place, total in whole.items())
    ]
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


# -- the functions that never sync: what was executed below each cost centre -----------------------


_DEEPEST = 60


_Name = tuple[str, str, int]
"""What tells functions apart: file, name and first line."""
_Chain = tuple[str, tuple[_Name, ...]]
"""A cost centre, and functions below it, each of which called the next one."""


class Executed(NamedTuple):
    """A function of the program that was executed below a cost centre."""

    centre: str
    """Id of the cost centre."""
    caller: int
    """Position in the list of the function that called it; -1: one that led to the sync."""
    file: str
    function: str
    first_line: int
    seconds: LineSeconds
    """Time of the function with all that it called, summed over the processes."""
    by_process: tuple[float, ...]
    """The same in all, by pid."""


def executed_below(callgraph: CallGraph) -> list[Executed]:
    """Return the functions that were executed below the cost centres of a run.

    One that takes less than ``LEAST_TOLD`` of the time below its cost centre is left out, with all
    that it called. Those of a cost centre follow one another, each after the one that called it and
    the one that took most first. Functions that lead to the cost centre itself are not among them.

    Args:
        callgraph: the call graph; of a run without samples the result is empty.
    """
    run = callgraph.run
    if run.samples is None or not len(run.samples):
        return []
    record = RecordsOfSamples.of(run)
    inside = np.flatnonzero(record.position >= 0)
    samples, stacks = run.samples[inside], len(run.stacks)
    ended = {"stack": record.stack[inside], "kind": record.kind[inside]}
    origins = callgraph.origin_of(Columns(ended, len(inside)))
    keys, place = np.unique(origins * stacks + samples["stack"], return_inverse=True)
    sums: defaultdict[_Chain, Floats] = defaultdict(lambda: np.zeros((run.nprocs, len(PARTS))))
    leading = cache(partial(_leading, callgraph))
    for key, seconds in zip(keys.tolist(), _summed(run, samples, place, len(keys)), strict=True):
        origin, stack = divmod(key, stacks)
        centre = callgraph.origins[origin][-1]
        names = _names(run.stacks[stack], leading(centre))
        for depth in range(len(names) + 1 if names else 0):
            sums[centre, names[:depth]] += seconds
    total_s = {chain: float(seconds.sum()) for chain, seconds in sums.items()}
    called: defaultdict[_Chain, list[_Chain]] = defaultdict(list)
    for centre, names in sorted(sums, key=lambda chain: (-total_s[chain], chain)):
        if names:
            called[centre, names[:-1]].append((centre, names))
    listed: list[Executed] = []

    def list_below(caller: _Chain, position: int, least_s: float) -> None:
        for chain in called[caller]:
            if total_s[chain] and total_s[chain] >= least_s:
                seconds, by_process = LineSeconds.of(sums[chain]), sums[chain].sum(axis=1).tolist()
                executed = Executed(chain[0], position, *chain[1][-1], seconds, tuple(by_process))
                listed.append(executed)
                list_below(chain, len(listed) - 1, least_s)

    for whole in sorted((each for each in sums if not each[1]), key=lambda each: -total_s[each]):
        list_below(whole, -1, LEAST_TOLD * total_s[whole])
    return listed


def _leading(callgraph: CallGraph, centre: str) -> Set[_Name]:
    """Return the functions that lead to a cost centre."""
    nodes = callgraph.graph.nodes(data="node")
    above = (nodes[name] for name in networkx.ancestors(callgraph.graph, centre))
    return {(node.file, node.name, node.line) for node in above}


def _names(stack: Stack, leading: Set[_Name]) -> tuple[_Name, ...]:
    """Return the functions of the program on a stack, below those that lead to the cost centre.

    Of calls of a function by itself, the first counts. The frames of comprehensions belong to the
    function around them.
    """
    ours = (each for each in stack if is_of_program(each, stack[0]))
    frames = (each for each in ours if not is_comprehension(each))
    names = tuple(dict.fromkeys((each.file, each.function, each.first_line) for each in frames))
    first = next((at for at, name in enumerate(names) if name not in leading), len(names))
    return names[first:][:_DEEPEST]
