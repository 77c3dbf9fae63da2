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
from benchmarks import compiled, peers, programs
from benchmarks.command import Benchmark, run
from benchmarks.goals import Goal
from benchmarks.harness import Case, Section
from benchmarks.mpi import MpiError, Ranks
from tests.mpi_installations import ALL, OPEN_MPI, Mpi

KIB = 2**10
MIB = 2**20

_COPY = "np.copyto between two barriers"
_READ_COPY = "np.copyto and a barrier"
_TWO_COPIES = "np.copyto into an outbox and out of it"
_C_TWO_COPIES, _C_COPY = "C, two copies and two barriers", "C, a copy and a barrier"
"""The least that a put, and an hpput, can do: two_copies.c."""


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


class _Sampler:
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
    ours = _Sampler(stack, nprocs)
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
    ours = _Sampler(stack, nprocs)
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
    least = _least_cases(nbytes, count)
    ours = _Sampler(stack, 2)
    put = partial(ours.sample, programs.puts_that_are_read, count, nbytes)
    return [
        Case(_READ_COPY, partial(peers.copies_that_are_read, 2, nbytes, count)),
        Case(_TWO_COPIES, partial(peers.copies_by_an_outbox, 2, nbytes, count), (_READ_COPY,)),
        *least,
        *_mpi_cases(stack, 2, what, "puts_that_are_read", count=count, nbytes=nbytes),
        Case("put, sync", put, (*against, _TWO_COPIES), tuple(goals)),
        Case(
            "hpput, sync",
            partial(put, unbuffered=True),
            (*against, *(case.name for case in least)),
            tuple(unbuffered_goals),
        ),
    ]


def _least_cases(nbytes: int, count: int) -> list[Case]:
    """Return the cases in C that do the least possible, where they can be compiled."""
    if compiled.compiler() is None:
        print("without the programs in C: there is no compiler")
        return []
    return [
        Case(name, partial(compiled.sample, "two_copies", nbytes, count, copies))
        for name, copies in ((_C_TWO_COPIES, 2), (_C_COPY, 1))
    ]


def _large_get(nbytes: int, count: int, stack: ExitStack) -> Sequence[Case]:
    """Compare hpget with get, of what was just written and is read at once."""
    get = partial(_Sampler(stack, 2).sample, programs.gets_that_are_read, count, nbytes)
    goal = Goal.times(1.0, "get, sync")
    return [
        Case("get, sync", get),
        Case("hpget, sync", partial(get, unbuffered=True), goals=(goal,)),
    ]


def _large_message(nbytes: int, count: int, stack: ExitStack) -> Sequence[Case]:
    """Compare a message with one of MPI, of what was just written and is read at once."""
    what = "Isend and Irecv"
    least = _least_cases(nbytes, count)
    sample = partial(_Sampler(stack, 2).sample, programs.messages_that_are_read, count, nbytes)
    against = (*(_name(mpi, what) for mpi in ALL), *(case.name for case in least))
    return [
        *least,
        *_mpi_cases(stack, 2, what, "exchanges_that_are_read", count=count, nbytes=nbytes),
        Case("send, sync, move", sample, against, (_of_open_mpi(1.1, what),)),
    ]


def _large_puts_to_all(nbytes: int, count: int, stack: ExitStack) -> Sequence[Case]:
    """Compare puts to all processes with Alltoall."""
    what = "Alltoall"
    sample = partial(_Sampler(stack, 2).sample, programs.puts_to_all_that_are_read, count, nbytes)
    against = tuple(_name(mpi, what) for mpi in ALL)
    return [
        *_mpi_cases(stack, 2, what, "alltoalls_that_are_read", count=count, nbytes=nbytes),
        Case("puts to all, sync", sample, against, (_of_open_mpi(1.1, what),)),
    ]


def _many_puts(number: int, stack: ExitStack) -> Sequence[Case]:
    """Compare many puts of a word, by offset and into views, with Put and with one put_at."""
    what, at_once = "Put of x[i:i+1]", "one put_at of them all"
    theirs = tuple(_name(mpi, what) for mpi in ALL)
    ours = _Sampler(stack, 2)
    return [
        *_mpi_cases(stack, 2, what, "small_puts", count=30, number=number),
        Case(at_once, partial(ours.sample, programs.small_puts_at, 50, number)),
        *(
            Case(
                name,
                partial(ours.sample, program, 20, number),
                (*theirs, at_once),
                (_of_open_mpi(times, what),),
            )
            for name, program, times in (
                ("put with offset=i", programs.small_puts, 0.35),
                ("put into x[i:i+1]", programs.small_puts_into_views, 0.6),
            )
        ),
    ]


def _forms(count: int, stack: ExitStack) -> Sequence[Case]:
    """Compare small puts of other forms with one of 8 B."""
    ours = _Sampler(stack, 2)
    first = "array of 8 B"
    return [
        Case(first, partial(ours.sample, programs.puts_of_forms, count, "array")),
        *(
            Case(
                title,
                partial(ours.sample, programs.puts_of_forms, count, form),
                (first,),
                (Goal.times(1.3, first),),
            )
            for title, form in (
                ("list of four numbers", "list"),
                ("column of 8 numbers", "column"),
                ("the same column by at=", "at"),
                ("array of 1 KiB", "1 KiB"),
            )
        ),
    ]


def _random_puts(number: int, stack: ExitStack) -> Sequence[Case]:
    """Compare one call for many words with np.put of as many words."""
    limit = "np.put"
    ours = _Sampler(stack, 2)
    return [
        Case(limit, partial(peers.random_words, 2, 2, number)),
        Case(
            "put_at, sync",
            partial(ours.sample, programs.random_puts, 2, number),
            against=(limit,),
            goals=(Goal.seconds(12e-9),),
        ),
    ]


def _messages(number: int, stack: ExitStack) -> Sequence[Case]:
    """Compare many messages with those of a pipe."""
    pipe = "multiprocessing.Pipe, send_bytes and recv_bytes"
    ours = _Sampler(stack, 2)
    return [
        Case(pipe, partial(peers.pipe_messages, 10, number)),
        Case(
            "send, sync, messages()",
            partial(ours.sample, programs.small_messages, 20, number),
            against=(pipe,),
            goals=(Goal.seconds(1e-6),),
        ),
    ]


def _get_and_message(count: int, stack: ExitStack) -> Sequence[Case]:
    """Measure a superstep with a get of 8 B, and one with a message of 8 B that is read."""
    ours = _Sampler(stack, 2)
    goals = (Goal.seconds(1.2e-6),)
    return [
        Case("get, sync", partial(ours.sample, programs.gets, count), goals=goals),
        Case("send, sync, messages()", partial(ours.sample, programs.messages, count), goals=goals),
    ]


def _virtual(_: ExitStack) -> Sequence[Case]:
    """Measure a sync of virtual processors, divided by their number."""

    def sample(nprocs: int) -> float:
        every = bsplib.run(programs.supersteps, 100, nprocs=nprocs, backend="sim")
        seconds: float = every[0] / nprocs
        return seconds

    def charged(nprocs: int) -> float:
        every = bsplib.run(programs.charged_supersteps, 100, nprocs=nprocs, backend="sim")
        seconds: float = every[0] / nprocs
        return seconds

    clock = "two reads of the CPU clock of a thread"
    return [
        Case(clock, peers.two_reads_of_the_cpu_clock),
        Case("sync, p = 16", partial(sample, 16)),
        Case("sync, p = 512", partial(sample, 512), against=(clock,)),
        Case("sync after a charge, p = 512", partial(charged, 512), goals=(Goal.seconds(0.6e-6),)),
    ]


def _of_open_mpi(times: float, what: str) -> Goal:
    return Goal.times(times, _name(OPEN_MPI, what))


def _copies(times: float) -> Goal:
    return Goal.times(times, _READ_COPY)


_LEAST_PUT = Goal.times(1.15, _C_TWO_COPIES)


SECTIONS = (
    *(
        Section(f"Empty superstep, p = {p}", "superstep", partial(_empty, p, count, goals))
        for p, count, goals in (
            (2, 5000, (_of_open_mpi(0.7, "Fence"), Goal.times(0.01, "multiprocessing.Barrier"))),
            (4, 1000, (_of_open_mpi(0.5, "Fence"),)),
            (16, 100, (_of_open_mpi(0.3, "Fence"),)),
        )
    ),
    *(
        Section(
            f"Put of 8 B, p = {p}",
            "superstep",
            partial(_put, p, 8, count, (_of_open_mpi(times, "Put and Fence"),), ()),
        )
        for p, count, times in ((2, 2000, 0.6), (4, 500, 0.5), (16, 100, 0.2))
    ),
    *(
        Section(
            f"Put of {title}, rewritten and read, p = 2",
            "superstep",
            partial(_large_put, nbytes, count, *goals),
        )
        for title, nbytes, count, goals in (
            ("64 KiB", 64 * KIB, 1000, ((_LEAST_PUT,), (_of_open_mpi(0.8, "Put and Fence"),))),
            (
                "1 MiB",
                MIB,
                200,
                (
                    (_copies(1.1), _LEAST_PUT),
                    (_copies(1.05), _of_open_mpi(1.1, "Put and Fence")),
                ),
            ),
            ("8 MiB", 8 * MIB, 100, ((_LEAST_PUT,), (_of_open_mpi(1.1, "Put and Fence"),))),
            ("16 MiB", 16 * MIB, 100, ((_copies(1.4),), (_copies(1.05),))),
        )
    ),
    *(
        Section(
            f"{what} of {title}, rewritten and read, p = 2",
            "superstep",
            partial(prepare, nbytes, count),
        )
        for what, prepare, title, nbytes, count in (
            ("Get", _large_get, "64 KiB", 64 * KIB, 1000),
            ("Get", _large_get, "1 MiB", MIB, 200),
            ("Message", _large_message, "64 KiB", 64 * KIB, 1000),
            ("Message", _large_message, "8 MiB", 8 * MIB, 100),
            ("Puts to all", _large_puts_to_all, "64 KiB", 64 * KIB, 1000),
        )
    ),
    Section("Get or message of 8 B, p = 2", "superstep", partial(_get_and_message, 2000)),
    Section("1000 puts of 8 B from process 0 to 1", "put", partial(_many_puts, 1000)),
    Section("Small puts of several forms, p = 2", "superstep", partial(_forms, 1000)),
    Section("10^6 puts to random places by each of 2", "word", partial(_random_puts, 10**6)),
    Section("1000 messages of 8 B from process 0 to 1", "message", partial(_messages, 1000)),
    Section("Empty superstep of a virtual processor", "superstep", _virtual, 5),
)

BENCHMARK = Benchmark("primitives", SECTIONS)

if __name__ == "__main__":
    run([BENCHMARK])
