"""Sub-groups: how a process enters one, and how it leaves it."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Self

from bsplib import call_site
from bsplib.backends.base import Port
from bsplib.errors import BspError, PartitionError
from bsplib.primitives.combinations import Combinations


class SubGroups(Combinations):
    """The sub-groups of a group, as one of its processes is in them."""

    def partition(self, ends: Sequence[int]) -> Self:
        """Split the group; return the sub-group that this process is in.

        Collective, and without communication. Use it as ``with bsp.partition(ends)
        as sub:`` or call ``sub.done()``; until then this group cannot be used. Transfers
        pending here stay pending, and messages not read yet can be read afterwards.

        Args:
            ends: sub-group i has the processes ``ends[i-1] .. ends[i] - 1``; not
                decreasing, the last is ``nprocs``; empty sub-groups are legal.

        Returns:
            The sub-group, with a numbering, a queue and registrations of its own.

        Raises:
            PartitionError: ``ends`` is none of that, sub-groups are nested too deep, or
                the group cannot be used now.

        Cost: nothing.
        Source: PUB, bsp_partition; Gonzalez et al., section 2.2.
        """
        self._check_usable()
        bounds = self._check_ends(ends)
        index = next(i for i, end in enumerate(bounds) if self.pid < end)
        return self._enter(index, range(bounds[index - 1] if index else 0, bounds[index]))

    def split(self, colour: Any, key: Any = 0) -> Self | NoGroup:
        """Split the group into sub-groups of any processes: those of one colour.

        Collective. Use it as ``with bsp.split(colour) as sub:``, or call ``sub.done()``;
        until then this group cannot be used. As in a collective, pending puts take effect
        at its sync, and messages that the program sent before can be read afterwards.

        Args:
            colour: an integer, a string or any other hashable value; the processes
                that give equal ones form a sub-group. None for no sub-group: then
                ``sub`` is None, and this group cannot be used until the block ends.
            key: the processes of a sub-group are numbered by rising key, those of
                equal keys by their pid here; numbers, or anything that can be ordered.

        Returns:
            The sub-group; for the colour None an object that has only ``done``.

        Raises:
            PartitionError: a colour is not hashable or not equal to itself, the keys of a
                sub-group cannot be ordered, sub-groups are nested too deep, or the group
                cannot be used now.
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
            self._suspend("this process is in no sub-group of a split; end its block first (done)")
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
        """Leave a sub-group; the group that was partitioned or split can be used again.

        Raises:
            PartitionError: this is no sub-group, a sub-group of it is open, or it has
                been left already.
            PendingTransferError: transfers wait for a sync.
            OverlapError: with ``check=True``, an array that belongs to a transfer was
                changed before its time.

        Cost: nothing; it does not wait for other processes.
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

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.done()
        elif self._parent is not None and self._parent._unusable is not None:
            with suppress(BspError):  # a second error must not hide the exception
                self._leave()

    # -- entering and leaving -----------------------------------------------------------

    def _enter(self, index: int, pids: Sequence[int]) -> Self:
        """Open a sub-group of some processes; suspend this group until it is left."""
        sub = self._open(index, pids)
        self._partitions += 1
        self._suspend("a sub-group of it is open; leave the sub-group first (done)")
        self._inner = sub
        return sub

    def _open(self, index: int, pids: Sequence[int]) -> Self:
        """Make the object for a sub-group; a recorder adds what its records need."""
        return type(self)(self._open_port(index, pids), self._terms, self)

    def _open_port(self, index: int, pids: Sequence[int]) -> Port:
        try:
            return self._port.split(self._partitions, index, pids)
        except BspError as error:
            self._fail(error)

    def _leave(self) -> None:
        """Resume the parent, give back the memory of this sub-group, and close its port."""
        parent = self._parent
        assert parent is not None
        self._suspend("it has been left (done); use the group of which it was a part")
        parent._resume()
        parent._inner = None
        self._free(self._registry.with_memory())
        self._close()

    # -- checks -----------------------------------------------------------------------------

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

    ``with bsp.split(None) as sub:`` gives None as ``sub``; the group that was split cannot
    be used until the block ends, or until :meth:`done`.
    """

    def __init__(self, parent: SubGroups) -> None:
        self._parent: SubGroups | None = parent

    def done(self) -> None:
        """End the block of a process that is in no sub-group; the split group can be used again."""
        if self._parent is not None:
            self._parent._resume()
            self._parent = None

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        self.done()
