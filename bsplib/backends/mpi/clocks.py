"""The clocks of hosts, whose differences are measured by messages.

``time.perf_counter_ns`` has another zero on each host. Process 0 asks one process of each
clock for its time, and takes the time that comes back for that of the middle of the round
trip. The true difference is at most half of the round trip away from the measured one, so of
``EXCHANGES`` round trips the least one counts: its half is the **bound** of the error. (Where all
are late, since another program has the core, the bound is large, and as true.)

Source: Cristian 1989, Probabilistic clock synchronization.
"""

from __future__ import annotations

import hashlib
import os
import platform
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.backends.base import Alignment, Stopped
from bsplib.backends.mpi.waiting import NAP_S
from bsplib.backends.proc_visibility import same_namespace

if TYPE_CHECKING:
    from mpi4py import MPI

EXCHANGES = 40
"""Round trips to each host."""

_KEY_BYTES = hashlib.sha256().digest_size
_KEY_TAG, _QUESTION_TAG, _ANSWER_TAG = 31990, 31991, 31992
_ASK, _TELL = 0, 1


class Sample(NamedTuple):
    """A round trip."""

    round_trip_ns: int
    offset_ns: int
    """Time there less the time here, if both ways took equally long."""

    @property
    def bound_ns(self) -> int:
        """Greatest possible error of the offset."""
        return (self.round_trip_ns + 1) // 2


def sample(sent_ns: int, answered_ns: int, came_ns: int) -> Sample:
    """Return the round trip of a question that was sent, answered, and whose answer came."""
    return Sample(came_ns - sent_ns, answered_ns - (sent_ns + came_ns) // 2)


class Clocks:
    """What one process knows of the clock of its host.

    Args:
        comm: connects the processes; only messages from process to process are sent.
        stop: tells whether waiting has to raise ``Stopped``.
    """

    def __init__(self, comm: MPI.Intracomm, stop: Callable[[], bool]) -> None:
        self._comm = comm
        self._stop = stop
        self._key = clock_key()
        self._host = platform.node()
        self._aligned = 0
        self._bound_ns = 0
        self.offset_ns = 0
        """Is added to a time here for that of process 0."""

    def sent(self, stamp: int) -> int:
        """Return the time of process 0 for a time of this one; of no time (0) again 0."""
        return stamp and stamp + self.offset_ns

    def received(self, stamp: int) -> int:
        """Return the time of this process for a time of process 0; of no time (0) again 0."""
        return stamp and stamp - self.offset_ns

    def align(self, nprocs: int, *, again: bool) -> Alignment:
        """Measure the offset of this process's clock from that of process 0.

        All processes call it together.

        Args:
            nprocs: number of processes, the first ones of the communicator.
            again: measure although it has been measured for these processes.

        Raises:
            Stopped: the run has been stopped.

        Cost: one message to process 0 and one back for each process; where the clocks are
            different ones, ``EXCHANGES`` round trips to every host, one host after the other.
        """
        if again or self._aligned < nprocs:
            offset_ns, self._bound_ns = self._measured(nprocs)
            self.offset_ns = offset_ns
            self._aligned = max(self._aligned, nprocs)
        return Alignment(self._host, self.offset_ns, self._bound_ns)

    def _measured(self, nprocs: int) -> tuple[int, int]:
        """Return what is added to the clock here, and the greatest error of that."""
        if nprocs == 1:
            return 0, 0
        if self._comm.rank == 0:
            self._serve(nprocs)
            return 0, 0
        finish(self._stop, self._comm.Isend(np.frombuffer(self._key, np.uint8), 0, _KEY_TAG))
        return self._answer_questions()

    # -- process 0 ----------------------------------------------------------------------------

    def _serve(self, nprocs: int) -> None:
        """Measure the clocks of all processes, and tell each of them the result."""
        by_clock = self._processes_by_clock(nprocs)
        self._tell(by_clock.pop(self._key, []), Sample(0, 0))
        for ranks in by_clock.values():
            self._tell(ranks, min(self._asked(ranks[0]) for _ in range(EXCHANGES)))

    def _processes_by_clock(self, nprocs: int) -> dict[bytes, list[int]]:
        keys = np.zeros((nprocs, _KEY_BYTES), np.uint8)
        finish(
            self._stop, *[self._comm.Irecv(keys[rank], rank, _KEY_TAG) for rank in range(1, nprocs)]
        )
        by_clock: dict[bytes, list[int]] = {}
        for rank in range(1, nprocs):
            by_clock.setdefault(keys[rank].tobytes(), []).append(rank)
        return by_clock

    def _asked(self, rank: int) -> Sample:
        """Return a round trip to a process."""
        answer = np.zeros(1, np.int64)
        coming = self._comm.Irecv(answer, rank, _ANSWER_TAG)
        sent_ns = time.perf_counter_ns()
        going = self._comm.Isend(np.array([_ASK, 0, 0], np.int64), rank, _QUESTION_TAG)
        finish(self._stop, coming, going)
        return sample(sent_ns, int(answer[0]), time.perf_counter_ns())

    def _tell(self, ranks: Iterable[int], found: Sample) -> None:
        result = np.array([_TELL, found.offset_ns, found.bound_ns], np.int64)
        finish(self._stop, *[self._comm.Isend(result, rank, _QUESTION_TAG) for rank in ranks])

    # -- the others ---------------------------------------------------------------------------

    def _answer_questions(self) -> tuple[int, int]:
        """Tell process 0 the time whenever it asks; return what it has found out."""
        question = np.zeros(3, np.int64)
        answer = np.zeros(1, np.int64)
        is_asked = False
        while True:
            asked = self._comm.Irecv(question, 0, _QUESTION_TAG)
            finish(self._stop, asked, nap_s=0.0 if is_asked else NAP_S)
            if question[0] == _TELL:
                return -int(question[1]), int(question[2])
            answer[0] = time.perf_counter_ns()
            finish(self._stop, self._comm.Isend(answer, 0, _ANSWER_TAG))
            is_asked = True


# -- waiting --------------------------------------------------------------------------------------


_interrupted: list[object] = []
"""What stopped runs have waited for: MPI may still use its memory, a few bytes."""


def finish(stop: Callable[[], bool], *requests: MPI.Request, nap_s: float = 0.0) -> None:
    """Wait until sends and receives are complete.

    Args:
        stop: tells whether the run has been stopped.
        requests: what was started.
        nap_s: seconds to sleep after each look; 0 where others only get the core for a moment.

    Raises:
        Stopped: the run has been stopped.
    """
    for request in requests:
        while not request.Test():
            if stop():
                _interrupted.append(requests)
                raise Stopped
            os.sched_yield()
            if nap_s:
                time.sleep(nap_s)


def clock_key() -> bytes:
    """Return ``_KEY_BYTES`` bytes that are equal in two processes only if they read one clock.

    That is so where they run in one system since the same start, in the same namespace of
    time. Where the system does not tell this, the bytes are random: then the process's clock is
    measured as that of a host of its own.
    """
    known = same_namespace("time")
    if not known:
        return os.urandom(_KEY_BYTES)
    return hashlib.sha256(platform.node().encode() + known).digest()
