"""What a run leaves behind: one record for each superstep that a process ended.

These are the types that the recorder fills, the trace file stores and the
profiler reads; nothing here does I/O. All pids are those of the root group, all
times are nanoseconds since the barrier before ``main``, all sizes are bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsplib.backends.members import Members, as_members


class Direction(IntEnum):
    """Which way the payload of a traffic row went."""

    OUT = 0
    """From the process that asked to its partner (put, send)."""
    IN = 1
    """To the process that asked from its partner (get)."""


class Frame(NamedTuple):
    """One call on the stack of a sync."""

    file: str
    function: str
    """Qualified name, such as ``Solver.step``."""
    first_line: int
    """Where the function begins."""
    line: int
    """Where in it the next call, or for the last frame the sync, stands."""
    library: bool = False
    """The function is bsplib's own, such as a collective, and not the program's."""


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
    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody calls
    """Which sub-group of that partition or split."""
    members: Members
    """Its processes, in root numbering, by their pid in the group."""

    @property
    def size(self) -> int:
        """Number of its processes."""
        return len(self.members)

    def to_json(self) -> list[Any]:
        """Return it in values of JSON; members that are evenly spaced take three numbers."""
        members: Any = self.members
        if isinstance(members, range):
            members = {"first": members[0], "count": len(members), "step": members.step}
        return [*self[:4], members]

    @classmethod
    def of_json(cls, row: list[Any]) -> GroupInfo:
        """Return the group that :meth:`to_json` described."""
        parent, superstep, ordinal, index, members = row
        if isinstance(members, dict):
            first, step = members["first"], members["step"]
            members = range(first, first + step * members["count"], step)
        return cls(parent, superstep, ordinal, index, as_members(members))


def root_group(nprocs: int) -> GroupInfo:
    """Return the group of all processes of a run."""
    return GroupInfo(-1, 0, 0, 0, range(nprocs))


RECORD = np.dtype(
    [
        ("pid", np.int32),
        ("group", np.int32),  # position in Run.groups
        ("superstep", np.int64),  # counted from 0 in its group
        ("kind", np.uint8),  # a Kind
        ("stack", np.int32),  # position in Run.stacks
        ("start", np.int64),  # ns: the superstep began here
        ("arrive", np.int64),  # ns: sync was called
        ("released", np.int64),  # ns: latest arrival among those it waited for
        ("end", np.int64),  # ns: sync returned
        ("comm_calls", np.int64),  # ns inside put, get, send and their kin
        ("sub", np.int64),  # ns spent in sub-groups
        ("cpu", np.int64),  # ns of CPU time from start to arrive without sub-groups; see below
        ("self_bytes", np.int64),  # payload to itself, no part of h
        ("self_messages", np.int64),
    ]
)
"""A superstep of a process. For kind END ``arrive``, ``released`` and ``end`` agree.
``cpu`` is ``NO_CPU`` where CPU time was not measured: it is measured only where the run
has more processes than cores."""

MAX_NUMBER = 2**53
"""Greatest time, size or number in a record: floats hold all up to it."""

NO_CPU = -1
"""The field ``cpu`` of a record whose CPU time was not measured."""

TRAFFIC = np.dtype(
    [
        ("record", np.int64),  # position in Run.records of the process that asked
        ("partner", np.int32),  # never the process itself
        ("direction", np.uint8),  # a Direction
        ("bytes", np.int64),  # payload alone: no headers, no tags
        ("messages", np.int64),
    ]
)
"""What a process exchanged with one partner in one superstep, as it asked for it."""


@dataclass(frozen=True)
class Run:
    """One call of ``bsplib.run`` as recorded."""

    nprocs: int
    groups: tuple[GroupInfo, ...]
    """The root comes first, parents before their children."""
    stacks: tuple[Stack, ...]
    records: NDArray[np.void]
    """dtype RECORD; the records of one process are in the order it ended them."""
    traffic: NDArray[np.void]
    """dtype TRAFFIC."""
    complete: bool = True
    """False where the run ended in an error."""
    meta: dict[str, Any] = field(default_factory=dict)
    """What can be said in JSON: program, arguments, backend, host, cores, versions,
    started (ISO 8601), error, machine; cpu_measured: whether records have CPU time."""


@dataclass(frozen=True)
class Trace:
    """The runs of one program, in order."""

    runs: tuple[Run, ...]
