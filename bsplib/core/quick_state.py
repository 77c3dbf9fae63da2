"""What the core knows of a group: all its attributes, and what it leaves to the primitives."""

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
    from bsplib.core.atomics import now_ns, this_thread

_MOST_SHARED, _MOST_PRIVATE = 8192, 1024
"""Bytes up to which values are copied into the box, where processes share memory and where
they do not. Larger ones are staged, but for a few that the box takes, see ``Box.takes``."""


class QuickState:
    """The state of one process in one group, as far as the core needs it.

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
        self._most_in_box = _MOST_SHARED if meeting.shares_memory else _MOST_PRIVATE
        self._superstep = 0
        self._unusable: str | None = None
        """Why the program cannot use the group now; None if it can."""
        self._thread = this_thread()
        """The thread that runs ``main``: no other may use the group."""
        self._checked = False
        """The run is checked: each record says where its call stands."""
        self._changes: list[Any] = []
        """Registrations of this superstep, which are announced at its end."""
        self._unresolved: list[Any] = []
        """Transfers that can be checked at the superstep's end only, since they name arrays made
        in this superstep."""
        self._declare_time()
        self._declare_transfers()
        self._declare_counts()
        self._declare_arrivals()

    def _declare_time(self) -> None:
        """Set the attributes for clocks and recording."""
        self._timed = False
        """Each call stops a clock, or its time is measured."""
        self._clock: Any = None
        """The clock of the process where its time is virtual: it stands still inside a call."""
        self._recorded = False
        """Each superstep is written into the log."""
        self._log: Any = None
        """The log, a :class:`~bsplib.core.log.Log`; None where nothing is recorded."""
        self._stack_keys: Any = None
        """The numbers of call stacks; None where nothing is recorded."""
        self._comm_ns = 0
        """Time spent inside calls in this superstep; it stays 0 where time is virtual."""

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
        self._gets: list[Any] = self._meeting.gets
        """The gets of this superstep, each as (destination, address on the other process, bytes,
        other process, grid or None). With a grid the address is that of the array. Where the other
        process has to answer, it is 0, and in place of the destination there is what says how to
        write the values."""
        self._asks = False
        """Another process has to answer one of these gets."""
        self._replies: Any = None
        """A box for the answers to the gets of others; None until this process gives one."""
        self._gets_are_direct = True
        """The gets may be written as soon as they are read: none is answered, and no other process
        reads their destinations in this superstep, which own their memory or are of hpgets."""
        self._early_gets: dict[int, int] = {}
        """How many hpgets have read at their calls, by process."""
        self._read = np.empty(0, np.uint8)
        """Memory for the values of gets that are not direct, until they are written."""
        self._tag_size: int | None = None
        """Bytes of every tag; None where the program has not called set_tagsize."""
        self._heads_out: dict[Any, bytes] = {}
        """The encoded heads of messages that were sent before, by the form of the payload and the
        tag. A message whose head is not here is encoded by the mailbox."""

    def _declare_counts(self) -> None:
        """Set the attributes for the sums of what this process transfers in a superstep.

        Each array has an element for each other process. It is made when it is needed, since
        there may be thousands of processes.
        """
        self._counts = False
        """Transfers are counted."""
        self._has_counts = False
        """One of the next four arrays has a number that is not 0."""
        self._sent_bytes = self._sent = numbers("Q", [0])
        """Bytes and number of puts and messages."""
        self._got_bytes = self._got = numbers("Q", [0])
        """Bytes and number of gets."""
        self._has_early = False
        """An hpput has been executed at its call."""
        self._early_bytes = self._early_puts = numbers("Q", [0])
        """Bytes and number of such hpputs, which are always counted: ``oblsync`` needs them."""

    def _declare_arrivals(self) -> None:
        """Set the attributes for what a meeting has brought."""
        self._here = numbers("Q", bytes(8 * 16))
        """The addresses of the registered arrays of this process, by slot; 0 for an array that is
        not contiguous."""
        self._queue = Queue()
        """The messages that the program can read."""
        self._heads_in: dict[bytes, Any] = {}
        """The heads of messages that have come before, by their encoded form."""
        self._dtypes: dict[Any, Any] = {}
        """The dtypes of messages that were read before, by their encoded form."""
        self._delivers = False
        """The next two arrays have the right size."""
        self._first = self._stop = numbers("Q", [0])
        """By source: where its records for this process begin, and where those on a card end."""
        self._cards: Any = None
        """Memory for copies of cards."""

    # -- the time of calls --------------------------------------------------------------------

    def _begin_call(self) -> int:
        """Stop the virtual clock, or read the real one; return what :meth:`_end_call` needs."""
        if self._clock is not None:
            self._clock.enter()
            return 1
        return now_ns()

    def _time_ns(self) -> int:
        """Return the time of this process, which may be virtual."""
        return now_ns() if self._clock is None else self._clock.now()

    def _end_call(self, began: int) -> None:
        """Let the virtual clock run again, or add the time of the call to communication."""
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
        """Count from now on what this process transfers."""
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
        """Set all sums to 0."""
        if self._has_early:
            self._has_early = False
            for pid in range(self._nprocs):
                self._early_bytes[pid] = self._early_puts[pid] = 0
        if self._has_counts:
            self._has_counts = False
            for pid in range(self._nprocs):
                self._sent_bytes[pid] = self._sent[pid] = 0
                self._got_bytes[pid] = self._got[pid] = 0

    # -- what the primitives do: everything that is rare ----------------------------------------

    def _check_usable(self, operation: str | None = None) -> None:
        raise NotImplementedError

    def _put_slowly(
        self, operation: str, pid: Any, src: Any, dst: Any, offset: Any, at: Any
    ) -> None:
        raise NotImplementedError

    def _get_slowly(
        self, operation: str, pid: Any, src: Any, dst: Any, offset: Any, at: Any, count: Any
    ) -> Any:
        raise NotImplementedError

    def _send_slowly(self, pid: Any, payload: Any, tag: Any) -> None:
        raise NotImplementedError

    def _send_value_slowly(self, to: int, value: Any, tag: Any) -> None:
        raise NotImplementedError

    def _check_call(self, operation: str, root: Any) -> int:
        raise NotImplementedError

    def _kept(self, recipe: Any, value: Any) -> Any:
        raise NotImplementedError

    def _wire(self, recipe: Any, value: Any) -> Any:
        raise NotImplementedError

    def _take_slowly(self, recipe: Any, sources: Any, place: int, own: Any) -> list[Any]:
        raise NotImplementedError

    def _combine(self, function: Any, *operands: Any) -> Any:
        raise NotImplementedError

    def _stage_room(self, nbytes: int, to: int, is_message: bool) -> int:
        raise NotImplementedError

    def _stage(self, values: Any, nbytes: int, to: int) -> int:
        raise NotImplementedError

    def _map_there(self, address: int, nbytes: int) -> None:
        raise NotImplementedError

    def _find_there(self, lane: Lane, pid: int) -> int:
        raise NotImplementedError

    def _before_meeting(self) -> int:
        raise NotImplementedError

    def _prepare_delivery(self, held: int) -> None:
        raise NotImplementedError

    def _answer(self) -> int:
        raise NotImplementedError

    def _take_answers(self) -> None:
        raise NotImplementedError

    def _write_answer(self, pending: Any) -> None:
        raise NotImplementedError

    def _land_early(self) -> None:
        raise NotImplementedError

    def _land(self, source: int, slot: int, first: int, where: int, nbytes: int) -> None:
        raise NotImplementedError

    def _write_gaps(self, slot: int, first: int, values: Any) -> None:
        raise NotImplementedError

    def _write_grid(self, slot: int, description: bytes, values: Any) -> None:
        raise NotImplementedError

    def _write_placed(self, description: bytes, indices: int, data: Any) -> None:
        raise NotImplementedError

    def _fetch(self, source: int, where: int, nbytes: int) -> Any:
        raise NotImplementedError

    def _after_delivery(self) -> None:
        raise NotImplementedError

    def _after_superstep(self) -> None:
        raise NotImplementedError

    def _port_end_superstep(self) -> None:
        raise NotImplementedError

    def _check_kinds(self, note: int) -> None:
        raise NotImplementedError

    def _fail(self, error: BspError) -> NoReturn:
        raise NotImplementedError

    def _fail_for_good(self, error: BspError) -> None:
        raise NotImplementedError

    def _decode(self, message: Any) -> Any:
        raise NotImplementedError
