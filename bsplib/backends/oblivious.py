"""Receiving in oblivious supersteps: a process waits for a number of messages.

It goes on as soon as it has them. Other processes may not have posted by then. They may have
nothing for this process: it looks at their posts later, where a message is an error.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple, Protocol

from bsplib.backends.base import Arrived, Sent
from bsplib.backends.members import Members
from bsplib.errors import SyncMismatchError

MOST_AHEAD = 64
"""Oblivious supersteps by which a process may be ahead of those who have not read its posts."""


class Post(NamedTuple):
    """What another process sends to this one at the end of an oblivious superstep."""

    messages: int
    """Number of messages; 0 where there are no entries."""
    entries: Sent
    stamp: int
    """Time at which that process came to the end of the superstep, in ns, or 0."""


NOTHING = Post(0, b"", 0)
"""The post of a process that sends nothing to this one."""


class Posts(Protocol):
    """The posts of the other processes of a group; a backend provides them."""

    def look(self, number: int, pids: Collection[int]) -> dict[int, Post]:
        """Return posts for this process, by pid.

        Args:
            number: of the oblivious superstep, from 0.
            pids: processes to look at; the result has those that have ended the superstep.
        """

    def wait(self, number: int, pids: Sequence[int]) -> None:
        """Return once one of these processes has ended that superstep.

        Raises:
            SyncMismatchError: one of them never will.
        """


class Collector:
    """The messages of one process in the oblivious supersteps of one group.

    Args:
        members: pids of the group in the root group.
        pid: this process.
        posts: posts of the others.
    """

    def __init__(self, members: Members, pid: int, posts: Posts) -> None:
        self.ended = 0
        """Number of oblivious supersteps to whose end this process has come."""
        self.released = 0
        """Latest time of arrival, in ns, of the posts for which the last superstep waited."""
        self._collected = 0
        self._members = members
        self._pid = pid
        self._posts = posts
        self._unseen: list[tuple[int, list[int]]] = []  # (superstep, pids not posted)

    def end_superstep(self, stamp: int) -> None:
        """Note that this process has posted."""
        self.ended += 1
        self.released = stamp

    def collect(self, expected: int) -> list[Arrived]:
        """Wait for messages of the superstep that has just been ended.

        Returns:
            Entries in order of their source.

        Raises:
            SyncMismatchError: more have come, or fewer have come and no more can come.
        """
        number = self.ended - 1
        unseen = [pid for pid in range(len(self._members)) if pid != self._pid]
        arrived: list[Arrived] = []
        count = self._look(number, unseen, arrived)
        while count < expected:
            if not unseen:
                raise SyncMismatchError(
                    f"oblsync waits for {expected} messages from others, and all processes "
                    f"have ended the superstep: they sent {count}"
                )
            self._posts.wait(number, unseen)
            count += self._look(number, unseen, arrived)
        arrived.sort(key=lambda entry: entry[0])
        if count > expected:
            sources = [self._members[source] for source, _ in arrived]
            raise SyncMismatchError(
                f"oblsync: {count} messages have come from processes {sources}, and "
                f"{expected} were expected from others"
            )
        if unseen:
            self._unseen.append((number, unseen))
        self._collected = self.ended
        return arrived

    def read_late(self) -> int:
        """Look at processes that had not posted when enough messages had come.

        Returns:
            The number of oblivious supersteps of which this process has read all posts.

        Raises:
            SyncMismatchError: one of these processes has sent it a message.
        """
        for number, pids in self._unseen:
            late: list[Arrived] = []
            if self._look(number, pids, late):
                raise SyncMismatchError(
                    f"oblsync: process {self._members[late[0][0]]} sent process "
                    f"{self._members[self._pid]} more messages than it waited for"
                )
        if self._unseen:
            self._unseen = [(number, pids) for number, pids in self._unseen if pids]
        return self._unseen[0][0] if self._unseen else self._collected

    def has_read_all(self) -> bool:
        """Tell whether the last :meth:`read_late` found that all processes have posted."""
        return not self._unseen

    def _look(self, number: int, unseen: list[int], arrived: list[Arrived]) -> int:
        """Move processes that have posted from ``unseen`` to ``arrived``; count their messages."""
        total = 0
        posts = self._posts.look(number, unseen)
        for pid, post in posts.items():
            if post.messages:
                total += post.messages
                arrived.append((pid, post.entries))
                self.released = max(self.released, post.stamp)
        unseen[:] = [pid for pid in unseen if pid not in posts]
        return total
