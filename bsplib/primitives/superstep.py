"""What ends a superstep: the meeting, the order of delivery, the next superstep.

The state of a group lives here, and the errors that come from below get their
place here; the primitives that fill the state stand above: arrays, remote access,
mailbox and collectives, which :class:`bsplib.group.Group` puts together.
"""

from __future__ import annotations

import functools
import operator
import threading
from dataclasses import dataclass
from types import CodeType
from typing import Any, NoReturn

from bsplib import call_site
from bsplib.backends.base import Arrivals, Arrived, Port
from bsplib.backends.parcels import Parcel, SmallPut
from bsplib.errors import (
    BspError,
    PartitionError,
    PendingTransferError,
    ProcessRangeError,
    SyncMismatchError,
    UsageError,
)
from bsplib.machine import Machine
from bsplib.sync_kinds import Kind
from bsplib.transfers import messages
from bsplib.transfers.checker import check_overlaps
from bsplib.transfers.delivery import (
    PendingGet,
    messages_of,
    read_sources,
    write_gets,
    write_puts,
    write_small_puts,
)
from bsplib.transfers.irregular import Pending
from bsplib.transfers.lane import Lane
from bsplib.transfers.outgoing import Early, Outgoing
from bsplib.transfers.pending import pending_transfers
from bsplib.transfers.registry import Registration, Registry
from bsplib.transfers.target import Target, check_arrivals
from bsplib.transfers.watch import Quarantine, Watch

_HAS_GET = 4  # notes of a meeting: the kind of sync, and what the superstep holds
_UNRESOLVED = 8
_HAS_MESSAGES = 16
_KIND = 3
_SYNC = Kind.SYNC  # an attribute of an enumeration takes its time
_NOTHING: dict[int, Parcel] = {}
_RUN_ENDED = "its run has ended; a group is used in the run whose main was given it"
_SOURCE = operator.itemgetter(0)

_KIND_WORDS = {
    Kind.SYNC: "at a sync",
    Kind.OBLSYNC: "at an oblsync",
    Kind.END: "returned from main",
}


@dataclass(frozen=True)
class Terms:
    """What holds for all groups of a run in one process."""

    began_ns: int
    """When the barrier before ``main`` was passed."""
    machine: Machine
    check: bool = False


class Supersteps:
    """The supersteps of one process in one group."""

    def __init__(self, port: Port, terms: Terms, parent: Supersteps | None = None) -> None:
        self._pid = port.pid
        self._nprocs = port.nprocs
        self._port = port
        self._terms = terms
        self._parent = parent
        self._inner: Supersteps | None = None
        """The sub-group that is open."""
        self._thread = threading.get_ident()
        self._superstep = 0
        self._registry = Registry()
        self._changes = self._registry.changes
        self._out: dict[int, Outgoing] = {}
        self._early: dict[int, Early] = {}
        self._gets: list[PendingGet] = []
        self._unresolved: list[Target | Pending] = []
        self._queue = messages.Queue()
        self._tag_size: int | None = None
        self._next_tag_size: int | None = None
        self._partitions = 0
        self._unusable: str | None = None
        self._ended = False
        self._watch = self._new_watch() if terms.check else None
        self._is_plain = not terms.check  # nothing to be done at a sync but what has to be
        self._lanes: dict[tuple[int, int], Lane] = {}
        """By pid and id() of an array that is alive as long as it is registered."""

    @property
    def pid(self) -> int:
        """This process, ``0 <= pid < nprocs``."""
        return self._pid

    @property
    def nprocs(self) -> int:
        """Number of processes of the group."""
        return self._nprocs

    @property
    def machine(self) -> Machine:
        """The Machine that prices the run."""
        return self._terms.machine

    # -- what ends a superstep, step by step ------------------------------------------------

    def _end_shortly(self, stamp: int) -> bool:
        """End the superstep by a sync if it has nothing for others, or one small put.

        Registrations and messages to be forgotten are none, and nothing is watched.

        Returns:
            Whether it was so.
        """
        to, small_put = 0, None
        if self._out:
            if len(self._out) > 1:
                return False
            [(to, its)] = self._out.items()
            small_put = its.small_put()
            if small_put is None or to == self._pid:
                return False
        try:
            came = self._port.sync_one_put(_SYNC, stamp, to, small_put)
            if came is not None:
                self._take(came)
        except BspError as error:
            self._fall(error)
        self._superstep += 1
        if small_put is not None:
            self._out = {}
        if self._early:
            self._early = {}
        return True

    def _take(self, came: Arrivals | list[SmallPut]) -> None:
        """Deliver what came the short way; begin the next superstep."""
        if isinstance(came, list):
            write_small_puts(self._registry, came)
        else:
            self._deliver_all(_SYNC, _SYNC, came)
        self._port.end_superstep()

    def _end_superstep(self, kind: Kind, stamp: int) -> None:
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
            self._fall(error)
        self._port.end_superstep()
        self._superstep += 1
        if self._watch is not None:
            self._watch.begin(registry)
        if out:
            self._out = {}
        if self._early:
            self._early = {}

    def _parcels(self) -> dict[int, Parcel]:
        """Return what travels, by pid; what has been written already does not."""
        return {
            pid: sent.parcel()
            for pid, sent in self._out.items()
            if pid != self._pid and not sent.is_empty()
        }

    def _deliver_all(self, kind: Kind, note: int, arrivals: Arrivals) -> None:
        """Deliver what a meeting brought: gets, puts, messages, registrations."""
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
        """Return what came, and what this process has for itself, by source."""
        mine = self._out.get(self._pid)
        if mine is None:
            return parcels
        return sorted([*parcels, (self._pid, mine.parcel())], key=_SOURCE)

    def _resolve(self) -> None:
        """Check what could not be checked at the calls; go on when all have done so."""
        for target in self._unresolved:
            target.resolve()
        self._unresolved.clear()
        self._port.exchange({}, 0)

    def _serve_gets(self, incoming: list[Arrived]) -> None:
        """Exchange what is got; nothing has been written anywhere until all have read."""
        replies = {
            source: Parcel(values=read_sources(self._registry, parcel, self._port, source))
            for source, parcel in incoming
            if parcel.gets
        }
        own = replies.pop(self._pid, None)
        arrivals = self._port.exchange(replies, 0)
        served = {source: reply.values for source, reply in arrivals[1]} if arrivals else {}
        if own is not None:
            served[self._pid] = own.values
        if self._gets:
            write_gets(self._gets, served, self._port.fetch)
            self._gets = []

    def _end_oblivious(self, n: int, stamp: int) -> None:
        gets = len(self._gets) + sum(done.gets for done in self._early.values())
        if gets:
            raise self._error(
                PendingTransferError,
                f"oblsync: {gets} gets are pending and only a global sync serves them",
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
            self._fall(error)
        self._unresolved.clear()
        self._port.end_superstep()
        self._superstep += 1
        if self._watch is not None:
            self._watch.begin(self._registry)
        self._out, self._early = {}, {}

    def _counted_parcels(self) -> dict[int, tuple[int, Parcel]]:
        """Return what travels, and the number of messages that it and early puts are."""
        for pid in self._early:
            self._to(pid)
        return {
            pid: (
                sent.count() + (self._early[pid].puts if pid in self._early else 0),
                sent.parcel(),
            )
            for pid, sent in self._out.items()
        }

    def _begin(self) -> None:
        """Begin ``main``: what follows is computation of the program."""

    def _finish(self, main: CodeType | None = None) -> None:
        """End ``main``: all processes have to, with nothing pending.

        Args:
            main: its code, to name lines of what is pending.
        """
        self._check_usable()
        self._check_nothing_pending("main", main)
        self._end_superstep(Kind.END, 0)
        self._close()

    def _retire(self) -> None:
        """Suspend the group and its open sub-groups for good: the run has ended."""
        group: Supersteps | None = self
        while group is not None:
            group._rest(_RUN_ENDED)
            group._ended = True
            group = group._inner

    def _close(self) -> None:
        try:
            self._port.close()
        except BspError as error:
            self._fail(error)

    # -- what check=True watches --------------------------------------------------------

    def _new_watch(self) -> Watch:
        above = None if self._parent is None else self._parent._watch
        quarantine = Quarantine(self._port.release) if above is None else above.quarantine
        return Watch(self._error, quarantine)

    def _to_read(self, operation: str, values: Any) -> Any:
        """Return what a program passes on; under check raise if it is not there yet."""
        if self._watch is None:
            return values
        try:
            return self._watch.source(values, operation)
        except BspError as error:
            self._fail(error)

    def _end_watch(self, watch: Watch) -> None:
        """See what was done to arrays and messages in the superstep that ends."""
        watch.verify()
        message = self._queue.peek()
        if message is not None:
            members = self._port.members
            watch.warn_of_unread(len(self._queue), members[message[0]], members[self._pid])

    def _free(self, registrations: list[Registration]) -> None:
        """Give back the memory of arrays."""
        if self._watch is not None:
            self._watch.free(registrations)
            return
        for registration in registrations:
            assert registration.memory is not None  # or it would not be among them
            self._port.release(registration.memory)

    # -- checks and errors --------------------------------------------------------------

    def _rest(self, reason: str | None) -> None:
        """Let the group not be used, for a reason, or with None be used again."""
        if not self._ended:
            self._unusable = reason
            self._lanes.clear()

    def _fall(self, error: BspError) -> NoReturn:
        """Raise an error from a meeting; the group cannot be used any more."""
        self._rest(f"it has failed ({error})")
        self._fail(error)

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

    def _check_usable(self) -> None:
        if self._unusable is not None:
            raise self._error(
                PartitionError,
                f"{call_site.operation()}: this group cannot be used: {self._unusable}",
            )
        if threading.get_ident() != self._thread:
            raise self._error(
                UsageError,
                f"{call_site.operation()}: this is not the thread that runs main, and a group "
                f"belongs to that thread; hand values to it, and let it communicate",
            )

    def _check_not_ended(self) -> None:
        if self._ended:
            self._check_usable()

    def _error(self, kind: type[BspError], text: str) -> BspError:
        """Return an error that says where it happened."""
        process = self._port.members[self._pid]
        place = call_site.place()
        error = kind(f"{text} [process {process}, superstep {self._superstep}, {place}]")
        error.pid, error.superstep = process, self._root_superstep()
        return error

    def _fail(self, error: BspError) -> NoReturn:
        """Raise an error from below as one that says where it happened."""
        if error.pid is not None:
            raise error
        raise self._error(type(error), str(error)) from error.__cause__

    def _root_superstep(self) -> int:
        group = self
        while group._parent is not None:
            group = group._parent
        return group._superstep

    def _to(self, pid: int) -> Outgoing:
        outgoing = self._out.get(pid)
        if outgoing is None:
            outgoing = self._out[pid] = Outgoing()
        return outgoing

    def _check_pid(self, pid: Any, operation: str) -> int:
        try:
            number = int(operator.index(pid))
        except TypeError:
            raise self._error(
                ProcessRangeError, f"{operation}: {pid!r} is no process; a pid is an integer"
            ) from None
        if not 0 <= number < self._nprocs:
            raise self._error(
                ProcessRangeError,
                f"{operation}: there is no process {number} among {self._nprocs} (0 to "
                f"{self._nprocs - 1})",
            )
        return number
