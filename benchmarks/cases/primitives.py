"""The costs of supersteps and transfers, compared with peers and the limits of the computer.

Where p is greater than 1 and the title names no other pattern, every process puts to the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

import bsplib
from benchmarks import peers, programs
from benchmarks.measure import Case, Section
from benchmarks.mpi import started

KIB, MIB = 2**10, 2**20


def mpi_cases(
    stack: ExitStack, nprocs: int, what: str, program: str, **arguments: Any
) -> list[Case]:
    """Return a case for every MPI that is installed."""
    return [
        Case(f"{title}, {what}", partial(sample, program, **arguments))
        for title, sample in started(stack, nprocs)
    ]


def sampler(stack: ExitStack, nprocs: int) -> Callable[..., float]:
    """Start processes of bsplib; return a function that runs a program and returns its seconds."""
    pool = stack.enter_context(bsplib.Pool(nprocs))
    return lambda *args, **kwargs: pool.run(*args, **kwargs)[0]


def _empty(nprocs: int, count: int, stack: ExitStack) -> Sequence[Case]:
    """Compare a sync that delivers nothing with barriers and fences."""
    ours = sampler(stack, nprocs)
    return [
        Case("multiprocessing.Barrier", partial(peers.library_barrier, nprocs, count // 10)),
        *mpi_cases(stack, nprocs, "Fence", "fences", count=count),
        Case("sync", partial(ours, programs.supersteps, count)),
    ]


def _put(nprocs: int, nbytes: int, count: int, stack: ExitStack) -> Sequence[Case]:
    """Compare a put and a sync with Put and Fence."""
    put = partial(sampler(stack, nprocs), programs.puts, count, nbytes)
    return [
        *mpi_cases(stack, nprocs, "Put and Fence", "puts", count=count, nbytes=nbytes),
        Case("put, sync", put),
        Case("hpput, sync", partial(put, unbuffered=True)),
    ]


def _large_put(nbytes: int, count: int, stack: ExitStack) -> Sequence[Case]:
    """Compare transfers of what was just written and is read at once."""
    put = partial(sampler(stack, 2), programs.puts_that_are_read, count, nbytes)
    theirs = partial(mpi_cases, stack, 2, "Put and Fence", "puts_that_are_read")
    return [
        Case("np.copyto and a barrier", partial(peers.copies_that_are_read, 2, nbytes, count)),
        *theirs(count=count, nbytes=nbytes),
        Case("put, sync", put),
        Case("hpput, sync", partial(put, unbuffered=True)),
    ]


def _large_message(nbytes: int, count: int, stack: ExitStack) -> Sequence[Case]:
    """Compare a message with one of MPI, of what was just written and is read at once."""
    theirs = partial(mpi_cases, stack, 2, "Isend and Irecv", "exchanges_that_are_read")
    send = partial(sampler(stack, 2), programs.messages_that_are_read, count, nbytes)
    return [*theirs(count=count, nbytes=nbytes), Case("send, sync, move", send)]


def _many_puts(number: int, stack: ExitStack) -> Sequence[Case]:
    """Compare many puts of a word, by offset and into views, with Put."""
    ours = sampler(stack, 2)
    return [
        *mpi_cases(stack, 2, "Put of x[i:i+1]", "small_puts", count=30, number=number),
        Case("put with offset=i", partial(ours, programs.small_puts, 20, number)),
        Case("put into x[i:i+1]", partial(ours, programs.small_puts_into_views, 20, number)),
    ]


def _get_and_message(count: int, stack: ExitStack) -> Sequence[Case]:
    """Measure a superstep with a get of 8 B, and one with a message of 8 B that is read."""
    ours = sampler(stack, 2)
    return [
        Case("get, sync", partial(ours, programs.gets, count)),
        Case("send, sync, messages()", partial(ours, programs.messages, count)),
    ]


def _of_size(what: str, prepare: Callable[..., Sequence[Case]], nbytes: int, count: int) -> Section:
    size = f"{nbytes // KIB} KiB" if nbytes < MIB else f"{nbytes // MIB} MiB"
    title = f"{what} of {size}, rewritten and read, p = 2"
    return Section(title, "superstep", partial(prepare, nbytes, count))


SECTIONS = (
    *(
        Section(f"Empty superstep, p = {p}", "superstep", partial(_empty, p, count))
        for p, count in ((2, 5000), (4, 1000), (16, 100))
    ),
    *(
        Section(f"Put of 8 B, p = {p}", "superstep", partial(_put, p, 8, count))
        for p, count in ((2, 2000), (16, 100))
    ),
    _of_size("Put", _large_put, 64 * KIB, 1000),
    _of_size("Put", _large_put, MIB, 200),
    _of_size("Put", _large_put, 16 * MIB, 100),
    _of_size("Message", _large_message, 8 * MIB, 100),
    Section("Get or message of 8 B, p = 2", "superstep", partial(_get_and_message, 2000)),
    Section("1000 puts of 8 B from process 0 to 1", "put", partial(_many_puts, 1000)),
)
