"""The port of MPI: the meetings of a group, by one head to each other process.

A process sends a head to every other one at each meeting, and waits for theirs. What a head
announces follows it in the same round trip: PROTOCOL.md has the order, and argues why it is
right.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, ParamSpec, TypeVar

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from bsplib.backends.base import Alignment, Arrivals, Arrived, Port, Room
from bsplib.backends.members import Members, as_members
from bsplib.backends.mismatch import (
    ENDED_BY_OBLSYNC,
    ENDED_BY_SYNC,
    are_apart,
    has_left,
    is_outside,
    waits_in_vain,
)
from bsplib.backends.mpi import heads
from bsplib.backends.mpi.box import Box
from bsplib.backends.mpi.heads import HERE, MEET, MOST_BODY, OBLIVIOUS, ROUND
from bsplib.backends.mpi.link import Link
from bsplib.backends.mpi.receiving import Payload, Post, body_of, flat
from bsplib.backends.mpi.rounds import MOST_PROCESSES, Gathering, rounds_of
from bsplib.backends.mpi.sending import BODIES, HEADS, PAYLOADS, Sends
from bsplib.backends.oblivious import NOTHING, Collector
from bsplib.backends.oblivious import Post as ObliviousPost
from bsplib.backends.parcels import Parcel, Ticket
from bsplib.errors import BspError

_ALIGNMENT = 64
_MOST_UNSENT_BYTES = 1 << 28
"""A process whose oblivious supersteps have left so much unsent waits before the next one."""
_HAND_OVER_NS = 200_000
"""An oblivious sync lets MPI work so long on what it has sent: small sends are done by then."""
_FOREVER = 1 << 62


_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def _noticing_deaths(method: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Let a method raise no error of MPI: Stopped where another process has died, else BspError.

    The caller of the run could not read an error of MPI without joining an MPI itself.
    """

    @functools.wraps(method)
    def noticing(*args: _Arguments.args, **more: _Arguments.kwargs) -> _Result:
        try:
            return method(*args, **more)
        except MPI.Exception as error:
            port: Any = args[0]
            port.await_stop()
            raise BspError(f"{method.__name__}: MPI has failed: {error}") from None

    return noticing


class Staged(NamedTuple):
    """A payload of this superstep for another process."""

    room: Room
    buffer: Room | None
    """In which it lies; None where it was lent."""


class MpiPort(Port):
    """The connection of one process to the others of a group, over MPI.

    Args:
        link: of this rank.
        pid: this process in the group.
        members: of the group.
        label: of the group.
        parent: port to the group that was divided.
    """

    def __init__(
        self, link: Link, pid: int, members: Members, label: int, parent: MpiPort | None
    ) -> None:
        self.pid = pid
        self.nprocs = len(members)
        self.members = members
        self.released = 0
        self._link = link
        self._label = label
        self._parent = parent
        self._others = [other for other in range(self.nprocs) if other != pid]
        self._ranks = [members[other] for other in self._others]
        self._requests = link.requests_to(self._ranks)
        self._superstep = 0
        self._meetings = 0
        self._meets_in_rounds = link.most_direct < self.nprocs <= MOST_PROCESSES
        self._box = Box()
        link.enter(label, self._box)
        self._collector = Collector(members, pid, self)
        self._sends = Sends(link.comm, link.buffers)
        self._staged: dict[int, list[Staged]] = {}
        self._numbers = [0] * self.nprocs
        """Payloads that have been staged for each process."""
        self._here: dict[tuple[int, int], Payload] = {}
        """Payloads of this superstep, by sender and number."""
        self._here_before: dict[tuple[int, int], Payload] = {}
        self._not_started: list[Post] = []
        """Open posts whose payloads are not being received yet."""
        self._coming: list[Payload] = []
        self._said_where = False

    def align_clocks(self, *, again: bool) -> Alignment:
        """See :meth:`Port.align_clocks`."""
        return self._link.clocks.align(self.nprocs, again=again)

    def await_stop(self) -> None:
        """See :meth:`Link.await_stop`."""
        self._link.await_stop()

    @classmethod
    def of_root(cls, link: Link) -> MpiPort:
        """Return the port of this process to the root group of the run that has begun."""
        return cls(link, link.rank, range(link.nprocs), heads.ROOT, None)

    # -- memory and payloads ----------------------------------------------------------------

    def allocate(self, nbytes: int, *, zero: bool) -> memoryview:
        """See :meth:`Port.allocate`."""
        memory = (np.zeros if zero else np.empty)(nbytes + _ALIGNMENT, np.uint8)
        start = -memory.ctypes.data % _ALIGNMENT
        return memory[start : start + nbytes].data

    def release(self, memory: memoryview) -> None:
        """See :meth:`Port.release`: it is freed with the last array that shows it."""

    def stage(self, nbytes: int, to: int) -> tuple[Ticket, Room]:
        """See :meth:`Port.stage`."""
        buffer = self._link.buffers.take(nbytes)
        room = buffer[:nbytes]
        return self._ticket(room, buffer, to), room

    def lend(self, values: NDArray[Any], to: int) -> Ticket:
        """See :meth:`Port.lend`; at the end of an oblivious superstep the values are copied."""
        return self._ticket(values.reshape(-1).view(np.uint8), None, to)

    def _ticket(self, room: Room, buffer: Room | None, to: int) -> Ticket:
        number = self._numbers[to]
        self._numbers[to] = number + 1
        if to == self.pid:
            self._here[to, number] = Payload(len(room), room, buffer)
        else:
            self._staged.setdefault(to, []).append(Staged(room, buffer))
        return self.pid, number, len(room)

    @_noticing_deaths
    def fetch(self, ticket: Ticket) -> memoryview:
        """See :meth:`Port.fetch`."""
        payload = self._find(ticket)
        if payload.room is None:
            self._start({})
        return self._arrived(payload).data

    receives_in_place = True

    @_noticing_deaths
    def receive(self, landings: Iterable[tuple[Ticket, memoryview]]) -> None:
        """See :meth:`Port.receive`; all other payloads that have been announced are received, too.

        So the senders can send at the same time.
        """
        if not self._not_started:
            return
        places = {}
        for ticket, room in landings:
            payload = self._find(ticket)
            if payload.room is None:
                places[payload] = flat(room)
        self._start(places)

    @_noticing_deaths
    def land(self, ticket: Ticket, room: memoryview) -> None:
        """See :meth:`Port.land`: received there if its receive has not started yet."""
        payload = self._find(ticket)
        if payload.room is None:
            self._start({payload: flat(room)})
        came = self._arrived(payload)
        if not payload.is_in_place:
            room[:] = came.data

    def _arrived(self, payload: Payload) -> Room:
        """Wait for a payload that is being received, and return it."""
        if not payload.is_here():
            self._link.wait(payload.is_here, _nothing)
        assert payload.room is not None
        return payload.room

    def _find(self, ticket: Ticket) -> Payload:
        key = ticket[:2]
        return self._here[key] if key in self._here else self._here_before[key]

    def _start(self, places: Mapping[Payload, Room]) -> None:
        """Start to receive all payloads of open posts."""
        posts, self._not_started = self._not_started, []
        self._link.start_payloads(posts, places)

    def _open(self, posts: Sequence[Post]) -> None:
        """Take posts apart, whose payloads may then be fetched."""
        self._link.open(posts)
        for post in posts:
            if post.payloads:
                pid = self._pid_of(post.source)
                self._not_started.append(post)
                for number, payload in enumerate(post.payloads, post.first):
                    self._here[pid, number] = payload

    def _pid_of(self, rank: int) -> int:
        return self.members.index(rank)

    # -- posts ------------------------------------------------------------------------------

    def _post(self, head: Callable[..., bytes], to: int, parcel: Any, common: Any) -> None:
        """Send a post that has something for its receiver.

        Args:
            head: makes the head from the last things that are known.
            to: pid of the receiver.
            parcel: None if there is none.
            common: announcement for all.
        """
        rank = self.members[to]
        staged = self._staged.pop(to, ())
        first = self._numbers[to] - len(staged)
        plain = None if parcel is None else parcel.plain()
        body = body_of(plain, common, first, [len(each.room) for each in staged])
        packed = head(payloads=bool(staged), body_bytes=len(body))
        sends = self._sends
        if len(body) <= MOST_BODY:
            sends.start(packed + body, rank, HEADS)
        else:
            sends.start(packed, rank, HEADS)
            sends.start(memoryview(body), rank, BODIES)
        for room, buffer in staged:
            sends.start(room, rank, PAYLOADS, buffer)

    # -- meetings ---------------------------------------------------------------------------

    @_noticing_deaths
    def exchange(
        self, parcels: Mapping[int, Parcel], note: int, common: Any = None, stamp: int = 0
    ) -> Arrivals | None:
        """See :meth:`Port.exchange`."""
        number, self._meetings = self._meetings, self._meetings + 1
        if self._meets_in_rounds:
            return self._exchange_in_rounds(number, parcels, note, common, stamp)
        self._post_to_all(number, parcels, note, common, stamp)
        posts = self._box.meetings[number]
        if len(posts) < len(self._others):
            self._await(posts)
        del self._box.meetings[number]
        if self._collector.ended or self._link.left_over:
            self._look_at_late()
        return self._arrivals(posts, parcels, note, common, stamp)

    def _post_to_all(
        self, number: int, parcels: Mapping[int, Parcel], note: int, common: Any, stamp: int
    ) -> None:
        head = self._head_maker(number, note, stamp)
        if common is None and not parcels:
            if self._ranks:
                self._link.send_to_many(head(payloads=False, body_bytes=0), self._requests)
            return
        for pid in self._others:
            parcel = parcels.get(pid)
            if parcel is None and common is None:
                empty = head(payloads=False, body_bytes=0)
                self._sends.start(empty, self.members[pid], HEADS)
            else:
                self._post(head, pid, parcel, common)

    def _head_maker(self, number: int, note: int, stamp: int) -> Callable[..., bytes]:
        link = self._link
        first, middle = (link.run, MEET, note), (self._label, number, self._superstep)
        sent = link.clocks.sent(stamp)

        def head(*, payloads: bool, body_bytes: int) -> bytes:
            return heads.pack(*first, payloads, *middle, body_bytes, 0, sent)

        return head

    def _exchange_in_rounds(
        self, number: int, parcels: Mapping[int, Parcel], note: int, common: Any, stamp: int
    ) -> Arrivals | None:
        """Do as :meth:`exchange` in a large group: only what somebody has for others is a post."""
        receivers = self._others if common is not None else parcels.keys()
        head = self._head_maker(number, note, stamp)
        for pid in receivers:
            self._post(head, pid, parcels.get(pid), common)
        sent = self._link.clocks.sent(stamp)
        gathering = Gathering(self.pid, self.nprocs, note, sent, receivers)
        for turn in range(rounds_of(self.nprocs)):
            self._pass_on(gathering, number, turn)
            came = self._await_round(number, turn)
            gathering.take(turn, came.body or b"", came.head.stamp)
        posts, count = self._box.meetings[number], gathering.count()
        self._link.wait(lambda: len(posts) == count, _nothing, for_heads=True)
        del self._box.meetings[number]
        if self._collector.ended or self._link.left_over:
            self._look_at_late()
        if stamp:
            self.released = max(stamp, self._link.clocks.received(gathering.latest))
        has_news = bool(posts or parcels) or common is not None
        if not has_news and gathering.is_unanimous():
            return None
        full = sorted((self._pid_of(rank), post) for rank, post in posts.items())
        return self._opened(full, gathering.notes(), common)

    def _pass_on(self, gathering: Gathering, number: int, turn: int) -> None:
        body = gathering.to_pass_on(turn)
        link = self._link
        first, middle = (link.run, ROUND, 0, 0), (self._label, number, self._superstep)
        head = heads.pack(*first, *middle, len(body), turn, gathering.latest)
        rank = self.members[(self.pid + (1 << turn)) % self.nprocs]
        self._sends.start(head + body, rank, HEADS)

    def _await_round(self, number: int, turn: int) -> Post:
        """Wait for the head of a round, and return it."""
        pid = (self.pid - (1 << turn)) % self.nprocs
        rank, came = self.members[pid], self._box.rounds

        def suspect() -> None:
            self._collector.read_late()
            if (number, turn) not in came:
                self._suspect_one(pid, rank)

        def ask() -> None:
            self._ask([rank])
            self._say_where()

        self._said_where = False
        self._link.wait(lambda: (number, turn) in came, suspect, ask, for_heads=True)
        post = came.pop((number, turn))
        if post.head.superstep != self._superstep:
            raise are_apart(rank, self.members[self.pid])
        return post

    def _say_where(self) -> None:
        """Tell all others that this process waits here: no head of a meeting may reach them."""
        if not self._said_where:
            self._said_where = True
            link = self._link
            head = heads.pack(link.run, HERE, 0, 0, self._label, 0, self._superstep, 0, 0, 0)
            for rank in self._ranks:
                link.unsent.start(head, rank, HEADS)

    def _await(self, posts: dict[int, Post]) -> None:
        """Wait for the posts of a meeting."""
        nothers = len(self._others)
        self._link.wait(
            lambda: len(posts) == nothers,
            lambda: self._suspect(posts),
            lambda: self._ask(rank for rank in self._ranks if rank not in posts),
            for_heads=True,
        )

    def _arrivals(
        self,
        posts: Mapping[int, Post],
        parcels: Mapping[int, Parcel],
        note: int,
        common: Any,
        stamp: int,
    ) -> Arrivals | None:
        """Return what the posts of a meeting brought."""
        superstep, latest = self._superstep, 0
        has_news = bool(parcels) or common is not None
        notes = [note] * self.nprocs
        full = []
        for pid, rank in zip(self._others, self._ranks, strict=True):
            post = posts[rank]
            head = post.head
            if head.superstep != superstep:
                raise are_apart(rank, self.members[self.pid])
            if head.note != note:
                notes[pid], has_news = head.note, True
            if head.body_bytes:
                full.append((pid, post))
            latest = max(latest, head.stamp)
        if stamp:
            self.released = max(stamp, self._link.clocks.received(latest))
        if not (full or has_news):
            return None
        return self._opened(full, notes, common)

    def _opened(self, full: Sequence[tuple[int, Post]], notes: list[int], common: Any) -> Arrivals:
        self._open([post for _, post in full])
        commons = [None] * self.nprocs
        commons[self.pid] = common
        arrived = []
        for pid, post in full:
            if post.parcel is not None:
                arrived.append((pid, Parcel.of_plain(post.parcel)))
            commons[pid] = post.common
        announced = any(each is not None for each in commons)
        return notes, arrived, commons if announced else None

    @_noticing_deaths
    def end_superstep(self) -> None:
        """See :meth:`Port.end_superstep`: all that belongs to the superstep has come by then.

        All that was sent at its meetings is sent, too.
        """
        if self._not_started:
            self._start({})
        for payload in self._here.values():
            if not payload.is_here():
                self._link.wait(payload.is_here, _nothing)
        self._finish_sends()
        if self._staged:
            self._drop_staged()
        if self._here_before or self._here:
            for payload in self._here_before.values():
                if payload.buffer is not None:
                    self._link.buffers.give(payload.buffer)
            self._here_before, self._here = self._here, {}
        self._superstep += 1
        if self._parent is None:
            self._link.superstep[0] = self._superstep

    def _finish_sends(self) -> None:
        """Wait until all that belongs to meetings is sent; let the rest go on."""
        link = self._link
        if not link.heads_are_sent():
            link.wait(link.heads_are_sent, _nothing)
        if self._sends and not self._sends.all_sent():
            link.wait(self._sends.all_sent, _nothing)
        if link.unsent:
            link.unsent.forget_sent()

    def _drop_staged(self) -> None:
        """Give back memory of payloads that belong to no parcel: their put has failed."""
        for staged in self._staged.values():
            for _, buffer in staged:
                if buffer is not None:
                    self._link.buffers.give(buffer)
        self._staged = {}

    # -- waiting in vain --------------------------------------------------------------------

    def _suspect(self, posts: Collection[int]) -> None:
        """Raise if a process will never come to the meeting for which this one waits."""
        self._collector.read_late()
        for pid, rank in zip(self._others, self._ranks, strict=True):
            if rank not in posts:
                self._suspect_one(pid, rank)

    def _suspect_one(self, pid: int, rank: int) -> None:
        why = self._why_absent(rank)
        if self._box.latest(OBLIVIOUS, rank) >= self._superstep:
            why = ENDED_BY_OBLSYNC
        self._raise_if(why, "sync", pid)

    def _why_absent(self, rank: int) -> str:
        """Return why a process cannot come to the end of this superstep; empty if it can."""
        if rank in self._box.left:
            return has_left(self.members)
        port = self
        while port._parent is not None:
            above = port._parent
            box = above._box
            if max(box.latest(MEET, rank), box.latest(OBLIVIOUS, rank)) >= above._superstep:
                return is_outside(port.members)
            port = above
        return ""

    def _raise_if(self, why: str, operation: str, pid: int) -> None:
        if why:
            raise waits_in_vain(operation, self.members[self.pid], self.members[pid], why)

    def _ask(self, ranks: Iterable[int]) -> None:
        """Ask processes whether they have left the group."""
        if self._parent is not None:
            for rank in ranks:
                self._link.send_head(rank, heads.QUESTION, self._label)

    # -- oblivious supersteps ---------------------------------------------------------------

    @_noticing_deaths
    def exchange_oblivious(
        self, parcels: Mapping[int, tuple[int, Parcel]], expected: int, stamp: int = 0
    ) -> list[Arrived]:
        """See :meth:`Port.exchange_oblivious`."""
        number = self._collector.ended
        self._look_at_late()
        self._wait_for_credit()
        self._copy_lent()
        self._post_obliviously(parcels, stamp)
        self._collector.end_superstep(stamp)
        arrived = self._collector.collect(expected)
        self._box.passed = self._collector.ended
        if not self._box.oblivious[number]:
            del self._box.oblivious[number]
        self._hand_over()
        self.released = self._collector.released
        return arrived

    def _hand_over(self) -> None:
        """Let MPI take the posts of an oblivious superstep; what it does not take is sent later."""
        link = self._link
        deadline = time.perf_counter_ns() + _HAND_OVER_NS
        while self._sends and self._sends.forget_sent() and time.perf_counter_ns() < deadline:
            link.pump()
        link.unsent.take_over(self._sends)
        if link.unsent:
            link.unsent.forget_sent()

    def _wait_for_credit(self) -> None:
        """Wait while others have not read many posts of this process, or not received much."""
        link = self._link
        for rank in self._ranks:
            if not link.has_credit(rank):
                link.wait(lambda rank=rank: link.has_credit(rank), self._look_at_late)  # type: ignore[misc]
        if link.unsent and link.unsent.forget_sent() > _MOST_UNSENT_BYTES:
            link.wait(lambda: link.unsent.forget_sent() <= _MOST_UNSENT_BYTES, self._look_at_late)

    def _copy_lent(self) -> None:
        """Copy what was lent: it may be sent after the superstep has ended here."""
        for staged in self._staged.values():
            for index, (room, buffer) in enumerate(staged):
                if buffer is None:
                    copy = self._link.buffers.take(len(room))
                    copy[: len(room)] = room
                    staged[index] = Staged(copy[: len(room)], copy)

    def _post_obliviously(self, parcels: Mapping[int, tuple[int, Parcel]], stamp: int) -> None:
        link, number = self._link, self._collector.ended
        sent = link.clocks.sent(stamp)
        first = link.run, OBLIVIOUS, 0
        middle = self._label, number, self._superstep
        empty = heads.pack(*first, 0, *middle, 0, 0, sent)
        for pid, rank in zip(self._others, self._ranks, strict=True):
            link.spend_credit(rank)
            messages, parcel = parcels.get(pid, (0, None))
            if messages:

                def head(*, payloads: bool, body_bytes: int, messages: int = messages) -> bytes:
                    return heads.pack(*first, payloads, *middle, body_bytes, messages, sent)

                self._post(head, pid, parcel, None)
            else:
                self._sends.start(empty, rank, HEADS)

    @_noticing_deaths
    def look(self, number: int, pids: Collection[int]) -> dict[int, ObliviousPost]:
        """See :meth:`bsplib.backends.oblivious.Posts.look`."""
        link = self._link
        link.pump()
        came = self._box.oblivious[number]
        posts = {pid: came.pop(self.members[pid]) for pid in pids if self.members[pid] in came}
        if number < self._box.passed and not came:
            del self._box.oblivious[number]
        full = [post for post in posts.values() if post.head.messages]
        if number >= self._box.passed:  # else they are an error, and never opened
            self._open(full)
        for post in posts.values():
            link.credit(post)
        return {pid: self._oblivious_post(post) for pid, post in posts.items()}

    def _oblivious_post(self, post: Post) -> ObliviousPost:
        head = post.head
        if not head.messages:
            return NOTHING
        parcel = Parcel() if post.parcel is None else Parcel.of_plain(post.parcel)
        return ObliviousPost(head.messages, parcel, self._link.clocks.received(head.stamp))

    @_noticing_deaths
    def wait(self, number: int, pids: Sequence[int]) -> None:
        """See :meth:`bsplib.backends.oblivious.Posts.wait`."""
        ranks = {self.members[pid] for pid in pids}
        came = self._box.oblivious[number]

        def suspect() -> None:
            self._collector.read_late()
            if not ranks.isdisjoint(came):  # it has come just now
                return
            for pid in pids:
                rank = self.members[pid]
                why = self._why_absent(rank)
                if self._box.latest(MEET, rank) >= self._superstep:
                    why = ENDED_BY_SYNC
                self._raise_if(why, "oblsync", pid)

        self._link.wait(
            lambda: not ranks.isdisjoint(came),
            suspect,
            lambda: self._ask(ranks),
            for_heads=not self._sends,
        )

    def _look_at_late(self) -> None:
        self._collector.read_late()
        self._link.release_left_groups()

    # -- groups -----------------------------------------------------------------------------

    def split(self, ordinal: int, index: int, pids: Sequence[int]) -> MpiPort:
        """See :meth:`Port.split`."""
        members = as_members([self.members[pid] for pid in pids])
        label = heads.label_of(self._label, ordinal, index)
        return MpiPort(self._link, pids.index(self.pid), members, label, self)

    def close(self) -> None:
        """See :meth:`Port.close`."""
        self._drop_staged()
        if self._parent is not None:
            self._box.passed = _FOREVER
            self._link.leave_group(self._label)
            if not self.try_to_release():
                self._link.left_over.append(self)

    def try_to_release(self) -> bool:
        """See :meth:`LeftGroup.try_to_release`."""
        self._collector.read_late()
        if not self._collector.has_read_all():
            return False
        self._link.forget_group(self._label)
        return True


def open_root(link: Link) -> Port:
    """Return the port of this process to the root group of the run that has begun.

    Raises:
        Stopped: the run ends.
    """
    port = link.inside.open_root(link.nprocs, link.memory) if link.memory else None
    return MpiPort.of_root(link) if port is None else port


def _nothing() -> None:
    pass
