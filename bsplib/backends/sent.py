"""The meetings of a group whose processes share no memory: the backend sends the entries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bsplib.backends.base import Arrivals, Sent
from bsplib.core.atomics import address_of
from bsplib.core.entries import by_receiver
from bsplib.core.kinds import INLINE_BYTES, SENT_HEAD
from bsplib.core.meeting import Meeting


class Exchanger(Protocol):
    """Sends and receives what the processes of a group post at a meeting."""

    released: int

    def exchange(self, entries: Mapping[int, Sent], flags: int, stamp: int) -> Arrivals | None:
        """Post entries for other processes, and wait for the posts of all of them.

        Args:
            entries: by receiving pid.
            flags: number below 128 that every process receives from every other one.
            stamp: time of arrival in ns, 0 where the run is not recorded.

        Returns:
            What came; None where all flags were the same and no process posted anything else.
        """


class SentMeeting(Meeting):
    """The meetings of a group over an exchange.

    What has come stays where it is until the superstep ends.

    Args:
        exchanges: sends and receives.
        pid: this process.
        nprocs: number of processes of the group.
    """

    def __init__(self, exchanges: Exchanger, pid: int, nprocs: int) -> None:
        Meeting.__init__(self)
        self.has_staged = True
        self._exchanges = exchanges
        self._pid, self._nprocs = pid, nprocs
        self._inline = np.zeros(INLINE_BYTES, np.uint8)
        self._all_flags = [0] * self._nprocs
        self._came: dict[int, NDArray[np.uint8]] = {}
        self._kept: list[dict[int, NDArray[np.uint8]]] = []

    def meet(self, flags: int, head: int, stamp: int) -> bool:
        mine = by_receiver(self, head, self._nprocs)
        for_all = mine.pop(self._nprocs, b"")
        if for_all:
            mine = {pid: mine.get(pid, b"") + for_all for pid in range(self._nprocs)}
        own = mine.pop(self._pid, b"")
        arrivals = self._exchanges.exchange(mine, flags, stamp)
        if stamp:
            self.released = self._exchanges.released
        self._kept.append(self._came)
        self._came = {self._pid: np.frombuffer(own, np.uint8)} if own else {}
        if arrivals is None:
            self._all_flags = [flags] * self._nprocs
            return not own
        self._all_flags, arrived = arrivals
        for source, entries in arrived:
            self._came[source] = np.frombuffer(entries, np.uint8)
        return False

    def inline_address(self) -> int:
        return address_of(self._inline)

    def head_of(self, pid: int) -> int:
        return SENT_HEAD if pid in self._came else 0

    def inline_of(self, pid: int) -> int:
        return address_of(self._came[pid])

    def size_of(self, pid: int) -> int:
        return len(self._came[pid])

    def flags_of(self, pid: int) -> int:
        return self._all_flags[pid]

    def end_superstep(self) -> None:
        self._kept.clear()
        super().end_superstep()
