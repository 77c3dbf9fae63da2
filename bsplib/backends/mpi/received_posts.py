"""The posts of one group that have come for one process."""

from __future__ import annotations

from collections import defaultdict

from bsplib.backends.mpi.heads import MEET, OBLIVIOUS, ROUND
from bsplib.backends.mpi.receiving import Post


class Inbox:
    """The posts of the other processes of a group, by their ranks."""

    def __init__(self) -> None:
        self.meetings: defaultdict[int, dict[int, Post]] = defaultdict(dict)
        """Posts of meetings, by number of the meeting."""
        self.oblivious: defaultdict[int, dict[int, Post]] = defaultdict(dict)
        """Posts of oblivious supersteps, by number of the superstep."""
        self.rounds: dict[tuple[int, int], Post] = {}
        """Heads of rounds, by number of the meeting and of the round."""
        self.left: set[int] = set()
        """Ranks that have said that they have left the group."""
        self.passed = 0
        """Oblivious supersteps that this process has ended: what still comes for them is late."""
        self._latest: tuple[dict[int, int], dict[int, int]] = {}, {}

    def take(self, post: Post) -> bool:
        """Keep a post; return whether it is a late one."""
        head, source = post.head, post.source
        self._latest[head.kind == OBLIVIOUS][source] = head.superstep
        if head.kind == OBLIVIOUS:
            self.oblivious[head.number][source] = post
            return head.number < self.passed
        if head.kind == MEET:
            self.meetings[head.number][source] = post
        elif head.kind == ROUND:
            self.rounds[head.number, head.messages] = post
        return False

    def latest(self, kind: int, rank: int) -> int:
        """Return the last superstep that a process has ended in a way, so far as known; or -1."""
        return self._latest[kind].get(rank, -1)
