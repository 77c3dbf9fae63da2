"""A port over streams of bytes, for backends whose processes share nothing, and their caller.

It is slow and short. At the end of a superstep each process sends every other one a letter, with
the entries for it and the payloads that they name.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from multiprocessing.connection import wait
from typing import Any, NamedTuple, Protocol

import numpy as np

from bsplib.backends.base import (
    Arrivals,
    Arrived,
    Buffer,
    Handle,
    LeftGroup,
    Port,
    Sent,
    Stopped,
)
from bsplib.backends.launching import Death, Ended, OpenPort, Tell
from bsplib.backends.members import (
    Members,
    Whereabouts,
    are_apart,
    as_members,
    waits_in_vain,
)
from bsplib.backends.oblivious import NOTHING, Collector, Post
from bsplib.backends.outcomes import StoppedProcess
from bsplib.backends.sent import SentMeeting

Key = tuple[tuple[int, int], ...]
"""Number and sub-group of each partition that led to a group; empty for the root group."""
Payloads = dict[int, Buffer]
"""Staged payloads, by the number in their handles."""


class Stream(Protocol):
    """The end of a stream of bytes to one other process, as ``multiprocessing.Pipe`` makes two."""

    def fileno(self) -> int:
        """Return the file descriptor, which can be read where :meth:`recv` finds something."""

    def send(self, value: Any, /) -> None:
        """Send a value as its pickle."""

    def recv(self) -> Any:
        """Return the next value; raise EOFError where the other process has closed its end."""

    def close(self) -> None:
        """Close this end."""


class Letter(NamedTuple):
    """What a process sends to another one at the end of a superstep, or when it leaves a group."""

    key: Key
    kind: str
    """One of the ways in which a superstep ends, or ``left``: the sender has left the group."""
    number: int
    """Number of the exchange, or of the oblivious superstep, of the group."""
    superstep: int
    content: Any
    payloads: Payloads


class Mail:
    """The letters that have come for one process, and its streams to the others.

    A thread empties the streams all the time, so that a sender never waits for the receiver's
    program.

    Args:
        others: streams to the other processes, by pid.
        caller: stream to the caller, which sends something to stop the run.
        caller_ended: called where the caller has ended.
    """

    def __init__(
        self, others: Mapping[int, Stream], caller: Stream, caller_ended: Callable[[], object]
    ) -> None:
        self.came = threading.Condition()
        self.posts: dict[tuple[Key, str, int], dict[int, Letter]] = defaultdict(dict)
        """By group, kind and number: letters by the pid of their sender in the root group."""
        self.latest: dict[tuple[Key, str, int], int] = defaultdict(lambda: -1)
        """The superstep of the last letter, by group, kind and pid in the root group."""
        self.left: set[tuple[Key, int]] = set()
        """(group, pid in the root group) where that process has left that group."""
        self.left_over: list[LeftGroup] = []
        """Groups that this process has left before all letters of the others had come."""
        self._others = others
        self._caller = caller
        self._caller_ended = caller_ended
        self._is_stopped = False
        threading.Thread(target=self._receive, daemon=True).start()

    def send(self, pid: int, letter: Letter) -> None:
        """Send a letter to a process; nothing happens where it has ended."""
        with contextlib.suppress(OSError):
            self._others[pid].send(letter)

    def wait(self, ready: Callable[[], bool], suspect: Callable[[], None]) -> None:
        """Wait for letters until ``ready``; ``suspect`` raises if that can never happen."""
        with self.came:
            while not ready():
                if self._is_stopped:
                    raise Stopped
                suspect()
                self.came.wait()

    def _receive(self) -> None:
        sources: dict[Any, int | None] = {stream: pid for pid, stream in self._others.items()}
        sources[self._caller] = None
        while sources:
            ready: list[Any] = wait(list(sources))
            for stream in ready:
                try:
                    letter = stream.recv()
                except (EOFError, OSError):
                    if sources.pop(stream) is not None:
                        continue
                    self._caller_ended()
                    letter = None  # nobody else stops this process now
                with self.came:
                    self._keep(sources.get(stream), letter)
                    self.came.notify_all()

    def _keep(self, pid: int | None, letter: Any) -> None:
        if pid is None:
            self._is_stopped = True
        elif letter.kind == "left":
            self.left.add((letter.key, pid))
        else:
            self.posts[letter.key, letter.kind, letter.number][pid] = letter
            self.latest[letter.key, letter.kind, pid] = letter.superstep


class StreamPort(Port):
    """The connection of a process to a group: it sends every other one a letter at each sync."""

    def __init__(
        self,
        mail: Mail,
        pid: int,
        members: Members,
        key: Key = (),
        parent: StreamPort | None = None,
    ) -> None:
        super().__init__(pid, members, SentMeeting(self, pid, len(members)))
        self.released = 0
        self._mail = mail
        self._key = key
        self.parent = parent
        self._others = [other for other in range(self.nprocs) if other != pid]
        self._superstep = 0
        self._exchanges = 0
        self._collector = Collector(members, pid, self)
        self._serials = itertools.count()
        self._staged: dict[int, Payloads] = defaultdict(dict)
        self._here: dict[tuple[int, int], Buffer] = {}  # payloads, by sender and number
        self._here_before: dict[tuple[int, int], Buffer] = {}  # those of the last superstep

    # -- memory and payloads ----------------------------------------------------------------

    def stage(self, nbytes: int, to: int, *, message: bool = False) -> tuple[Handle, Buffer]:  # noqa: ARG002  # no difference
        memory = np.empty(nbytes, np.uint8)
        return self._handle(memory, to), memory

    def _handle(self, memory: Buffer, to: int) -> Handle:
        number = next(self._serials)
        if to == self.pid:
            self._here[to, number] = memory
        else:
            self._staged[to][number] = memory
        return self.pid, number, len(memory)

    def fetch(self, handle: Handle) -> memoryview:
        key = handle[:2]
        return (self._here[key] if key in self._here else self._here_before[key]).data

    def _open(self, source: int, letter: Letter) -> Any:
        """Keep the payloads of a letter, and return the rest."""
        self._here |= {(source, number): memory for number, memory in letter.payloads.items()}
        return letter.content

    # -- supersteps -------------------------------------------------------------------------

    def _send_all(self, kind: str, number: int, contents: Mapping[int, Any]) -> None:
        staged, self._staged = self._staged, defaultdict(dict)
        for pid in self._others:
            letter = Letter(self._key, kind, number, self._superstep, contents[pid], staged[pid])
            self._mail.send(self.members[pid], letter)

    def exchange(self, entries: Mapping[int, Sent], flags: int, stamp: int) -> Arrivals | None:
        number, self._exchanges = self._exchanges, self._exchanges + 1
        own = flags, stamp, bool(entries)
        self._send_all("sync", number, {pid: (*own, entries.get(pid)) for pid in self._others})
        letters = self._mail.posts[self._key, "sync", number]

        def suspect() -> None:
            self._collector.read_late()
            self._suspect("sync", [x for x in self._others if self.members[x] not in letters])

        self._mail.wait(lambda: len(letters) == len(self._others), suspect)
        del self._mail.posts[self._key, "sync", number]
        self._look_at_late()
        came = {pid: self._checked(pid, letters[self.members[pid]]) for pid in self._others}
        came[self.pid] = *own, None
        all_flags, stamps, any_posts, theirs = zip(
            *(came[pid] for pid in range(self.nprocs)), strict=True
        )
        if stamp:
            self.released = max(stamps)
        if len(set(all_flags)) == 1 and not any(any_posts):
            return None
        return list(all_flags), [(pid, sent) for pid, sent in enumerate(theirs) if sent is not None]

    def _checked(self, pid: int, letter: Letter) -> Any:
        if letter.superstep != self._superstep:
            raise are_apart(self.members[pid], self.members[self.pid])
        return self._open(pid, letter)

    def _suspect(self, operation: str, missing: Iterable[int]) -> None:
        for pid in missing:
            if (error := waits_in_vain(self, operation, pid)) is not None:
                raise error

    def has_left(self, pid: int) -> bool:
        """See :meth:`Standing.has_left`; a letter has said so."""
        return (self._key, self.members[pid]) in self._mail.left

    def has_ended(self, process: int, *ways: str) -> bool:
        """See :meth:`Standing.has_ended`; a letter of the superstep has come."""
        latest = self._mail.latest
        return max(latest[self._key, way, process] for way in ways) >= self._superstep

    def end_superstep(self) -> None:
        self._superstep += 1
        self.meeting.end_superstep()
        self._here_before, self._here = self._here, {}

    # -- oblivious supersteps ---------------------------------------------------------------

    def exchange_oblivious(
        self, entries: Mapping[int, tuple[int, Sent]], expected: int, stamp: int = 0
    ) -> list[Arrived]:
        self._collector.read_late()
        posts = {pid: Post(*entries[pid], stamp) if pid in entries else NOTHING
                 for pid in self._others}  # fmt: skip
        self._send_all("oblsync", self._collector.ended, posts)
        self._collector.end_superstep(stamp)
        arrived = self._collector.collect(expected)
        self.meeting.released = self._collector.released
        return arrived

    def look(self, number: int, pids: Collection[int]) -> dict[int, Post]:
        """See :meth:`bsplib.backends.oblivious.Posts.look`."""
        with self._mail.came:
            letters = self._mail.posts[self._key, "oblsync", number]
            there = [pid for pid in pids if self.members[pid] in letters]
            return {pid: self._open(pid, letters.pop(self.members[pid])) for pid in there}

    def wait(self, number: int, pids: Sequence[int]) -> None:
        """See :meth:`bsplib.backends.oblivious.Posts.wait`."""
        roots = {self.members[pid] for pid in pids}
        letters = self._mail.posts[self._key, "oblsync", number]

        def suspect() -> None:
            self._collector.read_late()
            self._suspect("oblsync", pids)

        self._mail.wait(lambda: not roots.isdisjoint(letters), suspect)

    def try_to_release(self) -> bool:
        """See :meth:`LeftGroup.try_to_release`."""
        self._collector.read_late()
        return self._collector.has_read_all()

    def _look_at_late(self) -> None:
        self._collector.read_late()
        left_over = self._mail.left_over
        self._mail.left_over = [group for group in left_over if not group.try_to_release()]

    # -- groups -----------------------------------------------------------------------------

    def split(self, ordinal: int, index: int, pids: Sequence[int]) -> StreamPort:
        members = as_members([self.members[pid] for pid in pids])
        key = (*self._key, (ordinal, index))
        return StreamPort(self._mail, pids.index(self.pid), members, key, self)

    def close(self) -> None:
        if self.parent is not None:
            self._send_all("left", 0, dict.fromkeys(self._others))
            if not self.try_to_release():
                self._mail.left_over.append(self)


# -- the processes of a run, as each of them and as their caller sees them -------------------------


def serve(
    do: Callable[[int, OpenPort, Tell], bytes],
    pid: int,
    others: Mapping[int, Stream],
    caller: Stream,
    caller_ended: Callable[[], object] | None = None,
) -> None:
    """Do some work as one of the processes of a run, and tell the caller how it ended.

    Args:
        do: does the work and returns its report, as :meth:`Work.alone` does.
        pid: this process.
        others: streams to all other processes, by pid.
        caller: stream to the caller.
        caller_ended: called by another thread where the caller has ended; None ends the process.
    """
    mail = Mail(others, caller, caller_ended or partial(os._exit, 1))
    caller.send(do(pid, lambda: StreamPort(mail, pid, range(len(others) + 1)), caller.send))


class Workers:
    """The processes of a run as their caller sees them; see :class:`Observed`.

    Args:
        streams: to all of them, by pid.
        read: decodes what they tell; see :meth:`Work.read`.
        status: returns the exit status of a process whose stream has ended, None if it is unknown.
    """

    def __init__(
        self,
        streams: Mapping[int, Stream],
        read: Callable[[bytes, int], Ended | None],
        status: Callable[[int], int | None],
    ) -> None:
        self.nprocs = len(streams)
        self.missing = dict(streams)
        """The streams to those whose outcomes are not known, by pid."""
        self._read = read
        self._status = status

    def news(self, timeout: float) -> dict[int, Ended | Death]:
        streams: list[Any] = list(self.missing.values())
        ready = wait(streams, timeout)  # so are those of processes that died
        found = {pid: self._outcome(pid) for pid, each in self.missing.items() if each in ready}
        outcomes = {pid: outcome for pid, outcome in found.items() if outcome is not None}
        for pid in outcomes:
            self.missing.pop(pid).close()
        return outcomes

    def _outcome(self, pid: int) -> Ended | Death | None:
        try:
            told = self.missing[pid].recv()
        except (EOFError, OSError):
            return Death(pid, 0, self._status(pid), "has closed its stream")
        return self._read(told, pid)

    def tell_to_stop(self) -> None:
        for stream in self.missing.values():
            with contextlib.suppress(OSError):
                stream.send(None)

    def whereabouts(self, ended: Collection[int]) -> list[Whereabouts]:
        how = {True: "has ended", False: "does not answer"}
        return [Whereabouts(pid, 0, "", how[pid in ended]) for pid in range(self.nprocs)]

    def stopped(self, ended: Collection[int]) -> list[StoppedProcess]:  # noqa: ARG002  # nobody can tell
        return []

    def close(self) -> None:
        """Close all streams: processes that still run end."""
        for stream in self.missing.values():
            stream.close()
