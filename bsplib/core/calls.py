"""What a program calls to transfer something, and to end a superstep.

Each of these calls goes on to the engine, which a group has. They are methods of a class of their
own because they are compiled: a function of Python in between would take a third of the time of a
put. Nothing else stands here: what a call does begins in :mod:`bsplib.core.engine`.
"""

from __future__ import annotations

from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bsplib.core.engine import Engine

Array = NDArray[Any]
Offset = int | None
"""Of the first element of a transfer, in C order of the whole array; None to name it
otherwise."""


class Calls:
    """The calls of a group that its engine executes.

    Args:
        engine: of the group.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    # -- arrays of other processes ------------------------------------------------------------

    def put(self, pid: int, src: Any, dst: Any, *, offset: Any = None, at: Any = None) -> None:
        """Write ``src`` into ``dst`` on process ``pid`` at the end of the superstep.

        The values are copied before the call returns. Gets of the same superstep
        read before any put writes; puts are written in the order (source, program).

        Args:
            pid: receiving process, ``0 <= pid < nprocs``; may be this one.
            src: values, cast (same_kind) to the dtype of ``dst``; broadcast to a view.
            dst: registered array or a basic-slice view of one; names the same
                indices on ``pid``.
            offset: first element there, in C order of the whole array; as many as
                ``src`` has.
            at: basic index against the shape of the array on ``pid``, such as
                ``numpy.s_[:, -1]``.

        Raises:
            ProcessRangeError: ``pid`` is no process of this group.
            RegistrationError: ``dst`` is not registered, not yet effective, or None
                on ``pid``.
            PlaceError: ``dst`` is a number, ``at`` is no basic index, or both
                ``offset`` and ``at`` are given.
            BoundsError: the write would leave the array on ``pid``; raised at the
                sync where that array was made in this superstep.
            DtypeError: ``src`` cannot be cast or is a masked array, or the array has another
                dtype on ``pid``; with ``check=True``, a value does not fit into its dtype.
            OverlapError: with ``check=True``, ``src`` is read before a get has filled it.
            OutOfSharedMemoryError: there is no room for the copy of ``src``.
            PartitionError: the group cannot be used now.

        Cost: the bytes that are written to h_out here and to h_in on ``pid``.
        Source: Hill et al. 1998, bsp_put; offsets are elements, not bytes.
        """
        self._engine.put(self, pid, src, dst, offset, at, False)

    def hpput(self, pid: int, src: Any, dst: Any, *, offset: Any = None, at: Any = None) -> None:
        """Write ``src`` into ``dst`` on process ``pid`` at any time in the superstep.

        This saves copies of large values: they may be read, and written on ``pid``, at any
        moment from the call to the end of the superstep. Until the sync, therefore, ``src``
        may not be changed, and what is named on ``pid`` may be neither read nor written by
        anything else. What a program that breaks this finds there is undefined.

        Args:
            pid: receiving process, ``0 <= pid < nprocs``; may be this one.
            src: values, cast (same_kind) to the dtype of ``dst``; broadcast to a view.
            dst: registered array or a basic-slice view of one; names the same
                indices on ``pid``.
            offset: first element there, in C order of the whole array; as many as
                ``src`` has.
            at: basic index against the shape of the array on ``pid``.

        Raises:
            ProcessRangeError: ``pid`` is no process of this group.
            RegistrationError: ``dst`` is not registered, not yet effective, or None
                on ``pid``.
            PlaceError: ``dst`` is a number, ``at`` is no basic index, or both
                ``offset`` and ``at`` are given.
            BoundsError: the write would leave the array on ``pid``; raised at the
                sync where that array was made in this superstep.
            DtypeError: ``src`` cannot be cast or is a masked array, or the array has another
                dtype on ``pid``; with ``check=True``, a value does not fit into its dtype.
            OverlapError: with ``check=True``, ``src`` is read before a get has filled it;
                the sync raises it where ``src`` was changed or another transfer overlaps.
            OutOfSharedMemoryError: ``src`` has to be copied, and there is no room for it.
            PartitionError: the group cannot be used now.

        Cost: the bytes that are written to h_out here and to h_in on ``pid``.
        Source: Hill et al. 1998, bsp_hpput.
        """
        self._engine.put(self, pid, src, dst, offset, at, True)

    def get(
        self,
        pid: int,
        src: Any,
        dst: Any = None,
        *,
        offset: Any = None,
        at: Any = None,
        count: Any = None,
    ) -> Any:
        """Read ``src`` on process ``pid`` into ``dst`` at the end of the superstep.

        The values are those that ``src`` has when the superstep ends, before any put of
        the superstep is written. Destinations are written in program order.

        Args:
            pid: process to read from, ``0 <= pid < nprocs``; may be this one.
            src: registered array or a basic-slice view of one; names the same
                indices on ``pid``.
            dst: writable array or view, registered or not, of the shape of what is
                named; a new array if None.
            offset: first element there, in C order of the whole array; as many as
                ``dst`` has, or ``count``.
            at: basic index against the shape of the array on ``pid``.
            count: number of elements from ``offset`` on, for a new array.

        Returns:
            ``dst``, whose content is valid after the sync. Until then a new array has NaN, or
            the least integer, at both ends.

        Raises:
            ProcessRangeError: ``pid`` is no process of this group.
            RegistrationError: ``src`` is not registered, not yet effective, or None
                on ``pid``.
            PlaceError: ``src`` is a number, ``at`` is no basic index, both ``offset`` and
                ``at`` are given, ``dst`` and ``count`` are missing beside ``offset``,
                ``count`` is negative or has no ``offset``, or ``dst`` cannot be written
                or has another shape.
            BoundsError: the read would leave the array on ``pid``; raised at the sync
                where that array was made in this superstep.
            DtypeError: ``dst`` cannot take the values, or the array has another dtype
                on ``pid``; with ``check=True`` the sync raises it where a value does not fit.
            PartitionError: the group cannot be used now.

        Cost: the bytes that are read to h_in here and to h_out on ``pid``.
        Source: Hill et al. 1998, bsp_get.
        """
        return self._engine.get(self, pid, src, dst, offset, at, count, False)

    def hpget(
        self,
        pid: SupportsIndex,
        src: Array,
        dst: Array | None = None,
        *,
        offset: Offset = None,
        at: Any = None,
        count: int | None = None,
    ) -> Array:
        """Read ``src`` on process ``pid`` into ``dst`` at any time in the superstep.

        This saves copies of large values: they may be read on ``pid``, and written here, at
        any moment from the call to the end of the superstep. Until the sync, therefore, what
        is named on ``pid`` may not be changed, and ``dst`` may be neither read nor written.
        What a program that breaks this finds in ``dst`` is undefined.

        Args:
            pid: process to read from, ``0 <= pid < nprocs``; may be this one.
            src: registered array or a basic-slice view of one; names the same
                indices on ``pid``.
            dst: writable array or view, registered or not, of the shape of what is
                named; a new array if None.
            offset: first element there, in C order of the whole array; as many as
                ``dst`` has, or ``count``.
            at: basic index against the shape of the array on ``pid``.
            count: number of elements from ``offset`` on, for a new array.

        Returns:
            ``dst``, whose content is valid after the sync. Until then a new array has NaN, or
            the least integer, at both ends.

        Raises:
            ProcessRangeError: ``pid`` is no process of this group.
            RegistrationError: ``src`` is not registered, not yet effective, or None
                on ``pid``.
            PlaceError: ``src`` is a number, ``at`` is no basic index, both ``offset`` and
                ``at`` are given, ``dst`` and ``count`` are missing beside ``offset``,
                ``count`` is negative or has no ``offset``, or ``dst`` cannot be written
                or has another shape.
            BoundsError: the read would leave the array on ``pid``; raised at the sync
                where that array was made in this superstep.
            DtypeError: ``dst`` cannot take the values, or the array has another dtype
                on ``pid``; with ``check=True`` the sync raises it where a value does not fit.
            PartitionError: the group cannot be used now.

        Cost: the bytes that are read to h_in here and to h_out on ``pid``.
        Source: Hill et al. 1998, bsp_hpget.
        """
        found: Array = self._engine.get(self, pid, src, dst, offset, at, count, True)
        return found

    def put_at(
        self,
        pids: ArrayLike,
        indices: ArrayLike | tuple[ArrayLike, ...],
        values: ArrayLike,
        dst: Array,
        op: np.ufunc | str | None = None,
    ) -> None:
        """Write single elements into ``dst`` on many processes at the end of the superstep.

        The values are copied before the call returns. The elements are written in the order of
        puts (source, program): of several values for one element the last stays, or with
        ``op`` each of them is combined into what the element holds.

        Args:
            pids: receiving processes, broadcast against the other two.
            indices: elements of the array there in C order, none negative; or a tuple of
                index arrays, one for each axis there. With fewer than axes whole
                sub-arrays are written: ``(rows,)`` names rows of a matrix.
            values: cast (same_kind) to the dtype of ``dst``; for sub-arrays, their axes
                come last.
            dst: registered array, as a whole.
            op: binary ufunc such as ``numpy.add``, or its name, as for ``reduce``;
                None to write.

        Raises:
            ProcessRangeError: a pid is no process of this group.
            RegistrationError: ``dst`` is not registered, not yet effective, or None there.
            PlaceError: shapes do not go together, pids or indices are no integers, or
                ``dst`` is a view.
            BoundsError: an index lies outside the array there; raised at the sync where
                that array was made in this superstep.
            DtypeError: values cannot be cast or are a masked array, or ``op`` cannot combine
                them; with ``check=True``, a value does not fit into the dtype.
            OverlapError: with ``check=True``, ``values`` is read before a get has filled it.
            OutOfSharedMemoryError: there is no room for the copy of the values.
            PartitionError: the group cannot be used now.

        Cost: the bytes of one value for each word, to h_out here and to h_in there. For an
        oblsync it is one message for each destination.
        """
        self._engine.put_at(self, pids, indices, values, dst, op)

    def get_at(
        self,
        pids: ArrayLike,
        indices: ArrayLike | tuple[ArrayLike, ...],
        src: Array,
        out: Array | None = None,
    ) -> Array:
        """Read single elements of ``src`` on many processes at the end of the superstep.

        As for :meth:`get`, they are read before any put of the superstep is written.

        Args:
            pids: processes to read from, broadcast against ``indices``.
            indices: elements of the array there in C order, none negative; or a tuple of
                index arrays, one for each axis there. With fewer than axes whole
                sub-arrays are read, whose axes come last: ``(rows,)`` names rows.
            src: registered array, as a whole.
            out: writable array of the broadcast shape; a new one if None.

        Returns:
            ``out``, whose content is valid after the sync.

        Raises:
            ProcessRangeError: a pid is no process of this group.
            RegistrationError: ``src`` is not registered, not yet effective, or None there.
            PlaceError: shapes do not go together, pids or indices are no integers, ``out``
                has another shape or cannot be written, or ``src`` is a view.
            BoundsError: an index lies outside the array there; raised at the sync where
                that array was made in this superstep.
            DtypeError: ``out`` cannot take the values; with ``check=True`` the sync raises it
                where a value does not fit.
            OutOfSharedMemoryError: there is no room for the indices.
            PartitionError: the group cannot be used now.

        Cost: the bytes of one value for each word, to h_in here and to h_out there.
        """
        found: Array = self._engine.get_at(self, pids, indices, src, out)
        return found

    # -- messages -----------------------------------------------------------------------------

    def send(self, pid: int, payload: Any, tag: Any = None) -> None:
        """Send a message that process ``pid`` can read in the next superstep.

        The payload is copied before the call returns.

        Args:
            pid: receiving process, ``0 <= pid < nprocs``; may be this one.
            payload: array (shape and dtype are kept), bytes, or any picklable object.
            tag: small picklable object; bytes of the size that :meth:`set_tagsize`
                set, where it did. None stands for the tag of size 0.

        Raises:
            ProcessRangeError: ``pid`` is no process of this group.
            MessageError: the payload or the tag cannot be pickled, or the tag has
                another size.
            OverlapError: with ``check=True``, the payload is read before a get has filled it.
            OutOfSharedMemoryError: there is no room for the copy of the payload.
            PartitionError: the group cannot be used now.

        Cost: the payload's bytes to h_out here and to h_in on ``pid``; a tag is free.
        Source: Hill et al. 1998, bsp_send.
        """
        self._engine.send(self, pid, payload, tag)

    def messages(self) -> Any:
        """Take the messages one after the other, as (source, tag, payload).

        They come in the order (source, program); each payload is the caller's own. A
        message is taken when the iteration reaches it: the others stay in the queue.

        Raises:
            PartitionError: the group cannot be used now.

        Cost: nothing beyond what sending cost; one copy of each payload.
        Source: Hill et al. 1998, bsp_get_tag and bsp_move.
        """
        return self._engine.messages(self)

    def move(self) -> Any:
        """Take the next message and return its payload, which is the caller's own.

        Raises:
            MessageError: no message is left.
            PartitionError: the group cannot be used now.

        Cost: nothing beyond what sending cost; one copy of the payload.
        Source: Hill et al. 1998, bsp_move.
        """
        return self._engine.move(self)

    def hpmove(self) -> tuple[Any, Any] | None:
        """Take the next message and return its tag and its payload without a copy.

        An array or bytes come as a view that is valid until the next sync; any other payload
        is the caller's own.

        Returns:
            (tag, payload); None where no message is left.

        Raises:
            PartitionError: the group cannot be used now.

        Cost: nothing.
        Source: Hill et al. 1998, bsp_hpmove.
        """
        taken: tuple[Any, Any] | None = self._engine.hpmove(self)
        return taken

    # -- the end of a superstep ---------------------------------------------------------------

    def sync(self) -> None:
        """End the superstep: wait for all processes of the group, deliver everything.

        Gets read and write first, then puts write, then messages become readable.
        Messages of the superstep before that were not read are gone.

        Raises:
            SyncMismatchError: another process ends this superstep in another way, or
                made other registrations in it.
            RegistrationError: a transfer named an array made in this superstep, which is
                None on the other process.
            BoundsError: a transfer named an array made in this superstep, and would
                leave it.
            DtypeError: a transfer named an array made in this superstep, which has
                another dtype on the other process; with ``check=True``, a value of a get does
                not fit into its destination.
            OverlapError: with ``check=True``, transfers overlap, or an array that belongs
                to a transfer was changed before its time.
            OutOfSharedMemoryError: there is no room for the values of a get.
            PartitionError: the group cannot be used now.

        Cost: g h + l, where h is the greatest of h_in and h_out of all processes.
        Source: Hill et al. 1998, bsp_sync.
        """
        self._engine.sync(self)

    def oblsync(self, n: int) -> None:
        """End the superstep as soon as ``n`` messages addressed to this process are there.

        There is one message for each send, one for each put of any elements and one for
        each process that a put_at writes to; those of this process to itself count too.
        Other processes may by then be in another superstep; what they send early waits
        for its superstep. Registrations take effect at the next global sync.

        Args:
            n: how many messages to wait for.

        Raises:
            ArgumentError: ``n`` is no integer of 0 or more.
            SyncMismatchError: more than ``n`` have come or fewer can come, or another
                process ends this superstep by a global sync.
            PendingTransferError: the superstep has a get.
            BoundsError: a put named an array made in this superstep, and would leave it.
            OverlapError: with ``check=True``, transfers overlap, or an array that belongs
                to a transfer was changed before its time.
            PartitionError: the group cannot be used now.

        Cost: g h for what was transferred among those that sent to this process; no l.
        Source: PUB, bsp_oblsync; Gonzalez et al., section 2.
        """
        self._engine.oblsync(self, n)
