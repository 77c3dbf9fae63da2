"""The record of a run: one row for each superstep that a process ended.

The recorder fills these types, the trace file stores them, and the profiler reads them;
nothing here does I/O. All pids are those of the root group, all times are nanoseconds
since the barrier before ``main``, all sizes are bytes.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsplib.backends.members import Members
from bsplib.recording.tables import RunTable, TableField


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


MPI_CALL = "mpi4py"
"""File of a frame that is a call of MPI by a program of mpi4py: the last one of its stack."""

Stack = tuple[Frame, ...]
"""From ``main`` down to the function that called sync."""

MAX_TEXT = 4096
"""Greatest number of characters of the name of a file or function."""
MAX_STACK = 1000
"""Greatest number of frames of a stack."""
_CUT = "[...]"


def shortened(stack: Stack, most: int = MAX_STACK) -> Stack:
    """Return a stack that is short enough for a trace.

    If a stack is too deep, its middle is replaced by one frame that says how many calls
    are left out. If a name is too long, its middle is left out, too.

    Args:
        stack: from ``main`` to the sync.
        most: greatest number of frames, at least 3.
    """
    if len(stack) > most:
        outer, inner = (most - 1) // 2, most // 2
        left_out = Frame("", f"[{len(stack) - outer - inner} calls left out]", 0, 0, False)
        stack = (*stack[:outer], left_out, *stack[len(stack) - inner :])
    if any(len(frame.file) > MAX_TEXT or len(frame.function) > MAX_TEXT for frame in stack):
        stack = tuple(
            frame._replace(file=_cut(frame.file), function=_cut(frame.function)) for frame in stack
        )
    return stack


def _cut(text: str, most: int = MAX_TEXT) -> str:
    if len(text) <= most:
        return text
    half = (most - len(_CUT)) // 2
    return text[:half] + _CUT + text[-half:]


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


def root_group(nprocs: int) -> GroupInfo:
    """Return the group of all processes of a run."""
    return GroupInfo(-1, 0, 0, 0, range(nprocs))


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
        if not isinstance(name, str) or len(name) > MAX_TEXT:
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
        # ns inside put, get, send and similar primitives; at the end of a sub-group: to leave it
        ("comm_calls", np.int64),
        ("sub", np.int64),  # ns spent in sub-groups
        ("self_bytes", np.int64),  # payload to itself, not counted in h
        ("self_messages", np.int64),
        # Of the computing part: from start to arrive, without comm_calls and sub.
        ("comp_cpu", np.int64),  # ns of CPU time, and of waiting for threads of the process
        ("comp_ready", np.int64),  # ns in which the thread could run and had no core
        # Of the communicating part: comm_calls, and from arrive to end.
        ("comm_cpu", np.int64),
        ("comm_ready", np.int64),
        ("comp_minor", np.int64),  # page faults without input
        ("comp_major", np.int64),  # page faults that waited for input
        ("comm_minor", np.int64),
        ("comm_major", np.int64),
        ("recording", np.int64),  # ns before start that the recorder took; see below
        # ns in which objects were pickled to be sent, or read from their pickles; see below
        ("pickling", np.int64),
        ("pickled_bytes", np.int64),  # of the pickles that were made
    ]
)
"""A superstep of a process. For kind END ``arrive``, ``released`` and ``end`` are equal.

CPU time, time ready without a core and page faults are ``NOT_MEASURED`` where the system has no
source of them (``Run.measured`` says why). Where CPU time and time ready are both measured, what
is left of a part's elapsed time is the time in which the process was blocked.

``recording`` is the time from the end of the superstep before, in whichever group, to ``start``,
in which the recorder wrote, and now and then compressed, the records. It lies in no superstep of
its group; where the superstep before was in a sub-group, it is part of ``sub`` of the parent.
It also has the time in which the recorder read the system when the process arrived: ``start`` is
later by as much, and ``arrive`` is when the process went on, unless a sub-group was inside the
superstep.

``pickling`` is a part of the communicating part; in a program of mpi4py, which pickles before it
calls MPI, of the computing part."""

MAX_NUMBER = 2**sys.float_info.mant_dig
"""Greatest time, size or number in a record: floats represent all integers up to it."""

NOT_MEASURED = -1
"""Value of the fields of ``FROM_SYSTEM`` where the system has no source of them."""

CHARGED = "the program charges the time of its computation"
"""Why CPU time was not measured of a virtual processor whose clock advances by charges alone."""

PAGE_FAULTS = ("comp_minor", "comp_major", "comm_minor", "comm_major")
"""The fields of a record that are numbers of page faults."""

FROM_SYSTEM = ("comp_cpu", "comp_ready", "comm_cpu", "comm_ready", *PAGE_FAULTS)
"""The fields of a record that come from the operating system."""

UNMEASURED = (*(NOT_MEASURED for _ in FROM_SYSTEM), 0, 0, 0)
"""The last fields of a record of which nothing of this is known, from ``FROM_SYSTEM`` on."""

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


SAMPLE = np.dtype(
    [
        ("pid", np.int32),
        ("time", np.int64),  # ns
        ("stack", np.int32),  # position in Run.stacks
        ("doing", np.uint8),  # a Doing
        ("spent", np.int64),  # ns for which it stands
        ("system", np.int64),  # those of them in the system, such as for page faults
    ]
)
"""A look at what a process was executing. The samples of one process are in order of time."""


WAIT = np.dtype(
    [
        ("record", np.int64),  # position in Run.records
        ("behind", np.int64),  # the record that is to blame, of another process
    ]
)
"""Whom a record waited for in the end, where that is not the last arrival of its superstep.

In programs of mpi4py processes wait at single messages too, and for one that waited itself.
The rows are in the order of records, each of which has one at most."""


class Doing(IntEnum):
    """What a process did when it was sampled."""

    COMPUTING = 0
    """It had a core, or its thread waited while other threads of the process had one."""
    CALL = 1
    """It was inside put, get, send or a similar primitive."""
    WAITING = 2
    """It was inside a sync."""
    BLOCKED = 3
    """It was computing by its place, but its thread slept, or waited for a disk, a lock or another
    program; also without a core, where the system does not tell that time."""
    NO_CORE = 4
    """It was computing by its place, but its thread was ready without a core."""


class Lifetime(NamedTuple):
    """When a run began and ended, as its caller and its processes saw it.

    Nanoseconds on the clock of the records, whose time 0 is the barrier before ``main``: what was
    before it is negative. None: the caller, or the process, did not get there.
    """

    called: int
    """The caller called run."""
    started: tuple[int | None, ...]
    """By pid: the process could begin to set up."""
    ready: tuple[int | None, ...]
    """By pid: it arrived at the barrier before ``main``."""
    finished: tuple[int | None, ...]
    """By pid: ``main`` returned."""
    collected: int | None
    """The results of all processes were with the caller."""
    returned: int | None
    """The records were written; what follows is to name the file and to return."""


@dataclass(frozen=True)
class Run:
    """One call of ``bsplib.run`` as recorded."""

    nprocs: int
    groups: tuple[GroupInfo, ...]
    """The root group is first, and each group is after its parent."""
    stacks: tuple[Stack, ...]
    records: TableField = TableField()  # noqa: RUF009  # a descriptor, not a default
    """dtype RECORD; the records of one process are in the order in which they ended. Those of a
    trace that was read are in memory only after they were asked for; see :meth:`table`."""
    traffic: TableField = TableField()  # noqa: RUF009
    """dtype TRAFFIC."""
    complete: bool = True
    """False where the run ended in an error."""
    meta: dict[str, Any] = field(default_factory=dict)
    """Values for JSON: program, arguments (of the command line), parameters (of main, by name:
    those that are numbers, and of arrays the number of elements), folder (the working
    directory), backend, host, cores, versions, core (``bsplib.core.BUILD``), started
    (ISO 8601), error, machine; machine_given: whether the program named the machine;
    cpu_measured: whether records have CPU time; own_threads_ns: for how long the computation of
    each process waited for threads of its own, where that was measured; imports: for each process
    the modules that it imported inside ``main``, as ``found`` of
    :class:`bsplib.recording.import_clock.ImportClock` has them, where it imported any; blocks: for
    each process what blocks of experiments took, as :class:`bsplib.experiments.blocks.Passages`
    has them, where it passed any; result_bytes: of the pickles of all that ``main`` returned;
    absent: see :attr:`absent`; repeat: see :attr:`repeat`.
    Where the processes may be on several hosts: hosts (names by pid), cores (of all hosts
    together) and clock_bounds_s (by host: the greatest possible error of its times against
    those of process 0, in seconds)."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """The digests of source files, by their names in the stacks (``bsplib.recording.sources``)."""
    lifetime: Lifetime | None = None
    """When the run began and ended; None where that is not known."""
    steal_ns: int = NOT_MEASURED
    """For how long the cores of the caller's host were taken by other virtual machines, summed
    over the cores, during the run; ``NOT_MEASURED`` where the system does not tell."""
    measured: Mapping[str, str] = field(default_factory=dict)
    """Why ``cpu``, ``ready``, ``faults`` or ``lines`` was not measured; empty text where it was."""
    samples: NDArray[np.void] | None = None
    """dtype SAMPLE; None where the run was not sampled."""
    waits: NDArray[np.void] | None = None
    """dtype WAIT; None where each record waited for the last arrival of its superstep."""
    part_of: tuple[Run, int, int] | None = field(default=None, repr=False, compare=False)
    """Of a part of a run: the whole run, and the numbers of its first and its last superstep."""
    derived: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    """What the profiler computed from the records, by name: they do not change after that."""

    def table(self, name: str) -> RunTable:
        """Return ``records`` or ``traffic`` in chunks, which does not read all of it."""
        field: TableField = type(self).__dict__[name]
        return field.table(self)

    @property
    def absent(self) -> tuple[int, ...]:
        """Pids of processes whose records are missing: their host was lost with them."""
        return tuple(self.meta.get("absent", ()))

    @property
    def repeat(self) -> tuple[int, int] | None:
        """Which repeat it is, from 0 on, and of how many; None: the run was not repeated."""
        repeat = self.meta.get("repeat")
        return None if repeat is None else (repeat[0], repeat[1])

    @property
    def is_interleaved(self) -> bool:
        """Whether processes take turns in the sub-groups of one superstep, as with mpi4py.

        The supersteps of these are numbered together then, in an order in which they can be.
        """
        return self.waits is not None


def waits_among(run: Run, kept: NDArray[np.bool_]) -> NDArray[np.void] | None:
    """Return the waits of a run of which only some records are kept, with their new positions."""
    if run.waits is None:
        return None
    position = np.cumsum(kept) - 1
    both = kept[run.waits["record"]] & kept[run.waits["behind"]]
    waits: NDArray[np.void] = run.waits[both].copy()
    for name in ("record", "behind"):
        waits[name] = position[waits[name]]
    return waits


@dataclass(frozen=True)
class Trace:
    """The runs of one program, in order."""

    runs: tuple[Run, ...]
