"""One process of a run, from its first line to its last."""

from __future__ import annotations

import functools
import gc
import os
import pickle
import signal
import sys
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any

from bsplib.backends.base import Stopped
from bsplib.backends.shm import fork_warning, locate
from bsplib.backends.shm.context import ProcessContext
from bsplib.backends.shm.control import WORD
from bsplib.backends.shm.doorbell import doorbells
from bsplib.backends.shm.lifeline import Lifeline
from bsplib.backends.shm.port import ShmPort
from bsplib.backends.shm.segment import Segment
from bsplib.backends.signals import keep_own_handlers
from bsplib.running.failures import halt_of, unpicklable_result
from bsplib.running.labels import whole_lines
from bsplib.running.seeds import plant
from bsplib.running.task import Task, describe_failure, run_task

READY = b"ready"
"""Said once by a process that was not forked: it has mapped the segment."""

FRAME = b"f"
"""Begins what says how to do the tasks that follow; a pickle never begins so."""

END = b"end"
"""Told instead of a task: there are no more. (The pipe's own end would not be seen:
processes forked later hold it open.)"""


def be_process(
    segment: Segment,
    pid: int,
    nprocs: int,
    lifeline: Lifeline,
    pipe: Connection,
    wait_by: str,
    task: Task | None,
) -> None:
    """Do one task, or those that come through the pipe.

    Args:
        segment: shared memory of the run.
        pid: of this process.
        nprocs: number of processes.
        lifeline: by which this process ends with its caller.
        pipe: to the caller.
        wait_by: how to wait, see :class:`ProcessContext`.
        task: the only one; None where tasks come, pickled, through the pipe.
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
    if task is not None:
        pipe.send_bytes(_do(task, context))
        return
    pipe.send_bytes(READY)
    frame: Task | None = None
    while (work := pipe.recv_bytes()) != END:
        if work[:1] == FRAME:
            frame = pickle.loads(work[1:])  # from the parent, as all that follows
            continue
        assert frame is not None  # it comes first
        pipe.send_bytes(_do(work, context, frame))
        context.begin_anew()


def _do(work: Task | bytes, context: ProcessContext, frame: Task | None = None) -> bytes:
    """Return how a task ended, pickled: (result,), a Failure, or a Halt if it was stopped.

    Args:
        work: the task, or its main and arguments, pickled.
        context: of this process.
        frame: what else makes up the task.
    """
    outcome: Any
    try:
        task = work if isinstance(work, Task) else _unpack(work, frame)
        plant(task.seeds, context.pid)
        with whole_lines(lambda: context.pid, label=task.label):
            outcome = (run_task(task, ShmPort.of_root(context)),)
    except Stopped as stopped:
        outcome = halt_of(stopped)
    except BaseException as error:  # noqa: BLE001  # whatever it is, the parent is told
        outcome = describe_failure(error, context.pid)
    try:
        return pickle.dumps(outcome, 5)
    except Exception as reason:  # noqa: BLE001  # anything may go wrong in a foreign __reduce__
        return pickle.dumps(
            describe_failure(unpicklable_result(context.pid, reason), context.pid), 5
        )


def _unpack(work: bytes, frame: Task | None) -> Task:
    """Return a task from the parent, whose script's functions and classes came by value."""
    assert frame is not None
    task_main, args, kwargs, seeds = pickle.loads(work)
    main = task_main
    while isinstance(main, functools.partial):
        main = main.func
    if getattr(main, "__module__", None) == "__main__":
        # Let instances of the classes that came along be pickled by name, as in the script.
        vars(sys.modules["__main__"]).update(getattr(main, "__globals__", {}))
    return replace(frame, main=task_main, args=args, kwargs=kwargs, seeds=seeds)
