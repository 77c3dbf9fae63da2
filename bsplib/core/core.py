"""The primitives that the core has: put, hpput, get, send, sync and messages.

A group inherits them from :class:`Core`, the last of a chain of classes:

============== ==================================================================================
QuickState     has all attributes, and names what the primitives have to do
Collecting     makes records of puts, gets and messages at their calls
Delivering     delivers at the end of a superstep
Core           has the methods that a program calls, and ends a superstep
============== ==================================================================================

Every transfer becomes a record in a :class:`~bsplib.core.box.Box`. Where it is simple, such as
contiguous values of the right dtype for an array that has been named before, the core makes the
record. It declines everything else by returning False: then :mod:`bsplib.primitives` checks the
call, raises all errors, and makes the record.

A superstep ends by a :class:`~bsplib.core.meeting.Meeting`, after which each process reads the
records that others have for it, and delivers them in one order: gets, then puts and messages by
source and program. A get whose source this process can reach is read there; any other one is a
record, too, which asks its receiver for the values, and a second meeting brings the answers.
"""

from __future__ import annotations

from typing import Any

try:
    import cython
except ImportError:
    from bsplib.core import _no_cython as cython
from bsplib.core.delivering import Delivering
from bsplib.core.log import IN, OUT
from bsplib.core.reading import Reading
from bsplib.errors import BspError
from bsplib.sync_kinds import HAS_ASKS, HAS_GET, Kind

if not cython.compiled:
    from bsplib.core.atomics import prepare, this_thread
prepare()

_SYNC = Kind.SYNC
_OWN_FRAMES = 0 if cython.compiled else 2
"""Interpreted functions of this module, ``sync`` and ``_sync_recorded``, that are not part of the
program's stack."""


class Core(Delivering):
    """The primitives of a group that the core has."""

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
        began = self._begin_call() if self._timed else 0
        try:
            place = dst if at is None else self._view_at(dst, at) if offset is None else None
            if place is None or not self._put_quickly(pid, src, place, offset):
                self._put_slowly("put", pid, src, dst, offset, at)
        except BspError as error:
            self._fail(error)
        finally:
            if began:
                self._end_call(began)

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
        began = self._begin_call() if self._timed else 0
        try:
            place = dst if at is None else self._view_at(dst, at) if offset is None else None
            if place is None or not self._hpput_quickly(pid, src, place, offset):
                self._put_slowly("hpput", pid, src, dst, offset, at)
        except BspError as error:
            self._fail(error)
        finally:
            if began:
                self._end_call(began)

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
        began = self._begin_call() if self._timed else 0
        try:
            if count is None:
                place = src if at is None else self._view_at(src, at) if offset is None else None
                into = self._get_into(pid, place, dst, offset, at_any_time=False)
                if into is not None:
                    return into
            return self._get_slowly("get", pid, src, dst, offset, at, count)
        except BspError as error:
            self._fail(error)
        finally:
            if began:
                self._end_call(began)

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
        began = self._begin_call() if self._timed else 0
        try:
            if not self._send_quickly(pid, payload, tag):
                self._send_slowly(pid, payload, tag)
        except BspError as error:
            self._fail(error)
        finally:
            if began:
                self._end_call(began)

    def messages(self) -> Any:
        """Take the messages one after the other, as (source, tag, payload).

        They come in the order (source, program); each payload is the caller's own. A
        message is taken when the iteration reaches it: the others stay in the queue.

        Raises:
            PartitionError: the group cannot be used now.

        Cost: nothing beyond what sending cost; one copy of each payload.
        Source: Hill et al. 1998, bsp_get_tag and bsp_move.
        """
        if self._unusable is not None or this_thread() != self._thread:
            self._check_usable("messages")
        began = self._begin_call() if self._clock is not None else 0
        try:
            return Reading(self, self._queue)
        finally:
            if began:
                self._end_call(began)

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
        if self._unusable is not None or this_thread() != self._thread:
            self._check_usable("sync")
        clock = self._clock
        if clock is not None:
            clock.enter()
            clock.settle()  # others wait for this process
        try:
            if self._recorded:
                self._sync_recorded()
            else:
                self._end_by_meeting(_SYNC, 0)
        finally:
            if clock is not None:
                clock.leave()

    # -- the end of a superstep ---------------------------------------------------------------

    def _end_by_meeting(self, kind: int, stamp: int) -> int:
        """End the superstep together with all processes of the group, whatever it has.

        Args:
            kind: the way in which it ends.
            stamp: time of arrival in ns; 0 where the run is not recorded.
        """
        meeting, box = self._meeting, self._box
        try:
            note, head = kind, 0
            if self._changes or self._unresolved or self._checked:
                note |= self._before_meeting()
            if self._gets:
                note |= HAS_GET | HAS_ASKS if self._asks else HAS_GET
            if box.holds_card or box.holds_more:
                head = box.complete(meeting.room_for_card())
            nothing_new = meeting.meet(note, head, stamp)
            if head:
                box.turn()
            if self._queue.messages:
                self._queue.clear()
            if not nothing_new or note & HAS_GET:
                self._deliver(note)
            if meeting.has_outbox:
                self._port_end_superstep()
            else:
                meeting.end_superstep()
        except BspError as error:
            self._fail_for_good(error)
        self._superstep += 1
        if self._has_early and not self._counts:
            self._forget_counts()
        if self._checked or self._early_gets:
            self._after_superstep()
        return 0

    def _end_together(self, kind: int, stamp: int) -> None:
        """Do as :meth:`_end_by_meeting`, for the primitives."""
        self._end_by_meeting(kind, stamp)

    def _sync_recorded(self) -> None:
        """End the superstep, and write its record."""
        log: Any = self._log
        arrive = self._time_ns()
        log.arrive(arrive, self._comm_ns)
        superstep = self._superstep
        self._end_by_meeting(_SYNC, arrive)
        end = self._time_ns()
        released = self._meeting.released
        if self._has_counts or self._has_early:
            self._log_counts()
        stack = self._stack_keys.number(_OWN_FRAMES)
        log.add_superstep(
            superstep, _SYNC, stack, arrive, released if released < end else end, end, self._comm_ns
        )
        self._comm_ns = 0
        log.rest(self._time_ns())
        log.begin(self._time_ns())

    def _write_counts(self) -> None:
        """Do as :meth:`_log_counts`, for a recorder."""
        self._log_counts()

    def _log_counts(self) -> int:
        """Write the traffic of this superstep, and begin to count anew."""
        log = self._log
        for pid in range(self._nprocs):
            nbytes, messages = self._sent_bytes[pid], self._sent[pid]
            if self._has_early:
                nbytes += self._early_bytes[pid]
                messages += self._early_puts[pid]
            log.add_traffic(pid, OUT, nbytes, messages)
            log.add_traffic(pid, IN, self._got_bytes[pid], self._got[pid])
        self._forget_counts()
        return 0
