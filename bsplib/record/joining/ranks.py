"""Reads the files of all ranks of a program, and puts their calls on one clock and in one table.

The files may be damaged or made by somebody else: numbers are checked here, once, so that what
follows need not.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsplib.core.sampling import BLOCKED, NO_CORE, ON_CORE
from bsplib.errors import TraceError
from bsplib.record.events import (
    CALLS,
    DONE,
    NOT_READ,
    PART,
    PROC_NULL,
    ROOT,
    SELF,
    STOPPED,
    WORLD,
    Communicator,
    RankFile,
    rank_files,
    read_rank,
)
from bsplib.record.joining.calls import FIRST_COLLECTIVE, ROLE, SHOWN, Role
from bsplib.recording.records import MAX_NUMBER, MPI_CALL, SAMPLE, Frame, Stack
from bsplib.recording.trace_document import MAX_NPROCS

Ints = NDArray[np.int64]

NO_PROCESS = -1
"""Pid of a process that is none of the program, or of a partner that was not there."""
_DAMAGE = (ValueError, TypeError, KeyError, AttributeError, OverflowError, struct.error)
"""Errors of a reader that trusts the content of the file."""


@dataclass(frozen=True)
class CommonCommunicator:
    """The processes of a communicator, as all its ranks agree on them."""

    members: tuple[int, ...]
    """Pids in the order of ranks; of an intercommunicator those of both groups."""
    family: tuple[int, int]
    """Communicators of one family were made side by side by one call, such as Split."""


@dataclass
class Rank:
    """What is known of a process apart from its calls; times are those of the trace."""

    header: dict[str, Any]
    end: dict[str, Any] | None
    begin: int
    """When the program began."""
    ready: int
    """When MPI was initialised: its first superstep begins."""
    until: int
    """When its last superstep ended: at Finalize, or with what is known last."""
    exit: int
    bound: int
    """Greatest possible error of its clock."""
    stuck: str = ""
    """The call in which it was killed, if that is known."""
    stopped: bool = False
    """The disk was full, and the program went on."""
    samples: NDArray[np.void] | None = None
    """dtype SAMPLE, with what the thread did in place of a Doing; None where it was not sampled."""

    def shift(self, zero: int) -> None:
        """Count times from a moment on."""
        self.begin -= zero
        self.ready -= zero
        self.until -= zero
        self.exit -= zero
        if self.samples is not None:
            self.samples["time"] -= zero


@dataclass
class MpiCalls:
    """The calls of all processes, by pid and in the order in which they were made.

    All arrays but ``first`` have one element for each call.
    """

    nprocs: int
    ranks: dict[int, Rank]
    comms: list[CommonCommunicator]
    stacks: list[Stack]
    first: Ints
    """Position of the first call of each process, and the number of all calls."""
    pid: Ints
    role: Ints
    call: Ints
    comm: Ints
    """Position in ``comms``; -1 where it is not known."""
    stack: Ints
    partner: Ints
    """Pid of the partner or root; ``NO_PROCESS`` if there is none."""
    tag: Ints
    request: Ints
    out: Ints
    into: Ints
    enter: Ints
    leave: Ints
    cpu: tuple[Ints, Ints]
    """CPU time at the begin and at the end; ``NOT_READ`` where it was not read."""
    ready: tuple[Ints, Ints]
    pickling: Ints
    """For how long pickles were made or read since the call before."""
    pickled_bytes: Ints
    parts: NDArray[np.void] = field(repr=False)
    """dtype PART; its events are positions of calls here, its partners pids."""
    dones: NDArray[np.void] = field(repr=False)
    """dtype DONE; its events are positions of calls here, its sources pids."""
    origin: Ints
    """For each row of ``dones`` the position of the call that started its request, or -1."""


def read_calls(folder: Path) -> MpiCalls:
    """Read what all ranks have recorded.

    Raises:
        TraceError: there are no files of ranks, they do not belong together, or a number in them
            cannot be true.
    """
    files = _files(folder)
    sizes = {_whole(file.header, "size", 1, MAX_NPROCS) for file in files.values()}
    if len(sizes) > 1 or len({str(file.header.get("run")) for file in files.values()}) > 1:
        raise TraceError(f"{folder} has files of different runs; join the files of one run")
    nprocs = sizes.pop()
    if max(files) >= nprocs:
        raise TraceError(f"{folder} has a file of rank {max(files)} of {nprocs} processes")
    clocks = {pid: _clock(file) for pid, file in files.items()}
    zero = min(_moment(file, clocks[pid]) for pid, file in files.items())
    named = _CommonNumbers()
    tables = [  # what was read of a rank is needed no longer than until its table is there
        _table(pid, files.pop(pid), _since(clocks[pid], zero), named, nprocs)
        for pid in sorted(files)
    ]
    return _together(nprocs, tables, named)


def _files(folder: Path) -> dict[int, RankFile]:
    """Return the files of ranks, by rank."""
    try:
        paths = rank_files(folder)
        if not paths:
            raise TraceError(f"{folder} has no files of ranks; give the folder that ends in .ranks")
        read = {path: read_rank(path) for path in paths}
    except OSError as error:
        raise TraceError(f"{error.filename or folder}: {error.strerror or error}") from error
    except _DAMAGE as error:
        raise TraceError(f"{folder}: a file of a rank is damaged: {error}") from error
    files: dict[int, RankFile] = {}
    for path, file in read.items():
        if not file.header:  # it was killed before it could write
            continue
        rank = _whole(file.header, "rank", 0, MAX_NPROCS - 1)
        if rank in files:
            raise TraceError(f"{path} is a second file of rank {rank}")
        files[rank] = file
    if not files:
        raise TraceError(f"{folder} has files of ranks, but nothing was recorded in them")
    return files


def _whole(values: dict[str, Any], name: str, low: int, high: int) -> int:
    value = values.get(name)
    if type(value) is not int or not low <= value <= high:
        raise TraceError(f"a file of a rank has {name} {value!r}, no whole number in {low}..{high}")
    return value


# -- clocks ---------------------------------------------------------------------------------------

_Clock = Callable[[Ints], Ints]


def _clock(file: RankFile) -> _Clock:
    """Return what tells the clock of rank 0 from that of a rank, by its samples of both."""
    samples = sorted(sample for sample in file.clocks if len(sample) == 3)
    if any(type(value) is not int for sample in samples for value in sample):
        raise TraceError(f"rank {file.header['rank']} has samples of its clock that are no numbers")
    if not samples:
        return lambda moments: moments
    own = np.array([sample[0] for sample in samples], np.float64)
    add = np.array([sample[1] for sample in samples], np.float64)
    # Relative to the first sample, since floats do not have the digits of a clock.
    base, offset = samples[0][0], samples[0][1]

    def aligned(moments: Ints) -> Ints:
        since = (moments - base).astype(np.float64)
        more = np.interp(since, own - own[0], add - add[0])
        moved: Ints = moments + offset + np.rint(more).astype(np.int64)
        return moved

    return aligned


def _since(clock: _Clock, zero: int) -> _Clock:
    """Return a clock that counts from a moment on."""
    return lambda moments: clock(moments) - zero


def _moment(file: RankFile, clock: _Clock) -> int:
    """Return the first moment of a rank on the common clock."""
    begin = _whole(file.header, "begin", 0, 2**62)
    first = file.events["enter"][:1].tolist()
    return int(clock(np.array([min([begin, *first])], np.int64))[0])


# -- one rank -------------------------------------------------------------------------------------


class _CommonNumbers:
    """The communicators and the stacks of all ranks, each with one number."""

    def __init__(self) -> None:
        self.comms: dict[Any, int] = {}
        self.processes: list[CommonCommunicator] = []
        self.stacks: dict[Stack, int] = {}

    def stack(self, frames: Sequence[Any], call: str, program: str) -> int:
        """Return the number of a stack, below which a call of MPI was made."""
        whole = tuple(_frame(each) for each in frames) or (Frame(program, "<module>", 1, 1),)
        if call:
            whole = (*whole, Frame(MPI_CALL, call, 0, 0, library=True))
        return self.stacks.setdefault(whole, len(self.stacks))

    def comm(self, rank: int, comm: Communicator, parent: int, nprocs: int) -> int:
        """Return the number of a communicator."""
        if any(type(pid) is not int or not -1 <= pid < nprocs for pid in _all_of(comm)):
            raise TraceError(f"rank {rank} has a communicator of processes {_all_of(comm)!r:.100}")
        key: Any = (parent, comm.ordinal, comm.members)
        if comm.number == WORLD:
            key = "world"
        elif comm.number == SELF:
            key = ("self", rank)
        elif comm.remote:
            key = ("inter", comm.ordinal, *sorted((comm.members, comm.remote)))
        if key not in self.comms:
            self.comms[key] = len(self.comms)
            members = tuple(dict.fromkeys(pid for pid in _all_of(comm) if pid >= 0))
            # Those that not all processes of the parent make are not made side by side.
            own = -2 - len(self.processes)
            family = (parent if comm.ordinal >= 0 else own, comm.ordinal)
            self.processes.append(CommonCommunicator(members, family))
        return self.comms[key]


def _all_of(comm: Communicator) -> tuple[int, ...]:
    return (*comm.members, *comm.remote)


def _frame(frame: Any) -> Frame:
    file, function, first_line, line, library = frame
    lines = first_line, line
    if not all(isinstance(text, str) for text in (file, function)) or any(
        type(number) is not int or not 0 <= number < 2**31 for number in lines
    ):
        raise TraceError(f"a stack has the frame {frame!r:.200}, which cannot be one")
    return Frame(file, function, first_line, line, bool(library))


class _Table:
    """The calls of one rank with the numbers that they have in all."""

    def __init__(self, pid: int, rank: Rank, columns: dict[str, Ints]) -> None:
        self.pid = pid
        self.rank = rank
        self.columns = columns
        self.parts: NDArray[np.void] = np.zeros(0, PART)
        self.dones: NDArray[np.void] = np.zeros(0, DONE)
        self.origin: Ints = np.zeros(0, np.int64)


def _table(pid: int, file: RankFile, clock: _Clock, named: _CommonNumbers, nprocs: int) -> _Table:
    events = file.events
    try:
        _check(pid, file)
        times = clock(np.stack([events["enter"], events["leave"]], axis=1).ravel())
        # Where a clock was corrected backwards, time stands still.
        times = np.maximum.accumulate(times).reshape(-1, 2)
        comms = _communicators(pid, file, named, nprocs)
        rank = _rank_of(file, clock, times)
        rank.samples = _samples(pid, file, clock, named)
        table = _Table(pid, rank, _columns(file, times, comms, named))
        _add_rows(table, file, comms)
    except _DAMAGE as error:
        raise TraceError(f"the file of rank {pid} is damaged: {error}") from error
    return table


def _samples(
    pid: int, file: RankFile, clock: _Clock, named: _CommonNumbers
) -> NDArray[np.void] | None:
    if (listed := file.header.get("samples")) is None:
        return None
    time, spent, system, state, stack = np.array(listed, np.int64).reshape(-1, 5).T
    kept = (stack >= 0) & (stack < len(file.stacks)) & np.isin(state, (ON_CORE, BLOCKED, NO_CORE))
    kept &= (system >= 0) & (system <= spent) & (spent <= MAX_NUMBER)
    number = {
        each: named.stack(file.stacks[each], "", str(file.header.get("program", "")))
        for each in set(stack[kept].tolist())
    }
    rows = np.zeros(int(np.count_nonzero(kept)), SAMPLE)
    rows["pid"], rows["time"] = pid, clock(time[kept])
    rows["doing"], rows["spent"], rows["system"] = state[kept], spent[kept], system[kept]
    rows["stack"] = [number[each] for each in stack[kept].tolist()]
    return rows


def _check(pid: int, file: RankFile) -> None:
    """Check that the numbers of a rank can be true."""
    events, count = file.events, len(file.events)
    long = events["leave"].astype(np.float64) - events["enter"]
    faults = {
        "a call that MPI does not have": events["call"] >= len(CALLS),
        "a call that ends before it begins": long < 0,
        "an impossible time": (events["enter"] < 0) | (events["leave"] > 2**62),
        "a stack that is not there": (events["stack"] < -1) | (events["stack"] >= len(file.stacks)),
        "an impossible size": np.any(
            [
                (events[name] < 0) | (events[name] > MAX_NUMBER)
                for name in ("bytes_out", "bytes_in", "pickling", "pickled_bytes")
            ],
            axis=0,
        ),
        "a negative time of a core": np.any(
            [events[name] < NOT_READ for name in ("cpu", "cpu_leave", "ready", "ready_leave")],
            axis=0,
        ),
    }
    for fault, wrong in faults.items():
        if wrong.any():
            raise TraceError(f"rank {pid} has in row {int(wrong.argmax())} {fault}")
    for rows, sizes in ((file.parts, ("bytes_out", "bytes_in")), (file.dones, ("bytes_in",))):
        wrong = (rows["event"] < 0) | (rows["event"] >= count)
        for name in sizes:
            wrong |= (rows[name] < 0) | (rows[name] > MAX_NUMBER)
        if wrong.any():
            raise TraceError(f"rank {pid} has an impossible row {rows[int(wrong.argmax())]}")


class _Communicators:
    """The communicators of one rank: their numbers in all, and pids by ranks in them.

    A program can have thousands, so what is asked for calls is looked up for all of them at once.

    Args:
        numbers: of the rank's own, rising.
        common: their numbers in all.
        partners: the pids of each in the order of ranks.
    """

    def __init__(
        self, numbers: list[int], common: list[int], partners: list[tuple[int, ...]]
    ) -> None:
        self._numbers = np.array(numbers, np.int64)
        self._common = np.array(common, np.int64)
        self._size = np.array([len(each) for each in partners], np.int64)
        self._first = np.cumsum(self._size) - self._size
        self._pids = np.array([*chain.from_iterable(partners), NO_PROCESS], np.int64)

    def _at(self, numbers: Ints) -> tuple[Ints, NDArray[np.bool_]]:
        """Return the positions of some communicators, and which are known."""
        at = np.searchsorted(self._numbers, numbers).clip(max=len(self._numbers) - 1)
        return at, self._numbers[at] == numbers

    def common(self, numbers: Ints) -> Ints:
        """Return the numbers in all for the rank's own; -1 where they are not known."""
        at, known = self._at(numbers)
        return np.where(known, self._common[at], -1)

    def pids(self, numbers: Ints, ranks: Ints) -> Ints:
        """Return pids for ranks in communicators, ``NO_PROCESS`` where there is no such rank."""
        at, known = self._at(numbers)
        known &= (ranks >= 0) & (ranks < self._size[at])
        found: Ints = self._pids[np.where(known, self._first[at] + ranks, -1)]
        return found


def _communicators(pid: int, file: RankFile, named: _CommonNumbers, nprocs: int) -> _Communicators:
    """Return the communicators of a rank, by its own numbers."""
    known = {comm.number: comm for comm in file.comms}
    known.setdefault(WORLD, Communicator(WORLD, -1, 0, tuple(range(nprocs))))
    known.setdefault(SELF, Communicator(SELF, -1, 1, (pid,)))
    common: dict[int, int] = {}
    for number, comm in sorted(known.items()):  # a parent has a lower number
        common[number] = named.comm(pid, comm, common.get(comm.parent, -1), nprocs)
    partners = [known[number].remote or known[number].members for number in common]
    return _Communicators([*common], [*common.values()], partners)


def _rank_of(file: RankFile, clock: _Clock, times: Ints) -> Rank:
    """Return when a process began and ended, on the clock of the trace."""

    def at(moment: int) -> int:
        return int(clock(np.array([moment], np.int64))[0])

    role = ROLE[file.events["call"]]
    begin = max(at(file.header["begin"]), 0)
    initialised = np.flatnonzero(role == Role.INIT)
    ready = max(begin, int(times[initialised[0], 1]) if len(initialised) else begin)
    if len(times):
        ready = min(ready, int(times[role != Role.INIT, 0].min(initial=ready)))
    last = max(ready, int(times[-1, 1]) if len(times) else 0)
    stuck = ""
    if file.open_call is not None and file.open_call["call"] < len(CALLS):
        last = max(last, at(int(file.open_call["enter"])))
        stuck = SHOWN[int(file.open_call["call"])]
    end = file.end
    until = leave = last
    if end is not None:
        leave = max(last, at(_whole(end, "exit", 0, 2**62)))
        finalized = end.get("finalize")
        until = leave if finalized is None else max(ready, at(_whole(end, "finalize", 0, 2**62)))
        before = times[role != Role.FINALIZE, 1] if len(times) else times[:, 1]
        until = max(until, int(before.max(initial=ready)))
        leave = max(leave, until)
    bounds = [abs(sample[2]) for sample in file.clocks]
    bound = max(bounds, default=0)
    is_full = file.state == STOPPED
    return Rank(file.header, end, begin, ready, until, leave, bound, stuck, is_full)


def _columns(
    file: RankFile, times: Ints, comms: _Communicators, named: _CommonNumbers
) -> dict[str, Ints]:
    events = file.events
    whole = {name: events[name].astype(np.int64) for name in events.dtype.names or ()}
    partner = comms.pids(whole["comm"], whole["partner"])
    rank = int(file.header["rank"])
    partner[whole["partner"] == ROOT] = rank
    return {
        "pid": np.full(len(events), rank, np.int64),
        "role": ROLE[whole["call"]],
        "call": whole["call"],
        "comm": comms.common(whole["comm"]),
        "stack": _stacks(file, whole, named),
        "partner": partner,
        "tag": whole["tag"],
        "request": whole["object"],
        "out": np.where(whole["partner"] == PROC_NULL, 0, whole["bytes_out"]),
        "into": whole["bytes_in"],
        "enter": times[:, 0],
        "leave": times[:, 1],
        **{name: whole[name] for name in ("cpu", "cpu_leave", "ready", "ready_leave")},
        **{name: whole[name] for name in ("pickling", "pickled_bytes")},
    }


def _stacks(file: RankFile, whole: dict[str, Ints], named: _CommonNumbers) -> Ints:
    """Return the numbers of the stacks that end with the calls."""
    program = str(file.header.get("program", ""))
    keys = (whole["stack"] + 1) * len(CALLS) + whole["call"]
    distinct, inverse = np.unique(keys, return_inverse=True)
    numbers = []
    for key in distinct.tolist():
        stack, call = divmod(key, len(CALLS))
        frames = file.stacks[stack - 1] if stack else ()
        numbers.append(named.stack(frames, SHOWN[call], program))
    of_call: Ints = np.array(numbers, np.int64)[inverse.reshape(-1)]
    return of_call


def _add_rows(table: _Table, file: RankFile, comms: _Communicators) -> None:
    """Add the rows by partner and the completed requests of a rank."""
    comm_of_event = file.events["comm"].astype(np.int64)
    table.origin = _origins(file, file.dones)
    table.parts, table.dones = file.parts.copy(), file.dones.copy()
    started = np.where(table.origin >= 0, table.origin, file.dones["event"])
    for rows, name, by in (
        (table.parts, "partner", file.parts["event"]),
        (table.dones, "source", started),
    ):
        rows[name] = comms.pids(comm_of_event[by], rows[name].astype(np.int64))


def _origins(file: RankFile, dones: NDArray[np.void]) -> Ints:
    """Return the calls that started the completed requests; -1 where none is known."""
    role = ROLE[file.events["call"]]
    starts = np.isin(role, [Role.SEND_START, Role.RECEIVE_START, Role.BOTH_START, Role.START])
    starts |= (role >= FIRST_COLLECTIVE) | (role == Role.PUT) | (role == Role.GET)
    at = np.flatnonzero(starts & (file.events["object"] != 0))
    if len(at) == 0:
        return np.full(len(dones), -1, np.int64)
    at = at[np.argsort(file.events["object"][at], kind="stable")]
    requests = file.events["object"][at]
    found = np.searchsorted(requests, dones["request"]).clip(max=len(at) - 1)
    known = (requests[found] == dones["request"]) & (dones["request"] != 0)
    return np.where(known, at[found], -1)


def _together(nprocs: int, tables: list[_Table], named: _CommonNumbers) -> MpiCalls:
    """Put the tables of the ranks one after the other."""
    counts = np.zeros(nprocs + 1, np.int64)
    for table in tables:
        counts[table.pid + 1] = len(table.columns["pid"])
    first = np.cumsum(counts)
    for table in tables:
        base = first[table.pid]
        table.parts["event"] += base
        table.dones["event"] += base
        table.origin = np.where(table.origin >= 0, table.origin + base, -1)
    column = {
        name: np.concatenate([table.columns[name] for table in tables])
        for name in tables[0].columns
    }
    zero = min(table.rank.ready for table in tables)
    for table in tables:
        table.rank.shift(zero)
    column["enter"] -= zero
    column["leave"] -= zero
    cpu = column.pop("cpu"), column.pop("cpu_leave")
    ready = column.pop("ready"), column.pop("ready_leave")
    return MpiCalls(
        nprocs=nprocs,
        ranks={table.pid: table.rank for table in tables},
        comms=named.processes,
        stacks=list(named.stacks),
        first=first,
        cpu=cpu,
        ready=ready,
        parts=np.concatenate([table.parts for table in tables]),
        dones=np.concatenate([table.dones for table in tables]),
        origin=np.concatenate([table.origin for table in tables]),
        **column,
    )


# -- numbers for equal things, by sorting ---------------------------------------------------------


def distinct_numbers(rows: Ints) -> Ints:
    """Number the distinct columns of some rows."""
    if rows.shape[1] == 0:
        return np.zeros(0, np.int64)
    order = np.lexsort(rows)
    changed = np.zeros(rows.shape[1] - 1, bool)
    for row in rows:  # not at once: there can be millions of columns
        ordered = row[order]
        changed |= ordered[1:] != ordered[:-1]
    numbers = np.empty(rows.shape[1], np.int64)
    numbers[order] = np.append(0, np.cumsum(changed))
    return numbers


def nth_of_key(keys: Ints) -> Ints:
    """Return which of the elements with its key each element is, from 0 on."""
    order = np.argsort(keys, kind="stable")
    begins = np.flatnonzero(np.diff(keys[order], prepend=-1))
    lengths = np.diff(np.append(begins, len(keys)))
    nth = np.empty(len(keys), np.int64)
    nth[order] = np.arange(len(keys)) - np.repeat(begins, lengths)
    return nth
