"""The port of virtual processors: the meetings of a group, in virtual time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from bsplib import call_site
from bsplib.backends.base import Arrivals, Arrived, Port, Room
from bsplib.backends.launching import Prices
from bsplib.backends.members import Members, as_members, named
from bsplib.backends.mismatch import are_apart
from bsplib.backends.oblivious import NOTHING, Collector, Post
from bsplib.backends.parcels import Parcel, Ticket, traffic_of
from bsplib.backends.sim.world import Process, World
from bsplib.core.clock import Clock
from bsplib.errors import UsageError
from bsplib.sync_kinds import Kind

_ALIGNMENT = 64
_KIND = 3  # the bits of a note that say how the superstep ends


class _Post(NamedTuple):
    """What a process brings to a meeting."""

    superstep: int
    note: int
    parcels: Mapping[int, Parcel]
    common: Any
    stamp: int


class _ObliviousPost(NamedTuple):
    """What a process brings to the end of an oblivious superstep."""

    parcels: Mapping[int, tuple[int, Parcel]]
    stamp: int
    expected: int
    """Messages that it waits for."""


@dataclass
class _Oblivious:
    """One oblivious superstep of a group."""

    prices: Prices
    posts: dict[int, _ObliviousPost] = field(default_factory=dict)
    """By pid, of the processes that have come to its end."""
    sources: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    """By receiver: the processes that have sent it something."""
    count: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    """By receiver: messages that have come for it."""
    h_in: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    h_out: dict[int, int] = field(default_factory=lambda: defaultdict(int))

    def add(self, pid: int, post: _ObliviousPost) -> None:
        """Add the post of a process that comes to the end of the superstep."""
        self.posts[pid] = post
        for receiver, (count, parcel) in post.parcels.items():
            nbytes = traffic_of(parcel).sent_bytes
            self.sources[receiver].append(pid)
            self.count[receiver] += count
            self.h_in[receiver] += nbytes
            self.h_out[pid] += nbytes

    def is_complete(self, pid: int) -> bool:
        """Tell whether all messages that a process waits for have come."""
        return self.count[pid] >= self.posts[pid].expected

    def is_priced(self, pid: int) -> bool:
        """Tell whether h is known of a process and of all processes that have sent to it."""
        return all(self.is_complete(each) for each in (pid, *self.sources[pid]))

    def price(self, pid: int) -> float:
        """Return the price of the superstep for a process, from its h and that of its sources."""
        pids = (pid, *self.sources[pid])
        return self.prices.oblivious((self.h_in[each], self.h_out[each]) for each in pids)


@dataclass
class _Meeting:
    """One meeting of a group."""

    posts: dict[int, _Post] = field(default_factory=dict)
    passing: list[int] = field(default_factory=list)
    """Processes that bring nothing but a note, all the same one in the same superstep."""
    passes: tuple[int, int] = (0, 0)
    """The superstep and the note of these processes."""
    latest_ns: int = 0
    """Time at which the last of them came, in ns."""
    waiting: list[Process] = field(default_factory=list)
    released_ns: int = 0
    end_ns: int = 0
    notes: list[int] = field(default_factory=list)
    commons: list[Any] | None = None
    parcels: dict[int, list[Arrived]] = field(default_factory=dict)
    """By receiver, in order of the sources."""
    nothing_new: bool = False
    together: bool = False
    """All processes have come here after the same number of supersteps."""

    def complete(self) -> None:
        """Sort the posts by receiver, once for all processes."""
        if not self.posts:
            self.released_ns = self.end_ns = self.latest_ns
            self.nothing_new = self.together = True
            return
        superstep, note = self.passes
        for pid in self.passing:
            self.posts[pid] = _Post(superstep, note, {}, None, self.latest_ns)
        ordered = [self.posts[pid] for pid in range(len(self.posts))]
        self.released_ns = self.end_ns = max(post.stamp for post in ordered)
        self.notes = [post.note for post in ordered]
        if any(post.common is not None for post in ordered):
            self.commons = [post.common for post in ordered]
        for source, post in enumerate(ordered):
            for receiver, parcel in post.parcels.items():
                self.parcels.setdefault(receiver, []).append((source, parcel))
        self.together = len({post.superstep for post in ordered}) == 1
        alike = len(set(self.notes)) == 1
        self.nothing_new = alike and self.commons is None and not self.parcels


@dataclass
class _Gathering:
    """What the processes of one group share: their meeting and their oblivious supersteps."""

    meeting: _Meeting = field(default_factory=_Meeting)
    oblivious: dict[int, _Oblivious] = field(default_factory=dict)
    """By number of the oblivious superstep."""
    done_with: dict[int, int] = field(default_factory=dict)
    """By number of the oblivious superstep: how many processes will not look at it again."""
    waiting: list[Process] = field(default_factory=list)
    """Processes that wait for messages."""
    left: int = 0
    """Processes that have left the group."""

    def forget(self, number: int, nprocs: int) -> None:
        """Note that one more of the processes will not look at an oblivious superstep again."""
        self.done_with[number] = self.done_with.get(number, 0) + 1
        if self.done_with[number] == nprocs:
            del self.oblivious[number], self.done_with[number]


class SimPort(Port):
    """The connection of a virtual processor to the others of a group.

    Args:
        world: all virtual processors.
        process: this virtual processor.
        pid: its number in the group.
        members: processes of the group in root numbering, by pid.
        key: number and sub-group of each partition that led to the group; empty for the root.
    """

    def __init__(
        self,
        world: World,
        process: Process,
        pid: int,
        members: Members,
        key: tuple[int, ...] = (),
    ) -> None:
        self.pid = pid
        self.nprocs = len(members)
        self.members = members
        self.released = 0
        self._world = world
        self._process = process
        self.clock: Clock = process.clock
        self._key = key
        self._gathering: _Gathering = world.gatherings.setdefault(key, _Gathering())
        self._superstep = 0
        self._span = f"the sub-group of {named(members)}" if key else named(members)
        self._in_sync = f"in a sync of {self._span}"
        self._first_meeting = True  # of this superstep; only this one has a price
        self._before_main = not key  # the barrier before main ends at time 0
        self._collector = Collector(members, pid, self)
        self._looks_back = False  # posts of oblivious supersteps have still to be looked at
        self._read = 0  # oblivious supersteps of which nothing is left to be read

    def now(self) -> int:
        """See :meth:`Port.now`."""
        return self.clock.now()

    def superstep(self) -> int:
        """Return the superstep of the program, without the barrier before ``main``."""
        return max(self._superstep - 1, 0)

    def charge(self, seconds: float) -> None:
        """See :meth:`Port.charge`."""
        self.clock.charge(seconds)

    # -- memory -----------------------------------------------------------------------

    def allocate(self, nbytes: int, *, zero: bool) -> memoryview:  # noqa: ARG002  # always zeroed
        """See :meth:`Port.allocate`."""
        # A bytearray and not a numpy array: the base of a view then is the array of the
        # program, as in shared memory.
        memory = bytearray(nbytes + _ALIGNMENT)
        start = -np.frombuffer(memory, np.uint8).ctypes.data % _ALIGNMENT
        return memoryview(memory)[start : start + nbytes]

    def release(self, memory: memoryview) -> None:
        """See :meth:`Port.release`."""

    def stage(self, nbytes: int, to: int) -> tuple[Ticket, Room]:  # noqa: ARG002  # all can fetch it
        """See :meth:`Port.stage`."""
        room = np.empty(nbytes, np.uint8)
        return (self.pid, room, nbytes), room

    def fetch(self, ticket: Ticket) -> memoryview:
        """See :meth:`Port.fetch`."""
        room: Room = ticket[1]
        return room.data

    # -- meetings -----------------------------------------------------------------------

    def exchange(
        self, parcels: Mapping[int, Parcel], note: int, common: Any = None, stamp: int = 0
    ) -> Arrivals | None:
        """See :meth:`Port.exchange`."""
        self._check_current()
        self.try_to_release()
        meeting = self._gathering.meeting
        meeting.posts[self.pid] = _Post(self._superstep, note, parcels, common, stamp or self.now())
        self._stop_if_failed()
        ends = note & _KIND == Kind.END
        self._await_all(meeting, "at the end of main" if ends else self._in_sync)
        if self._process.left:  # groups whose other processes may have posted by now
            self._process.left = [port for port in self._process.left if not port.try_to_release()]
        if not meeting.together:
            self._check_together(meeting.posts)
        if self._before_main:
            self._before_main = False
            self.clock.restart()
        else:
            self._go_on(meeting)
        return self._arrivals(meeting)

    def sync_empty(self, note: int, stamp: int = 0) -> Arrivals | None:
        """See :meth:`Port.sync_empty`.

        If all processes come without transfers and with the same note, no posts are made.
        """
        self._check_current()
        meeting = self._gathering.meeting
        passes = self._superstep, note
        if self._looks_back or self._process.left or self._world.failed or self._before_main:
            return super().sync_empty(note, stamp)
        if meeting.passing and meeting.passes != passes:
            return super().sync_empty(note, stamp)
        meeting.passes = passes
        meeting.passing.append(self.pid)
        meeting.latest_ns = max(meeting.latest_ns, stamp or self.now())
        self._await_all(meeting, self._in_sync)
        if not meeting.together:
            self._check_together(meeting.posts)
        self._go_on(meeting)
        if not meeting.nothing_new:
            return self._arrivals(meeting)
        self._superstep += 1
        self._first_meeting = True
        return None

    def _await_all(self, meeting: _Meeting, doing: str) -> None:
        """Wait for the others; the last process to arrive computes the price and wakes them."""
        if len(meeting.posts) + len(meeting.passing) < self.nprocs:
            meeting.waiting.append(self._process)
            self._world.wait(self._process, doing)
            return
        meeting.complete()
        if self._first_meeting:
            meeting.end_ns += self._price(meeting.posts)
        self._gathering.meeting = _Meeting()
        self._world.wake(meeting.waiting)

    def _go_on(self, meeting: _Meeting) -> None:
        self.clock.advance_to(meeting.end_ns)
        if self._first_meeting:
            self.released = meeting.released_ns
        self._first_meeting = False

    def _arrivals(self, meeting: _Meeting) -> Arrivals | None:
        if meeting.nothing_new:
            return None
        return meeting.notes, meeting.parcels.get(self.pid, []), meeting.commons

    def _check_together(self, posts: dict[int, _Post]) -> None:
        """Raise unless all processes have come here after the same number of supersteps."""
        for pid, post in sorted(posts.items()):
            if post.superstep != self._superstep:
                raise are_apart(self.members[pid], self.members[self.pid])

    def _price(self, posts: dict[int, _Post]) -> int:
        """Return the price of a superstep in ns, by the prices of the run."""
        prices = self._world.prices
        if not posts:
            return _ns(prices.empty())
        h_in, h_out = [0] * self.nprocs, [0] * self.nprocs
        for pid, post in posts.items():
            for partner, parcel in post.parcels.items():
                traffic = traffic_of(parcel)
                h_out[pid] += traffic.sent_bytes
                h_in[partner] += traffic.sent_bytes
                h_in[pid] += traffic.asked_bytes
                h_out[partner] += traffic.asked_bytes
        return _ns(prices.superstep(h_in, h_out, _links(posts)))

    # -- oblivious meetings ---------------------------------------------------------------

    def exchange_oblivious(
        self, parcels: Mapping[int, tuple[int, Parcel]], expected: int, stamp: int = 0
    ) -> list[Arrived]:
        """See :meth:`Port.exchange_oblivious`."""
        self._check_current()
        self.try_to_release()
        gathering, collector = self._gathering, self._collector
        number, stamp = collector.ended, stamp or self.now()
        superstep = gathering.oblivious.setdefault(number, _Oblivious(self._world.prices))
        full = {pid: parcel for pid, parcel in parcels.items() if parcel[0]}
        superstep.add(self.pid, _ObliviousPost(full, stamp, expected))
        collector.end_superstep(stamp)
        self._stop_if_failed()
        self._world.wake(gathering.waiting)
        gathering.waiting = []
        while not superstep.is_priced(self.pid) and not self._is_in_vain(superstep, expected):
            self.wait(number, ())
        self._looks_back = True
        arrived = collector.collect(expected)
        self.released = collector.released
        self.clock.advance_to(self.released + _ns(superstep.price(self.pid)))
        return arrived

    def _is_in_vain(self, superstep: _Oblivious, expected: int) -> bool:
        """Tell whether messages are missing and no more can come."""
        return len(superstep.posts) == self.nprocs and superstep.count[self.pid] < expected

    def look(self, number: int, pids: Collection[int]) -> dict[int, Post]:
        """See :meth:`Posts.look`."""
        posts = self._gathering.oblivious[number].posts
        return {pid: self._post_of(posts[pid]) for pid in pids if pid in posts}

    def _post_of(self, post: _ObliviousPost) -> Post:
        """Return the part of a post that is for this process."""
        return Post(*post.parcels[self.pid], post.stamp) if self.pid in post.parcels else NOTHING

    def wait(self, number: int, pids: Sequence[int]) -> None:  # noqa: ARG002  # any post may be the one
        """Wait until another process ends an oblivious superstep of the group."""
        self._gathering.waiting.append(self._process)
        self._world.wait(self._process, f"in an oblsync of {self._span}")

    def try_to_release(self) -> bool:
        """See :meth:`LeftGroup.try_to_release`: forget oblivious supersteps that are read."""
        if self._looks_back:
            read = self._collector.read_late()
            for number in range(self._read, read):
                self._gathering.forget(number, self.nprocs)
            self._read = read
            self._looks_back = not self._collector.has_read_all()
        return not self._looks_back

    # -- supersteps and sub-groups --------------------------------------------------------

    def end_superstep(self) -> None:
        """See :meth:`Port.end_superstep`."""
        self._superstep += 1
        self._first_meeting = True

    def split(self, ordinal: int, index: int, pids: Sequence[int]) -> SimPort:
        """See :meth:`Port.split`."""
        members = as_members([self.members[pid] for pid in pids])
        key = (*self._key, ordinal, index)
        return SimPort(self._world, self._process, pids.index(self.pid), members, key)

    def close(self) -> None:
        """See :meth:`Port.close`."""
        if not self.try_to_release():
            self._process.left.append(self)
        self._gathering.left += 1
        if self._gathering.left == self.nprocs:
            del self._world.gatherings[self._key]

    def _check_current(self) -> None:
        """Raise unless this virtual processor is the one that runs."""
        if not self._process.is_current():
            raise UsageError(
                f"{call_site.operation()}: the group of process {self._process.pid} is used by "
                f"another thread or virtual processor than the one that runs its main"
            )

    def _stop_if_failed(self) -> None:
        """Wait for ever if another process has failed: the world then unwinds this one."""
        if self._world.failed:
            self._world.wait(self._process, "stopped")


def _links(posts: Mapping[int, _Post]) -> Iterator[tuple[int, int]]:
    """Yield (sender, receiver) pairs; the values of a get are sent by their owner."""
    for pid, post in posts.items():
        for partner, parcel in post.parcels.items():
            if parcel.puts is not None or parcel.messages is not None:
                yield pid, partner
            if parcel.gets is not None:
                yield partner, pid


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)
