"""Meetings of many processes: each learns in log2 p rounds that all have come, and what they say.

In round k a process passes on to the one 2^k further what it knows of those before it. So it sends
and receives log2 p heads instead of p - 1. What it has for certain processes it sends to them
itself; the rounds also tell each process how many such posts to expect.

Source: Hensgen, Finkel and Manber 1988, Two algorithms for barrier synchronization; the counts
travel as in Bruck et al. 1997, Efficient algorithms for all-to-all communications.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from bsplib.backends.mpi.heads import MOST_BODY

_COUNT = np.dtype("<u2")


MOST_PROCESSES = MOST_BODY - 3
"""Greatest number of processes whose notes and counts of any round fit into a head. In larger
groups each process sends a head to each other one."""


def rounds_of(nprocs: int) -> int:
    """Return the number of rounds in which all of some processes hear of each other."""
    return (nprocs - 1).bit_length()


class Gathering:
    """What one process has heard at one meeting.

    Args:
        pid: the process.
        nprocs: number of processes.
        note: its note.
        stamp: its stamp.
        receivers: processes to which it sends posts.
    """

    def __init__(
        self, pid: int, nprocs: int, note: int, stamp: int, receivers: Iterable[int]
    ) -> None:
        self._pid = pid
        self._nprocs = nprocs
        self._notes = bytes([note])
        self.latest = stamp
        """Latest of the stamps that were heard of."""
        self._counts: NDArray[np.uint16] | None = None
        for receiver in receivers:
            self._add((receiver - pid) % nprocs, 1)

    def _add(self, distance: int, count: int) -> None:
        if self._counts is None:
            self._counts = np.zeros(self._nprocs, _COUNT)
        self._counts[distance] += count

    def to_pass_on(self, number: int) -> bytes:
        """Return what is sent in a round: all notes that are missing there, and counts.

        Args:
            number: of the round.
        """
        step = 1 << number
        notes = self._notes[: self._nprocs - step]
        if notes == notes[:1] * len(notes):
            notes = notes[:1]
        head = len(notes).to_bytes(2, "little") + notes
        if self._counts is None:
            return head
        counts = self._counts[step :: 2 * step]
        return head + counts.tobytes() if counts.any() else head

    def take(self, number: int, body: bytes | memoryview, stamp: int) -> None:
        """Note what has come in a round."""
        step = 1 << number
        missing = min(step, self._nprocs - step)
        size = int.from_bytes(body[:2], "little")
        notes = bytes(body[2 : 2 + size])
        self._notes += notes * missing if size == 1 else notes
        self.latest = max(self.latest, stamp)
        if len(body) > 2 + size:
            counts = np.frombuffer(body, _COUNT, offset=2 + size)
            if self._counts is None:
                self._counts = np.zeros(self._nprocs, _COUNT)
            self._counts[0 : 2 * step * len(counts) : 2 * step] += counts

    def notes(self) -> list[int]:
        """Return the notes of all processes by pid, after all rounds."""
        pid = self._pid
        before = self._notes[::-1]  # the last one is of this process
        return list(before[self._nprocs - 1 - pid :] + before[: self._nprocs - 1 - pid])

    def is_unanimous(self) -> bool:
        """Tell whether all notes are the same, after all rounds."""
        return self._notes == self._notes[:1] * self._nprocs

    def count(self) -> int:
        """Return how many posts are sent to this process, after all rounds."""
        return 0 if self._counts is None else int(self._counts[0])
