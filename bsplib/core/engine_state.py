"""What the engine knows of a group: all its attributes, and what it leaves to the primitives."""

from __future__ import annotations

from array import array as numbers
from typing import Any, NoReturn, Protocol

import numpy as np

try:
    import cython
except ImportError:
    from bsplib.core import _no_cython as cython
from bsplib.core.known_arrays import KnownArray
from bsplib.core.meeting import Meeting
from bsplib.core.queue import Queue
from bsplib.core.send_buffer import SendBuffer
from bsplib.errors import BspError

if not cython.compiled:
    from bsplib.core.atomics import this_thread

_MOST_SHARED, _MOST_PRIVATE = 8192, 1024
"""Bytes up to which values are copied into the send buffer, where processes share memory and where
they do not. Larger ones are staged, but for a few that the buffer takes, see
``SendBuffer.takes``."""


class Checks(Protocol):
    """The calls that the engine declines, with every check there is.

    The engine does not know the group that has it: each call brings the group, which is handed
    on. So there is no circle of references that would keep the arrays of a run alive.
    """

    def put(
        self, bsp: Any, operation: str, pid: Any, src: Any, dst: Any, offset: Any, at: Any, /
    ) -> None:
        """Add a put or hpput."""

    def get(
        self,
        bsp: Any,
        operation: str,
        pid: Any,
        src: Any,
        dst: Any,
        offset: Any,
        at: Any,
        count: Any,
        /,
    ) -> Any:
        """Add a get or hpget; return its destination."""

    def put_at(self, bsp: Any, pids: Any, indices: Any, values: Any, dst: Any, op: Any, /) -> None:
        """Add puts of single elements."""

    def get_at(self, bsp: Any, pids: Any, indices: Any, src: Any, out: Any, /) -> Any:
        """Add gets of single elements; return their destination."""

    def send(self, bsp: Any, pid: Any, payload: Any, tag: Any, /) -> None:
        """Send a message."""

    def move(self, bsp: Any, /) -> Any:
        """Take the next message."""

    def hpmove(self, bsp: Any, /) -> Any:
        """Take the next message without a copy."""

    def decode(self, bsp: Any, message: Any, /) -> Any:
        """Return a message as a program reads it."""

    def check_oblsync(self, bsp: Any, n: Any, /) -> int:
        """Return the number of messages to wait for."""

    def oblsync(self, bsp: Any, n: int, stamp: int, /) -> None:
        """End the superstep when ``n`` messages are there."""

    def check_usable(self, bsp: Any, operation: str, /) -> None:
        """Raise unless this thread can use the group now."""

    def fail(self, bsp: Any, error: BspError, /) -> NoReturn:
        """Raise an error as one that says where it happened."""

    def fail_for_good(self, bsp: Any, error: BspError, /) -> NoReturn:
        """Raise an error from the end of a superstep: the group cannot be used any more."""


class Rare(Protocol):
    """What the engine leaves to the primitives in a superstep, since it is needed rarely.

    It does not hold the engine, which gives itself where it is needed.
    """

    changes: list[Any]
    """Registrations of this superstep, which are announced at its end."""

    def announce(self, engine: Any, /) -> int:
        """Announce registrations; return what the flags say beside the kind of sync."""

    def check_kinds(self, engine: Any, flags: int, /) -> NoReturn:
        """Raise, since the processes do not end the superstep in the same way."""

    def prepare(self, engine: Any, held: int, /) -> None:
        """Let registrations take effect, and check what could not be checked before.

        Args:
            engine: whose superstep ends.
            held: what the flags of all processes say together.
        """

    def answer(self, engine: Any, /) -> int:
        """Make entries of what others get from here; return the head word of a post with them."""

    def take_answers(self, engine: Any, /) -> None:
        """Find the answers to the gets of this process, which has met the others once more."""

    def write_answer(self, pending: Any, /) -> None:
        """Write the values of the next get that another process has answered."""

    def land_early(self, engine: Any, /) -> None:
        """Begin to receive the staged values of puts where they will be written."""

    def land(self, source: int, slot: int, first: int, where: int, nbytes: int, /) -> None:
        """Write a put whose values come from another process through the port."""

    def write_gaps(self, slot: int, first: int, values: Any, /) -> None:
        """Write a put into an array that is not contiguous here."""

    def write_strided(self, slot: int, description: bytes, values: Any, /) -> None:
        """Write a put into a strided view of an array that is not contiguous here."""

    def write_placed(self, description: bytes, indices: int, data: Any, /) -> None:
        """Write a put whose place has a description."""

    def after_delivery(self, engine: Any, /) -> None:
        """End the registrations that have been popped."""

    def end_port(self) -> None:
        """Tell the port that the superstep has ended."""

    def stage_room(self, nbytes: int, to: int, is_message: bool, /) -> int:
        """Return the byte at which values can be staged; -1 where there is no memory."""

    def stage(self, values: Any, nbytes: int, to: int, /) -> int:
        """Stage the values of a put; return where they are, -1 where there is no memory."""

    def fetch(self, source: int, where: int, nbytes: int, /) -> Any:
        """Return what a process has staged."""

    def keep(self, handle: Any, /) -> Any:
        """Return a staged payload as memory that is this process's own; None where it is not."""

    def find_there(self, known: KnownArray, pid: int, /) -> int:
        """Find out, once, where the array of another process lies for this one; 1 if nowhere."""

    def map_there(self, address: int, nbytes: int, /) -> None:
        """Map memory of another process, into which this one writes for the first time."""


class EngineState:
    """The state of one process in one group, as far as the engine needs it.

    Args:
        pid: this process.
        nprocs: number of processes of the group.
        meeting: the meetings of the group.
        send_buffer: for the entries of this process.
        rare: what the primitives do in a superstep.
        checks: the calls that are declined.
        checks_all: every transfer is declined, to be checked.
    """

    def __init__(
        self,
        pid: int,
        nprocs: int,
        meeting: Meeting,
        send_buffer: SendBuffer,
        rare: Rare,
        checks: Checks,
        checks_all: bool,
    ) -> None:
        self.pid = pid
        self.nprocs = nprocs
        self.meeting = meeting
        self.send_buffer = send_buffer
        self.rare = rare
        self.checks = checks
        self.most_in_buffer = _MOST_SHARED if meeting.shares_memory else _MOST_PRIVATE
        self.superstep = 0
        self.unusable: str | None = None
        """Why the program cannot use the group now; None if it can."""
        self.thread = this_thread()
        """The thread that runs ``main``: no other may use the group."""
        self.quick = 0 if checks_all else self.thread
        """The thread whose calls need no check of the group; 0 where every call needs it."""
        self._quick_if_usable = self.quick
        self.changes: list[Any] = rare.changes
        """Registrations of this superstep, which are announced at its end."""
        self.unresolved: list[Any] = []
        """Transfers that can be checked at the superstep's end only, since they name arrays made
        in this superstep."""
        self._declare_transfers()
        self._declare_arrivals()

    def _declare_transfers(self) -> None:
        """Set the attributes for the arrays and messages that this process transfers."""
        self.known_arrays: dict[int, KnownArray] = {}
        """What is known of arrays, by the ``id()`` of their arrays."""
        self._last_array: Any = None
        """What is known of the array that was found last."""
        self._known: Any = None
        """This known: that of the transfer which is being collected."""
        self._to = 0
        """The other process of that transfer."""
        self.gets: list[Any] = self.meeting.gets
        """The gets of this superstep, each as (destination, address on the other process, bytes,
        other process, strided view or None). With a strided view the address is that of the array.
        Where the other process has to answer, it is 0, and in place of the destination there is
        what says how to write the values."""
        self.asks = False
        """Another process has to answer one of these gets."""
        self.replies: Any = None
        """A buffer for the answers to the gets of others; None until this process gives one."""
        self.gets_are_direct = True
        """The gets may be written as soon as they are read: none is answered, and no other process
        reads their destinations in this superstep, which own their memory or are of hpgets."""
        self.early_gets: dict[int, int] = {}
        """How many hpgets have read at their calls, by process."""
        self._read = np.empty(0, np.uint8)
        """Memory for the values of gets that are not direct, until they are written."""
        self.heads_out: dict[Any, bytes] = {}
        """The encoded heads of messages that were sent before, by the form of the payload and the
        tag. A message whose head is not here is encoded by the mailbox."""
        self.has_early = False
        """An hpput has been executed at its call."""
        self.early_puts = numbers("Q", [0])
        """The number of such hpputs by process, for ``oblsync``. The array is made when it is
        needed: there may be thousands of processes."""

    def _declare_arrivals(self) -> None:
        """Set the attributes for what a meeting has brought."""
        self._here = numbers("Q", bytes(8 * 16))
        """The addresses of the registered arrays of this process, by slot; 0 for an array that is
        not contiguous."""
        self.queue = Queue()
        """The messages that the program can read."""
        self._heads_in: dict[bytes, Any] = {}
        """The heads of messages that have come before, by their encoded form."""
        self.dtypes: dict[Any, Any] = {}
        """The dtypes of messages that were read before, by their encoded form."""
        self._delivers = False
        """The next two arrays have the right size."""
        self._first = self._stop = numbers("Q", [0])
        """By source: where its entries for this process begin, and where those of an inline entry
        end."""
        self._inline: Any = None
        """Memory for copies of inline entries."""

    # -- whether the group can be used --------------------------------------------------------

    def suspend(self, reason: str) -> None:
        """Let every call be declined, for a reason, until the group is resumed."""
        self.unusable = reason
        self.quick = 0
        self.forget_known_arrays()

    def resume(self) -> None:
        """Let the program use the group again."""
        self.unusable = None
        self.quick = self._quick_if_usable

    def is_usable(self) -> bool:
        """Tell whether this thread can use the group now."""
        return self.unusable is None and this_thread() == self.thread

    def forget_known_arrays(self) -> None:
        """Forget what is known of arrays: the next transfer of each is checked in every way."""
        self.known_arrays.clear()
        self._last_array = self._known = None

    # -- hpputs that are executed at their calls ----------------------------------------------

    def count_early(self, to: int, nbytes: int) -> int:  # noqa: ARG002  # for those that observe
        """Count an hpput that has written already."""
        if not self.has_early:
            self.has_early = True
            if len(self.early_puts) < self.nprocs:
                self.early_puts = numbers("Q", bytes(8 * self.nprocs))
        self.early_puts[to] += 1
        return 0

    def next_superstep(self) -> int:
        """Count the superstep that has ended, and forget what has been executed in it early."""
        self.superstep += 1
        if self.has_early:
            self.has_early = False
            for pid in range(self.nprocs):
                self.early_puts[pid] = 0
        if self.early_gets:
            self.early_gets.clear()
        return 0

    # -- events that nobody observes; see bsplib.core.observed ---------------------------------

    def begin_call(self) -> int:
        """Begin a call, or a part of one; return what :meth:`end_call` needs."""
        return 0

    def end_call(self, began: int) -> int:  # noqa: ARG002
        """End a call, or a part of one."""
        return 0

    def leave(self) -> None:
        """Begin to leave the group, a sub-group."""

    def left(self) -> None:
        """End the last superstep of the group, which has been left."""
