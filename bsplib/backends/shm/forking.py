"""Forks the processes of a run, one right after the other.

After a fork, the caller and the new process share their pages until one of them writes: the
first write copies a page. Python writes to some hundred pages wherever it runs, since it counts
the references to every object that it looks at. If the caller prepared each process after the
fork of the one before, it would copy these pages again and again. So everything is prepared
before the first fork, and between two forks there is only the system call. The collector of
garbage, which would write to all objects, has a pause.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from typing import Any, NoReturn, TextIO

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
