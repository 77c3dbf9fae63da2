"""Limits of the system on a run, and the errors for exceeding them."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
from multiprocessing import popen_fork
from traceback import walk_tb

from bsplib.errors import StartError


def check_descriptors(nprocs: int, needed: int) -> None:
    """Check, before any process starts, that the caller may open enough files.

    Args:
        nprocs: number of processes.
        needed: number of file descriptors that the caller needs for them.

    Raises:
        StartError: the limit is too low.
    """
    taken: list[int] = []
    try:
        taken.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
        taken.extend(os.dup(taken[0]) for _ in range(needed - 1))
    except OSError:
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        raise StartError(
            f"run: {nprocs} processes need {needed} file descriptors, and this process may open "
            f"{len(taken)} more (ulimit -n is {limit}); raise the limit or ask for fewer processes"
        ) from None
    finally:
        for descriptor in taken:
            os.close(descriptor)


def check_file_size(nprocs: int, area_bytes: int) -> None:
    """Check, before any process starts, that files may be as large as that of shared memory.

    Args:
        nprocs: number of processes.
        area_bytes: of the area that each process has in the file, which is almost all holes.

    Raises:
        StartError: the limit is too low.
    """
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    if 0 <= limit < (nprocs + 1) * area_bytes:
        raise StartError(
            f"run: the shared memory of {nprocs} processes is one large file with holes, and files "
            f"may have {limit} bytes only (ulimit -f); lift the limit by ulimit -f unlimited, or "
            f"use virtual processors (--backend sim)"
        )


def not_started(pid: int, nprocs: int, error: Exception) -> StartError:
    """Return the error for a process that the system did not start."""
    code = error.errno if isinstance(error, OSError) else None
    if code == errno.EAGAIN:
        why = _no_more()
    elif code == errno.ENOMEM:
        why = "there is no memory for it; ask for fewer processes"
    elif code is None or isinstance(error, ConnectionError):
        why = "the fork server that starts it has ended; see what it has printed, and run again"
    else:
        why = str(error)
    return StartError(f"run: process {pid} of {nprocs} cannot be started: {why}")


def no_threads(threads: int, nprocs: int) -> StartError:
    """Return the error for threads of the caller that cannot be started beside its processes."""
    return StartError(
        f"Pool: beside {nprocs} processes the {threads} BLAS threads of their caller cannot be "
        f"started: {_no_more()}"
    )


def _no_more() -> str:
    limit = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    allowed = "" if limit < 0 else f" (ulimit -u is {limit})"
    return (
        f"there may be no more processes and threads{allowed}; raise the limit or ask for "
        f"fewer processes"
    )


def close_pipes(error: Exception) -> None:
    """Close the pipes that multiprocessing leaves open when it cannot fork."""
    for frame, _ in walk_tb(error.__traceback__):
        if frame.f_code is popen_fork.Popen._launch.__code__:  # type: ignore[attr-defined]
            for name in ("parent_r", "child_w", "child_r", "parent_w"):
                with contextlib.suppress(KeyError, OSError):
                    os.close(frame.f_locals[name])
