"""One process of a run, from its first line to its last."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import time
from multiprocessing.connection import Connection

from bsplib.backends import stacks
from bsplib.backends.launching import JobRunner, Work
from bsplib.backends.outcomes import GRACE_S
from bsplib.backends.shm.channel import Channel
from bsplib.backends.shm.context import ProcessContext, context_class
from bsplib.backends.shm.control import STACK_FILE, THREAD
from bsplib.backends.shm.forking import Lifeline, show_again
from bsplib.backends.shm.port import ShmPort
from bsplib.backends.shm.segment import Segment
from bsplib.backends.shm.waiting import look
from bsplib.backends.signals import keep_own_handlers
from bsplib.core.meeting import Pause

READY = b"ready"
"""Sent once by a process that was not forked, when it has mapped the segment."""

RUNNER = b"r"
"""First byte of a message with the runner of the jobs that follow; no pickle begins with it."""

END = b"end"
"""Sent in place of a job when there are no more. (To close the pipe would not be enough:
processes that were forked later hold it open.)"""


_TIMES = 3
"""It looks three times as often for the next job as for a post before it sleeps: a caller of many
small tasks sends the next one in less time than it takes to wake this process."""


def run_process(
    segment: Segment,
    pid: int,
    wait_by: str,
    lifeline: Lifeline,
    pipe: Connection,
    work: Work | None,
) -> None:
    """Do one piece of work, or the jobs that come through the pipe.

    Args:
        segment: the memory that the run shares.
        pid: this process.
        wait_by: how it waits.
        lifeline: by which this process ends with its caller.
        pipe: to the caller.
        work: what to do; None where jobs come through the pipe.
    """
    keep_own_handlers()
    show_again()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, stacks.SIGNAL})
    lifeline.bind()
    # A process that the program forks lives on its own: were the pipe open there as well,
    # the end of this process could not be seen while a message is cut short.
    os.register_at_fork(after_in_child=pipe.close)
    context = context_class()(segment, pid, wait_by)
    context.begin()
    _answer(context.control, context.start_of(context.pid))
    channel = Channel(pipe)
    if work is not None:
        channel.send(work.alone(context.pid, lambda: ShmPort.of_root(context), channel.send))
        _tell_of_threads(context.pid)
        return
    if context.waiting.yields:
        context.waiting.move_to_own_core()  # the system may have started all on that of the caller
    channel.send(READY)
    runner: JobRunner | None = None
    root = KeptPort(context)
    pause = Pause()  # its own, since processes that outnumber the cores have none in a run
    while (message := channel.receive()) != END:
        if message[:1] == RUNNER:
            runner = pickle.loads(message[1:])  # from the parent, as all that follows
            continue
        assert runner is not None  # it comes before the first job
        report, has_failed = runner.run(message, context.pid, root.open, channel.send)
        channel.send(report)
        if has_failed:
            continue  # the caller ends all processes; others may still be in the run
        root.begin_anew()
        if root.kept is not None:
            runner.prepare(root.kept)
        look(channel.has_come, pause, _TIMES * context.waiting.yields)
    _tell_of_threads(context.pid)


def _answer(control: memoryview, start: int) -> None:
    """In a process of a run: be ready to write the stack, and let the caller know.

    Args:
        control: the control words of the run.
        start: index of the first control word of this process.
    """
    itself = stacks.answer()
    if itself is not None:
        control[start + THREAD] = itself.thread
        control[start + STACK_FILE] = itself.file + 1  # 0 means that there is no file


class KeptPort:
    """The port of a process to the root group, which the runs of a pool share if they can.

    Args:
        context: of the process.
    """

    def __init__(self, context: ProcessContext) -> None:
        self._context = context
        self.kept: ShmPort | None = None
        """The port of the last run, if the next one will have it, too."""

    def open(self) -> ShmPort:
        """Return the port for a run."""
        if self.kept is None:
            self.kept = ShmPort.of_root(self._context)
        return self.kept

    def begin_anew(self) -> None:
        """Give back all memory of a run that has ended; keep the port if the next can use it."""
        self._context.begin_anew()
        if self.kept is not None and not self.kept.begin_anew():
            self.kept = None


# -- threads that a program has left running, which hold the end of their process -----------------


def _tell_of_threads(pid: int) -> None:
    """Wait a moment for the threads that hold the end of this process, then say which they are.

    Args:
        pid: this process, in the run.
    """
    until = time.monotonic() + GRACE_S
    for thread in _holding():
        thread.join(max(until - time.monotonic(), 0))
    names = ", ".join(repr(thread.name) for thread in _holding())
    if names:
        print(
            f"bsplib: the end of the run waits for process {pid}, in which main has ended and "
            f"these threads run on: {names}; join them in main, or make them with daemon=True",
            file=sys.stderr,
            flush=True,
        )


def _holding() -> list[threading.Thread]:
    """Return the threads that the interpreter waits for before it ends."""
    this = threading.current_thread()
    return [each for each in threading.enumerate() if each is not this and not each.daemon]
