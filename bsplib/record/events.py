"""What a rank of an mpi4py program has recorded: types of rows, and the file that holds them.

A folder ``OUT.ranks`` has one file for each rank. The file is written while the program runs: it
begins with ``MAGIC`` and continues with chunks, each of rows of one kind or of lines of JSON. A
chunk has room for more than it holds, and its head says how much that is, so a file can be
read at any time, also when its rank was killed in the middle of a call. All numbers are in
the order of bytes of the computer that wrote them, which must be little-endian.

**Events** are the calls of MPI by the thread that is recorded, in the order of their begin; they
do not overlap. Calls of MPI inside other calls of MPI are left out. ``bytes_out`` and ``bytes_in``
are the sizes of what the arguments describe, as counts times sizes of types:

=================================  =======================================  ====================
call                               bytes_out                                bytes_in
=================================  =======================================  ====================
sends                              the message; 0 to PROC_NULL              0
receives                           0                                        what arrived
Irecv, Imrecv, starts of those     0                                        0; see DONE
Sendrecv                           the message                              what arrived
Bcast                              root: the buffer                         others: the buffer
Scatter                            root: a block for each process           a block
Gather                             a block                                  root: a block of each
Allgather                          a block                                  a block of each
Alltoall                           a block for each                         a block of each
Reduce                             the vector                               root: the vector
Allreduce, Scan                    the vector                               the vector
Exscan                             the vector                               the vector; 0 at rank 0
Reduce_scatter, and with blocks    the whole vector                         its part of it
Put, Accumulate                    the data                                 0
Get                                0                                        the data
Get_accumulate, Fetch_and_op       the data                                 the same size
all others, also of files          0                                        0
=================================  =======================================  ====================

With MPI_IN_PLACE both sizes are as they would be without it. On an intercommunicator "each" means
each process of the remote group, and ``partner`` of a root is ``ROOT`` where this rank is the
root.

* Alltoallv, Alltoallw and the collectives of neighbourhoods have rows of ``PART``, with the bytes
  by partner.
* Only the calls of windows that end supersteps, move bytes or wait for a target have their window
  and its communicator.
* The ``tag`` of Win_lock is 1 for an exclusive lock, and 0 for a shared one.
* A blocking receive or probe has a row of ``DONE`` with request 0 if its source or its tag were
  open (ANY_SOURCE, ANY_TAG); Sendrecv and Mrecv always have one. A probe has no bytes. mpi4py's
  ``recv`` of objects is Mprobe, where it waits, and Mrecv.
* A start of a persistent request has a new number each time. ``Startall`` is one row
  ``Start`` for each request, of which only the first lasts. A start of a persistent collective
  is a row of the non-blocking one, ``Iallreduce`` for ``Allreduce_init``; one of a v or w variant
  has no rows of ``PART``.
* Tests and probes that found nothing, one soon after the other from the same line, are one row: the
  loop waits. ``object`` of Wait, Test, Request_free and Cancel is the request.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bsplib.record.shim import functions

CALLS = tuple(call.name for call in functions.CALLS)
"""Names of calls as MPI writes them; the number of a call is its position."""

NUMBER = {name: number for number, name in enumerate(CALLS)}

NOBODY, PROC_NULL, ANY_SOURCE, ROOT = -1, -2, -3, -4
"""Values of ``partner`` that are no rank. ROOT: this rank is the root, of an intercommunicator."""

WORLD, SELF, UNKNOWN = 0, 1, -1
"""Numbers of communicators. UNKNOWN: the call has none, or MPI has freed it."""

NOT_READ = -1
"""Value of ``cpu`` and ``ready`` where they were not read."""

READ_AFTER_NS = 30_000
"""The CPU time is read before a call if it was last read longer ago than this, and after a call
that took longer. Of several polls that are one row, the end may have no reading."""

EVENT = np.dtype(
    [
        ("call", np.uint16),
        ("comm", np.int32),
        ("stack", np.int32),
        ("partner", np.int32),
        ("tag", np.int32),
        ("object", np.int64),
        ("bytes_out", np.int64),
        ("bytes_in", np.int64),
        ("enter", np.int64),
        ("leave", np.int64),
        ("cpu", np.int64),
        ("cpu_leave", np.int64),
        ("ready", np.int64),
        ("ready_leave", np.int64),
        ("pickling", np.int64),
        ("pickled_bytes", np.int64),
    ]
)
"""A call: ``object`` is the request that it starts, or its window, 0 for none; ``tag`` is -1 for
any, and for calls without one; times are ns of CLOCK_MONOTONIC. ``cpu`` is the CPU time of the
thread in ns, and ``ready`` the time for which the thread was ready to run and had no core, both at
the begin of the call; ``cpu_leave`` and ``ready_leave`` are the same at its end. ``pickling`` is
for how many ns mpi4py made or read pickles of objects since the call before, and ``pickled_bytes``
the size of those that it made; only the shim says so."""

PART = np.dtype(
    [
        ("event", np.int64),
        ("partner", np.int32),
        ("bytes_out", np.int64),
        ("bytes_in", np.int64),
    ]
)
"""Bytes of a call by partner; ``event`` is the position of the call."""

DONE = np.dtype(
    [
        ("event", np.int64),
        ("request", np.int64),
        ("source", np.int32),
        ("tag", np.int32),
        ("bytes_in", np.int64),
    ]
)
"""A request that a call has completed; ``source`` is NOBODY where nothing was received."""

MAGIC = b"bsprank\x01"
HEAD = struct.Struct(f"<{len(MAGIC)}sB7x")
"""Head of a file: MAGIC, a byte with one of the next three values, and zeros."""
RUNNING, ENDED, STOPPED = range(3)
"""STOPPED: the disk was full, and the program went on without being recorded."""
CHUNK_HEAD = struct.Struct("<4sIQQ")
"""Head of a chunk: mark, kind, room in bytes, used bytes."""
CHUNK_MARK = b"bspc"

LINES, EVENTS, PARTS, DONES = range(4)
"""Kinds of chunks."""

_ROWS = {EVENTS: EVENT, PARTS: PART, DONES: DONE}

Frame = tuple[str, str, int, int, bool]
"""A frame of a call stack: file, qualified name of the function, its first line, the line of the
call, and whether the file belongs to a library."""


@dataclass(frozen=True)
class Communicator:
    """A communicator as one rank sees it.

    Communicators of different ranks are the same if the number of the parent means the same, and
    ``ordinal``, ``members`` and ``remote`` agree; the two sides of an intercommunicator have
    ``members`` and ``remote`` exchanged.
    """

    number: int
    parent: int
    """Number of the communicator that it was made from; UNKNOWN for the first two, for
    intercommunicators, whose two sides can have different ones, and for those of another
    thread."""
    ordinal: int
    """How many communicators this rank made from the parent before this one, counted are only those
    that all processes of the parent make. Negative where not all of them make it
    (Comm_create_group) and where the parent is UNKNOWN: -1 minus the number of earlier
    communicators of this parent with the same processes."""
    members: tuple[int, ...]
    """Ranks in COMM_WORLD, in the order of ranks here; -1 for a process of another world."""
    remote: tuple[int, ...] = ()
    """The same for the remote group of an intercommunicator."""


@dataclass
class RankFile:
    """The content of the file of a rank."""

    header: dict[str, Any]
    """Keys: run (the same text for all ranks of a job; empty where the launcher has told none),
    rank, size, host, mpi (name), library (its version), program, arguments, python, mpi4py, begin
    (ns), started (seconds since 1970); and, unless the rank was killed, samples (list of ticks as
    in ``bsplib.core.sampling``; their stack may be -1), and no_lines (why there are none, or
    "")."""
    events: npt.NDArray[np.void]
    parts: npt.NDArray[np.void]
    dones: npt.NDArray[np.void]
    comms: list[Communicator]
    stacks: list[tuple[Frame, ...]]
    """From the outermost function to the line that called MPI."""
    clocks: list[tuple[int, int, int]] = field(default_factory=list)
    """Samples (own clock in ns, what has to be added for the clock of rank 0, half the
    round trip), at the begin and at the end."""
    end: dict[str, Any] | None = None
    """None: the rank was killed. Else keys: exit (ns), finalize (ns at which Finalize began, or
    None), error (a sentence or "")."""
    state: int = RUNNING
    """RUNNING, also of a rank that was killed, ENDED or STOPPED."""
    open_call: np.void | None = None
    """The call that had not returned when the rank ended, as a row whose ``leave`` is 0."""


def file_name(rank: int) -> str:
    """Return the name of the file of a rank in the folder."""
    return f"rank-{rank:06d}.rec"


def is_rank_file(path: str | os.PathLike[str]) -> bool:
    """Tell whether a file begins as one of a rank.

    Raises:
        OSError: there is no file, or it cannot be read.
    """
    with open(path, "rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def rank_files(folder: Path) -> list[Path]:
    """Return the files of the ranks in a folder, in the order of ranks."""
    return sorted(path for path in folder.glob("rank-*.rec") if is_rank_file(path))


def remove_rank_files(folder: Path) -> None:
    """Remove the files of the ranks, and the folder if there are no other files in it."""
    for path in rank_files(folder):
        path.unlink()
    with contextlib.suppress(OSError):
        folder.rmdir()


def read_rank(path: str | os.PathLike[str]) -> RankFile:
    """Read the file of a rank, also while it is written, or when its rank was killed.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no file of a rank.
    """
    data = Path(path).read_bytes()
    if not data.startswith(MAGIC):
        raise ValueError(f"{path} is no file of a recorded rank")
    found: dict[int, list[bytes]] = {kind: [] for kind in (LINES, *_ROWS)}
    for kind, content in _chunks(data):
        found[kind].append(content)
    events, parts, dones = (_rows(found[kind], _ROWS[kind]) for kind in (EVENTS, PARTS, DONES))
    opened = events[-1] if len(events) and not events["leave"][-1] else None
    complete = len(events) - (opened is not None)
    result = RankFile({}, events[:complete], parts, dones, [], [], open_call=opened)
    result.state = data[len(MAGIC)] if len(data) > len(MAGIC) else RUNNING
    result.parts = parts[parts["event"] < complete]
    result.dones = dones[dones["event"] < complete]
    for before, (name, value) in enumerate(_lines(found[LINES])):
        if name == "stack":
            _take_stack(result, before, *value)
        else:
            _take(result, name, value)
    return result


def _chunks(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield kind and content of the chunks that are there."""
    at = HEAD.size
    while at + CHUNK_HEAD.size <= len(data):
        mark, kind, room, used = CHUNK_HEAD.unpack_from(data, at)
        if mark != CHUNK_MARK or kind not in (LINES, *_ROWS) or used > room:
            return
        at += CHUNK_HEAD.size
        yield kind, data[at : at + used]
        at += room


def _rows(chunks: list[bytes], row: np.dtype[np.void]) -> npt.NDArray[np.void]:
    whole = [chunk[: len(chunk) - len(chunk) % row.itemsize] for chunk in chunks]
    return np.frombuffer(b"".join(whole), row)


def _lines(chunks: list[bytes]) -> Iterator[tuple[str, Any]]:
    for text in b"".join(chunks).split(b"\n"):
        try:
            name, value = json.loads(text)
        except (ValueError, RecursionError):  # the rank was killed while it wrote this, or damage
            name, value = "", None
        yield name, value


def _take_stack(result: RankFile, before: int, number: Any, frames: Any) -> None:
    """Add a call stack. Its number is at most ``before``, the number of lines before it."""
    if type(number) is not int or not 0 <= number <= before:
        raise ValueError(f"line {before + 1} has the number {number!r:.50} of a call stack")
    result.stacks.extend(() for _ in range(number + 1 - len(result.stacks)))
    result.stacks[number] = tuple(tuple(frame) for frame in frames)


def _take(result: RankFile, name: str, value: Any) -> None:
    """Add what a line says."""
    match name:
        case "header":
            result.header.update(value)
        case "comm":
            lists = {key: tuple(each) for key, each in value.items() if isinstance(each, list)}
            result.comms.append(Communicator(**{**value, **lists}))
        case "clock":
            result.clocks.append(tuple(value))
        case "samples" | "no_lines":
            result.header[name] = value
        case "end":
            result.end = value
