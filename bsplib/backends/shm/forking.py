"""Forks the processes of a run, one right after the other, and lets them end with their caller.

After a fork, the caller and the new process share their pages until one of them writes: the
first write copies a page. Python writes to some hundred pages wherever it runs, since it counts
the references to every object that it looks at. If the caller prepared each process after the
fork of the one before, it would copy these pages again and again. So everything is prepared
before the first fork, and between two forks there is only the system call. The collector of
garbage, which would write to all objects, has a pause.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import os
import select
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from multiprocessing.reduction import DupFd
from typing import Any, NoReturn, Self, TextIO
from weakref import WeakSet

CAN_FORK = hasattr(os, "pidfd_open")
"""Whether processes can be started here: the system has what a :class:`Forked` needs."""


class Forked:
    """A forked process as its caller sees it, with those methods of ``Process`` that it needs.

    Args:
        pid: its number in the operating system.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.exitcode: int | None = None
        """Its exit status; None while it runs, and where the system does not tell."""
        self.sentinel = -1
        """A descriptor that can be read when the process has ended; -1 before :meth:`watch`."""
        self._has_ended = False

    def watch(self) -> None:
        """Open the sentinel."""
        try:
            self.sentinel = os.pidfd_open(self.pid)
        except ProcessLookupError:  # it has ended, and the program ignores SIGCHLD
            self.sentinel, writes = os.pipe()
            os.close(writes)

    def kill(self) -> None:
        """End it by force."""
        if not self._has_ended:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def join(self) -> None:
        """Wait until it has ended.

        Its status is not known where the program ignores SIGCHLD, or waits for any child itself.
        """
        if self._has_ended:
            return
        try:
            _, status = os.waitpid(self.pid, 0)
        except ChildProcessError:
            if self.sentinel >= 0:
                wait([self.sentinel])
        else:
            self.exitcode = os.waitstatus_to_exitcode(status)
        self._has_ended = True

    def close(self) -> None:
        """Close the sentinel."""
        if self.sentinel >= 0:
            os.close(self.sentinel)
            self.sentinel = -1


class Prepared(ForkProcess):
    """A process that can be forked; its standard input will be empty.

    Args:
        name: of the process.
        body: what it does.
        args: arguments of ``body``.
        pipe: an open pipe, which only this one of the forked processes keeps open.
    """

    def __init__(
        self, name: str, body: Callable[..., None], args: Iterable[Any], pipe: Connection
    ) -> None:
        super().__init__(target=body, args=args, name=name)
        self.pipe = pipe
        self._input: TextIO | None = None
        self._collects = gc.isenabled()

    def be(self, pipes: Iterable[Connection], empty: TextIO, alive: int) -> NoReturn:
        """In the forked process: do what it does, and end it.

        Args:
            pipes: those of all processes that are forked.
            empty: a file that is empty.
            alive: descriptor that becomes readable when the caller has ended.
        """
        status = 1
        gc.freeze()  # what was inherited stays as it is, and its pages stay shared
        try:
            for pipe in pipes:
                if pipe is not self.pipe:
                    pipe.close()
            if sys.stdin is not None:
                with contextlib.suppress(OSError, ValueError):  # it is no file
                    os.dup2(empty.fileno(), sys.stdin.fileno())
                # Multiprocessing would open such a file in each process.
                self._input, sys.stdin = empty, None
            status = self._bootstrap(parent_sentinel=alive)  # type: ignore[attr-defined]  # as multiprocessing's own Popen does
        finally:
            os._exit(status)

    def run(self) -> None:
        """Call the body; multiprocessing does so when it has set up the process."""
        if self._input is not None:
            sys.stdin = self._input
        if self._collects:
            gc.enable()
        super().run()


def fork_all(prepared: Sequence[Prepared], alive: int, started: list[int]) -> None:
    """Fork processes.

    Args:
        prepared: the processes.
        alive: descriptor that becomes readable when this process has ended.
        started: to which their numbers in the operating system are appended.

    Raises:
        OSError: the system allows fewer; some may have started.
    """
    for stream in (sys.stdout, sys.stderr):  # what is buffered would be written by each, too
        with contextlib.suppress(AttributeError, ValueError):  # there is none, or it is closed
            stream.flush()
    pipes = [process.pipe for process in prepared]
    fork, note = os.fork, started.append
    with open(os.devnull, encoding="utf-8") as empty, _no_collection():
        for process in prepared:
            os_pid = fork()
            if not os_pid:
                process.be(pipes, empty, alive)
            note(os_pid)


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Collect no garbage inside the block."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


# -- the warning that Python gives, from 3.12 on, when a process with several threads is forked ---
# The threads are those of numpy's BLAS, which a fork does not harm. The caller hides this one
# warning while it forks; its processes show every warning that the caller would show.


_IS_GIVEN = sys.version_info >= (3, 12)

_hiding: list[warnings.catch_warnings[None]] = []


@contextmanager
def fork_warning_hidden() -> Iterator[None]:
    """Hide the warning inside the block."""
    if not _IS_GIVEN:
        yield
        return
    filters: warnings.catch_warnings[None] = warnings.catch_warnings()
    with filters:
        warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
        _hiding.append(filters)
        try:
            yield
        finally:
            _hiding.remove(filters)


def show_again() -> None:
    """In a process that was forked inside such a block: leave the block."""
    while _hiding:
        _hiding.pop().__exit__(None, None, None)


# -- how the processes of a run end when its caller does, whatever they do at that moment ---------
# Only the caller holds the writing end of a pipe: processes that it forks close their copy at
# once, and no other process receives it. When the caller ends, for any reason, the system
# closes that end, and sends SIGKILL to every process that has bound itself to the other end.
# The signal cannot be blocked or handled, needs no thread, and reaches a process in a long
# call of C.
#
# ``PR_SET_PDEATHSIG`` would be shorter, but it follows the *thread* that forked: a run that
# was started from a thread would be killed with that thread, and under ``forkserver`` it
# would react to the end of the fork server and not to that of the caller.


class Lifeline:
    """A pipe by which the processes of one run end with their caller."""

    def __init__(self) -> None:
        self.reads, self._writes = os.pipe()
        """Descriptor of the end that becomes readable when the caller has ended."""
        _held.add(self)

    @classmethod
    def _received(cls, descriptor: Any) -> Self:
        """Return the lifeline of a process that was not forked."""
        lifeline = cls.__new__(cls)
        lifeline.reads, lifeline._writes = descriptor.detach(), -1
        return lifeline

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle for a process that is not forked: only the reading end is sent."""
        return self._received, (DupFd(self.reads),)

    def bind(self) -> None:
        """Make this process end when the caller has ended."""
        if not _have_signal_sent(self.reads):
            threading.Thread(
                target=_end_after, args=(self.reads,), name="bsp-lifeline", daemon=True
            ).start()

    def cut(self) -> None:
        """Kill every process that is bound to it."""
        if self._writes >= 0:
            os.close(self._writes)
            self._writes = -1

    def close(self) -> None:
        """Close the pipe; processes that are bound to it end."""
        _held.discard(self)
        self.cut()
        if self.reads >= 0:
            os.close(self.reads)
            self.reads = -1


_held: WeakSet[Lifeline] = WeakSet()
"""Lifelines whose writing end this process holds."""


def _cut_inherited() -> None:
    for lifeline in list(_held):
        lifeline.cut()
    _held.clear()


os.register_at_fork(after_in_child=_cut_inherited)


def _have_signal_sent(reads: int) -> bool:
    """Let the system kill this process once a pipe is closed; return whether it can."""
    try:
        # The process that gets the signal is a property of the open file, which forked
        # processes share: each process opens the pipe again for itself.
        own = os.open(f"/proc/self/fd/{reads}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.fcntl(own, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(own, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(own, fcntl.F_SETFL, os.O_NONBLOCK | os.O_ASYNC)
    except OSError:
        os.close(own)
        return False
    if _is_closed(own):  # it was before the signal was asked for
        os._exit(1)
    return True


def _is_closed(reads: int) -> bool:
    look = select.poll()
    look.register(reads, 0)
    return bool(look.poll(0))


def _end_after(reads: int) -> None:
    look = select.poll()
    look.register(reads, 0)
    with contextlib.suppress(OSError):
        look.poll()
    os._exit(1)
