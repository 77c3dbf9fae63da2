"""The link of a rank: its connections to all other ranks, kept between runs.

It starts the sends and receives of MPI for all groups, sorts the heads that come into the
inboxes of their groups, and waits. PROTOCOL.md argues why that is right.
"""

from __future__ import annotations

import contextlib
import time
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
from mpi4py import MPI

from bsplib.backends.base import Alignment, LeftGroup, Port, Stopped
from bsplib.backends.mpi import heads
from bsplib.backends.mpi.clocks import Clocks
from bsplib.backends.mpi.heads import BODY, HEAD_BYTES, MOST_BODY, Head
from bsplib.backends.mpi.same_host import seats_of, shared_memory
from bsplib.backends.mpi.transport import BODIES, HEADS, PAYLOADS, Inbox, Inflow, Post, Sends
from bsplib.backends.mpi.waiting import NAP_S, LastLooks, RankWait, polls_of
from bsplib.backends.oblivious import MOST_AHEAD
from bsplib.backends.shm.joining import Memory

_CREDIT = MOST_AHEAD // 2
"""Number of posts that are credited at once."""
_MOST_LEFT = 4096
"""Groups of which a rank remembers that it has left them."""
_END_S = 1.0
SOUND, INTERRUPTED, BROKEN = range(3)
"""The condition of a link after a failed run: it can serve the next one, or it can do so with
another communicator, or it cannot, since nothing is known of what MPI does for it."""
_testsome = MPI.Request.Testsome


def _nothing() -> None:
    pass


class _HeadToMany:
    """One head that is sent to many ranks from one buffer, by persistent requests."""

    def __init__(self, comm: MPI.Intracomm) -> None:
        self.buffer = bytearray(BODY)
        self.requests = [
            MPI.REQUEST_NULL
            if rank == comm.rank
            else comm.Send_init((self.buffer, MPI.BYTE), rank, HEADS)
            for rank in range(comm.size)
        ]
        self._sending: Sequence[MPI.Request] = ()

    def is_sent(self) -> bool:
        """Tell whether all have been sent the last head."""
        if self._sending and MPI.Request.Testall(self._sending):
            self._sending = ()
        return not self._sending

    def send(self, head: bytes, requests: Sequence[MPI.Request]) -> None:
        """Start to send a head."""
        self.buffer[:] = head
        MPI.Prequest.Startall(requests)  # type: ignore[arg-type]  # they are persistent
        self._sending = requests


class Link:
    """The connections of this rank to all others of its job.

    Args:
        most_direct: processes of the largest group in which each sends a head to each other one;
            that of rank 0 counts.
    """

    def __init__(self, most_direct: int) -> None:
        self.most_direct = most_direct
        self.stop = memoryview(bytearray(1))
        """1 once the run has to stop."""
        self.superstep = 0
        """Supersteps that this rank has ended in the root group, where it meets through MPI."""
        self.failures: dict[int, int] = {}
        """Other ranks that have failed in this run, with the superstep in which each did."""
        self._last_looks = LastLooks()
        self.run = 0
        self.nprocs = 0
        self.memory = 0
        self._shared: Memory | None = None
        """What the ranks of a run share with others on their host."""
        self._number = 0
        """Number of that memory, also of one that the ranks could not share; 0: there is none."""
        self.condition = SOUND
        """See :data:`SOUND`."""
        self.sends: set[Sends] = set()
        """Sends of the groups that this process is in."""
        self.left_over: list[LeftGroup] = []
        """Groups that this process has left before all posts of the others had come."""
        self._inboxes: dict[int, Inbox] = {}
        self._early: deque[tuple[int, bytes]] = deque()
        """Heads of later runs."""
        self._unopened: defaultdict[int, list[Post]] = defaultdict(list)
        """Posts in groups that this process has not opened yet, by label."""
        self._left: OrderedDict[int, None] = OrderedDict()
        self._connect(MPI.COMM_WORLD.Dup())

    def _connect(self, comm: MPI.Intracomm) -> None:
        self.comm = comm
        self.rank, self.size = comm.rank, comm.size
        self.clocks = Clocks(comm, self.has_to_stop)
        self._polls = polls_of(comm)
        self.most_direct = comm.bcast(self.most_direct)
        self._seats = seats_of(comm)
        self._others = [rank for rank in range(self.size) if rank != self.rank]
        self._came = [bytearray(HEAD_BYTES) for _ in self._others]
        self._all_receives = [
            comm.Recv_init((buffer, MPI.BYTE), rank, HEADS)
            for buffer, rank in zip(self._came, self._others, strict=True)
        ]
        self._to_many = _HeadToMany(comm)
        self._begin_anew()

    def _begin_anew(self) -> None:
        """Begin with nothing on its way to this rank or from it."""
        comm = self.comm
        self.condition = SOUND
        self._early.clear()
        self._receives: Sequence[MPI.Prequest] = []
        if self._others:
            MPI.Prequest.Startall(self._all_receives)
        self.sends.clear()
        self.unsent = Sends(comm)
        """Sends for which no superstep waits."""
        self.inflows = [Inflow(comm) for _ in range(self.size)]
        self._ahead = [0] * self.size
        self._uncredited = [0] * self.size

    # -- runs -------------------------------------------------------------------------------

    def begin(self, run: int, nprocs: int, memory: int) -> None:
        """Begin a run; its processes are the first ranks.

        Args:
            run: larger than that of every run before.
            nprocs: number of its processes; this rank is one of them.
            memory: number of the memory that all processes may share: that of the run in which
                it is made; 0 where they share none. It differs where a memory is to be made; a
                rank that was in no run meanwhile finds that, too.
        """
        self.run, self.nprocs, self.memory = run, nprocs, memory
        self.stop[0] = self.superstep = 0
        self.failures.clear()
        self._last_looks = LastLooks()
        others = nprocs - (self.rank < nprocs)
        self._receives = self._all_receives[:others]
        self._inboxes.clear()
        self._left.clear()
        self._unopened.clear()
        self.left_over.clear()
        early, self._early = self._early, deque()
        for source, data in early:
            self._take(source, data)

    def open_memory(self) -> Port | None:
        """Let the ranks of the run share memory, where they may and can.

        Returns:
            The port to the root group, where all of them are on one host.

        Raises:
            Stopped: the run ends.
        """
        if not self.memory:
            return None
        if self.memory != self._number:
            self._leave_memory()
            with self._aside():
                self._shared = shared_memory(self.comm, self._seats, self.nprocs, self.has_to_stop)
            self._number = self.memory
        return None if self._shared is None else self._shared.open_root()

    def _leave_memory(self) -> None:
        """Leave the memory, which no process of a run uses."""
        shared, self._shared, self._number = self._shared, None, 0
        if shared is not None:
            shared.leave()

    def align_clocks(self, nprocs: int, *, again: bool) -> Alignment:
        with self._aside():
            return self.clocks.align(nprocs, again=again)

    @contextlib.contextmanager
    def _aside(self) -> Iterator[None]:
        """Let messages be exchanged that :func:`drain` does not know; note if that ends early."""
        try:
            yield
        except Stopped:
            self.condition = max(self.condition, INTERRUPTED)
            raise
        except BaseException:
            self.condition = BROKEN  # nothing is known of what MPI does for this rank
            raise

    def current_superstep(self) -> int:
        """Return the superstep of the root group in which this rank is."""
        shared = self._shared if self.memory else None
        ended = self.superstep if shared is None else shared.supersteps()
        return max(ended - 1, 0)  # one is before main

    def tell_failure(self, superstep: int) -> None:
        """Let all others stop where they wait, now or later: this rank has failed."""
        if self._shared is not None:
            self._shared.stop()
        head = heads.pack(self.run, heads.STOP, 0, 0, 0, 0, superstep, 0, 0, 0)
        for rank in range(self.nprocs):
            if rank != self.rank:
                self.unsent.start(head, rank, HEADS)

    def has_to_stop(self) -> bool:
        """Tell whether the run has to stop; take what has come."""
        self.pump()
        return bool(self.stop[0])

    def end(self) -> None:
        """End the run here: send and receive what nobody has waited for."""
        patience = RankWait(self.stop, self._last_looks, self._polls)
        deadline = MPI.Wtime() + _END_S
        with contextlib.suppress(Stopped):
            while not self._is_done() and MPI.Wtime() < deadline:
                self.pump()
                patience.pause()

    def _is_done(self) -> bool:
        """Receive what is left of posts that were never opened; tell whether nothing is left."""
        sent = self.unsent.all_sent()
        here = [inflow.drop() for inflow in self.inflows]
        return all(here) and sent and self.heads_are_sent()

    def renew(self, *, afresh: bool) -> None:
        """Let nothing of a failed run reach a later one; all ranks of the job call it.

        Args:
            afresh: a rank was interrupted where only another communicator helps; the same in
                all ranks.
        """
        self._leave_memory()
        drain(
            self.comm,
            dict(zip(self._others, self._all_receives, strict=True)),
            self._is_complete,
        )
        if afresh:
            for request in self._all_receives:
                request.Free()
            self._connect(self.comm.Dup())
        else:
            self.clocks = Clocks(
                self.comm, self.has_to_stop
            )  # some may have been aligned, and some not
            self._begin_anew()

    def _is_complete(self) -> bool:
        """Tell whether all that this rank had started to send or receive is complete."""
        receiving = [each for inflow in self.inflows for each in inflow.unfinished]
        here = [payload.is_here() for payload in receiving]
        sent = [sends.all_sent() for sends in (*self.sends, self.unsent)]
        return all(here) and all(sent) and self.heads_are_sent()

    def leave(self) -> None:
        """Receive nothing more."""
        for request in self._all_receives:
            request.Cancel()
        MPI.Request.Waitall(self._all_receives)

    # -- groups -----------------------------------------------------------------------------

    def enter(self, label: int, inbox: Inbox) -> None:
        """Let the posts of a group come into an inbox."""
        self._inboxes[label] = inbox
        if self._unopened:
            for post in self._unopened.pop(label, ()):
                inbox.take(post)

    def leave_group(self, label: int) -> None:
        """Note that this process has left a group; posts may still come."""
        self._left[label] = None
        if len(self._left) > _MOST_LEFT:
            self._left.popitem(last=False)

    def forget_group(self, label: int) -> None:
        """Drop the inbox of a group that this process has left."""
        del self._inboxes[label]

    def release_left_groups(self) -> None:
        """Forget groups that this process has left where all posts have come."""
        self.left_over = [group for group in self.left_over if not group.try_to_release()]

    # -- heads ------------------------------------------------------------------------------

    def requests_to(self, ranks: Iterable[int]) -> list[MPI.Request]:
        """Return what :meth:`send_to_many` needs for some ranks."""
        return [self._to_many.requests[rank] for rank in ranks]

    def send_to_many(self, head: bytes, requests: list[MPI.Request]) -> None:
        """Send a head without a body to several ranks."""
        if not self.heads_are_sent():
            self.wait(self.heads_are_sent)
        self._to_many.send(head, requests)

    def heads_are_sent(self) -> bool:
        """Tell whether the last head to many has been handed over to MPI for good.

        Only then can it come where this rank does not call MPI any more.
        """
        return self._to_many.is_sent()

    def send_head(self, to: int, kind: int, label: int, number: int = 0) -> None:
        """Send a head that is no post."""
        head = heads.pack(self.run, kind, 0, 0, label, number, 0, 0, 0, 0)
        self.unsent.start(head, to, HEADS)

    def pump(self) -> bool:
        """Take the heads that have come; return whether there were any."""
        receives = self._receives
        done = _testsome(receives) if receives else None
        if not done:
            return False
        for index in done:
            data = bytes(self._came[index])
            receives[index].Start()
            self._take(self._others[index], data)
        return True

    def _take(self, source: int, data: bytes) -> None:
        """Sort a head."""
        head = heads.unpack(data)
        if head.kind == heads.MEET and head.run == self.run:
            self._take_post(source, head, data)
        elif head.kind == heads.CREDIT:  # those of an earlier run count, too
            self._ahead[source] -= head.number
        elif head.run != self.run:
            if head.run > self.run:
                self._early.append((source, data))
        elif head.kind in heads.POSTS:
            self._take_post(source, head, data)
        elif head.kind == heads.STOP:
            self.failures[source] = head.superstep
            self.stop[0] = 1
        elif head.kind == heads.QUESTION:
            if head.label in self._left:
                self.send_head(source, heads.ANSWER, head.label)
        elif head.label in self._inboxes:  # an answer
            self._inboxes[head.label].left.add(source)

    def _take_post(self, source: int, head: Head, data: bytes) -> None:
        size = head.body_bytes
        body = data[BODY : BODY + size] if size <= MOST_BODY else None
        post = Post(source, head, body)
        if head.payloads or body is None:
            self.inflows[source].expect(post)
        inbox = self._inboxes.get(head.label)
        if inbox is not None:
            if inbox.take(post):
                self.credit(post)
        elif head.label in self._left:
            self.credit(post)
        else:
            self._unopened[head.label].append(post)

    # -- credits ----------------------------------------------------------------------------

    def has_credit(self, rank: int) -> bool:
        """Tell whether an oblivious post may be sent to a rank."""
        return self._ahead[rank] < MOST_AHEAD

    def spend_credit(self, rank: int) -> None:
        """Note that an oblivious post is sent to a rank."""
        self._ahead[rank] += 1

    def credit(self, post: Post) -> None:
        """Note that this rank needs no memory for an oblivious post any more."""
        if post.is_credited or post.head.kind != heads.OBLIVIOUS:
            return
        post.is_credited = True
        source = post.source
        self._uncredited[source] += 1
        if self._uncredited[source] == _CREDIT:
            self._uncredited[source] = 0
            self.send_head(source, heads.CREDIT, 0, _CREDIT)

    # -- waiting ----------------------------------------------------------------------------

    def wait(
        self,
        ready: Callable[[], object],
        suspect: Callable[[], None] = _nothing,
        ask: Callable[[], None] = _nothing,
        *,
        for_heads: bool = False,
    ) -> None:
        """Return as soon as ``ready()``.

        Args:
            ready: what heads, sends or receives make true for good.
            suspect: called from time to time; raises if that can never happen.
            ask: called less often, before ``suspect``: asks others where they are.
            for_heads: it waits for heads, and receives nothing large meanwhile.

        Raises:
            Stopped: the run ends.
        """
        if ready():
            return
        only_waits = for_heads and not self.unsent
        patience = RankWait(self.stop, self._last_looks, self._polls, only_waits=only_waits)
        while True:
            came = self.pump()
            if ready():
                return
            if came:
                patience.hurry()
            try:
                is_time_to_look = patience.pause()
            except Stopped:
                self.pump()
                if ready():  # what it waited for came before the stop: it may have an own error
                    return
                raise
            if is_time_to_look:
                if patience.asks():
                    ask()
                suspect()

    def open(self, posts: Iterable[Post]) -> None:
        """Wait for the bodies of posts, take them apart, and start to receive their payloads.

        Args:
            posts: in the order in which they were sent, as far as they have one sender.
        """
        missing = [post for post in posts if post.body is None]
        for post in missing:
            self.inflows[post.source].start_bodies(post)
        for post in missing:
            self.wait(post.has_body)
        for post in posts:
            post.read()
            if post.payloads:
                inflow = self.inflows[post.source]
                self.open(inflow.before(post))
                inflow.start_payloads(post)


# -- after a failed run: all that ranks have sent each other is received, and nobody keeps it -----
# PROTOCOL.md, section *After a failed run*, argues why that is right.


def drain(
    comm: MPI.Intracomm, heads: Mapping[int, MPI.Prequest], is_complete: Callable[[], bool]
) -> None:
    """Receive all that other ranks have sent to this one; all ranks call it.

    Each rank sends a **last** message without a byte with each tag to each other one. What was
    sent before comes before.

    Args:
        comm: connects the ranks.
        heads: by rank, the receive of its heads; when this function returns, it is not started.
        is_complete: tells whether the sends and receives are complete that this rank had
            started before, but for those of ``heads``.
    """
    tags = HEADS, BODIES, PAYLOADS
    last = [comm.Isend((b"", MPI.BYTE), rank, tag) for rank in heads for tag in tags]
    of_heads = list(heads.values())
    of_others = [(rank, tag) for rank in heads for tag in (BODIES, PAYLOADS)]
    while True:
        of_heads = [receive for receive in of_heads if not _took_last_head(receive)]
        of_others = [each for each in of_others if not _took_last(comm, *each)]
        is_done = is_complete() and MPI.Request.Testall(last)
        if is_done and not of_heads and not of_others:
            return
        time.sleep(NAP_S)


def _took_last_head(receive: MPI.Prequest) -> bool:
    """Drop the heads of a rank that have come; tell whether the last one is among them."""
    status = MPI.Status()
    while receive.Test(status):
        was_started = status.source != MPI.ANY_SOURCE
        if was_started and not status.Get_count(MPI.BYTE):
            return True
        receive.Start()
    return False


def _took_last(comm: MPI.Intracomm, rank: int, tag: int) -> bool:
    """Drop what has come from a rank with a tag; tell whether the last message is among it."""
    status = MPI.Status()
    while (message := comm.Improbe(rank, tag, status)) is not None:
        nbytes = status.Get_count(MPI.BYTE)
        message.Recv((np.empty(nbytes, np.uint8), MPI.BYTE))
        if not nbytes:
            return True
    return False
