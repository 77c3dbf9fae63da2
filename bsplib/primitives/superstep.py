"""The end of a superstep: processes exchange parcels, deliver them, begin the next one."""

from __future__ import annotations

import functools
import marshal
import operator
from types import CodeType
from typing import Any

from bsplib.backends.base import Arrivals, Arrived
from bsplib.backends.parcels import Parcel
from bsplib.core.records import Record
from bsplib.errors import ArgumentError, BspError, PendingTransferError, SyncMismatchError
from bsplib.primitives.state import GroupState
from bsplib.sync_kinds import HAS_GET, HAS_MESSAGES, KIND_BITS, UNRESOLVED, Kind
from bsplib.transfers.arrivals import check_arrivals
from bsplib.transfers.checker import check_overlaps
from bsplib.transfers.delivery import (
    messages_of,
    read_sources,
    write_gets,
    write_puts,
    write_stretch,
)
from bsplib.transfers.outgoing import Outgoing
from bsplib.transfers.pending import pending_transfers
from bsplib.transfers.watch import Watch

_SYNC = Kind.SYNC  # bound once: enum look-up is slow
_NOTHING: dict[int, Parcel] = {}
_RUN_ENDED = "its run has ended; a group is used in the run whose main was given it"
_SOURCE = operator.itemgetter(0)

_KIND_WORDS = {
    Kind.SYNC: "at a sync",
    Kind.OBLSYNC: "at an oblsync",
    Kind.END: "returned from main",
}


class Supersteps(GroupState):
    """The supersteps of one process in one group."""

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
        self._check_usable()
        self._end_oblivious(self._check_number(n), 0)

    # -- the end of a superstep, step by step -----------------------------------------------

    def _end_superstep(self, kind: Kind, stamp: int) -> None:
        """End the superstep together with all processes of the group, whatever it has."""
        self._spill()
        out, registry = self._out, self._registry
        if not (out or kind or self._long or self._changes or self._queue.messages):
            self._end_empty_superstep(stamp)
            return
        note: int = kind
        try:
            if self._watch is not None:
                self._end_watch(self._watch)
            parcels = _NOTHING
            if out:
                note |= HAS_GET * bool(self._gets) | UNRESOLVED * bool(self._unresolved)
                note |= HAS_MESSAGES * any(sent.messages for sent in out.values())
                parcels = self._parcels()
            common = registry.announcement() if self._changes else None
            arrivals = self._port.exchange(parcels, note, common, stamp)
            if arrivals is not None or (out and self._pid in out):
                self._deliver_all(kind, note, arrivals or ([note], [], None))
            elif self._queue.messages:
                self._queue.clear()
        except BspError as error:
            self._fail_for_good(error)
        self._port.end_superstep()
        self._superstep += 1
        if self._watch is not None:
            self._watch.begin(registry)
        if out:
            self._out.clear()
        if self._early:
            self._early = {}
        self._long_gets = False

    def _end_empty_superstep(self, stamp: int) -> None:
        """End a superstep in which this process has done nothing that others have to know."""
        try:
            arrivals = self._port.sync_empty(_SYNC, stamp)
            if arrivals is not None:
                self._deliver_all(_SYNC, _SYNC, arrivals)
                self._port.end_superstep()
        except BspError as error:
            self._fail_for_good(error)
        self._superstep += 1
        self._early = {}

    def _deliver_with_parcels(self, note: int) -> None:
        """Deliver by the long way: others have brought what is not quick."""
        self._deliver_all(_SYNC, note, self._port.collect())

    def _port_end_superstep(self) -> None:
        self._port.end_superstep()

    def _write_slowly(self, slot: int, first: int, data: bytes) -> None:
        """Write a put into an array whose elements have gaps."""
        registration = self._registry.at(slot)
        write_stretch(registration, first // registration.itemsize, data, self._port)

    def _parcels(self) -> dict[int, Parcel]:
        """Return the parcels for other processes; what hpput has written is not in them."""
        return {
            pid: sent.parcel()
            for pid, sent in self._out.items()
            if pid != self._pid and not sent.is_empty()
        }

    def _deliver_all(self, kind: Kind, note: int, arrivals: Arrivals) -> None:
        """Deliver in the order of the contract: gets, puts, messages, registrations."""
        notes, parcels, commons = arrivals
        held = note
        if notes.count(note) != len(notes):
            self._check_kinds(kind, notes)
            held = functools.reduce(operator.or_, notes)
        incoming = self._incoming(parcels)
        if commons is not None:
            self._agree(commons)
        if held & UNRESOLVED:
            self._resolve()
        if self._watch is not None:
            self._check_overlaps(incoming)
        if held & HAS_GET:
            self._serve_gets(incoming)
        if incoming:
            write_puts(self._registry, incoming, self._port)
        if held & HAS_MESSAGES or self._queue.messages:
            self._queue.fill(messages_of(incoming))
        if commons is not None:
            self._free(self._registry.drop_popped())
            self._tag_size = self._next_tag_size

    def _agree(self, commons: list[Any]) -> None:
        """Let registrations take effect."""
        for registration in self._registry.agree(commons):
            packed = registration.bytes is not None
            self._define(registration.slot, registration.address if packed else 0)
        self._forget_lanes()

    def _incoming(self, parcels: list[Arrived], *, met: bool = True) -> list[Arrived]:
        """Return the parcels of others and the one of this process for itself, by source.

        What came as records of the quick way is made a parcel.

        Args:
            parcels: of others.
            met: they come from a meeting, which may have brought records, too.
        """
        mine = self._out.get(self._pid)
        if mine is not None:
            parcels = [*parcels, (self._pid, mine.parcel())]
        if met and self._meeting.is_quick:
            for source in range(self._nprocs):
                records = self._records_from(source)
                if records:
                    parcels = [*parcels, (source, self._parcel_of(source, records))]
        return sorted(parcels, key=_SOURCE)

    def _parcel_of(self, source: int, records: list[Record]) -> Parcel:
        """Return the parcel that brings the same as the records of a process."""
        sent = Outgoing()
        for _, slot, first, head, data in records:
            payload = data if isinstance(data, bytes) else (source, *data)
            if head is not None:
                sent.add_message(marshal.loads(head), payload)
            else:
                sent.add_stretch(slot, first // self._registry.itemsize(slot), payload)
        return sent.parcel()

    def _resolve(self) -> None:
        """Check what could not be checked at the calls, and wait for all to have done so.

        Where a check fails, no process has written anything yet.
        """
        for target in self._unresolved:
            target.resolve()
        self._unresolved.clear()
        self._port.exchange({}, 0)

    def _serve_gets(self, incoming: list[Arrived]) -> None:
        """Read what others get from here, exchange it, and keep what this process gets.

        No process writes a put before all have read: the exchange comes between.
        """
        replies = {
            source: Parcel(replies=read_sources(self._registry, parcel.gets, self._port, source))
            for source, parcel in incoming
            if parcel.gets is not None
        }
        own = replies.pop(self._pid, None)
        self._serve_own_gets(True)
        arrivals = self._port.exchange(replies, 0)
        self._serve_own_gets(False)
        served = {source: reply.replies for source, reply in arrivals[1]} if arrivals else {}
        if own is not None:
            served[self._pid] = own.replies
        if self._gets:
            write_gets(self._gets, served, self._port)
            self._gets = []

    def _end_oblivious(self, n: int, stamp: int) -> None:
        """End the superstep when ``n`` messages are there for this process."""
        self._spill()
        gets = len(self._gets) + sum(done.gets for done in self._early.values())
        if gets:
            raise self._error(
                PendingTransferError,
                f"oblsync: {gets} gets are pending, and only a global sync serves them; call sync",
            )
        parcels = self._counted_parcels()
        own, _ = parcels.pop(self._pid, (0, None))
        try:
            if self._watch is not None:
                self._end_watch(self._watch)
            if own > n:
                raise SyncMismatchError(
                    f"oblsync({n}): process {self._pid} alone sent itself {own} messages"
                )
            arrived = self._port.exchange_oblivious(parcels, operator.index(n) - own, stamp)
            incoming = self._incoming(arrived, met=False)
            if self._watch is not None:
                self._check_overlaps(incoming)
            for source, parcel in incoming:
                check_arrivals(self._registry, source, parcel, self._port.fetch)
            write_puts(self._registry, incoming, self._port)
            self._queue.fill(messages_of(incoming))
        except BspError as error:
            self._fail_for_good(error)
        self._unresolved.clear()
        self._port.end_superstep()
        self._superstep += 1
        if self._watch is not None:
            self._watch.begin(self._registry)
        self._out.clear()
        self._early = {}
        self._long_gets = False

    def _counted_parcels(self) -> dict[int, tuple[int, Parcel]]:
        """Return the parcels, by pid, and for how many messages each counts.

        An hpput that has been written already counts too, though it is in no parcel.
        """
        out, early = self._out, self._early
        return {
            pid: (out[pid].count() + (early[pid].puts if pid in early else 0), out[pid].parcel())
            for pid in {**out, **early}
        }

    def _begin(self) -> None:
        """Begin ``main``: what follows is computation of the program."""

    def _finish(self, main: CodeType | None = None) -> None:
        """End the last superstep, from the last sync to the end of ``main``.

        Args:
            main: code of ``main``, to name the lines of pending transfers.
        """
        self._check_usable()
        self._check_nothing_pending("main", main)
        self._end_superstep(Kind.END, 0)
        self._close()

    def _retire(self) -> None:
        """Suspend the group and its open sub-groups for good: the run has ended."""
        group: GroupState | None = self
        while group is not None:
            group._suspend(_RUN_ENDED)
            group._ended = True
            group = group._inner

    def _close(self) -> None:
        try:
            self._port.close()
        except BspError as error:
            self._fail(error)

    # -- checks -------------------------------------------------------------------------

    def _end_watch(self, watch: Watch) -> None:
        """Report what ``check=True`` has found wrong with the superstep that ends."""
        watch.verify()
        members = self._port.members
        unread = [members[message[0]] for message in self._queue.messages[self._queue.next :]]
        if unread:
            watch.warn_of_unread(unread, members[self._pid])

    def _check_kinds(self, kind: Kind, notes: list[int]) -> None:
        if {note & KIND_BITS for note in set(notes)} == {kind}:
            return
        at = {
            other: [pid for pid, note in enumerate(notes) if note & KIND_BITS == other]
            for other in sorted({note & KIND_BITS for note in notes})
        }
        words = ", ".join(f"{pids} {_KIND_WORDS[Kind(other)]}" for other, pids in at.items())
        raise SyncMismatchError(
            f"the processes end this superstep differently: {words}; all make the same syncs, so "
            f"no sync stands in an if that only some of them enter"
        )

    def _check_overlaps(self, incoming: list[Arrived]) -> None:
        """Compare what all transfers of the superstep do to the memory of this process."""
        assert self._watch is not None
        port = self._port
        check_overlaps(incoming, self._watch, self._registry, port.fetch, port.members, self._pid)

    def _check_nothing_pending(self, what: str, code: CodeType | None) -> None:
        self._spill()
        if not self._out and not self._early:
            return
        pending = pending_transfers(self._out, self._early, self._port.members, code)
        if pending is not None:
            raise self._error(PendingTransferError, f"{what}: {pending}; sync before the end")

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
