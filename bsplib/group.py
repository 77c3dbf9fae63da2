"""A group of processes as one of them sees it: all primitives, put together.

Here are the ends of supersteps and the sub-groups; the others have modules of their
own. All argument checks stand in these, once for every backend: what lies below is
told plain values that are known to be right.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, NoReturn, Self

import numpy as np

from bsplib import call_site
from bsplib.backends.base import Port
from bsplib.errors import (
    AbortError,
    ArgumentError,
    BspError,
    PartitionError,
    UsageError,
)
from bsplib.primitives.arrays import Arrays
from bsplib.primitives.collectives import Collectives
from bsplib.primitives.mailbox import Mailbox
from bsplib.primitives.remote import RemoteAccess
from bsplib.sync_kinds import Kind

_SYNC = Kind.SYNC  # an attribute of an enumeration takes its time


def _is_time(seconds: object) -> bool:
    try:
        return 0 <= seconds < math.inf  # type: ignore[operator]  # that is the question
    except TypeError:
        return False


class Group(Arrays, RemoteAccess, Mailbox, Collectives):
    """The group of processes that a program runs in, as process ``pid`` sees it.

    ``main`` is given the whole run as a group; :meth:`partition` makes sub-groups.
    A group belongs to the thread that runs ``main``.

    Its attributes ``pid``, ``nprocs`` and ``machine`` can be read only.
    """

    # -- enquiry ----------------------------------------------------------------------

    def time(self) -> float:
        """Return the seconds since the run began: since the barrier before ``main``.

        Source: Hill et al. 1998, bsp_time.
        """
        if self._ended:
            self._check_usable()
        return (self._port.now() - self._terms.began_ns) * 1e-9

    def rng(self, seed: int | Sequence[int] | None = None) -> np.random.Generator:
        """Return a random generator of this process.

        Generators of different processes give independent streams. With one seed a
        process gets the same stream again, in every run and on every backend.

        Args:
            seed: what ``numpy.random.SeedSequence`` takes; a stream that is different
                each time if None.

        Raises:
            UsageError: ``seed`` is no seed.

        Cost: nothing.
        """
        process = self._port.members[self.pid]
        try:
            sequence = np.random.SeedSequence(seed, spawn_key=(process,))
        except (TypeError, ValueError) as error:
            raise self._error(
                UsageError, f"rng: seed is {seed!r}; it is an integer of 0 or more ({error})"
            ) from None
        return np.random.default_rng(sequence)

    def charge(self, seconds: float) -> None:
        """Advance this process's clock by computation, on virtual processors.

        From the first call on the clock of the process advances by charges alone (and
        by what communication costs). What was measured before stays; only less than
        0.2 ms before a first call in the first superstep is dropped. A program that
        charges from its first line on therefore takes the same time in every run. On
        real processes this does nothing.

        Args:
            seconds: 0 or more.

        Raises:
            UsageError: ``seconds`` is negative or no number.
        """
        self._check_not_ended()
        if not _is_time(seconds):
            raise self._error(
                ArgumentError,
                f"charge: {seconds!r} is no time; it is 0 or more seconds, and finite",
            )
        self._port.charge(seconds)

    def abort(self, message: str) -> NoReturn:
        """Stop every process of the run.

        Args:
            message: why, in words.

        Raises:
            AbortError: always; ``bsplib.run`` raises it too.

        Source: Hill et al. 1998, bsp_abort.
        """
        self._check_not_ended()
        raise self._error(AbortError, str(message))

    # -- ends of supersteps -----------------------------------------------------------

    def sync(self) -> None:
        """End the superstep: wait for all processes of the group, deliver everything.

        Gets read and write, then puts write, then messages become readable.

        Raises:
            SyncMismatchError: another process ends this superstep, or registered
                in it, otherwise.
            BoundsError: a transfer named an array made in this superstep, and would
                leave it.

        Cost: l, and g h for what was transferred.
        Source: Hill et al. 1998, bsp_sync.
        """
        if self._unusable is not None:
            self._check_usable()
        if not self._is_plain or self._changes or self._queue.messages:
            self._end_superstep(_SYNC, 0)
        elif not self._out:  # what costs most where nothing else does is written out here
            try:
                came = self._port.sync_empty(_SYNC)
                if came is not None:
                    self._take(came)
            except BspError as error:
                self._fall(error)
            self._superstep += 1
            if self._early:
                self._early = {}
        elif not self._end_shortly(0):
            self._end_superstep(_SYNC, 0)

    def oblsync(self, n: int) -> None:
        """End the superstep as soon as ``n`` messages addressed to this process are there.

        There is one message for each send and one for each put of any elements, this
        process's own to itself included. Other processes may by then be in another
        superstep; what they send early waits for its superstep. Registrations take
        effect at the next global sync.

        Args:
            n: how many messages to wait for.

        Raises:
            SyncMismatchError: more than ``n`` have come or fewer can come, or another
                process ends this superstep by a global sync.
            PendingTransferError: the superstep has a get.

        Cost: g h for what was transferred among those that sent to this process.
        Source: PUB, bsp_oblsync; Gonzalez et al., section 2.
        """
        self._check_usable()
        self._end_oblivious(self._check_number(n), 0)

    # -- sub-groups -------------------------------------------------------------------

    def partition(self, ends: Sequence[int]) -> Group:
        """Split the group; return the sub-group that this process is in.

        Collective, and without communication. Use it as ``with bsp.partition(ends)
        as sub:`` or call ``sub.done()``; until then this group rests. Transfers
        pending here stay pending, and messages not read yet can be read afterwards.

        Args:
            ends: sub-group i has the processes ``ends[i-1] .. ends[i] - 1``; not
                decreasing, the last is ``nprocs``; empty sub-groups are legal.

        Raises:
            PartitionError: ``ends`` is none of that.

        Cost: nothing.
        Source: PUB, bsp_partition; Gonzalez et al., section 2.2.
        """
        self._check_usable()
        bounds = self._check_ends(ends)
        index = next(i for i, end in enumerate(bounds) if self.pid < end)
        return self._enter(index, range(bounds[index - 1] if index else 0, bounds[index]))

    def split(self, colour: Any, key: Any = 0) -> Group | NoGroup:
        """Split the group into sub-groups of any processes: those of one colour.

        Collective. Use it as ``with bsp.split(colour) as sub:``, or call ``sub.done()``;
        until then this group rests. As in a collective, pending puts take effect at its
        sync, and messages that the program sent before can be read afterwards.

        Args:
            colour: an integer, a string or any other hashable value; the processes
                that give equal ones form a sub-group. None for no sub-group: then
                ``sub`` is None, and this group rests until the block ends.
            key: the processes of a sub-group are numbered by rising key, those of
                equal keys by their pid here; numbers, or anything that can be ordered.

        Returns:
            The sub-group, or for None what rests until the end of its block.

        Raises:
            PartitionError: a colour is not hashable or not equal to itself, or the
                keys of a sub-group cannot be ordered.
            MessageError: ``colour`` or ``key`` cannot be pickled.
            SyncMismatchError: a process is in no split.

        Supersteps: 1.
        Cost: (p - 1) n g + l, where n is the bytes of the pickled colour and key.
        Source: MPI_Comm_split of the MPI standard; PUB, bsp_partition for the rest.
        """
        self._check_usable()
        self._check_colour(colour)
        choices = self._exchange("split", (colour, key))
        colours = list(dict.fromkeys(other for other, _ in choices if other is not None))
        if colour is None:
            self._partitions += 1
            self._rest("this process is in no sub-group of a split; end its block first (done)")
            return NoGroup(self)
        pids = [pid for pid, (other, _) in enumerate(choices) if other == colour]
        try:
            pids.sort(key=lambda pid: choices[pid][1])
        except TypeError as error:
            keys = [choices[pid][1] for pid in pids]
            raise self._error(
                PartitionError, f"split: the keys {keys} cannot be ordered: {error}"
            ) from None
        return self._enter(colours.index(colour), pids)

    def done(self) -> None:
        """Leave a sub-group; the group that was partitioned is in use again.

        Raises:
            PartitionError: this is no sub-group, or a sub-group of it is open.
            PendingTransferError: transfers wait for a sync.

        Source: PUB, bsp_done.
        """
        self._check_usable()
        if self._parent is None:
            raise self._error(PartitionError, "done: this group is the whole run")
        caller = call_site.caller()
        self._check_nothing_pending("done", None if caller is None else caller.f_code)
        if self._watch is not None:
            self._end_watch(self._watch)
        self._leave()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self.done()
        elif self._parent is not None and self._parent._unusable is not None:
            with suppress(BspError):  # the exception is what the caller is to see
                self._leave()

    # -- sub-groups, inside -------------------------------------------------------------

    def _enter(self, index: int, pids: Sequence[int]) -> Group:
        """Open a sub-group of some processes of this group, which rests until it is left."""
        sub = self._open(index, pids)
        self._partitions += 1
        self._rest("a sub-group of it is open; leave the sub-group first (done)")
        self._inner = sub
        return sub

    def _open(self, index: int, pids: Sequence[int]) -> Group:
        return type(self)(self._open_port(index, pids), self._terms, self)

    def _open_port(self, index: int, pids: Sequence[int]) -> Port:
        try:
            return self._port.split(self._partitions, index, pids)
        except BspError as error:
            self._fail(error)

    def _leave(self) -> None:
        parent = self._parent
        assert parent is not None
        self._rest("it has been left (done)")
        parent._rest(None)
        parent._inner = None
        self._free(self._registry.with_memory())
        self._close()

    # -- checks ---------------------------------------------------------------------------

    def _check_colour(self, colour: Any) -> None:
        try:
            sound = hash(colour) is not None and bool(colour == colour)  # noqa: PLR0124  # NaN
        except (TypeError, ValueError):
            sound = False
        if not sound:
            raise self._error(
                PartitionError,
                f"split: colour is {colour!r}; it is an integer, a string or another hashable "
                f"value, or None for no sub-group",
            )

    def _check_number(self, n: int) -> int:
        try:
            number = operator.index(n)
        except TypeError:
            number = -1
        if number < 0:
            raise self._error(
                ArgumentError,
                f"oblsync: n is {n!r}; it is the number of messages to wait for, an integer of "
                f"0 or more",
            )
        return number

    def _check_ends(self, ends: Sequence[int]) -> list[int]:
        try:
            bounds = [operator.index(end) for end in ends]
        except TypeError:
            raise self._error(
                PartitionError,
                f"partition: ends are integers, one for each sub-group, not {ends!r}",
            ) from None
        if bounds != sorted(bounds) or not bounds or bounds[0] < 0 or bounds[-1] != self.nprocs:
            raise self._error(
                PartitionError,
                f"partition: ends {bounds} do not rise from 0 or more to {self.nprocs}, the "
                f"number of processes",
            )
        return bounds


class NoGroup:
    """Stands for the sub-group of a process that is in none: of ``split(None)``.

    ``with bsp.split(None) as sub:`` gives None as ``sub``; the group that was split rests
    until the block ends, or until :meth:`done`.
    """

    def __init__(self, parent: Group) -> None:
        self._parent: Group | None = parent

    def done(self) -> None:
        """Let the group that was split be used again."""
        if self._parent is not None:
            self._parent._rest(None)
            self._parent = None

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        self.done()
