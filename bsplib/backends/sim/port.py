"""Virtual processors: how they begin, wait for each other, and end, and their meetings."""

from __future__ import annotations

import ctypes
import heapq
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import starmap
from typing import Any, NamedTuple

import greenlet
import numpy as np
from numpy.typing import NDArray

from bsplib import call_site
from bsplib.backends.base import Arrived, Buffer, Found, Handle, LeftGroup, Port, Sent, Stopped
from bsplib.backends.launching import ObliviousPrices, Prices, Transfer
from bsplib.backends.members import Members, are_apart, as_members, named
from bsplib.backends.oblivious import NOTHING, Collector, Post
from bsplib.core import virtual
from bsplib.core.atomics import address_of
from bsplib.core.clock import Clock
from bsplib.core.entries import Block, PrivateMemory, amounts_of
from bsplib.core.virtual import Gathering, VirtualMeeting
from bsplib.directions import Direction
from bsplib.errors import SyncMismatchError, UsageError


class Process(virtual.Process):
    """One virtual processor."""

    def __init__(
        self, pid: int, clock: Clock, body: Callable[[Process], None], hub: greenlet.greenlet
    ) -> None:
        super().__init__(greenlet.greenlet(lambda: body(self), hub))
        self.pid = pid
        self.clock = clock
        self.superstep: Callable[[], int] = int
        """Returns its superstep in the root group; 0 before it has opened a port."""
        self.ended_ns = 0
        """When the last process came to the end of main: the meeting there has no price."""
        self.left: list[LeftGroup]


class World:
    """All virtual processors of a run.

    Args:
        prices: prices of communication.
        seed: seed of the order in which they run.
        scale: virtual seconds for each second of CPU time of this computer.
    """

    def __init__(self, prices: Prices, seed: int, scale: float) -> None:
        self.prices = prices
        self._scale = scale
        self.groups: dict[tuple[int, ...], Any] = {}
        """What the processes of each group share, by the partitions that led to it."""
        self._hub = greenlet.getcurrent()
        self.rounds = virtual.Rounds(np.random.default_rng(seed), self._hub)
        """The order in which they run."""
        self.processes: list[Process] = []
        """By pid."""
        self._turns: list[tuple[int, int, Process]] = []
        """Processes that wait until no other one is earlier: a heap by their times and pids."""

    @property
    def current(self) -> Process | None:
        """The virtual processor that runs; None before the first one does."""
        process: Process | None = self.rounds.current
        return process

    def add(self, body: Callable[[Process], None]) -> None:
        """Add a virtual processor that runs ``body``."""
        process = Process(len(self.processes), Clock(self._scale), body, self._hub)
        self.processes.append(process)
        self.rounds.wake([process])

    def run(self) -> None:
        """Run until all have ended; processes that wait for each other get an error."""
        self._run_in_turn()
        while self._unwind():
            self._run_in_turn()

    def stop(self) -> None:
        """End the run: processes run again only to unwind."""
        self.rounds.is_over = True
        self.rounds.clear()

    def wait_for_turn(self, process: Process) -> None:
        """Let the current process wait until all others wait, too, or have ended.

        Of several that wait for this, the earliest one continues.
        """
        heapq.heappush(self._turns, (process.clock.now(), process.pid, process))
        self.rounds.wait(process, "waits for its turn")

    def _run_in_turn(self) -> None:
        self.rounds.run()
        while self._turns and not self.rounds.is_over:
            self.rounds.wake([heapq.heappop(self._turns)[-1]])
            self.rounds.run()

    def _unwind(self) -> bool:
        """End a waiting process when none can continue; return whether there was one."""
        waiting = [process for process in self.processes if not process.greenlet.dead]
        if not waiting:
            return False
        first = self.rounds.current = waiting[0]
        if not first.greenlet:
            first.greenlet.throw()  # it has not begun, and must not begin any more
        elif self.rounds.is_over:
            first.greenlet.throw(Stopped)
        else:
            first.greenlet.throw(SyncMismatchError(self._whereabouts()))
        return True

    def _whereabouts(self) -> str:
        """Return text for errors: which processes wait where, and which have ended."""
        places: dict[str, list[int]] = {}
        for process in self.processes:
            where = "returned from main" if process.greenlet.dead else process.doing
            places.setdefault(where, []).append(process.pid)
        parts = [f"{named(pids)} {where}" for where, pids in places.items()]
        return f"the processes wait for each other: {', '.join(parts)}"


# -- their meetings --------------------------------------------------------------------------------


class _ObliviousPost(NamedTuple):
    """What a process brings to the end of an oblivious superstep."""

    entries: Mapping[int, tuple[int, Sent]]
    """By receiver: for how many messages they count, and the entries."""
    stamp: int
    expected: int
    """Messages that it waits for."""


@dataclass
class _Oblivious:
    """One oblivious superstep of a group."""

    prices: ObliviousPrices
    posts: dict[int, _ObliviousPost] = field(default_factory=dict)
    """By pid, of the processes that have come to its end."""
    sources: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    """By receiver: the processes that have sent it something."""
    count: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    """By receiver: messages that have come for it."""

    def add(self, pid: int, post: _ObliviousPost) -> None:
        """Add the post of a process that comes to the end of the superstep."""
        self.posts[pid] = post
        sent: list[Transfer] = []
        for receiver, (count, entries) in post.entries.items():
            amounts = amounts_of(entries)
            self.sources[receiver].append(pid)
            self.count[receiver] += count
            if amounts[1]:
                sent.append(Transfer(pid, receiver, Direction.OUT, *amounts))
        self.prices.add(sent)

    def is_complete(self, pid: int) -> bool:
        """Tell whether all messages that a process waits for have come."""
        return self.count[pid] >= self.posts[pid].expected

    def is_priced(self, pid: int) -> bool:
        """Tell whether h is known of a process and of all processes that have sent to it."""
        return all(self.is_complete(each) for each in (pid, *self.sources[pid]))

    def price(self, pid: int) -> float:
        """Return the price of the superstep for a process, from its h and that of its sources."""
        return self.prices.price((pid, *self.sources[pid]))


@dataclass
class _Group:
    """What the processes of one group share: their meetings and their oblivious supersteps."""

    gathering: Gathering
    staged: list[tuple[dict[int, Buffer], dict[int, Buffer]]]
    """By pid: payloads that entries name by their addresses, of this superstep and the last."""
    memory: PrivateMemory = field(default_factory=PrivateMemory)
    """Memory of all send buffers. It is kept for all of them, since a process may leave the group
    before others have read its entries."""
    oblivious: dict[int, _Oblivious] = field(default_factory=dict)
    """Key: number of the oblivious superstep."""
    done_with: dict[int, int] = field(default_factory=dict)
    """By number of the oblivious superstep: how many processes will not look at it again."""
    waiting: list[Process] = field(default_factory=list)
    """Processes that wait for messages."""
    found: Any = None
    """What the first process has found for all after a meeting; see :meth:`SimPort.once`."""
    looks: int = 0
    """Processes that have still to look at it. All have before the next meeting ends."""
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

    meeting: VirtualMeeting
    clock: Clock

    def __init__(
        self,
        world: World,
        process: Process,
        pid: int,
        members: Members,
        key: tuple[int, ...] = (),
    ) -> None:
        self._world = world
        self._process = process
        self.clock = process.clock
        self.now = self.clock.now
        self._key = key
        if key not in world.groups:
            world.groups[key] = _Group(Gathering(len(members)), [({}, {}) for _ in members])
        self._group: _Group = world.groups[key]
        self._gathering = self._group.gathering
        self._staged = self._group.staged[pid]
        self._ended_alone = False  # this superstep, by an oblivious sync
        self._span = f"the sub-group of {named(members)}" if key else named(members)
        place = f"in a sync of {self._span}"
        meeting = VirtualMeeting(
            pid, self._gathering, process, self.clock, world.rounds, self, place
        )
        super().__init__(pid, members, meeting)
        self.meeting.is_before_main = not key
        self._collector = Collector(members, pid, self)
        self._read = 0  # oblivious supersteps of which nothing is left to be read

    def superstep(self) -> int:
        """Return the superstep of the program, without the barrier before ``main``."""
        return max(self.meeting.superstep - 2, 0)

    def in_turn(self) -> None:
        self.check_current()
        self.clock.pause()
        self.clock.settle()
        self._world.wait_for_turn(self._process)
        self.clock.resume()

    # -- memory -----------------------------------------------------------------------

    def stage(self, nbytes: int, to: int, *, message: bool = False) -> tuple[Handle, Buffer]:  # noqa: ARG002  # all can fetch it
        memory = np.empty(nbytes, np.uint8)
        where = address_of(memory)
        self._staged[0][where] = memory
        self.meeting.has_staged = True
        return (self.pid, where, nbytes), memory

    def reserve(self, nbytes: int, *, message: bool = False) -> int:
        """Return the address at which a value of this superstep can be staged."""
        (_, where, _), _ = self.stage(nbytes, -1, message=message)
        return where

    def fetch(self, handle: Handle) -> memoryview:
        _, where, nbytes = handle
        return memoryview((ctypes.c_char * nbytes).from_address(where)).cast("B")

    def shared_address_of(self, array: NDArray[Any]) -> int | None:
        """See :meth:`Port.shared_address_of`.

        Memory that a numpy array owns is not shared, though all processes could reach it:
        the destination of a get that owns its memory may be written at any time. Others count
        bytes from the address on, so that an array with gaps, or reversed, has none.
        """
        if not array.flags.c_contiguous:
            return None
        owner: Any = array
        while isinstance(owner, np.ndarray):
            if owner.flags.owndata:
                return None
            owner = owner.base
        address: int = array.__array_interface__["data"][0]
        return address

    def reach(self, pid: int, shared_address: int, nbytes: int) -> memoryview:  # noqa: ARG002
        return memoryview((ctypes.c_char * nbytes).from_address(shared_address)).cast("B")

    # -- meetings -----------------------------------------------------------------------

    def send_buffer_memory(self) -> Callable[[int], Block]:
        return self._group.memory.allocate

    # -- what a meeting leaves to the port -------------------------------------------------------

    def check_current(self) -> None:
        """Raise unless this virtual processor is the one that runs."""
        if not self._process.is_current():
            raise UsageError(
                f"{call_site.operation()}: the group of process {self._process.pid} is used by "
                f"another thread or virtual processor than the one that runs its main"
            )

    def prepare(self) -> None:
        """Look at late posts of oblivious supersteps."""
        self.try_to_release()

    def price(self) -> int:
        """Return the price of a superstep in ns, by the prices of the run."""
        prices = self._world.prices
        transfers = list(starmap(Transfer, self.meeting.transfers()))
        return _ns(prices.superstep(transfers, self.nprocs))

    def price_of_nothing(self) -> int:
        """Return the price in ns of a superstep in which nothing is transferred."""
        return _ns(self._world.prices.empty(self.nprocs))

    def after_posts(self) -> None:
        """Look again at groups whose other processes may have posted by now."""
        self._process.left = [port for port in self._process.left if not port.try_to_release()]

    def check_together(self) -> None:
        """Raise unless all processes have come to a meeting after the same number of supersteps."""
        for pid in range(self.nprocs):
            if self.meeting.superstep_of(pid) != self.meeting.superstep:
                raise are_apart(self.members[pid], self.members[self.pid])

    # -- oblivious meetings ---------------------------------------------------------------

    def exchange_oblivious(
        self, entries: Mapping[int, tuple[int, Sent]], expected: int, stamp: int = 0
    ) -> list[Arrived]:
        self._ended_alone = True
        self.check_current()
        self.try_to_release()
        group, collector = self._group, self._collector
        number, stamp = collector.ended, stamp or self.now()
        if number not in group.oblivious:
            group.oblivious[number] = _Oblivious(self._world.prices.oblivious(self.nprocs))
        superstep = group.oblivious[number]
        full = {pid: sent for pid, sent in entries.items() if sent[0]}
        superstep.add(self.pid, _ObliviousPost(full, stamp, expected))
        collector.end_superstep(stamp)
        rounds = self._world.rounds
        if rounds.is_over:
            rounds.wait(self._process, "stopped")  # for ever: the world unwinds this process
        rounds.wake(group.waiting)
        group.waiting = []
        while not superstep.is_priced(self.pid) and not self._is_in_vain(superstep, expected):
            self.wait(number, ())
        self.meeting.looks_back = True
        arrived = collector.collect(expected)
        self.meeting.released = collector.released
        self.clock.advance_to(collector.released + _ns(superstep.price(self.pid)))
        return arrived

    def _is_in_vain(self, superstep: _Oblivious, expected: int) -> bool:
        """Tell whether messages are missing and no more can come."""
        return len(superstep.posts) == self.nprocs and superstep.count[self.pid] < expected

    def look(self, number: int, pids: Collection[int]) -> dict[int, Post]:
        posts = self._group.oblivious[number].posts
        return {pid: self._post_of(posts[pid]) for pid in pids if pid in posts}

    def _post_of(self, post: _ObliviousPost) -> Post:
        """Return the part of a post that is for this process."""
        return Post(*post.entries[self.pid], post.stamp) if self.pid in post.entries else NOTHING

    def wait(self, number: int, pids: Sequence[int]) -> None:  # noqa: ARG002  # any post may be the one
        """Wait until another process ends an oblivious superstep of the group."""
        self._group.waiting.append(self._process)
        self._world.rounds.wait(self._process, f"in an oblsync of {self._span}")

    def try_to_release(self) -> bool:
        """See :meth:`LeftGroup.try_to_release`: forget oblivious supersteps that are read."""
        if self.meeting.looks_back:
            read = self._collector.read_late()
            for number in range(self._read, read):
                self._group.forget(number, self.nprocs)
            self._read = read
            self.meeting.looks_back = not self._collector.has_read_all()
        return not self.meeting.looks_back

    def once(self, find: Callable[[], Found]) -> Found:
        group = self._group
        if not group.looks:
            group.found = find()
            group.looks = self.nprocs
        found: Found = group.found
        group.looks -= 1
        if not group.looks:
            group.found = None
        return found

    # -- supersteps and sub-groups --------------------------------------------------------

    def end_superstep(self) -> None:
        self.meeting.end_superstep()
        together = not self._ended_alone
        self._ended_alone = False
        # After an oblivious sync others may still read messages of the superstep before it.
        if together and self.meeting.has_staged:
            this, last = self._staged
            last.clear()
            self._staged = self._group.staged[self.pid] = last, this
            self.meeting.has_staged = bool(this)

    def split(self, ordinal: int, index: int, pids: Sequence[int]) -> SimPort:
        members = as_members([self.members[pid] for pid in pids])
        key = (*self._key, ordinal, index)
        return SimPort(self._world, self._process, pids.index(self.pid), members, key)

    def close(self) -> None:
        if not self._key:
            self._process.ended_ns = self.meeting.released
        if not self.try_to_release():
            self._process.left.append(self)
        self._group.left += 1
        if self._group.left == self.nprocs:
            del self._world.groups[self._key]


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)
