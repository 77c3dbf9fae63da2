"""The end of a superstep, beside what the core does: checks, registrations, and answers to gets."""

from __future__ import annotations

import marshal
import operator
from collections.abc import Iterable
from types import CodeType
from typing import Any

import numpy as np

from bsplib.backends.base import Arrived, Sent
from bsplib.core.atomics import address_of, array_at
from bsplib.core.box import Box
from bsplib.core.kinds import (
    ASK,
    MESSAGE,
    NOTICE,
    PLACED,
    REPLY,
    STAGED_ASK,
    STAGED_MESSAGE,
    STAGED_PLACED,
    STAGED_REPLY,
)
from bsplib.core.records import Record, by_receiver, calls_between, records_between
from bsplib.errors import ArgumentError, BspError, PendingTransferError, SyncMismatchError
from bsplib.primitives.state import GroupState
from bsplib.sync_kinds import HAS_NOTICE, KIND_BITS, UNRESOLVED, Kind
from bsplib.transfers.arrivals import check_arrivals
from bsplib.transfers.checker import check_overlaps
from bsplib.transfers.delivery import (
    PendingGet,
    read_source,
    write_gaps,
    write_grid,
    write_placed,
)
from bsplib.transfers.descriptions import Get, Site, unpacked
from bsplib.transfers.landing import is_put, landings_of_gets, landings_of_puts
from bsplib.transfers.pending import Pending, pending_transfers
from bsplib.transfers.watch import Watch

_BYTE = np.dtype(np.uint8)
_PLACED = (PLACED, STAGED_PLACED)
_RUN_ENDED = "its run has ended; a group is used in the run whose main was given it"

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

    # -- before the meeting -----------------------------------------------------------------

    def _end_superstep(self, kind: Kind, stamp: int) -> None:
        """End the superstep together with all processes of the group; a recorder does more."""
        self._end_together(kind, stamp)

    def _before_meeting(self) -> int:
        """Announce registrations, and verify what ``check=True`` watches.

        Returns:
            What the note of this process says beside the kind of sync.
        """
        if self._watch is not None:
            self._end_watch(self._watch)
        note = UNRESOLVED if self._unresolved else 0
        if self._changes:
            announced = marshal.dumps(self._registry.announcement())
            box = self._box
            self._describe(box, box.all, NOTICE, b"", 0, np.frombuffer(announced, np.uint8))
            note |= HAS_NOTICE
        return note

    def _check_kinds(self, note: int) -> None:
        """Raise, since the processes do not end the superstep in the same way."""
        notes = [self._meeting.note_of(pid) for pid in range(self._nprocs)]
        notes[self._pid] = note
        at = {
            other: [pid for pid, note in enumerate(notes) if note & KIND_BITS == other]
            for other in sorted({note & KIND_BITS for note in notes})
        }
        words = ", ".join(f"{pids} {_KIND_WORDS[Kind(other)]}" for other, pids in at.items())
        raise SyncMismatchError(
            f"the processes end this superstep differently: {words}; all make the same syncs, so "
            f"no sync stands in an if that only some of them enter"
        )

    # -- after the meeting, in this order -----------------------------------------------------

    def _prepare_delivery(self, held: int) -> None:
        """Let registrations take effect, and do the checks that could not be done at the calls.

        Args:
            held: what the notes of all processes say together.
        """
        if held & HAS_NOTICE:
            self._agree()
        if held & UNRESOLVED:
            self._resolve()
        if self._watch is not None:
            self._check_overlaps(
                [(source, self._records_of(source)) for source in range(self._nprocs)]
            )

    def _agree(self) -> None:
        """Compare what the processes have announced, and take over the extents of their arrays."""
        commons = [self._notice_of(source) for source in range(self._nprocs)]
        for registration in self._registry.agree(commons):
            packed = registration.bytes is not None
            self._define(registration.slot, registration.address if packed else 0)
        self._forget_lanes()

    def _notice_of(self, source: int) -> Any:
        """Return what a process has announced to all; None if it has announced nothing."""
        for record in self._posted_for(source, self._nprocs):
            if record[0] == NOTICE:
                return marshal.loads(self._data_of(source, record))
        return None

    def _resolve(self) -> None:
        """Check what could not be checked at the calls, and wait for all to have done so.

        Where a check fails, no process has written anything yet.
        """
        for target in self._unresolved:
            target.resolve()
        self._unresolved.clear()
        self._meeting.meet(0, 0, 0)

    def _answer(self) -> int:
        """Make records of what others get from here; return the head word of a post with them."""
        if self._replies is None:
            self._replies = Box(self._pid, self._nprocs, self._port.box_memory())
        for source in range(self._nprocs):
            for record in self._records_of(source):
                if record[0] in (ASK, STAGED_ASK):
                    get, _ = unpacked(record[3])
                    indices = self._data_of(source, record) if record[4] else b""
                    self._reply(source, get, indices)
        head: int = self._replies.complete(self._meeting.room_for_card())
        return head

    def _reply(self, source: int, get: Get, indices: Any) -> None:
        """Add the values that a process gets from here to the answers."""
        if self._is_small(get.nbytes):
            room = np.empty(get.nbytes, np.uint8)
            read_source(self._registry, get, indices, room)
            self._describe(self._replies, source, REPLY, b"", 0, room)
            return
        (_, where, _), room = self._port.stage(get.nbytes, source)
        read_source(self._registry, get, indices, room)
        self._describe_staged(self._replies, source, STAGED_REPLY, b"", 0, where, get.nbytes)

    def _take_answers(self) -> None:
        """Find the answers to the gets of this process, which has met the others once more."""
        gets = [(get, pid) for get, there, _, pid, _ in self._gets if not there]
        answers = {pid: iter(self._posted_for(pid, self._pid)) for pid in {pid for _, pid in gets}}
        found = [(get, next(answers[pid])) for get, pid in gets]
        self._answers = iter([record for _, record in found])
        if self._port.receives_in_place:
            self._port.receive(
                landings_of_gets(
                    [
                        (get, (get.pid, *record[5:]) if record[0] == STAGED_REPLY else None)
                        for get, record in found
                    ],
                    [dst for dst, there, *_ in self._gets if there],
                )
            )

    def _write_answer(self, pending: PendingGet) -> None:
        """Write the values of the next get that another process has answered."""
        record = next(self._answers)
        kind, *_, where, nbytes = record
        if kind == STAGED_REPLY and pending.takes_bytes():
            self._port.land((pending.pid, where, nbytes), pending.bytes_of())
        else:
            pending.write(self._data_of(pending.pid, record))

    def _land_early(self) -> None:
        """Begin to receive the staged values of puts where they will be written."""
        if self._port.receives_in_place:
            incoming = [(source, self._records_of(source)) for source in range(self._nprocs)]
            self._port.receive(landings_of_puts(self._registry, incoming))

    def _land(self, source: int, slot: int, first: int, where: int, nbytes: int) -> None:
        """Write a put whose values come from another process through the port."""
        ticket, registration = (source, where, nbytes), self._registry.at(slot)
        if registration.bytes is None:
            self._write_gaps(slot, first, self._port.fetch(ticket))
        else:
            self._port.land(ticket, registration.bytes[first : first + nbytes])

    def _write_gaps(self, slot: int, first: int, values: Any) -> None:
        """Write a put into an array that is not contiguous here."""
        registration = self._registry.at(slot)
        write_gaps(registration, first // registration.itemsize, values)

    def _write_grid(self, slot: int, description: bytes, values: Any) -> None:
        """Write a put into a grid of an array that is not contiguous here."""
        write_grid(self._registry.at(slot), description, values)

    def _write_placed(self, description: bytes, indices: int, data: Any) -> None:
        """Write a put whose place has a description."""
        write_placed(self._registry, description, indices, data)

    def _after_delivery(self) -> None:
        """End the registrations that have been popped."""
        self._free(self._registry.drop_popped())
        self._tag_size = self._next_tag_size

    def _after_superstep(self) -> None:
        """Begin to watch the next superstep."""
        self._early_gets.clear()
        if self._watch is not None:
            self._watch.begin(self._registry)

    def _port_end_superstep(self) -> None:
        self._port.end_superstep()

    def _data_of(self, source: int, record: Record) -> Any:
        """Return the data of a record as bytes, where they are."""
        kind, *_, where, nbytes = record
        if kind & 1:
            return array_at((nbytes,), _BYTE, where, nbytes)
        return self._port.fetch((source, where, nbytes))

    # -- oblivious supersteps -----------------------------------------------------------------

    def _end_oblivious(self, n: int, stamp: int) -> None:
        """End the superstep when ``n`` messages are there for this process."""
        gets = len(self._gets) + sum(self._early_gets.values())
        if gets:
            raise self._error(
                PendingTransferError,
                f"oblsync: {gets} gets are pending, and only a global sync serves them; call sync",
            )
        records = self._counted_records()
        own, mine = records.pop(self._pid, (0, b""))
        try:
            if self._watch is not None:
                self._end_watch(self._watch)
            if own > n:
                raise SyncMismatchError(
                    f"oblsync({n}): process {self._pid} alone sent itself {own} messages"
                )
            arrived = self._port.exchange_oblivious(records, operator.index(n) - own, stamp)
            self._queue.clear()
            self._deliver_sent(sorted([*arrived, (self._pid, mine)], key=operator.itemgetter(0)))
        except BspError as error:
            self._fail_for_good(error)
        self._unresolved.clear()
        self._port.end_superstep()
        self._superstep += 1
        if self._has_early and not self._counts:
            self._forget_counts()
        self._after_superstep()

    def _counted_records(self) -> dict[int, tuple[int, Sent]]:
        """Take the records, by receiver, and for how many messages they count.

        An hpput that has been written already counts too, though it has no record.
        """
        box, early = self._box, {}
        if self._has_early:
            early = {pid: count for pid, count in enumerate(self._early_puts) if count}
        box.unfold()
        sent = by_receiver(self._meeting, box.complete(0), self._nprocs)
        box.clear()
        return {
            pid: (_calls(sent.get(pid, b"")) + early.get(pid, 0), sent.get(pid, b""))
            for pid in {**sent, **early}
        }

    def _deliver_sent(self, arrived: Iterable[Arrived]) -> None:
        """Deliver what an oblivious superstep has brought, in order of the sources."""
        memory = [(source, np.frombuffer(sent, np.uint8)) for source, sent in arrived if len(sent)]
        incoming = [(source, _records_in(sent)) for source, sent in memory]
        if self._watch is not None:
            self._check_overlaps(incoming)
        for source, records in incoming:
            check_arrivals(self._registry, source, records, self._data_of)
        if self._port.receives_in_place:
            self._port.receive(landings_of_puts(self._registry, incoming))
        for source, sent in memory:
            self._apply_sent(source, address_of(sent), address_of(sent) + len(sent))

    # -- the beginning and the end of main ----------------------------------------------------

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

    def _check_overlaps(self, incoming: list[tuple[int, list[Record]]]) -> None:
        """Compare what all transfers of the superstep do to the memory of this process."""
        assert self._watch is not None
        check_overlaps(
            incoming, self._watch, self._registry, self._data_of, self._port.members, self._pid
        )

    def _check_nothing_pending(self, what: str, code: CodeType | None) -> None:
        box = self._box
        done_at_once = self._has_early or self._early_gets
        if not (box.holds_card or box.holds_more or self._gets or done_at_once):
            return
        pending, sites = self._pending()
        text = pending_transfers(pending, sites, self._port.members, code)
        if text is not None:
            raise self._error(PendingTransferError, f"{what}: {text}; sync before the end")

    def _pending(self) -> tuple[dict[int, Pending], list[Site]]:
        """Return how many transfers with each process no sync has delivered, and their calls."""
        gets: dict[int, int] = {**self._early_gets}
        sites: list[Site | None] = []
        for get, there, _, pid, _ in self._gets:
            gets[pid] = gets.get(pid, 0) + 1
            sites.append(None if there else get.site)
        pending = {}
        for pid in range(self._nprocs):
            records = self._own_records(pid)
            puts = sum(is_put(kind) for kind, *_ in records)
            if self._has_early:
                puts += self._early_puts[pid]
            messages = sum(kind in (MESSAGE, STAGED_MESSAGE) for kind, *_ in records)
            pending[pid] = Pending(puts, gets.get(pid, 0), messages)
            sites += [unpacked(record[3])[1] for record in records if record[0] in _PLACED]
        return pending, [site for site in sites if site is not None]

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


def _calls(sent: Sent) -> int:
    """Return how many puts and messages some records have."""
    memory = np.frombuffer(sent, np.uint8)
    return calls_between(address_of(memory), address_of(memory) + len(memory))


def _records_in(sent: np.ndarray[Any, Any]) -> list[Record]:
    return records_between(address_of(sent), address_of(sent) + len(sent))
