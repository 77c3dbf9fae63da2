"""One process of a run, from its first line to its last."""

from __future__ import annotations

import gc
import os
import pickle
import signal
from multiprocessing.connection import Connection

from bsplib.backends.launching import JobRunner, Work
from bsplib.backends.shm import fork_warning, locate
from bsplib.backends.shm.context import ProcessContext
from bsplib.backends.shm.control import WORD
from bsplib.backends.shm.doorbell import doorbells
from bsplib.backends.shm.lifeline import Lifeline
from bsplib.backends.shm.port import ShmPort
from bsplib.backends.shm.segment import Segment
from bsplib.backends.signals import keep_own_handlers

READY = b"ready"
"""Sent once by a process that was not forked, when it has mapped the segment."""

RUNNER = b"r"
"""First byte of a message with the runner of the jobs that follow; no pickle begins with it."""

END = b"end"
"""Sent in place of a job when there are no more. (To close the pipe would not be enough:
processes that were forked later hold it open.)"""


def be_process(
    segment: Segment,
    pid: int,
    nprocs: int,
    lifeline: Lifeline,
    pipe: Connection,
    wait_by: str,
    work: Work | None,
) -> None:
    """Do one piece of work, or the jobs that come through the pipe.

    Args:
        segment: shared memory of the run.
        pid: of this process.
        nprocs: number of processes.
        lifeline: by which this process ends with its caller.
        pipe: to the caller.
        wait_by: how to wait, see :class:`ProcessContext`.
        work: what to do; None where jobs come through the pipe.
    """
    gc.freeze()  # what was inherited stays as it is, and its pages stay shared
    keep_own_handlers()
    fork_warning.show_again()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what Ctrl-C means
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    lifeline.bind()
    # A process that the program forks lives on its own: were the pipe open there as well,
    # the end of this process could not be seen while a message is cut short.
    os.register_at_fork(after_in_child=pipe.close)
    context = ProcessContext(segment, pid, doorbells(segment, nprocs), wait_by)
    locate.answer(segment.control, segment.control_start(pid) // WORD)
    if work is not None:
        pipe.send_bytes(_do(work, context))
        return
    pipe.send_bytes(READY)
    runner: JobRunner | None = None
    while (message := pipe.recv_bytes()) != END:
        if message[:1] == RUNNER:
            runner = pickle.loads(message[1:])  # from the parent, as all that follows
            continue
        pipe.send_bytes(_do(message, context, runner))
        context.begin_anew()


def _do(work: Work | bytes, context: ProcessContext, runner: JobRunner | None = None) -> bytes:
    """Do some work, or a job; return how it ended."""

    def open_port() -> ShmPort:
        return ShmPort.of_root(context)

    if not isinstance(work, bytes):
        return work.alone(context.pid, open_port)
    assert runner is not None  # it comes before the first job
    return runner.run(work, context.pid, open_port)
