"""The program of a rank of an MPI: take a sample on request, and block until the next one.

The launcher of the MPI starts ``python -m benchmarks.mpi_peer SOCKET`` once for each rank.
Each rank connects to the socket. It runs each program that it is asked for, and answers with
its seconds; None ends it. Between samples it blocks in a read from the socket, and so
does not disturb other measurements.

The windows are allocated by the MPI, so that a rank can write directly into the memory of
another one. This is the fastest method of an MPI.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from benchmarks import collective_calls
from benchmarks.timing import seconds_each, seconds_of_transfer
from benchmarks.whole.on_ranks import whole_program

_WORD_BYTES = 8


@contextmanager
def window(ranks: MPI.Intracomm, nbytes: int, unit: int = 1) -> Iterator[MPI.Win]:
    """Open a window into memory of every rank, and begin its first epoch."""
    opened = MPI.Win.Allocate(nbytes, unit, comm=ranks)
    opened.Fence()
    try:
        yield opened
    finally:
        opened.Free()


def fences(ranks: MPI.Intracomm, count: int) -> float:
    """End epochs in which nothing was done."""
    with window(ranks, _WORD_BYTES) as there:
        return seconds_each(count, there.Fence)


def puts(ranks: MPI.Intracomm, count: int, nbytes: int) -> float:
    """End epochs in which every rank makes one Put to the next rank."""
    here = np.ones(nbytes, np.uint8)
    typed = [here, MPI.BYTE]  # with the type given, mpi4py need not find it out
    right = (ranks.rank + 1) % ranks.size
    with window(ranks, nbytes) as there:

        def epoch() -> None:
            there.Put(typed, right)
            there.Fence()

        seconds = seconds_each(count, epoch)
        _check(there, here)
        return seconds


def puts_that_are_read(ranks: MPI.Intracomm, count: int, nbytes: int) -> float:
    """End epochs in which every rank puts what it has written, and reads what came.

    A Put may write at any time in its epoch, while the receiver still reads what the epoch
    before brought: the window has room for two, which take turns.
    """
    source = np.zeros(nbytes, np.uint8)
    typed = [source, MPI.BYTE]
    right = (ranks.rank + 1) % ranks.size
    with window(ranks, 2 * nbytes) as there:
        memory: Any = there.tomemory()
        targets = np.frombuffer(memory, np.uint8).reshape(2, nbytes)

        def transfer(target: int) -> None:
            there.Put(typed, right, target * nbytes)
            there.Fence()

        return seconds_of_transfer(count, source, targets, transfer)


def small_puts(ranks: MPI.Intracomm, count: int, number: int) -> float:
    """Return the seconds for each of many Puts of one word from rank 0 to the last."""
    here = np.ones(number)
    last = ranks.size - 1
    with window(ranks, number * _WORD_BYTES, _WORD_BYTES) as there:

        def epoch() -> None:
            if ranks.rank == 0:
                for position in range(number):
                    there.Put(here[position : position + 1], last, position)
            there.Fence()

        seconds = seconds_each(count, epoch) / number
        if ranks.rank == last:
            _check(there, here)
        return seconds


def collectives(
    ranks: MPI.Intracomm, count: int, name: str, size: int, *, given: bool = False
) -> float:
    """Call a collective of arrays of ``size`` numbers, into given arrays or new ones."""
    call = collective_calls.on_mpi(ranks, name, size, given=given)
    collective_calls.check(name, ranks.rank, ranks.size, size, call())
    return seconds_each(count, call)


def exchanges_that_are_read(ranks: MPI.Intracomm, count: int, nbytes: int) -> float:
    """Send what was written to the next rank, and read what came from the one before."""
    source, target = np.zeros(nbytes, np.uint8), np.zeros(nbytes, np.uint8)
    right, left = (ranks.rank + 1) % ranks.size, (ranks.rank - 1) % ranks.size

    def transfer(_: int) -> None:
        coming = ranks.Irecv([target, MPI.BYTE], left)
        MPI.Request.Waitall([coming, ranks.Isend([source, MPI.BYTE], right)])

    return seconds_of_transfer(count, source, [target], transfer)


def _check(there: MPI.Win, expected: NDArray[Any]) -> None:
    memory: Any = there.tomemory()
    if not np.array_equal(np.frombuffer(memory, expected.dtype), expected):
        raise RuntimeError("the words that were put have not arrived")


PROGRAMS: dict[str, Callable[..., float]] = {
    program.__name__: program
    for program in (
        *(fences, puts, puts_that_are_read, small_puts, whole_program),
        *(exchanges_that_are_read, collectives),
    )
}


def main(address: Path) -> None:
    """Take samples until the other side asks for none."""
    ranks = MPI.COMM_WORLD
    with socket.socket(socket.AF_UNIX) as plug:
        plug.connect(str(address))
        with Connection(plug.detach()) as asked:
            while request := asked.recv():
                program, arguments = request
                ranks.Barrier()
                asked.send((ranks.rank, PROGRAMS[program](ranks, **arguments)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
