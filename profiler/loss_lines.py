"""Where inside its supersteps a loss arises: at which line, or between which lines.

A superstep is known by the call stack of the sync that ends it. What a process computed before,
or where it was blocked, may be in a function that never syncs. Where the run was sampled, the
samples of these supersteps name the line. Otherwise the place is the stretch of the program from
the sync before to this one, unless both are the same call in a loop.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.profiler import format as fmt
from bsplib.profiler._numbering import preceding, rank_in_place
from bsplib.profiler.costs import group_columns
from bsplib.profiler.kinds import MOST, PICKLING, SYSTEM
from bsplib.profiler.lines import LinePlace, places_of
from bsplib.profiler.paths import ranks
from bsplib.recording.records import Doing

if TYPE_CHECKING:
    from bsplib.profiler._arrays import Bools, Floats, Ints, Table
    from bsplib.profiler.account import Account
    from bsplib.profiler.callgraph import Node
    from bsplib.recording.records import Run, Stack

LEAST_SAMPLES = {"imbalance": 5, "blocked": 2, SYSTEM: 5, PICKLING: 2}
"""Fewer samples name no line, by what is looked for: what is blocked is seen less often."""
_AS_MUCH = 0.9
"""A line is executed for other work, too, if a smaller part of its time is of the loss than this of
that of the line that calls it."""


def line_of(run: Run, inside: InsideLoss) -> LinePlace | Stretch | None:
    """Return where in its supersteps a loss arises; None where it is not known.

    Only of computation that others wait for, and of time blocked: transfers and supersteps are
    where the calls are.
    """
    if not inside.stretches:
        return None
    sampled = None if run.samples is None else _sampled(run, inside)
    return sampled or _stretch(run, inside.stretches)


def _sampled(run: Run, inside: InsideLoss) -> LinePlace | None:
    """Return the innermost line with most of the time of a loss; None if there is none.

    Where that line is executed for other work, too, it is the one that calls it for this.
    """
    excess, spent = inside.excess(), inside.spent
    total = float(excess.clip(min=0).sum())
    if inside.samples < LEAST_SAMPLES[inside.what] or not total:
        return None
    sums: defaultdict[LinePlace, Floats] = defaultdict(lambda: np.zeros(2))
    depths: dict[LinePlace, int] = {}
    for number in np.flatnonzero(spent).tolist():
        places = dict.fromkeys(reversed(list(places_of(run.stacks[number]))))
        for depth, place in enumerate(places):
            sums[place] += excess[number], spent[number]
            depths[place] = max(depths.get(place, 0), depth)
    parts = {place: mine / whole for place, (mine, whole) in sums.items() if mine >= MOST * total}
    least = _AS_MUCH * max(parts.values(), default=0.0)
    most = [place for place, part in parts.items() if part >= least]
    return max(most, key=lambda each: (depths[each], sums[each][0]), default=None)


def _stretch(run: Run, spent: Counter[tuple[int, int]]) -> Stretch | None:
    """Return the stretch with most of the computing, or of the time blocked, of a loss."""
    sums: defaultdict[Stretch, int] = defaultdict(int)
    for (before, after), total in sorted(spent.items()):
        stack = run.stacks[before] if before >= 0 else None
        sums[stretch_of(stack, run.stacks[after])] += total
    best = max(sums, key=lambda stretch: sums[stretch])
    if best.first == best.last or sums[best] < MOST * sum(sums.values()):
        return None
    return best


class InsideLoss:
    """What was executed in the supersteps of a loss, added up window by window."""

    def __init__(self, stacks: int, what: str) -> None:
        self.what = what
        """A part of the account, or the kind of what could be saved; see ``LEAST_SAMPLES``."""
        self.stretches: Counter[tuple[int, int]] = Counter()
        """Nanoseconds by the stacks of the sync before, -1 for none, and of that at the end."""
        self._mine, self.spent = np.zeros((2, stacks))
        """Seconds by stack, from samples: of the loss, and of all processes in the same
        supersteps."""
        self.samples = 0
        """How many of them the loss has."""
        self._rows = self._here = 0

    def add(self, window: LossWindow, rows: Ints) -> None:
        """Take in some records of a window."""
        account, records = window.account, window.account.run.records
        spent = account.computing.blocked if self.what == "blocked" else account.computing.core
        stacks = len(account.run.stacks)
        ends = (window.stack_before[rows] + 1) * stacks + records["stack"][rows]
        found = rank_in_place(ends)
        for key, ns in zip(found.tolist(), np.bincount(ends, spent[rows]).tolist(), strict=True):
            before, after = divmod(key, stacks)
            self.stretches[before - 1, after] += int(ns)
        if window.row_of_sample is not None:
            self._add_samples(window, rows, window.row_of_sample)

    def _add_samples(self, window: LossWindow, rows: Ints, row_of_sample: Ints) -> None:
        account, samples = window.account, window.samples
        belongs = np.zeros(len(account.step), bool)
        belongs[rows] = True
        here = np.zeros(len(account.h_max), bool)
        here[account.step[rows]] = True
        doing = samples["doing"] == _DOING.get(self.what, Doing.COMPUTING)
        spent_s = window.seconds
        if self.what == SYSTEM:
            doing, spent_s = window.system_ns > 0, window.system_ns / 1e9

        def add(seconds: Floats, chosen: Bools) -> int:
            kept = doing & chosen[row_of_sample]
            np.add.at(seconds, samples["stack"][kept], spent_s[kept])
            return int(np.count_nonzero(kept))

        self.samples += add(self._mine, belongs)
        add(self.spent, here[account.step])
        self._rows += len(rows)
        self._here += int(np.count_nonzero(here[account.step[account.halo :]]))

    def excess(self) -> Floats:
        """Return by stack the seconds of the loss; of computing, beyond an even share."""
        if self.what != "imbalance":
            return self._mine
        return self._mine - self._rows / max(self._here, 1) * self.spent


class LossWindow:
    """A window of a run, with what its losses are looked for in, and what was executed in it."""

    def __init__(self, account: Account, origin: Ints, samples: Table | None, record: Ints) -> None:
        """Find the samples of a window.

        Args:
            account: the account of the window.
            origin: of its records without the halo.
            samples: those of the run; None where it was not sampled.
            record: the position of the record of each of them.
        """
        self.account = account
        self.records = records = account.run.records
        run = account.run
        self.step, self.steps = account.step, len(account.h_max)
        """For each record the number of its superstep, and how many there are.

        Supersteps of sub-groups that one partition opened count as one, since the work of one
        process of a sub-group can be given to those of another."""
        if len(run.groups) > 1 and not run.is_interleaved:
            self.step = ranks(run)[0].copy()
            self.steps = len(rank_in_place(self.step))
        sizes = group_columns(run).size[records["group"]] if run.is_interleaved else run.nprocs
        self.size: Ints = np.broadcast_to(np.asarray(sizes), len(self.step))
        """Among how many processes the work of each record can be shared."""
        self.system: Floats = np.zeros(len(self.step))
        """How long each record was in the system while it computed, from samples."""
        self.origin: Ints = np.append(np.full(account.halo, -1), origin)
        self.pid: Ints = records["pid"].astype(np.int64)
        self.row_of_sample: Ints | None = None
        """For each sample of the window the position of its record there."""
        if samples is not None and len(account.position):
            at = np.searchsorted(account.position, record).clip(max=len(account.position) - 1)
            inside = np.flatnonzero(account.position[at] == record)
            self.samples, self.row_of_sample = samples[inside], at[inside] + account.halo
            self.seconds = self.samples["spent"] / 1e9
            is_computing = self.samples["doing"] == Doing.COMPUTING
            self.system_ns = self.samples["system"] * is_computing
            np.add.at(self.system, self.row_of_sample, self.system_ns)
            np.minimum(self.system, account.computing.core, out=self.system)

    @cached_property
    def stack_before(self) -> Ints:
        """The stack of the sync before each record, in its process; -1: there was none."""
        before = self.account.before
        if len(self.account.run.groups) > 1:
            before = preceding(self.pid)
        return np.where(before < 0, -1, self.records["stack"][before])


_DOING = {"blocked": Doing.BLOCKED, PICKLING: Doing.CALL}
"""What a process does, by its samples, while it causes a loss; else it computes. Where it lacks a
core says little: a thread loses its core mostly in calls of the system."""


# -- the stretch of the program in which a superstep was computed, without samples ----------------


class Stretch(NamedTuple):
    """A part of a function, from one line to another."""

    file: str
    function: str
    first: int
    """Line of the call at its beginning; 0: the function begins there."""
    last: int
    """Line of the call at its end."""

    def inside(self, function: Node, line: int) -> str:
        """Return the stretch in words, in a sentence that has named a function and a line."""
        here = (self.file, self.function) == (function.file, function.name)
        if not here or not self.first or self.last != line or self.first > self.last:
            return self.text
        return f"from line {self.first} on"

    @property
    def text(self) -> str:
        """The stretch in words."""
        file = fmt.visible(self.file.rpartition("/")[2])
        function = f"{fmt.visible(self.function)} ({file})" if file else fmt.visible(self.function)
        if not self.first:
            return f"from the beginning to line {self.last} of {function}"
        if self.first == self.last:
            return f"between line {self.first} and the next time it is reached, in {function}"
        if self.first > self.last:
            later = f"line {self.last} of the next iteration"
            return f"between line {self.first} and {later}, in {function}"
        return f"between line {self.first} and line {self.last} of {function}"


def stretch_of(before: Stack | None, after: Stack) -> Stretch:
    """Return the stretch between two syncs.

    Args:
        before: stack of the sync before; None: the stretch begins with the program.
        after: stack of the sync at the end.
    """
    if before is None:
        frame = after[0]
        return Stretch(frame.file, frame.function, 0, frame.line)
    depth = 0
    deepest = min(len(before), len(after)) - 1
    while depth < deepest and before[depth] == after[depth]:
        depth += 1
    if before[depth][:3] != after[depth][:3]:  # one line calls both: its function has the stretch
        depth = max(depth - 1, 0)
    one, other = before[depth], after[depth]
    first = one.line if one[:3] == other[:3] else 0
    return Stretch(other.file, other.function, first, other.line)
