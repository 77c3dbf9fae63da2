"""What the core knows of a group: all its attributes, and what it leaves to the long way."""

from __future__ import annotations

from array import array as numbers
from typing import Any, NoReturn

import numpy as np

try:
    import cython
except ImportError:
    from bsplib.core import _no_cython as cython
from bsplib.core.box import Box
from bsplib.core.lanes import Lane
from bsplib.core.meeting import Meeting
from bsplib.core.queue import Queue
from bsplib.errors import BspError

if not cython.compiled:
    from bsplib.core.atomics import now_ns

_MOST_SHARED, _MOST_PRIVATE = 8192, 1024
"""Bytes up to which values are copied into the box, where processes share memory and where
they do not; larger ones are staged."""


class QuickState:
    """The state of one process in one group, as far as the quick way needs it.

    Args:
        pid: this process.
        nprocs: number of processes of the group.
        meeting: the meetings of the group.
        box: for the records of this process.
    """

    def __init__(self, pid: int, nprocs: int, meeting: Meeting, box: Box) -> None:
        self._pid = pid
        self._nprocs = nprocs
        self._meeting = meeting
        self._box = box
        self._most_in_box = _MOST_SHARED if meeting.is_quick else _MOST_PRIVATE
        self._superstep = 0
        self._unusable: str | None = None
        """Why the program cannot use the group now; None if it can."""
        self._long = False
        """Every superstep ends by the long way."""
        # What the long way has of this superstep.
        self._out: Any = {}
        self._early: Any = {}
        self._changes: list[Any] = []
        self._unresolved: list[Any] = []
        self._declare_time()
        self._declare_transfers()
        self._declare_counts()
        self._declare_arrivals()

    def _declare_time(self) -> None:
        """Set the attributes for clocks and recording."""
        self._timed = False
        """Something has to be done at the beginning and at the end of every call."""
        self._clock: Any = None
        """The clock of the process where its time is virtual: it stands still inside a call."""
        self._recorded = False
        """Each superstep is written into the log."""
        self._log: Any = None
        self._stack_keys: Any = None
        self._comm_ns = 0
        """Time inside calls in this superstep, where time is real."""

    def _declare_transfers(self) -> None:
        """Set the attributes for the arrays and messages that this process transfers."""
        self._lanes: dict[int, Lane] = {}
        """The lanes that are open, by the ``id()`` of their arrays."""
        self._last_array: Any = None
        """The array whose lane was found last."""
        self._lane: Any = None
        """This lane: that of the transfer which is being collected."""
        self._to = 0
        """The other process of that transfer."""
        self._quick_gets: list[Any] = self._meeting.gets
        self._gets_are_direct = True
        """All destinations own their memory, so that no other process can get from there."""
        self._long_gets = False
        """All further gets of this superstep go the long way, since one of them did."""
        self._read = np.empty(0, np.uint8)
        """The values of gets that are not direct, until they are written."""
        self._tag_size: int | None = None
        self._sends_messages = False
        self._heads_out: dict[Any, bytes] = {}
        """The encoded heads of messages, by their form and tag."""

    def _declare_counts(self) -> None:
        """Set the attributes for what this process has transferred in this superstep, by partner.

        The arrays are made when they are needed: there may be thousands of processes.
        """
        self._counts = False
        """Transfers are counted."""
        self._has_counts = False
        """One of these numbers is not 0."""
        self._sent_bytes = self._sent = numbers("Q", [0])
        self._got_bytes = self._got = numbers("Q", [0])
        self._has_early = False
        """An hpput has written already. These are always counted."""
        self._early_bytes = self._early_puts = numbers("Q", [0])

    def _declare_arrivals(self) -> None:
        """Set the attributes for what a meeting has brought."""
        self._here = numbers("Q", bytes(8 * 16))
        """Where the elements of each registered array lie here; 0 if they have gaps."""
        self._queue = Queue()
        self._heads_in: dict[bytes, Any] = {}
        """The heads of messages, by their encoded form."""
        self._dtypes: dict[Any, Any] = {}
        """The dtypes of messages that were read, by their encoded form."""
        self._delivers = False
        """The next two arrays have been made."""
        # By source: where records begin, and where those of a card end.
        self._first = self._stop = numbers("Q", [0])
        self._cards: Any = None
        """Room for copies of cards."""

    # -- the time of calls --------------------------------------------------------------------

    def _begin_call(self) -> int:
        """Stop virtual time, or note the real time; return what :meth:`_end_call` needs."""
        if self._clock is not None:
            self._clock.enter()
            return 1
        return now_ns()

    def _time_ns(self) -> int:
        """Return the time of this process, which may be virtual."""
        return now_ns() if self._clock is None else self._clock.now()

    def _end_call(self, began: int) -> None:
        """Let virtual time go on, or count the time of a call as communication."""
        if self._clock is not None:
            self._clock.leave()
        else:
            self._comm_ns += now_ns() - began

    # -- what was transferred -----------------------------------------------------------------

    def _count(self, to: int, nbytes: int) -> None:
        """Count a put or a message."""
        self._has_counts = True
        self._sent_bytes[to] += nbytes
        self._sent[to] += 1

    def _zeros(self) -> Any:
        """Return a number for each process."""
        return numbers("Q", bytes(8 * self._nprocs))

    def _begin_counts(self) -> None:
        """Count from now on what this process transfers, by partner."""
        self._counts = True
        self._sent_bytes, self._sent = self._zeros(), self._zeros()
        self._got_bytes, self._got = self._zeros(), self._zeros()

    def _count_get(self, sender: int, nbytes: int) -> None:
        """Count a get."""
        self._has_counts = True
        self._got_bytes[sender] += nbytes
        self._got[sender] += 1

    def _count_early(self, to: int, nbytes: int) -> None:
        """Count an hpput that has written already."""
        if not self._has_early:
            self._has_early = True
            if len(self._early_puts) < self._nprocs or self._nprocs == 1:
                self._early_bytes, self._early_puts = self._zeros(), self._zeros()
        self._early_bytes[to] += nbytes
        self._early_puts[to] += 1

    def _forget_counts(self) -> None:
        """Begin to count anew what this process transfers."""
        if self._has_early:
            self._has_early = False
            for pid in range(self._nprocs):
                self._early_bytes[pid] = self._early_puts[pid] = 0
        if self._has_counts:
            self._has_counts = False
            for pid in range(self._nprocs):
                self._sent_bytes[pid] = self._sent[pid] = 0
                self._got_bytes[pid] = self._got[pid] = 0

    # -- what the long way has to do ----------------------------------------------------------

    def _check_usable(self, operation: str | None = None) -> None:
        raise NotImplementedError

    def _put_slowly(
        self, operation: str, pid: Any, src: Any, dst: Any, offset: Any, at: Any
    ) -> None:
        raise NotImplementedError

    def _get_slowly(
        self, operation: str, pid: Any, src: Any, dst: Any, offset: Any, at: Any
    ) -> Any:
        raise NotImplementedError

    def _send_slowly(self, pid: Any, payload: Any, tag: Any) -> None:
        raise NotImplementedError

    def _room_staged(self, nbytes: int, to: int) -> int:
        raise NotImplementedError

    def _stage(self, values: Any, nbytes: int, to: int) -> int:
        raise NotImplementedError

    def _map_there(self, address: int, nbytes: int) -> None:
        raise NotImplementedError

    def _find_there(self, lane: Lane, pid: int) -> int:
        raise NotImplementedError

    def _now(self) -> int:
        raise NotImplementedError

    def _sync_recorded_slowly(self, arrive: int) -> None:
        raise NotImplementedError

    def _end_superstep(self, kind: Any, stamp: int) -> None:
        raise NotImplementedError

    def _port_end_superstep(self) -> None:
        raise NotImplementedError

    def _deliver_with_parcels(self, note: int) -> None:
        raise NotImplementedError

    def _write_slowly(self, slot: int, first: int, data: bytes) -> None:
        raise NotImplementedError

    def _fail(self, error: BspError) -> NoReturn:
        raise NotImplementedError

    def _fail_for_good(self, error: BspError) -> None:
        raise NotImplementedError

    def _decode(self, message: Any) -> Any:
        raise NotImplementedError
