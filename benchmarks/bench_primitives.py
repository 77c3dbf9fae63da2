"""The costs of supersteps and transfers, compared with peers and the limits of the computer.

``python -m benchmarks.bench_primitives`` writes ``benchmarks/results/primitives.json``.
Where p is greater than 1 and the title names no other pattern, every process puts to the
next one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

import bsplib
from benchmarks import peers, programs
from benchmarks.command import Benchmark, run
from benchmarks.goals import Goal
from benchmarks.harness import Case, Section
from benchmarks.mpi import ALL, MPICH, OPEN_MPI, Mpi, MpiError, Ranks

KIB = 2**10
MIB = 2**20

_COPY = "np.copyto between two barriers"
_READ_COPY = "np.copyto and a barrier"
_TWO_COPIES = "np.copyto into an outbox and out of it"


def _name(mpi: Mpi, what: str) -> str:
    return f"{mpi.title}, {what}"


def _mpi_cases(
    stack: ExitStack, nprocs: int, what: str, program: str, **arguments: Any
) -> list[Case]:
    """Return a case for every MPI that is installed; print which cannot be started."""
    cases = []
    for mpi in filter(Mpi.is_here, ALL):
        try:
            ranks = stack.enter_context(Ranks(mpi, nprocs))
        except MpiError as error:
            print(f"without {mpi.name}: {error}")
            continue
        cases.append(Case(_name(mpi, what), partial(ranks.sample, program, **arguments)))
    return cases


class _Machine:
    """Processes of bsplib that take samples on request."""

    def __init__(self, stack: ExitStack, nprocs: int) -> None:
        self._pool = stack.enter_context(bsplib.Pool(nprocs))

    def sample(self, program: Callable[..., float], *args: Any, **kwargs: Any) -> float:
        """Run a program; return the seconds of process 0."""
        seconds: float = self._pool.run(program, *args, **kwargs)[0]
        return seconds


def _empty(nprocs: int, count: int, goals: tuple[Goal, ...], stack: ExitStack) -> Sequence[Case]:
    """Compare a sync that delivers nothing with barriers and fences."""
    limit, library = "spin barrier", "multiprocessing.Barrier"
    ours = _Machine(stack, nprocs)
    return [
        Case(limit, partial(peers.spin_barrier, nprocs, count)),
        Case(library, partial(peers.library_barrier, nprocs, count // 10)),
        *_mpi_cases(stack, nprocs, "Fence", "fences", count=count),
        Case(
            "sync",
            partial(ours.sample, programs.supersteps, count),
            against=(*(_name(mpi, "Fence") for mpi in ALL), library, limit),
            goals=goals,
        ),
    ]


def _put(
    nprocs: int,
    nbytes: int,
    count: int,
    goals: Sequence[Goal],
    unbuffered_goals: Sequence[Goal],
    stack: ExitStack,
) -> Sequence[Case]:
    """Compare a put and a sync with a copy between two barriers, and with Put and Fence."""
    theirs = tuple(_name(mpi, "Put and Fence") for mpi in ALL)
    ours = _Machine(stack, nprocs)
    put = partial(ours.sample, programs.puts, count, nbytes)
    return [
        Case(_COPY, partial(peers.copies_between_barriers, nprocs, nbytes, count)),
        *_mpi_cases(stack, nprocs, "Put and Fence", "puts", count=count, nbytes=nbytes),
        Case("put, sync", put, against=(*theirs, _COPY), goals=tuple(goals)),
        Case(
            "hpput, sync",
            partial(put, unbuffered=True),
            against=(*theirs, _COPY),
            goals=tuple(unbuffered_goals),
        ),
    ]


def _large_put(
    nbytes: int,
    count: int,
    goals: Sequence[Goal],
    unbuffered_goals: Sequence[Goal],
    stack: ExitStack,
) -> Sequence[Case]:
    """Compare transfers of what was just written and is read at once, see rereading.py."""
    what = "Put and Fence"
    against = (*(_name(mpi, what) for mpi in ALL), _READ_COPY)
    ours = _Machine(stack, 2)
    put = partial(ours.sample, programs.puts_that_are_read, count, nbytes)
    return [
        Case(_READ_COPY, partial(peers.copies_that_are_read, 2, nbytes, count)),
        Case(_TWO_COPIES, partial(peers.copies_by_an_outbox, 2, nbytes, count), (_READ_COPY,)),
        *_mpi_cases(stack, 2, what, "puts_that_are_read", count=count, nbytes=nbytes),
        Case("put, sync", put, (*against, _TWO_COPIES), tuple(goals)),
        Case("hpput, sync", partial(put, unbuffered=True), against, tuple(unbuffered_goals)),
    ]


def _many_puts(number: int, stack: ExitStack) -> Sequence[Case]:
    """Compare many puts of a word, by offset and into views, with Put and with one put_at."""
    what, at_once = "Put of x[i:i+1]", "one put_at of them all"
    theirs = tuple(_name(mpi, what) for mpi in ALL)
    goals = (Goal.times(1, _name(OPEN_MPI, what)), Goal.seconds(0.5e-6))
    ours = _Machine(stack, 2)
    return [
        *_mpi_cases(stack, 2, what, "small_puts", count=30, number=number),
        Case(at_once, partial(ours.sample, programs.small_puts_at, 50, number)),
        *(
            Case(name, partial(ours.sample, program, 20, number), (*theirs, at_once), goals)
            for name, program in (
                ("put with offset=i", programs.small_puts),
                ("put into x[i:i+1]", programs.small_puts_into_views),
            )
        ),
    ]


def _random_puts(number: int, stack: ExitStack) -> Sequence[Case]:
    """Compare one call for many words with np.put of as many words."""
    limit = "np.put"
    ours = _Machine(stack, 2)
    return [
        Case(limit, partial(peers.random_words, 2, 2, number)),
        Case(
            "put_at, sync",
            partial(ours.sample, programs.random_puts, 2, number),
            against=(limit,),
            goals=(Goal.seconds(20e-9),),
        ),
    ]


def _messages(number: int, stack: ExitStack) -> Sequence[Case]:
    """Compare many messages with those of a pipe."""
    pipe = "multiprocessing.Pipe, send_bytes and recv_bytes"
    ours = _Machine(stack, 2)
    return [
        Case(pipe, partial(peers.pipe_messages, 10, number)),
        Case(
            "send, sync, messages()",
            partial(ours.sample, programs.small_messages, 20, number),
            against=(pipe,),
            goals=(Goal.seconds(1e-6),),
        ),
    ]


def _virtual(_: ExitStack) -> Sequence[Case]:
    """Measure a sync of virtual processors, divided by their number."""

    def sample(nprocs: int) -> float:
        every = bsplib.run(programs.supersteps, 20, nprocs=nprocs, backend="sim")
        seconds: float = every[0] / nprocs
        return seconds

    return [
        Case("sync, p = 16", partial(sample, 16)),
        Case("sync, p = 512", partial(sample, 512), goals=(Goal.seconds(1e-6),)),
    ]


def _under_both(what: str) -> tuple[Goal, ...]:
    return tuple(Goal.times(1, _name(mpi, what)) for mpi in (OPEN_MPI, MPICH))


def _copies(times: float) -> Goal:
    return Goal.times(times, _READ_COPY)


_FENCE = Goal.times(1, _name(OPEN_MPI, "Fence"))
_PUT_FENCE = Goal.times(1, _name(OPEN_MPI, "Put and Fence"))
_BOTH = _under_both("Put and Fence")

SECTIONS = (
    *(
        Section(f"Empty superstep, p = {p}", "superstep", partial(_empty, p, count, goals))
        for p, count, goals in (
            (2, 5000, (_FENCE, Goal.times(0.01, "multiprocessing.Barrier"))),
            (4, 1000, _under_both("Fence")),
            (16, 100, _under_both("Fence")),
        )
    ),
    *(
        Section(f"Put of 8 B, p = {p}", "superstep", partial(_put, p, 8, count, goals, ()))
        for p, count, goals in ((2, 2000, (_PUT_FENCE,)), (4, 500, _BOTH), (16, 100, _BOTH))
    ),
    *(
        Section(
            f"Put of {title}, rewritten and read, p = 2",
            "superstep",
            partial(_large_put, nbytes, count, *goals),
        )
        for title, nbytes, count, goals in (
            ("64 KiB", 64 * KIB, 1000, ((), (Goal.times(0.8, _name(OPEN_MPI, "Put and Fence")),))),
            ("1 MiB", MIB, 200, ((_copies(1.1),), (_copies(1.05),))),
            ("16 MiB", 16 * MIB, 100, ((_copies(1.4),), (_copies(1.05),))),
        )
    ),
    Section("1000 puts of 8 B from process 0 to 1", "put", partial(_many_puts, 1000)),
    Section("10^6 puts to random places by each of 2", "word", partial(_random_puts, 10**6)),
    Section("1000 messages of 8 B from process 0 to 1", "message", partial(_messages, 1000)),
    Section("Empty superstep of a virtual processor", "superstep", _virtual, 5),
)

BENCHMARK = Benchmark("primitives", SECTIONS)

if __name__ == "__main__":
    run([BENCHMARK])
