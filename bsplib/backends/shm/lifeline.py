"""How the processes of a run end when its caller does, whatever they do at that moment.

Only the caller holds the writing end of a pipe: processes that it forks close their copy at
once, and no other process receives it. When the caller ends, for any reason, the system
closes that end, and sends SIGKILL to every process that has bound itself to the other end.
The signal cannot be blocked or handled, needs no thread, and reaches a process in a long
call of C.

``PR_SET_PDEATHSIG`` would be shorter, but it follows the *thread* that forked: a run that
was started from a thread would be killed with that thread, and under ``forkserver`` it
would react to the end of the fork server and not to that of the caller.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import threading
from multiprocessing.reduction import DupFd
from typing import Any, Self
from weakref import WeakSet


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
