"""Runs that are defined by hand, superstep by superstep."""

from __future__ import annotations

from collections import defaultdict
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from bsplib.backends.members import as_members
from bsplib.directions import Direction
from bsplib.profiler.callgraph import build
from bsplib.recording.records import (
    NOT_MEASURED,
    RECORD,
    SAMPLE,
    TRAFFIC,
    UNMEASURED,
    Doing,
    Frame,
    GroupInfo,
    Run,
    Stack,
    root_group,
)
from bsplib.sync_kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bsplib.core.log import Rows
    from bsplib.profiler.callgraph import CallGraph, Cost

Transfer = tuple[int, int, int]


def append_row(rows: Rows, *fields: int) -> None:
    """Append a row with these fields to rows that a process writes."""
    for field, number in enumerate(fields):
        rows.row[field] = number
    rows.append()


class Script:
    """What the processes of a run do, in nanoseconds and bytes.

    A stack is written ``main foo bcast.py/bcast:34``: functions from ``main`` down, where
    file (``app.py``) and line (that of the function + 1) may be left out. Functions in
    a file below ``bsplib/`` are the library's.
    """

    def __init__(self, nprocs: int) -> None:
        self.groups = [root_group(nprocs)]
        self.rows: list[tuple[int, ...]] = []
        self.traffic: list[tuple[int, ...]] = []
        self.stacks: dict[Stack, int] = {}
        self.clock = [0] * nprocs
        self.begun = dict.fromkeys(((0, pid) for pid in range(nprocs)), 0)
        self.sub: defaultdict[tuple[int, int], int] = defaultdict(int)
        self.superstep: defaultdict[int, int] = defaultdict(int)
        self.partitions: defaultdict[int, int] = defaultdict(int)
        self.first_lines: dict[str, int] = {}

    def step(
        self,
        stacks: str | Stack | Sequence[str | Stack | None],
        w: Sequence[int] | int = 0,
        *,
        calls: Sequence[int] | int = 0,
        cpu: Sequence[int] | None = None,
        waits: Sequence[int] | None = None,
        transfer: int = 0,
        puts: Sequence[Transfer] = (),
        gets: Sequence[Transfer] = (),
        group: int = 0,
        kind: Kind = Kind.SYNC,
    ) -> None:
        """Let the processes of a group end a superstep.

        Args:
            stacks: one for all, or one a process; None: it broke off before. A stack may also be
                given by its frames.
            w: computation, for all or by process of the group.
            calls: time in put, get, send.
            cpu: CPU time of the computation by process; not measured if None.
            waits: idle time by process; what a global sync makes of it if None.
            transfer: from the release to the end.
            puts: (from, to, bytes), asked for by the sender.
            gets: (from, to, bytes), asked for by the receiver.
            group: as ``partition`` gives it.
            kind: how the superstep ends.
        """
        pids = self.groups[group].members
        size = len(pids)
        is_for_all = isinstance(stacks, str) or isinstance(stacks[0], Frame)
        stacks = [stacks] * size if is_for_all else stacks
        w, calls = (by if not isinstance(by, int) else [by] * size for by in (w, calls))
        arrive = [self.clock[pid] + w[i] + calls[i] for i, pid in enumerate(pids)]
        cpu = cpu or [NOT_MEASURED] * size
        waits = waits or [0 if kind == Kind.END else max(arrive) - time for time in arrive]
        asked = {}
        for i, (pid, stack) in enumerate(zip(pids, stacks, strict=True)):
            if stack is None:
                continue
            start, released = self.begun[group, pid], arrive[i] + waits[i]
            end = released + transfer
            site = self.stacks.setdefault(self._parse(stack), len(self.stacks))
            asked[pid] = len(self.rows)
            times = (start, arrive[i], released, end, calls[i], self.sub.pop((group, pid), 0))
            place = pid, group, self.superstep[group], kind, site
            self.rows.append((*place, *times, 0, 0, cpu[i], *UNMEASURED[1:]))
            self.clock[pid] = self.begun[group, pid] = end
        for source, target, size_bytes in puts:
            self.traffic.append((asked[source], target, Direction.OUT, size_bytes, 1))
        for source, target, size_bytes in gets:
            self.traffic.append((asked[target], source, Direction.IN, size_bytes, 1))
        self.superstep[group] += 1

    @contextmanager
    def partition(self, *sizes: int, group: int = 0) -> Iterator[list[int]]:
        """Open sub-groups of these sizes, from the group's first process on."""
        members = self.groups[group].members
        ends = [sum(sizes[: index + 1]) for index in range(len(sizes))]
        chosen = [members[end - size : end] for end, size in zip(ends, sizes, strict=True)]
        with self.split(*chosen, group=group) as numbers:
            yield numbers

    @contextmanager
    def split(self, *members: Sequence[int], group: int = 0) -> Iterator[list[int]]:
        """Open sub-groups of these processes of the run."""
        numbers, entered = [], {}
        for index, pids in enumerate(members):
            numbers.append(len(self.groups))
            place = (group, self.superstep[group], self.partitions[group], index)
            self.groups.append(GroupInfo(*place, as_members(pids)))
            for pid in pids:
                entered[pid] = self.begun[numbers[-1], pid] = self.clock[pid]
        self.partitions[group] += 1
        yield numbers
        for pid, time in entered.items():
            self.sub[group, pid] += self.clock[pid] - time

    def run(self, **more: object) -> Run:
        """What was recorded."""
        return Run(
            nprocs=len(self.clock),
            groups=tuple(self.groups),
            stacks=tuple(self.stacks),
            records=np.array(self.rows, RECORD),
            traffic=np.array(self.traffic, TRAFFIC),
            **more,
        )

    def reading(self) -> Reading:
        """The call graph of it."""
        return Reading(build(self.run()))

    def _parse(self, text: str | Stack) -> Stack:
        if not isinstance(text, str):
            return text
        frames = []
        for call in text.split():
            named, _, line = call.partition(":")
            file, _, function = named.rpartition("/")
            first = self.first_lines.setdefault(function, 10 * len(self.first_lines) + 1)
            library = file.startswith("bsplib/")
            place = (file or "app.py", function, first, int(line or first + 1))
            frames.append(Frame(*place, library))
        return tuple(frames)


class Reading:
    """A call graph by names: a node is ``foo`` or ``app.py line 34``, an edge ``main > foo``."""

    def __init__(self, callgraph: CallGraph) -> None:
        self.callgraph = callgraph
        nodes = callgraph.graph.nodes(data="node")
        self.names = {name: node.name for name, node in nodes}
        self.ids = {node.name: name for name, node in nodes}

    def cost(self, place: str) -> Cost:
        """Cost of a node."""
        cost: Cost = self.callgraph.graph.nodes[self.ids[place]]["cost"]
        return cost

    def ns(self, place: str, metric: str = "comp") -> tuple[float, ...]:
        """Maximum, average and minimum in the script's own unit, as exact as it."""
        summary = self.cost(place)[metric]
        values = (summary.maximum, summary.average, summary.minimum)
        return tuple(round(value * 1e9, 6) for value in values)

    def pie_ns(self, place: str, metric: str = "comp") -> list[float]:
        """The pie in the script's own unit."""
        return [round(value * 1e9, 6) for value in self.cost(place)[metric].pie]

    def edges(self) -> set[str]:
        return {f"{self.names[a]} > {self.names[b]}" for a, b in self.callgraph.graph.edges}

    def chain(self, ids: Sequence[str]) -> str:
        """A path by names."""
        return " > ".join(self.names[name] for name in ids)


def sampled(run: Run, *samples: tuple[int, int, Stack, Doing], system_ns: int = 0) -> Run:
    """A run with samples: process, number of its superstep, stack and what it does.

    Each is taken in the middle of the computing part of its superstep, and stands for 1 ms, in
    which the process was in the system for ``system_ns``.
    """
    rows, stacks = [], dict.fromkeys(run.stacks)
    for pid, number, stack, doing in samples:
        record = run.records[run.records["pid"] == pid][number]
        time = int(record["start"] + record["arrive"]) // 2
        stacks[stack] = None
        rows.append((pid, time, list(stacks).index(stack), doing, 1_000_000, system_ns))
    return replace(run, stacks=tuple(stacks), samples=np.array(sorted(rows), SAMPLE))
