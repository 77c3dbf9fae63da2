"""Forks the processes of a run, one right after the other.

After a fork, the caller and the new process share their pages until one of them writes: the
first write copies a page. Python writes to some hundred pages wherever it runs, since it counts
the references to every object that it looks at. If the caller prepared each process after the
fork of the one before, it would copy these pages again and again. So everything is prepared
before the first fork, and between two forks there is only the system call.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from typing import NoReturn

CAN_FORK = hasattr(os, "fork") and hasattr(os, "pidfd_open")
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


def fork_all(
    prepared: Sequence[ForkProcess], pipes: Sequence[Connection], alive: int, started: list[int]
) -> None:
    """Fork processes.

    Args:
        prepared: what each of them is, and does.
        pipes: an open pipe for each of them, which the others close.
        alive: descriptor of a pipe that stays open as long as this process lives.
        started: to which their numbers in the operating system are appended.

    Raises:
        OSError: the system does not allow so many; some may have started.
    """
    for stream in (sys.stdout, sys.stderr):  # what is buffered would be written by each, too
        with contextlib.suppress(AttributeError, ValueError):  # there is none, or it is closed
            stream.flush()
    fork, note = os.fork, started.append
    for process, pipe in zip(prepared, pipes, strict=True):
        os_pid = fork()
        if not os_pid:
            _be(process, [other for other in pipes if other is not pipe], alive)
        note(os_pid)


def _be(process: ForkProcess, others: Sequence[Connection], alive: int) -> NoReturn:
    """Do what a process does, in it, and end it."""
    status = 1
    try:
        for pipe in others:
            pipe.close()
        status = process._bootstrap(parent_sentinel=alive)  # type: ignore[attr-defined]  # as multiprocessing's own Popen does
    finally:
        os._exit(status)
