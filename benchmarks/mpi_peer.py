"""What a rank of an MPI does: take a sample when told to, and block until the next one.

An MPI's launcher starts ``python -m benchmarks.mpi_peer SOCKET`` as often as there are
ranks. Each connects to the socket, and then for every line of JSON that
comes runs a program and answers with its seconds. Between samples it reads from the
socket, and so takes nothing from what is measured meanwhile.

The windows are allocated by the MPI, which lets a rank write straight into the memory
of another one: its fastest way.
"""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from benchmarks.timing import seconds_each

_WORD_BYTES = 8


@contextmanager
def window(ranks: MPI.Intracomm, nbytes: int, unit: int = 1) -> Iterator[MPI.Win]:
    """Open a window into memory of every rank, its first epoch begun."""
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
    """End epochs in which every rank puts once to the next one."""
    here = np.ones(nbytes, np.uint8)
    typed = [here, MPI.BYTE]  # spares mpi4py to look for the type
    right = (ranks.rank + 1) % ranks.size
    with window(ranks, nbytes) as there:

        def epoch() -> None:
            there.Put(typed, right)
            there.Fence()

        seconds = seconds_each(count, epoch)
        _check(there, here)
        return seconds


def small_puts(ranks: MPI.Intracomm, count: int, number: int) -> float:
    """End epochs in which rank 0 puts many single words to the last; return seconds a put."""
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


def _check(there: MPI.Win, expected: NDArray[Any]) -> None:
    memory: Any = there.tomemory()
    found = np.frombuffer(memory, expected.dtype)
    if not np.array_equal(found, expected):
        raise RuntimeError("the words that were put are not those that are there")


PROGRAMS: dict[str, Callable[..., float]] = {
    program.__name__: program for program in (fences, puts, small_puts)
}


def main(address: Path) -> None:
    """Take samples until the other side closes the socket."""
    ranks = MPI.COMM_WORLD
    with socket.socket(socket.AF_UNIX) as plug:
        plug.connect(str(address))
        with plug.makefile("r", encoding="utf-8") as requests:
            for line in requests:
                request = json.loads(line)
                ranks.Barrier()
                seconds = PROGRAMS[request["program"]](ranks, **request["arguments"])
                answer = {"rank": ranks.rank, "seconds": seconds}
                plug.sendall(json.dumps(answer).encode() + b"\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
