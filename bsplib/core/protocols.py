"""What the engine of a group asks of the primitives: checks of calls, and what is needed rarely."""

from __future__ import annotations

from typing import Any, NoReturn, Protocol

from bsplib.core.known_arrays import KnownArray
from bsplib.errors import BspError


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

    def check_usable(self, bsp: Any, operation: str, engine: Any = None, /) -> None:
        """Raise unless this thread can use the group now, and an engine that it may have had."""

    def fail(self, bsp: Any, error: BspError, /) -> NoReturn:
        """Raise an error as one that says where it happened."""

    def fail_for_good(self, bsp: Any, error: BaseException, /) -> NoReturn:
        """Raise what has left the end of a superstep: the group cannot be used any more."""


class Staging(Protocol):
    """Where a process stages its large values, beside its entries: a port, or a part of it.

    Memory is reserved only where all processes share it.
    """

    def reserve(self, nbytes: int, /, *, message: bool = False) -> int:
        """Return the byte at which a value of this superstep can be staged.

        Args:
            nbytes: size of the value.
            message: it is fetched after the superstep, too.

        Raises:
            OutOfSharedMemoryError: there is no memory.
        """

    def end_superstep(self) -> None:
        """End the superstep, that of the meeting, too; it is called if ``Meeting.has_staged``."""


class SlowPath(Protocol):
    """What the engine leaves to the primitives in a superstep, since it is needed rarely.

    It does not hold the engine, which gives itself where it is needed.
    """

    changes: list[Any]
    """Registrations of this superstep, which are announced at its end."""
    staging: Staging
    """The staged values of this process."""

    def announce(self, engine: Any, /) -> int:
        """Announce registrations; return what the flags say beside the kind of sync."""

    def check_kinds(self, engine: Any, flags: int, /) -> NoReturn:
        """Raise, since the processes do not end the superstep in the same way."""

    def prepare(self, engine: Any, all_flags: int, /) -> None:
        """Let registrations take effect, and check what could not be checked before.

        Args:
            engine: whose superstep ends.
            all_flags: what the flags of all processes say together.
        """

    def answer(self, engine: Any, /) -> int:
        """Make entries of what others get from here; return the head word of a post with them."""

    def take_answers(self, engine: Any, /) -> None:
        """Find the answers to the gets of this process, which has met the others once more."""

    def write_answer(self, pending: Any, /) -> None:
        """Write the values of the next get that another process has answered."""

    def write_gaps(self, slot: int, first: int, values: Any, /) -> None:
        """Write a put whose place or values the core does not reach."""

    def write_strided(self, slot: int, description: bytes, values: Any, /) -> None:
        """Write a put into a strided view of an array that is not contiguous here."""

    def write_placed(self, description: bytes, indices: int, data: Any, /) -> None:
        """Write a put whose place has a description."""

    def after_delivery(self, engine: Any, /) -> None:
        """End the registrations that have been popped."""

    def stage(self, values: Any, nbytes: int, to: int, /) -> int:
        """Stage the values of a put; return where they are, -1 where there is no memory."""

    def fetch(self, source: int, where: int, nbytes: int, /) -> Any:
        """Return what a process has staged."""

    def find_there(self, known: KnownArray, pid: int, /) -> int:
        """Find out, once, where the array of another process lies for this one; 1 if nowhere."""
