"""The clocks of hosts, whose differences are measured by messages.

``time.perf_counter_ns`` has another zero on each host. Process 0 asks one process of each
clock for its time, and takes the time that comes back for that of the middle of the round
trip. The true difference is at most half of the round trip away from the measured one, so of
``EXCHANGES`` round trips the least one counts: its half is the **bound** of the error.

All round trips of a batch can be late, since another program has the core, or the link is
busy. So a batch is believed only where a second one has a least round trip that is about as
short.

Source: Cristian 1989, Probabilistic clock synchronization.
"""

from __future__ import annotations

import hashlib
import os
import platform
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.backends.base import Alignment, Stopped
from bsplib.backends.proc_visibility import same_namespace

if TYPE_CHECKING:
    from mpi4py import MPI

EXCHANGES = 40
"""Round trips in a batch."""
MOST_BATCHES = 6
"""Batches after which the best one is taken, even if no other one is as good."""
AT_ONCE = 8
"""Hosts that are asked in turn. More would make each other's answers wait."""

_SIMILAR = 1.5
_SIMILAR_NS = 20_000

_KEY_BYTES = 16
_KEY_TAG, _QUESTION_TAG, _ANSWER_TAG = 31990, 31991, 31992
_ASK, _TELL = 0, 1
_NAP_S = 50e-6


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


def believed(batches: Sequence[Sample]) -> Sample | None:
    """Return the sample to believe, or None if one more batch is needed.

    Args:
        batches: the least round trip of each batch.

    Returns:
        The least of all, if the least of another batch is at most ``_SIMILAR`` times as
        long and ``_SIMILAR_NS`` longer, or if there are ``MOST_BATCHES``.
    """
    if not batches:
        return None
    best, *others = sorted(batches)
    limit = _SIMILAR * best.round_trip_ns + _SIMILAR_NS
    confirmed = bool(others) and others[0].round_trip_ns <= limit
    return best if confirmed or len(batches) >= MOST_BATCHES else None


class Clocks:
    """What one process knows of the clock of its host.

    Args:
        comm: connects the processes; only messages from process to process are sent.
        stop: tells whether waiting has to raise ``Stopped``.
        key: bytes that are equal in processes that read the same clock.
        clock: the clock, in ns.
    """

    def __init__(
        self,
        comm: MPI.Intracomm,
        stop: Callable[[], bool],
        *,
        key: bytes | None = None,
        clock: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        self._comm = comm
        self._stop = stop
        self._key = clock_key() if key is None else key
        self._clock = clock
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
            different ones, at least ``2 * EXCHANGES`` round trips to every host, to
            ``AT_ONCE`` hosts at the same time.
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
        clocks = list(by_clock.values())
        for first in range(0, len(clocks), AT_ONCE):
            some = clocks[first : first + AT_ONCE]
            found = self._measure([ranks[0] for ranks in some])
            for ranks in some:
                self._tell(ranks, found[ranks[0]])

    def _processes_by_clock(self, nprocs: int) -> dict[bytes, list[int]]:
        keys = np.zeros((nprocs, _KEY_BYTES), np.uint8)
        finish(
            self._stop, *[self._comm.Irecv(keys[rank], rank, _KEY_TAG) for rank in range(1, nprocs)]
        )
        by_clock: dict[bytes, list[int]] = {}
        for rank in range(1, nprocs):
            by_clock.setdefault(keys[rank].tobytes(), []).append(rank)
        return by_clock

    def _measure(self, ranks: Iterable[int]) -> dict[int, Sample]:
        """Return a round trip that is believed for each of some processes."""
        batches: dict[int, list[Sample]] = {rank: [] for rank in ranks}
        found: dict[int, Sample] = {}
        while len(found) < len(batches):
            for rank, least in self._batch([r for r in batches if r not in found]).items():
                batches[rank].append(least)
                good = believed(batches[rank])
                if good is not None:
                    found[rank] = good
        return found

    def _batch(self, ranks: Sequence[int]) -> dict[int, Sample]:
        """Return the least of ``EXCHANGES`` round trips to each of some processes.

        Each process has one question at a time; those to different ones overlap.
        """
        talks = {rank: _Talk(self._comm, rank, self._clock) for rank in ranks}
        waiting = dict(talks)
        while waiting:
            for rank, talk in list(waiting.items()):
                if talk.advance():
                    del waiting[rank]
            _pause(self._stop, talks)
        return {rank: min(talk.samples) for rank, talk in talks.items()}

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
            finish(self._stop, asked, nap_s=0.0 if is_asked else _NAP_S)
            if question[0] == _TELL:
                return -int(question[1]), int(question[2])
            answer[0] = self._clock()
            finish(self._stop, self._comm.Isend(answer, 0, _ANSWER_TAG))
            is_asked = True


class _Talk:
    """A batch of round trips from process 0 to another process."""

    def __init__(self, comm: MPI.Intracomm, rank: int, clock: Callable[[], int]) -> None:
        self._comm = comm
        self._rank = rank
        self._clock = clock
        self._question = np.array([_ASK, 0, 0], np.int64)
        self._answer = np.zeros(1, np.int64)
        self.samples: list[Sample] = []
        self._ask()

    def _ask(self) -> None:
        self._coming = self._comm.Irecv(self._answer, self._rank, _ANSWER_TAG)
        self._sent_ns = self._clock()
        self._going = self._comm.Isend(self._question, self._rank, _QUESTION_TAG)

    def advance(self) -> bool:
        """Take the answer if it has come, and ask again; tell whether the batch is complete."""
        if not self._coming.Test():
            self._going.Test()
            return False
        came_ns = self._clock()
        self.samples.append(sample(self._sent_ns, int(self._answer[0]), came_ns))
        self._going.Wait()  # the question has been answered
        if len(self.samples) < EXCHANGES:
            self._ask()
            return False
        return True


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
            _pause(stop, requests)
            if nap_s:
                time.sleep(nap_s)


def _pause(stop: Callable[[], bool], waits_for: object) -> None:
    """Let others have the core for a moment."""
    if stop():
        _interrupted.append(waits_for)
        raise Stopped
    os.sched_yield()


def clock_key() -> bytes:
    """Return ``_KEY_BYTES`` bytes that are equal in two processes only if they read one clock.

    That is so where they run in one system since the same start, in the same namespace of
    time. Where the system does not tell this, the bytes are random: then the process's clock is
    measured as that of a host of its own.
    """
    known = same_namespace("time")
    if not known:
        return os.urandom(_KEY_BYTES)
    return hashlib.sha256(platform.node().encode() + known).digest()[:_KEY_BYTES]
