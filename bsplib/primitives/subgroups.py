"""Sub-groups: how a process enters one, and how it leaves it."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, TypeVar

from bsplib import call_site
from bsplib.core.atomics import this_thread
from bsplib.core.life import CLOSED, OVER, RESTING
from bsplib.errors import BspError, PartitionError
from bsplib.primitives.collective_mail import all_others, others_of
from bsplib.primitives.ending import check_nothing_pending, close
from bsplib.primitives.state import GroupState

_Group = TypeVar("_Group", bound=GroupState)
_LEFT = "it has been left (done); use the group of which it was a part, or open it in a with block"


def partition(bsp: _Group, ends: Sequence[int]) -> _Group:
    """Split the group; return the sub-group that this process is in.

    Collective, and without communication. Use it as ``with bsp.partition(ends)
    as sub:`` or call ``sub.done()``; until then this group cannot be used. Transfers
    pending here stay pending, and messages not read yet can be read afterwards.
    A later block ``with sub:`` opens the sub-group again, without its arrays and
    messages; all processes of this group open theirs.

    Args:
        ends: sub-group i has the processes ``ends[i-1] .. ends[i] - 1``; not
            decreasing, the last is ``nprocs``; empty sub-groups are legal.

    Returns:
        The sub-group, with a numbering, a queue and registrations of its own.

    Raises:
        PartitionError: ``ends`` is none of that, sub-groups are nested more than 64 deep
            on real processes, or the group cannot be used now.

    Cost: nothing.
    Source: PUB, bsp_partition; Gonzalez et al., section 2.2.
    """
    bsp._check_usable()
    bounds = _check_ends(bsp, ends)
    index = next(i for i, end in enumerate(bounds) if bsp.pid < end)
    return _enter(bsp, index, range(bounds[index - 1] if index else 0, bounds[index]))


def split(bsp: _Group, colour: Any, key: Any = 0) -> _Group | NoGroup:
    """Split the group into sub-groups of any processes: those of one colour.

    Collective. Use it as ``with bsp.split(colour) as sub:``, or call ``sub.done()``;
    until then this group cannot be used. As in a collective, pending puts take effect
    at its sync, and messages that the program sent before can be read afterwards. Messages
    outlive it as they do a partition: those that were not read before, until the next
    sync; those that were sent before, until the sync after that; the sync of another split
    is none of these. ``with sub:`` opens the sub-group again, without communication, as that of a
    partition.

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
            sub-group cannot be ordered, sub-groups are nested more than 64 deep on real
            processes, or the group cannot be used now.
        MessageError: ``colour`` or ``key`` cannot be pickled.
        SyncMismatchError: a process is in no split.

    Supersteps: 1.
    Cost: (p - 1) n g + l, where n is the bytes of the pickled colour and key.
    Source: MPI_Comm_split of the MPI standard; PUB, bsp_partition for the rest.
    """
    bsp._check_usable()
    _check_colour(bsp, colour)
    try:
        choices = _exchange_choices(bsp, (colour, key))
        colours = list(dict.fromkeys(other for other, _ in choices if other is not None))
        if colour is None:
            return NoGroup(bsp)
        pids = [pid for pid, (other, _) in enumerate(choices) if other == colour]
        try:
            pids.sort(key=lambda pid: choices[pid][1])
        except TypeError as error:
            keys = [choices[pid][1] for pid in pids]
            raise bsp._error(
                PartitionError, f"split: the keys {keys} cannot be ordered: {error}"
            ) from None
        return _enter(bsp, colours.index(colour), pids)
    except BaseException as error:
        bsp._note_failure(error)
        raise


def _exchange_choices(bsp: GroupState, own: tuple[Any, Any]) -> list[tuple[Any, Any]]:
    """Exchange colours and keys; keep the messages that are not read, as a partition does.

    Those that arrive with the choices can be read after the next sync, too: before a
    partition they would wait for that sync.
    """
    queue, fetch = bsp._engine.queue, bsp._port.fetch
    own = bsp._values.give(bsp, "split", all_others(bsp), own)
    lasting = min(queue.lasting, len(queue))
    unread = queue.take_left(fetch)
    bsp.sync()
    others = others_of(bsp.pid, bsp.nprocs)
    choices: list[Any] = bsp._values.take(bsp, "split", None, others, bsp.pid, own, False)
    sent = queue.take_left(fetch)
    queue.fill(unread + sent)
    queue.lasting = lasting + len(sent)
    return choices


def done(bsp: GroupState) -> None:
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
    bsp._check_usable()
    if bsp._parent is None:
        raise bsp._error(PartitionError, "done: this group is the whole run")
    caller = call_site.caller()
    check_nothing_pending(bsp, "done", None if caller is None else caller.f_code)
    if bsp._checking is not None:
        bsp._checking.finish(bsp._engine)
    bsp._supersteps.free(bsp._registry.with_memory())
    _leave(bsp)


def abandon(bsp: GroupState) -> None:
    """Leave a sub-group at the end of a ``with`` block that an exception has ended.

    A sub-group of it that is open is left first. Their arrays keep their memory until the run
    ends: other processes may still write to them.
    """
    is_open = bsp._parent is not None and bsp._parent._inner is bsp
    engine = bsp._engine
    if is_open and engine.life != OVER and this_thread() == engine.thread:
        if bsp._inner is not None:
            abandon(bsp._inner)
        with suppress(BspError):  # a second error must not hide the exception
            _leave(bsp)


# -- entering and leaving ---------------------------------------------------------------


def open_again(bsp: GroupState) -> None:
    """Open a sub-group that was left, at the beginning of a further ``with`` block.

    Collective among all processes of the parent, and without communication, as a partition.
    The sub-group has the same processes; it has no registrations, messages or supersteps yet.

    Raises:
        PartitionError: the parent cannot be used now.
    """
    parent = bsp._parent
    if parent is not None and parent._inner is not bsp:
        parent._check_usable()
        type(bsp).__init__(bsp, *_opened(parent, *bsp._place))
        _rest(parent, bsp)


def _enter(bsp: _Group, index: int, pids: Sequence[int]) -> _Group:
    """Open a sub-group of some processes; suspend this group until it is left."""
    sub = type(bsp)(*_opened(bsp, index, pids))
    _rest(bsp, sub)
    return sub


def _rest(bsp: GroupState, sub: GroupState) -> None:
    """Suspend a group until its sub-group is left."""
    bsp._partitions += 1
    bsp._engine.suspend(RESTING, "a sub-group of it is open; leave the sub-group first (done)")
    bsp._inner = sub


def _opened(bsp: _Group, index: int, pids: Sequence[int]) -> tuple[Any, ...]:
    """Return what a sub-group is made of: its connection to its processes, and its records."""
    port = bsp._checked(bsp._port.split, bsp._partitions, index, pids)
    recording, engine = bsp._recording, bsp._engine
    if recording is not None:
        recording = recording.of_subgroup(engine, port, bsp._partitions, index)
    return port, bsp._terms, bsp, recording, (index, pids)


def _leave(bsp: GroupState) -> None:
    """Resume the parent, and close the port of this sub-group."""
    parent = bsp._parent
    assert parent is not None
    bsp._engine.leave()
    bsp._engine.suspend(CLOSED, _LEFT)
    parent._engine.resume()
    parent._inner = None
    close(bsp)
    bsp._engine.left()


# -- checks -----------------------------------------------------------------------------


def _check_colour(bsp: GroupState, colour: Any) -> None:
    try:
        sound = hash(colour) is not None and bool(colour == colour)  # noqa: PLR0124  # NaN
    except (TypeError, ValueError):
        sound = False
    if not sound:
        raise bsp._error(
            PartitionError,
            f"split: colour is {colour!r}; it is an integer, a string or another hashable "
            f"value, or None for no sub-group",
        )


def _check_ends(bsp: GroupState, ends: Sequence[int]) -> list[int]:
    try:
        bounds = [operator.index(end) for end in ends]
    except TypeError:
        raise bsp._error(
            PartitionError,
            f"partition: ends are integers, one for each sub-group, not {ends!r}",
        ) from None
    if bounds != sorted(bounds) or not bounds or bounds[0] < 0 or bounds[-1] != bsp.nprocs:
        raise bsp._error(
            PartitionError,
            f"partition: ends {bounds} do not rise from 0 or more to {bsp.nprocs}, the "
            f"number of processes",
        )
    return bounds


class NoGroup:
    """Stands for the sub-group of a process that is in none: of ``split(None)``.

    ``with bsp.split(None) as sub:`` gives None as ``sub``; the group that was split cannot
    be used until the block ends, or until :meth:`done`; and a further block suspends it again.
    """

    def __init__(self, parent: GroupState) -> None:
        self._parent = parent
        self._suspend()

    def _suspend(self) -> None:
        self._parent._partitions += 1
        self._engine = self._parent._engine  # which is another one after the group was left
        self._engine.suspend(
            RESTING,
            "this process is in no sub-group of a split; end the with block of the split first, "
            "or call its done()",
        )
        self._is_open = True

    def done(self) -> None:
        """End the block of a process that is in no sub-group; the split group can be used again."""
        if self._is_open:
            self._engine.resume()
            self._is_open = False

    def __getattr__(self, name: str) -> Any:
        """Say how it is written that only processes of a sub-group take part."""
        raise AttributeError(
            f"this process is in no sub-group of the split, so there is no {name}; write "
            "`with bsp.split(colour) as sub:` and in it `if sub is not None:`"
        )

    def __enter__(self) -> None:
        if not self._is_open:
            self._parent._check_usable()
            self._suspend()

    def __exit__(self, *exception: object) -> None:
        self.done()
