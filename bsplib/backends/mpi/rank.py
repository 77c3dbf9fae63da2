"""A rank of a job, from its first line to its last: ``python -m bsplib.backends.mpi.rank N``.

The process that mpiexec starts becomes the watcher of the rank, which is forked from it before
MPI is loaded.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import socket
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from bsplib.backends import stacks
from bsplib.backends.blas import one_thread_where_forked
from bsplib.backends.launching import JobRunner
from bsplib.backends.mpi import control
from bsplib.backends.mpi.control import Message, Page, Stream
from bsplib.backends.mpi.lifetime import end_with_parent
from bsplib.backends.mpi.watcher import Hub, Watcher

if TYPE_CHECKING:
    from bsplib.backends.mpi.link import Link


class Beginning(NamedTuple):
    """What all ranks are told at their start."""

    hub: Hub
    path: list[str]
    """Folders from which the driver imports modules."""
    arguments: list[str]
    """Of the command line of the driver."""
    folder: str
    """The working directory of the driver."""

    def take_over(self) -> None:
        """Let this process find the modules and files that the driver finds."""
        sys.path[:] = self.path
        sys.argv[:] = self.arguments
        with contextlib.suppress(OSError):  # this host does not have it
            os.chdir(self.folder)


def fork_watched() -> tuple[Stream, Page]:
    """Fork a rank; this process becomes its watcher and does not return.

    Returns:
        In the rank: the connection to its watcher, and the memory that both share.
    """
    page = Page()
    ours, theirs = socket.socketpair()
    watcher = os.getpid()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    with one_thread_where_forked():
        os_pid = os.fork()
        if os_pid:
            theirs.close()
            Watcher(os_pid, ours, page).watch()
        ours.close()
        end_with_parent(watcher)
        os.setpgid(0, 0)  # a signal of the launcher for the group is handled by the watcher
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, *stacks.SIGNALS})
        # A process that the program forks lives on its own.
        os.register_at_fork(after_in_child=theirs.close)
        return Stream(theirs), page


def main() -> NoReturn:
    """Be a rank."""
    up, page = fork_watched()
    status = 1
    try:
        from bsplib.backends.mpi.link import Link  # noqa: PLC0415  # in the rank only

        link = Link(page.stop)
        begin(up, link, sys.stdin.buffer.readline() if link.rank == 0 else b"")
        serve(up, page, link)
        link.leave()
        status = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
        raise
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def begin(up: Stream, link: Link, line: bytes) -> None:
    """Learn from rank 0 how to begin, and let the watcher connect to the hub.

    Args:
        up: connection to the watcher.
        link: connections of MPI.
        line: what the driver has written for rank 0, in hexadecimal digits.
    """
    told = link.comm.bcast(bytes.fromhex(line.decode()) if link.rank == 0 else None)
    beginning: Beginning = pickle.loads(told)  # from the driver, the parent of mpiexec
    beginning.take_over()
    up.put(control.HUB, pickle.dumps((link.rank, beginning.hub)))
    up.put(control.READY, pickle.dumps((link.size, stacks.answer())))


def serve(up: Stream, page: Page, link: Link) -> None:
    """Do the jobs that come, to the last one."""
    runner: JobRunner | None = None
    for message in _messages(up):
        match message.kind:
            case control.RUNNER:
                runner = pickle.loads(message.content)  # from the driver, as all that follows
            case control.JOB:
                assert runner is not None  # it comes before the first job
                _do(message.content, runner, up, page, link)
            case control.END:
                return


def _messages(up: Stream) -> Iterator[Message]:
    while True:
        up.wait()
        yield from up.take()


def _do(job: bytes, runner: JobRunner, up: Stream, page: Page, link: Link) -> None:
    """Do a job, and report how it ended."""
    run, nprocs = control.RUN.unpack_from(job)
    page.begin()
    link.begin(run, nprocs)
    report, _ = runner.run(job[control.RUN.size :], link.rank, link.open_root)
    link.end()
    up.put(control.REPORT, control.NUMBER.pack(run), report)
    while up.unsent:
        up.wait(0)


if __name__ == "__main__":
    main()
