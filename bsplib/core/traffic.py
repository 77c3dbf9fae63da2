"""The sums of what a process transfers in a superstep, by partner."""

from __future__ import annotations

from array import array as numbers

from bsplib.core.log import IN, OUT, Log


class Traffic:
    """Counts the bytes and the transfers of one process with each process of a group.

    Args:
        nprocs: number of processes of the group.
    """

    def __init__(self, nprocs: int) -> None:
        none = bytes(8 * nprocs)
        self._nprocs = nprocs
        self._is_empty = True
        self._sent_bytes, self._sent = numbers("Q", none), numbers("Q", none)
        """Bytes and number of puts and messages."""
        self._got_bytes, self._got = numbers("Q", none), numbers("Q", none)
        """Bytes and number of gets."""

    def sent(self, to: int, nbytes: int) -> int:
        """Count a put or a message."""
        self._is_empty = False
        self._sent_bytes[to] += nbytes
        self._sent[to] += 1
        return 0

    def got(self, sender: int, nbytes: int) -> int:
        """Count a get."""
        self._is_empty = False
        self._got_bytes[sender] += nbytes
        self._got[sender] += 1
        return 0

    def write(self, log: Log) -> int:
        """Write the sums into a log, and begin to count anew."""
        if self._is_empty:
            return 0
        self._is_empty = True
        for pid in range(self._nprocs):
            if self._sent[pid]:
                log.add_traffic(pid, OUT, self._sent_bytes[pid], self._sent[pid])
                self._sent_bytes[pid] = self._sent[pid] = 0
            if self._got[pid]:
                log.add_traffic(pid, IN, self._got_bytes[pid], self._got[pid])
                self._got_bytes[pid] = self._got[pid] = 0
        return 0
