"""The program of a rank of an MPI: take a sample on request, and block until the next one.

The launcher of the MPI starts ``python -m benchmarks.mpi_peer SOCKET`` once for each rank.
Each rank connects to the socket. For every line of JSON that it receives, it runs a program
and answers with its seconds. Between samples it blocks in a read from the socket, and so
does not disturb other measurements.

The windows are allocated by the MPI, so that a rank can write directly into the memory of
another one. This is the fastest method of an MPI.
"""

from __future__ import annotations

import json
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from benchmarks import collective_calls
from benchmarks.late import seconds_to_the_end
from benchmarks.rereading import seconds_of_transfer
from benchmarks.timing import seconds_each
from benchmarks.whole.on_ranks import whole_program
from bsplib.machine.probing.probe import RELATIONS, fit_line, over_rounds, superstep_between_s

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


def barriers(ranks: MPI.Intracomm, count: int) -> float:
    """Pass barriers."""
    return seconds_each(count, ranks.Barrier)


def late_barriers(ranks: MPI.Intracomm, count: int, late_s: float, quantile: float) -> float:
    """Pass barriers to which the last rank comes late, after it has computed."""

    def latest(times: NDArray[np.float64]) -> NDArray[np.float64]:
        found = np.empty_like(times)
        ranks.Allreduce(times, found, MPI.MAX)
        return found

    last = ranks.rank == ranks.size - 1
    return seconds_to_the_end(count, late_s, last, ranks.Barrier, latest, quantile)


def collectives(
    ranks: MPI.Intracomm, count: int, name: str, size: int, *, given: bool = False
) -> float:
    """Call a collective of arrays of ``size`` numbers, into given arrays or new ones."""
    call = collective_calls.on_mpi(ranks, name, size, given=given)
    collective_calls.check(name, ranks.rank, ranks.size, size, call())
    return seconds_each(count, call)


def exchanges(ranks: MPI.Intracomm, count: int, nbytes: int) -> float:
    """Send to the next rank, and receive from the one before."""
    here, there = np.ones(nbytes, np.uint8), np.zeros(nbytes, np.uint8)
    right, left = (ranks.rank + 1) % ranks.size, (ranks.rank - 1) % ranks.size

    def exchange() -> None:
        coming = ranks.Irecv([there, MPI.BYTE], left)
        MPI.Request.Waitall([coming, ranks.Isend([here, MPI.BYTE], right)])

    seconds = seconds_each(count, exchange)
    _check_words(there, here)
    return seconds


def exchanges_that_are_read(ranks: MPI.Intracomm, count: int, nbytes: int) -> float:
    """Send what was written to the next rank, and read what came from the one before."""
    source, target = np.zeros(nbytes, np.uint8), np.zeros(nbytes, np.uint8)
    right, left = (ranks.rank + 1) % ranks.size, (ranks.rank - 1) % ranks.size

    def transfer(_: int) -> None:
        coming = ranks.Irecv([target, MPI.BYTE], left)
        MPI.Request.Waitall([coming, ranks.Isend([source, MPI.BYTE], right)])

    return seconds_of_transfer(count, source, [target], transfer)


def alltoalls_that_are_read(ranks: MPI.Intracomm, count: int, nbytes: int) -> float:
    """Send a part of what was written to every rank by Alltoall, and read what came."""
    source, target = (np.zeros(ranks.size * nbytes, np.uint8) for _ in range(2))
    typed = [source, MPI.BYTE], [target, MPI.BYTE]
    return seconds_of_transfer(count, source, [target], lambda _: ranks.Alltoall(*typed))


def exchanges_with_all(
    ranks: MPI.Intracomm, count: int, nbytes: int, *, sizes: bool = False
) -> float:
    """Send to every rank by Alltoallv; with ``sizes`` they are exchanged before, as in a sync."""
    size = ranks.size
    here, there = np.ones(size * nbytes, np.uint8), np.zeros(size * nbytes, np.uint8)
    counts = [nbytes] * size
    starts = [nbytes * rank for rank in range(size)]
    own, theirs = np.full(size, nbytes), np.zeros(size, int)

    def exchange() -> None:
        if sizes:
            ranks.Alltoall(own, theirs)
        ranks.Alltoallv([here, counts, starts, MPI.BYTE], [there, counts, starts, MPI.BYTE])

    seconds = seconds_each(count, exchange)
    _check_words(there, here)
    return seconds


def pings(ranks: MPI.Intracomm, count: int) -> float:
    """Return the seconds of half a round trip of one byte between the first and the last rank."""
    return seconds_each(count, partial(_round_trip, ranks, np.ones(1, np.uint8))) / 2


def streams(ranks: MPI.Intracomm, count: int, nbytes: int) -> float:
    """Return the seconds a byte of a long message from the first rank to the last."""
    whole = seconds_each(count, partial(_round_trip, ranks, np.ones(nbytes, np.uint8)))
    return (whole - 2 * pings(ranks, 10)) / nbytes


def _round_trip(ranks: MPI.Intracomm, payload: NDArray[np.uint8]) -> None:
    """Send from the first rank to the last, and one byte back."""
    answer = np.ones(1, np.uint8)
    if ranks.rank == 0:
        ranks.Send([payload, MPI.BYTE], ranks.size - 1)
        ranks.Recv([answer, MPI.BYTE], ranks.size - 1)
    elif ranks.rank == ranks.size - 1:
        ranks.Recv([payload, MPI.BYTE], 0)
        ranks.Send([answer, MPI.BYTE], 0)


def lines(ranks: MPI.Intracomm, figure: str, rounds: int) -> float:
    """Return ``g`` or ``l`` of a line through the times of Alltoallv.

    Each rank sends h bytes to the others, equally much to each of them. Sizes, rounds and the fit
    are those of a probe of hosts that have one process each.
    """
    others = ranks.size - 1
    sizes = [h // others for h in RELATIONS]
    times = np.array([[_others_s(ranks, nbytes) for nbytes in sizes] for _ in range(rounds)])
    ranks.Allreduce(MPI.IN_PLACE, times, MPI.MAX)
    fit = fit_line(np.array(sizes) * others, over_rounds(times))
    return float(getattr(fit, figure))


def _others_s(ranks: MPI.Intracomm, nbytes: int) -> float:
    """Return the seconds of an Alltoallv that sends some bytes to each other rank."""
    here, there = (np.zeros(ranks.size * nbytes, np.uint8) for _ in range(2))
    counts = [nbytes if rank != ranks.rank else 0 for rank in range(ranks.size)]
    starts = [nbytes * rank for rank in range(ranks.size)]
    sends, receives = [here, counts, starts, MPI.BYTE], [there, counts, starts, MPI.BYTE]
    group: Any = _AsGroup(ranks, partial(ranks.Alltoallv, sends, receives))
    return superstep_between_s(group, group.communicate)


class _AsGroup:
    """What the measurement of a superstep needs of a group; an exchange ends its superstep."""

    def __init__(self, ranks: MPI.Intracomm, exchange: Callable[[], object]) -> None:
        self._ranks = ranks
        self._exchange = exchange
        self._has_exchanged = False
        self.time = time.perf_counter

    def communicate(self) -> None:
        """Exchange, and so wait for all others."""
        self._exchange()
        self._has_exchanged = True

    def sync(self) -> None:
        """Wait for all others, unless an exchange just did."""
        if not self._has_exchanged:
            self._ranks.Barrier()
        self._has_exchanged = False

    def allreduce(self, value: float, _: object) -> float:
        """Return the greatest value."""
        return self._ranks.allreduce(value, MPI.MAX)


def random_puts(ranks: MPI.Intracomm, count: int, number: int, *, stable: bool = False) -> float:
    """Send words to random places: sort them by rank, then Alltoallv of places and of values.

    With ``stable`` the last of several words for one place stays, as with put_at.

    Returns:
        Seconds for each word that a rank sends.
    """
    words = np.zeros(number)
    random = np.random.default_rng(ranks.rank)
    whose, places = random.integers(ranks.size, size=number), random.integers(number, size=number)
    values = random.random(number)
    came = np.zeros(ranks.size, int)

    def exchange() -> None:
        order = np.argsort(whose, kind="stable" if stable else None)
        counts = np.bincount(whose, minlength=ranks.size)
        ranks.Alltoall(counts, came)
        into, what = np.empty(came.sum(), int), np.empty(came.sum())
        ranks.Alltoallv([places[order], counts], [into, came])
        ranks.Alltoallv([values[order], counts], [what, came])
        words[into] = what

    seconds = seconds_each(count, exchange) / number
    if not words.any():
        raise RuntimeError("the words that were sent have not arrived")
    return seconds


def _check(there: MPI.Win, expected: NDArray[Any]) -> None:
    memory: Any = there.tomemory()
    _check_words(np.frombuffer(memory, expected.dtype), expected)


def _check_words(found: NDArray[Any], expected: NDArray[Any]) -> None:
    if not np.array_equal(found, expected):
        raise RuntimeError("the words that were put have not arrived")


PROGRAMS: dict[str, Callable[..., float]] = {
    program.__name__: program
    for program in (
        *(fences, puts, puts_that_are_read, small_puts, whole_program),
        *(exchanges_that_are_read, alltoalls_that_are_read, late_barriers, collectives),
        *(barriers, exchanges, exchanges_with_all, random_puts, pings, streams, lines),
    )
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
