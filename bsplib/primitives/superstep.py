"""The end of a superstep: processes exchange parcels, deliver them, begin the next one."""

from __future__ import annotations

import functools
import operator
from types import CodeType

from bsplib.backends.base import Arrivals, Arrived
from bsplib.backends.parcels import LonePut, Parcel
from bsplib.errors import ArgumentError, BspError, PendingTransferError, SyncMismatchError
from bsplib.primitives.state import GroupState
from bsplib.sync_kinds import Kind
from bsplib.transfers.checker import check_overlaps
from bsplib.transfers.delivery import (
    messages_of,
    read_sources,
    write_gets,
    write_lone_puts,
    write_puts,
)
from bsplib.transfers.pending import pending_transfers
from bsplib.transfers.target import check_arrivals
from bsplib.transfers.watch import Watch

# The note that every process gets to see: how this one ends the superstep (two bits), and
# what the superstep has here.
_KIND = 3
_HAS_GET = 4
_UNRESOLVED = 8
_HAS_MESSAGES = 16
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
                another dtype on the other process.
            OverlapError: with ``check=True``, transfers overlap, or an array that belongs
                to a transfer was changed before its time.
            OutOfSharedMemoryError: there is no room for the values of a get.
            PartitionError: the group cannot be used now.

        Cost: g h + l, where h is the greatest of h_in and h_out of all processes.
        Source: Hill et al. 1998, bsp_sync.
        """
        if self._unusable is not None:
            self._check_usable()
        if not self._is_plain or self._changes or self._queue.messages:
            self._end_superstep(_SYNC, 0)
        elif not self._out:  # inlined: call overhead dominates an empty sync
            try:
                came = self._port.sync_empty(_SYNC)
                if came is not None:
                    self._deliver_short(came)
            except BspError as error:
                self._fail_for_good(error)
            self._superstep += 1
            if self._early:
                self._early = {}
        elif not self._try_short_sync(0):
            self._end_superstep(_SYNC, 0)

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

    def _try_short_sync(self, stamp: int) -> bool:
        """End the superstep if this process has nothing for others, or only a lone put.

        No registration may wait to be announced, no message of the superstep before may
        be in the queue, and ``check=True`` may not be on.

        Args:
            stamp: time of arrival in ns; 0 where the run is not recorded.

        Returns:
            Whether the superstep has ended; False where there is more to send.
        """
        to, lone_put = 0, None
        if self._out:
            if len(self._out) > 1:
                return False
            [(to, its)] = self._out.items()
            lone_put = its.lone_put()
            if lone_put is None or to == self._pid:
                return False
        try:
            came = self._port.sync_one_put(_SYNC, stamp, to, lone_put)
            if came is not None:
                self._deliver_short(came)
        except BspError as error:
            self._fail_for_good(error)
        self._superstep += 1
        if lone_put is not None:
            self._out.clear()
        if self._early:
            self._early = {}
        return True

    def _deliver_short(self, came: Arrivals | list[LonePut]) -> None:
        """Deliver what others sent to a process in a short sync; begin the next superstep."""
        if isinstance(came, list):
            write_lone_puts(self._registry, came, self._port)
        else:
            self._deliver_all(_SYNC, _SYNC, came)
        self._port.end_superstep()

    def _end_superstep(self, kind: Kind, stamp: int) -> None:
        """End the superstep together with all processes of the group, whatever it has."""
        out, registry = self._out, self._registry
        note: int = kind
        try:
            if self._watch is not None:
                self._end_watch(self._watch)
            parcels = _NOTHING
            if out:
                note |= _HAS_GET * bool(self._gets) | _UNRESOLVED * bool(self._unresolved)
                note |= _HAS_MESSAGES * any(sent.messages for sent in out.values())
                parcels = self._parcels()
            common = registry.announcement() if self._changes else None
            arrivals = self._port.exchange(parcels, note, common, stamp)
            if arrivals is not None or (out and self._pid in out):
                self._deliver_all(kind, note, arrivals or ([note], [], None))
            elif self._queue.messages:
                self._queue.fill([])
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
        if commons is not None:
            self._registry.agree(commons)
            self._lanes.clear()
        incoming = self._incoming(parcels)
        if held & _UNRESOLVED:
            self._resolve()
        if self._watch is not None:
            self._check_overlaps(incoming)
        if held & _HAS_GET:
            self._serve_gets(incoming)
        if incoming:
            write_puts(self._registry, incoming, self._port)
        if held & _HAS_MESSAGES or self._queue.messages:
            self._queue.fill(messages_of(incoming))
        if commons is not None:
            self._free(self._registry.drop_popped())
            self._tag_size = self._next_tag_size

    def _incoming(self, parcels: list[Arrived]) -> list[Arrived]:
        """Return the parcels of others and the one of this process for itself, by source."""
        mine = self._out.get(self._pid)
        if mine is None:
            return parcels
        return sorted([*parcels, (self._pid, mine.parcel())], key=_SOURCE)

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
        arrivals = self._port.exchange(replies, 0)
        served = {source: reply.replies for source, reply in arrivals[1]} if arrivals else {}
        if own is not None:
            served[self._pid] = own.replies
        if self._gets:
            write_gets(self._gets, served, self._port)
            self._gets = []

    def _end_oblivious(self, n: int, stamp: int) -> None:
        """End the superstep when ``n`` messages are there for this process."""
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
            incoming = self._incoming(arrived)
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
        message = self._queue.peek()
        if message is not None:
            members = self._port.members
            watch.warn_of_unread(len(self._queue), members[message[0]], members[self._pid])

    def _check_kinds(self, kind: Kind, notes: list[int]) -> None:
        if {note & _KIND for note in set(notes)} == {kind}:
            return
        at = {
            other: [pid for pid, note in enumerate(notes) if note & _KIND == other]
            for other in sorted({note & _KIND for note in notes})
        }
        words = ", ".join(f"{pids} {_KIND_WORDS[Kind(other)]}" for other, pids in at.items())
        raise SyncMismatchError(f"the processes end this superstep differently: {words}")

    def _check_overlaps(self, incoming: list[Arrived]) -> None:
        """Compare what all transfers of the superstep do to the memory of this process."""
        assert self._watch is not None
        port = self._port
        check_overlaps(incoming, self._watch, self._registry, port.fetch, port.members, self._pid)

    def _check_nothing_pending(self, what: str, code: CodeType | None) -> None:
        if not self._out and not self._early:
            return
        pending = pending_transfers(self._out, self._early, self._port.members, code)
        if pending is not None:
            raise self._error(PendingTransferError, f"{what}: {pending}; sync before it")

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
