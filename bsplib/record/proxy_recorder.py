"""Lets a program be recorded by :mod:`bsplib.record.proxies`, where the shim cannot be compiled.

``mpi4py.MPI`` is imported when the program imports it, with the options that the program has set; a
finder of modules puts the subclasses into it before the program gets it.
"""

from __future__ import annotations

import atexit
import os
import pickle
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bsplib.record.events import (
    ENDED,
    HEAD_BYTES,
    MAGIC,
    STOPPED,
    file_name,
    remove_rank_files,
)
from bsplib.record.frames import hashes
from bsplib.record.mpi_import import MpiFinder
from bsplib.record.proxies import NOT_COVERED, Proxies
from bsplib.record.python_rows import PythonRows
from bsplib.record.recorded_program import NO_CALL, PATIENCE_MS, RecordedProgram, say


class ProxyRecorder:
    """Records by subclasses of mpi4py's classes.

    Args:
        job: what is recorded.
        is_first: whether this rank prints sentences, as far as the launcher tells.
    """

    def __init__(self, job: RecordedProgram, *, is_first: bool) -> None:
        self._job, self._is_first = job, is_first
        self._rows: PythonRows | None = None
        self._mpi: Any = None
        self._bytes = [0, 0]
        self._pid = os.getpid()
        self.status: int | None = None
        """Exit status of the program, where it is known."""
        self.error = ""
        """The exception that ended the program."""
        MpiFinder(self._imported)
        atexit.register(self._end)

    # -- begin ------------------------------------------------------------------------------------

    def _imported(self, module: Any) -> None:
        """Begin when MPI is initialized, which its import does unless the program says no."""
        self._mpi = module
        if module.Is_initialized():
            self._begin()
            return
        for name in ("Init", "Init_thread"):
            setattr(module, name, self._beginning(getattr(module, name)))

    def _beginning(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def init(*args: Any) -> Any:
            result = function(*args)
            self._begin()
            return result

        return init

    def _begin(self) -> None:
        mpi, folder = self._mpi, Path(self._job.folder)
        self._rank, self._size = mpi.COMM_WORLD.Get_rank(), mpi.COMM_WORLD.Get_size()
        try:
            folder.mkdir(exist_ok=True)
            rows = PythonRows(folder / file_name(self._rank), self._full)
        except OSError as error:
            say(f"rank {self._rank} is not recorded, since {folder} cannot be written: {error}")
            return
        rows.line("header", self._header())
        self._count_objects()
        Proxies(mpi, rows, self._bytes, self._aborts).install()
        self._rows = rows
        rows.add_init()

    def _header(self) -> dict[str, Any]:
        mpi = self._mpi
        levels = {
            mpi.THREAD_SINGLE: "single",
            mpi.THREAD_FUNNELED: "funneled",
            mpi.THREAD_SERIALIZED: "serialized",
        }
        library = mpi.Get_library_version().splitlines()[0].strip("\0 ")
        return {
            **self._job.header(mpi.get_vendor()[0], "proxies", NOT_COVERED),
            "rank": self._rank,
            "size": self._size,
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "library": library,
            "thread_level": levels.get(mpi.Query_thread(), "multiple"),
            "begin": self._job.begin,
        }

    def _count_objects(self) -> None:
        """Count the bytes of objects where mpi4py turns them into bytes and back."""
        counts = self._bytes

        def dumps(value: object, *options: Any, **more: Any) -> bytes:
            data = pickle.dumps(value, *options, **more)
            counts[0] += len(data)
            return data

        def loads(data: Any, **more: Any) -> Any:
            counts[1] += memoryview(data).nbytes
            return pickle.loads(data, **more)

        used = self._mpi.pickle
        used.__init__(dumps, loads, used.PROTOCOL)

    def _full(self, error: OSError) -> None:
        say(f"rank {self._rank} is not recorded any further: {error.strerror}; the program goes on")

    # -- end --------------------------------------------------------------------------------------

    def _end(self) -> None:
        if os.getpid() != self._pid:
            return  # a process that the program has forked
        rows = self._rows
        if rows is None:
            if self._is_first and (self._mpi is None or not self._mpi.Is_initialized()):
                say(NO_CALL)
            return
        rows.line("sources", hashes(rows.stacks.files))
        self._close(rows, self.status, self.error)
        if self._rank == 0:
            self._join(all_are_complete=self._await_others())

    def _aborts(self, code: int) -> None:
        """Write what is known before MPI_Abort ends the process."""
        rows, self._rows = self._rows, None
        if rows is None:
            return
        self._close(rows, code, f"MPI_Abort({code}) by rank {self._rank}")
        say(f"until MPI_Abort, {self._job.how_to_join()}")

    def _close(self, rows: PythonRows, status: int | None, error: str) -> None:
        end = {"exit": time.monotonic_ns(), "finalize": None, "initialized": True, "error": error}
        more = {"status": status, "other_threads": rows.other_threads, "spawned": 0}
        rows.line("end", end | more)
        rows.close()

    def _await_others(self) -> bool:
        """Wait shortly until the files of all ranks are complete; return whether they are."""
        until = time.monotonic() + PATIENCE_MS / 1000
        paths = [Path(self._job.folder, file_name(rank)) for rank in range(self._size)]
        for path in paths:
            while not _is_complete(path) and time.monotonic() < until:
                time.sleep(0.002)
        return all(map(_is_complete, paths))

    def _join(self, *, all_are_complete: bool) -> None:
        if self._job.join is None or not _succeeds(self._job.join):
            say(self._job.how_to_join())
            return
        if all_are_complete:
            remove_rank_files(Path(self._job.folder))
        say(self._job.recorded)


def _succeeds(command: list[str]) -> bool:
    try:
        return subprocess.run(command, stdout=sys.stderr, check=False).returncode == 0
    except OSError:
        return False


def _is_complete(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError:
        return False
    return len(head) == HEAD_BYTES and head[len(MAGIC)] in (ENDED, STOPPED)
