"""Runs of a program that a launcher has started as all ranks: ``mpiexec -n 4 python prog.py``.

Each rank executes the whole program, and all come to the same calls of :func:`bsplib.run`. Rank 0
is the driver and process 0 of each run, as of a job that ``bsp run`` has entered; so its arguments
count. The others serve it during the call, as ranks of any job do, and go on with the program when
they have learned what the call returns or raises. The first call joins the ranks: in the others
the process that the launcher has started becomes the watcher, and a fork of it goes on.
"""

from __future__ import annotations

import atexit
import os
import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn, TypeVar

from bsplib.backends.mpi import bsp_run_under_mpiexec, control
from bsplib.backends.mpi.control import Stream
from bsplib.backends.mpi.launcher_environment import Seat, take_seat
from bsplib.backends.mpi.rank import (
    Service,
    begin,
    ended_by_error,
    fork_watched,
    join,
    sent_streams,
)
from bsplib.backends.mpi.watcher import tell
from bsplib.errors import BspError, StartError
from bsplib.extras import need
from bsplib.visible import text_of

if TYPE_CHECKING:
    from bsplib.backends.mpi.link import Link

_Value = TypeVar("_Value")


current: _Leader | _Guest | None = None
"""None where the other ranks, if there are any, do not execute the program."""


def join_program(seat: Seat) -> None:
    """Join the ranks, which all execute the program.

    Args:
        seat: the place of this process.

    Raises:
        BspError: the ranks do not find each other, or this process can be none.
    """
    global current  # noqa: PLW0603  # a process is in one job
    need("mpi4py")
    _check_beginning()
    take_seat()
    current = _Guest(seat) if seat.rank else _Leader(seat.size)


def _check_beginning() -> None:
    """Check that this process can start MPI, and be forked before."""
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is not None and mpi.Is_initialized():
        raise StartError(
            "run: mpi4py has started MPI in this program before the first run did; import "
            "mpi4py.MPI after that run"
        )
    if (count := threading.active_count()) > 1:
        raise StartError(
            f"run: this program has {count} threads, and its first run in processes of mpiexec "
            f"forks it: call bsplib.run before other threads start"
        )


class _Leader:
    """Rank 0, for the calls that all ranks make.

    Args:
        size: number of ranks.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.busy = False
        self._job = bsp_run_under_mpiexec.lead(size)

    def share(self, run: Callable[[], _Value]) -> _Value:
        """Make a call that all ranks make; all return or raise the same.

        Args:
            run: does what was asked for; rank 0 calls it.
        """
        self.busy = True
        try:
            value = run()
        except BaseException as error:
            self._job.tell_all(_pickled_error(error))
            raise
        finally:
            self.busy = False
        self._job.tell_all(pickle.dumps((value, None), 5))
        return value


def _pickled_error(error: BaseException) -> bytes:
    try:
        content = pickle.dumps((None, error), 5)
        pickle.loads(content)  # as made here
    except Exception:  # noqa: BLE001  # anything may go wrong in a foreign __reduce__
        return pickle.dumps((None, BspError(f"{type(error).__name__}: {text_of(error)}")), 5)
    return content


class _Guest:
    """Any other rank.

    Args:
        seat: its place.
    """

    def __init__(self, seat: Seat) -> None:
        self.size = seat.size
        self.busy = False
        self._rank = seat.rank
        self._has_left = False
        self._raised: BaseException | None = None
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        self._up, self._link, self._service = _seated(seat)
        self._streams = sent_streams(self._up)
        self._show_error = sys.excepthook
        sys.excepthook = self._hook
        atexit.register(self._leave)

    def share(self, run: Callable[[], _Value]) -> _Value:  # noqa: ARG002  # rank 0 calls it
        """See :meth:`_Leader.share`."""
        if self._has_left:
            self._refuse()
        self.busy = True
        try:
            with self._streams_sent(), ended_by_error(self._up, speaks=True):
                message = self._service.until(control.RESULT, control.END)
        finally:
            self.busy = False
        if message.kind == control.END:
            self._leave_mpi()
            self._refuse()
        value, self._raised = pickle.loads(message.content)  # from rank 0
        if self._raised is not None:
            raise self._raised
        result: _Value = value
        return result

    @contextmanager
    def _streams_sent(self) -> Iterator[None]:
        """Send what a run prints to rank 0, but not what the program prints between runs."""
        before = sys.stdout, sys.stderr
        sys.stdout, sys.stderr = self._streams
        try:
            yield
        finally:
            sys.stdout, sys.stderr = before

    def _refuse(self) -> NoReturn:
        raise StartError(
            f"run: process {self._rank} of mpiexec calls it once more than process 0, whose "
            f"program has ended; all of them have to make the same calls"
        )

    def _hook(
        self, kind: type[BaseException], error: BaseException, traceback: TracebackType | None
    ) -> None:
        """Print an error that ends the program, unless rank 0 prints it, too."""
        if error is not self._raised:
            self._show_error(kind, error, traceback)

    def _leave(self) -> None:
        """At the end of the program: wait for that of rank 0, and leave MPI."""
        if self._has_left:
            return
        with ended_by_error(self._up, speaks=True):
            message = self._service.until(control.END, control.JOB)
        if message.kind == control.JOB:
            tell(
                f"the program of process {self._rank} of mpiexec has ended, and process 0 calls "
                f"bsplib.run once more; all of them have to make the same calls"
            )
            os._exit(1)
        self._leave_mpi()

    def _leave_mpi(self) -> None:
        self._has_left = True
        self._link.leave()


def _seated(seat: Seat) -> tuple[Stream, Link, Service]:
    """Fork this process, and join the others; what was started becomes the watcher."""
    up, page = fork_watched(speaks=seat.rank == 1)
    with ended_by_error(up, speaks=False):
        link = join(up, page, seat.size)
        begin(up, link)  # the rest is as in rank 0: all execute the same program
        return up, link, Service(up, page, link)
