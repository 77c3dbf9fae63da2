"""The actions of a run as a time-independent trace, which SimGrid replays on a platform.

Each process computes, exchanges its messages of the superstep, and meets the others at a
barrier::

    0 init
    0 compute 1500000           # operations: 1 for each ns, so a host of 1 Gf is as fast as here
    0 isend 1 3 8000            # to process 1, in step 3, bytes
    0 irecv 2 3 4000
    0 waitall
    0 barrier
    0 finalize

All that a process sends to another in a superstep is one message. An oblivious superstep has no
barrier, and the barrier of a sub-group is a dissemination: in round k each member sends a byte
to the one 2^k further on, since the format has barriers of all processes only.

Source: SimGrid 3.32 and later, the actions of its replay tool for SMPI (``smpirun -replay``).
"""

from __future__ import annotations

import io
import itertools
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, BinaryIO

from bsplib.profiler.timeline import Timeline
from bsplib.sync_kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bsplib.profiler.export.table import Request
    from bsplib.profiler.timeline import Step

Messages = dict[int, list[tuple[int, int]]]
"""Key: position of a record. Values: the partners of its process, and the bytes to or from each."""


def write(request: Request, file: BinaryIO) -> None:
    """Write the actions of all processes of a run into one file."""
    text = io.TextIOWrapper(file, encoding="ascii", newline="\n", write_through=True)
    text.writelines(f"{action}\n" for action in _actions(request))
    text.detach()


def _actions(request: Request) -> Iterator[str]:
    timeline = Timeline(request.profile.run)
    pids = range(request.profile.run.nprocs)
    sent, come = _messages(timeline)
    tags = itertools.count()
    yield from (f"{pid} init" for pid in pids)
    for step in timeline.steps:
        tag = next(tags)
        for row in range(step.start, step.stop):
            pid = int(timeline.pid[row])
            if count := round(timeline.ahead_s[row] * 1e9):
                yield f"{pid} compute {count}"
            yield from _exchange(pid, tag, sent.get(row, ()), come.get(row, ()))
        if step.kind == Kind.SYNC:
            yield from _barrier(timeline, step, tags)
    yield from (f"{pid} finalize" for pid in pids)


def _exchange(
    pid: int, tag: int, sent: Sequence[tuple[int, int]], come: Sequence[tuple[int, int]]
) -> Iterator[str]:
    """Yield the messages of a process in a superstep."""
    yield from (f"{pid} irecv {source} {tag} {nbytes}" for source, nbytes in come)
    yield from (f"{pid} isend {to} {tag} {nbytes}" for to, nbytes in sent)
    if sent or come:
        yield f"{pid} waitall"


def _barrier(timeline: Timeline, step: Step, tags: Iterator[int]) -> Iterator[str]:
    """Yield the barrier at the end of a superstep of a group."""
    members = timeline.run.groups[step.group].members
    if step.group == 0:
        yield from (f"{pid} barrier" for pid in members)
        return
    for turn in range((len(members) - 1).bit_length()):
        tag = next(tags)
        for place, pid in enumerate(members):
            to, source = (members[(place + way * 2**turn) % len(members)] for way in (1, -1))
            yield from _exchange(pid, tag, [(to, 1)], [(source, 1)])


def _messages(timeline: Timeline) -> tuple[Messages, Messages]:
    """Return what each record sent, and what came to it."""
    total = Counter[tuple[int, int]]()
    links = timeline.link_from, timeline.link_to, timeline.link_bytes
    for source, to, nbytes in zip(*(each.tolist() for each in links), strict=True):
        total[source, to] += nbytes
    sent, come = (defaultdict[int, list[tuple[int, int]]](list) for _ in range(2))
    for (source, to), nbytes in total.items():
        sent[source].append((int(timeline.pid[to]), nbytes))
        come[to].append((int(timeline.pid[source]), nbytes))
    return sent, come
