"""The small process beside a rank: it has the connection to the hub, and sees how the rank ends.

It is the process that mpiexec has started, and the rank is its child. So it learns the exit
status, and mpiexec does not end the job before the hub knows which rank has failed. It
answers the hub at any time, also while the rank computes and holds the interpreter's lock.

Where the connection to the hub ends, the watcher kills its rank and exits; where the watcher
ends, the system kills the rank.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import pickle
import re
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple, NoReturn

from bsplib.backends.mpi import control
from bsplib.backends.mpi.control import LIMIT, Message, Stream, keep_alive
from bsplib.backends.proc_visibility import system_key
from bsplib.backends.stacks import Answering, is_stopped, stacks_of

_CONNECT_S = 3.0
"""Seconds for one address of the hub, including the proofs."""
_ORPHAN_S = 1.0
"""How often a watcher without a connection looks whether its launcher is there."""
_JOIN_S = 0.05
"""How often a watcher looks which files its rank has mapped that joins MPI."""
_LEAVE_S = 30.0
"""Seconds that a watcher whose rank has died waits for the hub to close the connection."""
_TERM_S = 2.0
"""Seconds after a SIGTERM of the launcher: the hub may know a better reason to end by then."""
_SPEAK_S = 1.0
"""Seconds after the end of a rank that could not join: if its watcher ended at once, the launcher
would end all others, and among them the one that prints the reason."""


class Hub(NamedTuple):
    """How a watcher reaches the hub."""

    addresses: tuple[tuple[str, int], ...]
    """Host and port; tried in turn."""
    key: bytes


class Lost(Exception):  # noqa: N818  # it is no error of this process
    """There is no connection to the hub."""


class Watcher:
    """Watches one rank.

    Args:
        os_pid: number of the rank in the operating system.
        rank: connection to it.
        page: memory shared with it.
        speaks: print why the rank could not join.
    """

    def __init__(self, os_pid: int, rank: socket.socket, page: Page, *, speaks: bool) -> None:
        self._speaks = speaks
        self._os_pid = os_pid
        self._rank = Stream(rank, whole=False)
        self._page = page
        self._hears_rank = True
        self._is_to_leave = False
        self._segments: set[str] = set()
        self._hub: Stream | None = None
        self._answering: Answering | None = None
        self._library = ""
        self._launcher = os.getppid()
        self._status: int | None = None  # of the rank, once it has ended
        self._ends_at = float("inf")
        self._poll = select.poll()
        self._sentinel = os.pidfd_open(os_pid)
        self._poll.register(self._sentinel, select.POLLIN)
        self._wakes, wakes_it = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._poll.register(self._wakes, select.POLLIN)
        signal.set_wakeup_fd(wakes_it)  # a signal ends a wait

    def watch(self) -> NoReturn:
        """Work until the rank has ended; then exit."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, self._note_term)
        try:
            while time.monotonic() < self._ends_at:
                self._look()
        except (Lost, OSError, EOFError):
            pass
        self._kill()
        if self._hub is not None:
            self._hub.close()
        sys.stderr.flush()
        os._exit(self._status if self._status is not None and self._status >= 0 else 1)

    def _note_term(self, *_: object) -> None:
        self._ends_at = min(self._ends_at, time.monotonic() + _TERM_S)

    def _kill(self) -> None:
        if self._status is None:
            self._segments |= mapped_by(self._os_pid)
            os.kill(self._os_pid, signal.SIGKILL)
            self._await_end()

    def _await_end(self) -> None:
        _, status = os.waitpid(self._os_pid, 0)
        self._status = os.waitstatus_to_exitcode(status)
        if self._status or not self._is_to_leave:
            remove(self._segments)

    # -- events -----------------------------------------------------------------------------

    def _look(self) -> None:
        """Wait for something to happen, and handle it."""
        self._register()
        wait_s = max(min(self._ends_at - time.monotonic(), 1e6), 0.0)
        if self._hub is None:
            wait_s = min(wait_s, self._look_at_start())
        ready = dict(self._poll.poll(1000 * wait_s))
        if self._wakes in ready:
            os.read(self._wakes, 64)
        if self._hub is not None and self._hub.fileno() in ready:
            self._hub.flush()
            if ready[self._hub.fileno()] & ~select.POLLOUT:
                for message in self._hub.take():
                    self._obey(message)
        if self._hears_rank and self._rank.fileno() in ready:
            self._read_rank()
        if self._status is None and self._sentinel in ready:
            self._end_of_rank()

    def _look_at_start(self) -> float:
        """Look what has changed before there is a connection; return the seconds to the next look.

        Raises:
            Lost: the launcher has ended.
        """
        if os.getppid() != self._launcher:
            raise Lost
        if not self._library:
            return _ORPHAN_S
        # A rank that is killed while it joins MPI cannot be asked any more.
        self._segments |= mapped_by(self._os_pid)
        return _JOIN_S

    def _register(self) -> None:
        hub = self._hub
        if hub is not None:
            self._poll.register(hub, select.POLLIN | (select.POLLOUT if hub.unsent else 0))
        if self._hears_rank:  # but for a while no more, if it says more than the hub takes
            takes = 0 if hub is not None and hub.is_crowded else select.POLLIN
            sends = select.POLLOUT if self._rank.unsent else 0
            self._poll.register(self._rank, takes | sends)

    def _read_rank(self) -> bool:
        """Take messages of the rank; return whether there may be more."""
        try:
            self._rank.flush()
            messages = self._rank.take()
        except (EOFError, OSError):  # it ends: the sentinel will tell
            self._deafen()
            return False
        for message in messages:
            self._pass_on(message)
        return bool(messages)

    def _deafen(self) -> None:
        if self._hears_rank:
            self._hears_rank = False
            self._poll.unregister(self._rank)

    def _pass_on(self, message: Message) -> None:
        if message.kind == control.JOINS:
            self._library = message.content.decode()
            return
        if message.kind == control.HUB:
            number, hub = pickle.loads(message.content)  # from the rank, this one's child
            self._hub, self._library = connected(number, self._os_pid, hub), ""
            return
        if message.kind == control.MEMORY:
            self._page.map(self._os_pid, Note(*control.NOTE.unpack(message.content)))
            return
        if message.kind == control.READY:
            self._answering = pickle.loads(message.content)[1]
            self._segments = mapped_by(self._os_pid)
        if self._hub is not None:
            self._hub.put(*message)

    def _end_of_rank(self) -> None:
        while self._hears_rank and self._read_rank():  # the last messages
            pass
        self._deafen()
        self._poll.unregister(self._sentinel)
        self._await_end()
        if self._hub is None:
            if self._library and self._speaks:
                tell(not_joined(self._library, f"ends a process with status {self._status}"))
            elif self._library and self._status:
                time.sleep(_SPEAK_S)
            raise Lost
        self._hub.put(control.DIED, control.ENDED.pack(self._status, self._page.superstep))
        leave_s = 0 if self._is_to_leave else _LEAVE_S
        self._ends_at = min(self._ends_at, time.monotonic() + leave_s)

    def _obey(self, message: Message) -> None:
        """Do what the hub says."""
        assert self._hub is not None
        match message.kind:
            case control.PING:
                state = control.STATE.pack(is_stopped(self._os_pid), self._page.superstep)
                self._hub.put(control.PONG, state)
            case control.STOP_NOW:
                self._page.stop[0] = 1
            case control.KILL:
                self._kill()
                raise Lost
            case control.WHERE:
                self._hub.put(control.PLACE, pickle.dumps(self._place()))
            case _ if self._hears_rank:
                if message.kind == control.JOB:
                    self._page.stop[0] = 0
                self._is_to_leave = message.kind == control.END
                # An error says that the rank has ended, which its sentinel reports.
                with contextlib.suppress(OSError):
                    self._rank.put(*message)

    def _place(self) -> tuple[int, bool, object]:
        """Return the superstep of the rank, whether a signal has stopped it, and its stack."""
        found = {}
        if self._answering is not None and self._status is None:
            found = stacks_of({0: self._answering})
        return self._page.superstep, is_stopped(self._os_pid), found.get(0)


# -- sentences ----------------------------------------------------------------------------------

SENTENCE = "bsplib: "
"""How a line begins that a process prints which could not join."""


def tell(sentence: str) -> None:
    """Print a sentence for the driver, which reads what mpiexec passes on; one call of write."""
    with contextlib.suppress(OSError):
        os.write(2, f"{SENTENCE}{sentence}\n".encode())


def not_joined(library: str, how: str) -> str:
    """Return the sentence for processes that are not those of one job."""
    return (
        f"the MPI library that mpi4py loads ({library}) {how} when it joins the processes that "
        f"mpiexec has started: if mpiexec is of another MPI, take that of this one (--mpiexec or "
        f"BSP_MPIEXEC), or let mpi4py load the other library (MPI4PY_LIBMPI)"
    )


# -- the connection -----------------------------------------------------------------------------


def connected(rank: int, os_pid: int, hub: Hub) -> Stream:
    """Return the connection of a watcher to the hub.

    Args:
        rank: that of the job.
        os_pid: its number in the operating system.
        hub: how to reach it.

    Raises:
        Lost: it does not answer at any of its addresses.
    """
    who = rank, os_pid, socket.gethostname(), system_key()
    for address in hub.addresses:
        with contextlib.suppress(OSError, EOFError):
            plug = socket.create_connection(address, _CONNECT_S)
            try:
                return _proved(plug, hub.key, who)
            except BaseException:
                plug.close()
                raise
    raise Lost


def _proved(plug: socket.socket, key: bytes, who: tuple[int, int, str, bytes]) -> Stream:
    """Let both ends show that they know the key; return the connection."""
    stream = Stream(plug, LIMIT, whole=False)
    theirs = _one(stream, control.CHALLENGE)
    ours = control.challenge()
    own_proof = control.proof(key, b"watcher", theirs, ours)
    stream.put(control.HELLO, ours, own_proof, pickle.dumps(who))
    if not control.is_proof(_one(stream, control.PROOF), key, b"hub", ours, theirs):
        raise EOFError
    keep_alive(plug)
    stream.limit = None
    return stream


def _one(stream: Stream, kind: int) -> bytes:
    """Wait for a message of a kind; return its content.

    A question whether this watcher is there may come with it; the next one will be answered.
    """
    while stream.wait(_CONNECT_S):
        for message in stream.take():
            if message.kind != kind:
                raise EOFError
            return message.content
    raise EOFError


# -- the page of memory that a rank shares with its watcher ---------------------------------------
# The watcher sets a byte there when the rank is to stop, and the rank writes there how far it has
# come.


PAGE_BYTES = mmap.PAGESIZE
STOP = 0
"""Byte of the page: 1 where the rank is to stop at its next sync."""
ELSEWHERE = 1
"""Byte of the page: 1 where the supersteps of this run are noted in memory that ranks share."""
MAPPED = 2
"""Byte of the page: 1 where the watcher has mapped that memory."""
SUPERSTEP = 8
"""First byte of a native integer of 8 bytes: how many supersteps of the root group have ended."""

_LOOK_S = 1e-4


class Note(NamedTuple):
    """Where a rank notes the supersteps that it has ended, in memory that ranks share."""

    memory: int
    """Number of the memory."""
    descriptor: int
    """File descriptor of the memory, in the rank."""
    byte: int
    """Where an integer of 8 bytes begins."""


class Page:
    """The memory that a rank shares with its watcher."""

    def __init__(self) -> None:
        self.memory = memoryview(mmap.mmap(-1, PAGE_BYTES))
        self.stop = self.memory[STOP : STOP + 1]
        """1 where the rank is to stop."""
        self.begun = self._there = self.memory[SUPERSTEP : SUPERSTEP + 8].cast("q")
        """Supersteps that the rank has ended in the root group; the barrier before ``main`` is
        one of them."""
        self.noted: Note | None = None
        """In the rank: where the watcher can read supersteps beside this memory."""

    @property
    def superstep(self) -> int:
        """Superstep of the root group in which the rank is."""
        word = self._there if self.memory[ELSEWHERE] else self.begun
        return int(max(word[0], 1) - 1)

    def begin(self) -> None:
        """Begin a run; the byte is cleared by the watcher, which knows what comes first."""
        self.begun[0] = 0
        self.memory[ELSEWHERE] = 0

    def map(self, os_pid: int, note: Note) -> None:
        """In the watcher: map where the rank notes its supersteps; say that this is done."""
        with contextlib.suppress(OSError):  # the rank has ended
            file = os.open(f"/proc/{os_pid}/fd/{note.descriptor}", os.O_RDWR | os.O_CLOEXEC)
            page = note.byte - note.byte % PAGE_BYTES
            try:
                memory = memoryview(mmap.mmap(file, PAGE_BYTES, offset=page))
            finally:
                os.close(file)
            self._there = memory[note.byte - page : note.byte - page + 8].cast("q")
        self.memory[MAPPED] = 1

    def read_elsewhere(self, note: Note, ask: Callable[[], None]) -> None:
        """In the rank: let the watcher read the supersteps of this run in another file.

        Args:
            note: where.
            ask: asks the watcher to map that.
        """
        if note != self.noted:
            self.memory[MAPPED] = 0
            ask()
            while not self.memory[MAPPED] and not self.stop[0]:
                time.sleep(_LOOK_S)  # or this rank might end before that
            self.noted = note
        self.memory[ELSEWHERE] = 1


# -- files in /dev/shm by which an MPI shares memory inside a host --------------------------------
# The library removes them when a rank leaves MPI in peace. Where ranks are killed, their watchers
# remove them. The one of MPICH is removed as soon as all ranks have mapped it, since the launcher
# of MPICH kills watchers, too.


_MAPPED = re.compile(
    r"/dev/shm/(?:mpich_shm_|sm_segment\.|vader_segment\.|Intel_MPI_|psm[23]_shm)\S*"
)
"""Names that MPICH, Open MPI, Intel MPI and the libraries below them give such files."""

_ONLY_AT_START = "/dev/shm/mpich_shm_"


def mapped_by(os_pid: int) -> set[str]:
    """Return the paths of those that a process has mapped; none where it has ended."""
    try:
        maps = Path(f"/proc/{os_pid}/maps").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return set()
    return set(_MAPPED.findall(maps))


def remove_mapped() -> None:
    """Remove the names that nobody needs once all ranks have joined."""
    remove(path for path in mapped_by(os.getpid()) if path.startswith(_ONLY_AT_START))


def remove(paths: Iterable[str]) -> None:
    """Remove files, as far as they are there."""
    for path in paths:
        with contextlib.suppress(OSError):
            os.unlink(path)
