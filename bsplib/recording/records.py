"""The record of a run: one row for each superstep that a process ended.

The recorder fills these types, the trace file stores them, and the profiler reads them;
nothing here does I/O. All pids are those of the root group, all times are nanoseconds
since the barrier before ``main``, all sizes are bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsplib.backends.members import Members, as_members


class Direction(IntEnum):
    """In which direction the payload of a traffic row was transferred."""

    OUT = 0
    """From the process that called the primitive to its partner (put, send)."""
    IN = 1
    """From the partner to the process that called the primitive (get)."""


class Frame(NamedTuple):
    """One call on the stack of a sync."""

    file: str
    function: str
    """Qualified name, such as ``Solver.step``."""
    first_line: int
    """Line on which the function begins."""
    line: int
    """Line of the call that leads to the next frame; in the last frame, of the sync."""
    library: bool = False
    """Whether the function is part of bsplib, such as a collective, and not of the program."""


Stack = tuple[Frame, ...]
"""From ``main`` down to the function that called sync."""


class GroupInfo(NamedTuple):
    """One group of processes: the root, or a sub-group of a partition or split."""

    parent: int
    """Position of the parent in the run's list of groups; -1 for the root."""
    superstep: int
    """Superstep of the parent in which the sub-group was opened."""
    ordinal: int
    """Which partition or split of the parent it was, counted over the whole run."""
    index: int  # type: ignore[assignment]  # hides tuple.index, which is not used
    """Which sub-group of that partition or split."""
    members: Members
    """Pids in the root group of its processes, in the order of their pids in this group."""

    @property
    def size(self) -> int:
        """Number of its processes."""
        return len(self.members)

    def to_json(self) -> list[Any]:
        """Return it in values of JSON; a range of members is stored as three numbers."""
        members: Any = self.members
        if isinstance(members, range):
            members = {"first": members[0], "count": len(members), "step": members.step}
        return [*self[:4], members]

    @classmethod
    def of_json(cls, row: list[Any]) -> GroupInfo:
        """Return the group for a value of :meth:`to_json`."""
        parent, superstep, ordinal, index, members = row
        if isinstance(members, dict):
            first, step = members["first"], members["step"]
            members = range(first, first + step * members["count"], step)
        return cls(parent, superstep, ordinal, index, as_members(members))


def root_group(nprocs: int) -> GroupInfo:
    """Return the group of all processes of a run."""
    return GroupInfo(-1, 0, 0, 0, range(nprocs))


_MAX_NAME = 1000


class Host(NamedTuple):
    """The host of a process, where the processes of a run may be on several."""

    name: str
    bound_ns: int
    """Greatest possible error of the times of the process, against those of process 0."""
    cores: int
    """How many cores the process may use."""

    @classmethod
    def of_json(cls, row: list[Any]) -> Host:
        """Return the host for a list of its fields.

        Raises:
            ValueError: the fields cannot be those of a host.
        """
        name, *numbers = row
        if not isinstance(name, str) or len(name) > _MAX_NAME:
            raise ValueError("the host of the process has no name")
        if any(type(number) is not int or not 0 <= number <= MAX_NUMBER for number in numbers):
            raise ValueError("the bound of its clock, or its number of cores, is no such number")
        bound_ns, cores = numbers
        return cls(name, bound_ns, cores)


RECORD = np.dtype(
    [
        ("pid", np.int32),
        ("group", np.int32),  # position in Run.groups
        ("superstep", np.int64),  # counted from 0 in its group
        ("kind", np.uint8),  # a Kind
        ("stack", np.int32),  # position in Run.stacks
        ("start", np.int64),  # ns: the superstep began here
        ("arrive", np.int64),  # ns: sync was called
        ("released", np.int64),  # ns: latest arrival among the processes it waited for
        ("end", np.int64),  # ns: sync returned
        ("comm_calls", np.int64),  # ns inside put, get, send and similar primitives
        ("sub", np.int64),  # ns spent in sub-groups
        ("cpu", np.int64),  # ns of CPU time from start to arrive without sub-groups; see below
        ("self_bytes", np.int64),  # payload to itself, not counted in h
        ("self_messages", np.int64),
    ]
)
"""A superstep of a process. For kind END ``arrive``, ``released`` and ``end`` are equal.
``cpu`` is ``NO_CPU`` where CPU time was not measured: it is measured only where the run
has more processes than cores."""

MAX_NUMBER = 2**53
"""Greatest time, size or number in a record: floats represent all integers up to it."""

NO_CPU = -1
"""Value of the field ``cpu`` where CPU time was not measured."""

TRAFFIC = np.dtype(
    [
        ("record", np.int64),  # position in Run.records, of the process that called
        ("partner", np.int32),  # never the process itself
        ("direction", np.uint8),  # a Direction
        ("bytes", np.int64),  # payload only: no headers, no tags
        ("messages", np.int64),
    ]
)
"""What one process transferred by its calls, to or from one partner, in one superstep."""


class RunHead(NamedTuple):
    """What a trace says of a run, apart from its records; the fields are those of ``Run``."""

    nprocs: int
    complete: bool
    meta: dict[str, Any]


@dataclass(frozen=True)
class Run:
    """One call of ``bsplib.run`` as recorded."""

    nprocs: int
    groups: tuple[GroupInfo, ...]
    """The root group is first, and each group is after its parent."""
    stacks: tuple[Stack, ...]
    records: NDArray[np.void]
    """dtype RECORD; the records of one process are in the order in which they ended."""
    traffic: NDArray[np.void]
    """dtype TRAFFIC."""
    complete: bool = True
    """False where the run ended in an error."""
    meta: dict[str, Any] = field(default_factory=dict)
    """Values for JSON: program, arguments (of the command line), parameters (of main, by name:
    those that are numbers, and of arrays the number of elements), folder (the working
    directory), backend, host, cores, versions, core (``bsplib.core.BUILD``), started
    (ISO 8601), error, machine; machine_given: whether the program named the machine;
    cpu_measured: whether records have CPU time; absent: see :attr:`absent`.
    Where the processes may be on several hosts: hosts (names by pid), cores (of all hosts
    together) and clock_bounds_s (by host: the greatest possible error of its times against
    those of process 0, in seconds)."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """The digests of source files, by their names in the stacks (``bsplib.recording.sources``);
    traces of earlier versions have none."""
    derived: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    """What the profiler computed from the records, by name; only if they are read-only."""

    @property
    def absent(self) -> tuple[int, ...]:
        """Pids of processes whose records are missing: their host was lost with them."""
        return tuple(self.meta.get("absent", ()))


@dataclass(frozen=True)
class Trace:
    """The runs of one program, in order."""

    runs: tuple[Run, ...]
