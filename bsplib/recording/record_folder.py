"""A folder of records: files of the processes of a run, and ``run.json``, which describes the run.

It has up to five files of each process that wrote here (:mod:`bsplib.recording.spool`). A run on
several hosts that share no file system has a folder of this form on each of them.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bsplib.errors import TraceError
from bsplib.output_file import UNFINISHED
from bsplib.recording.trace_document import FORMAT_VERSION, MAX_JSON_BYTES, MAX_NPROCS

with contextlib.suppress(ImportError):  # not on Windows, where nothing is locked
    import fcntl

PREFIX = ".bsp-records-"
"""Beginning of the name of a folder beside a trace."""
FILES = ("records", "traffic", "definitions", "records.chunks", "traffic.chunks")
"""Last parts of the names of the files of a process; its pid is the first part."""

_ABOUT = "run.json"
_FORMAT = "bsplib records"

About = dict[str, Any]
"""Description of a run: nprocs; target (file of the trace); added (whether the trace has earlier
runs); meta (as in ``Run.meta``); run (a text that no other run has); spread (whether processes
may have written into other folders)."""


def write_about(folder: Path, about: About) -> None:
    """Write the description of the run into its folder.

    Raises:
        OSError: it cannot be written.
    """
    content = {"format": _FORMAT, "version": FORMAT_VERSION, **about}
    (folder / _ABOUT).write_text(json.dumps(content), encoding="utf-8")


def read_about(folder: Path) -> About:
    """Return the description of the run that recorded in a folder.

    Raises:
        TraceError: the folder has none, or one of another version.
    """
    try:
        with (folder / _ABOUT).open(encoding="utf-8") as file:
            about = json.loads(file.read(MAX_JSON_BYTES))
        sound = (about["format"], about["version"]) == (_FORMAT, FORMAT_VERSION)
        sound = sound and type(about["nprocs"]) is int and 1 <= about["nprocs"] <= MAX_NPROCS
        sound = sound and isinstance(about["target"], str) and isinstance(about["meta"], dict)
        sound = sound and isinstance(about["added"], bool) and isinstance(about["run"], str)
        sound = sound and isinstance(about["spread"], bool)
    except OSError as error:
        reason = f"{_ABOUT} cannot be read: {error.strerror}"
        raise TraceError(f"{folder} is no folder of records: {reason}") from None
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise TraceError(f"{folder} is no folder of records: {_ABOUT}: {error}") from None
    if not sound:
        raise TraceError(f"{folder} holds no records that this version of bsplib reads")
    return about  # type: ignore[no-any-return]  # checked above


def remove(folder: Path, nprocs: int) -> None:
    """Remove a folder of records; files that no recording wrote are kept, and the folder then, too.

    Args:
        folder: the folder.
        nprocs: number of processes of the run.
    """
    names = [_ABOUT, *(f"{pid}.{file}" for pid in range(nprocs) for file in FILES)]
    with contextlib.suppress(OSError):  # the folder may have been removed already
        for path in (*(folder / name for name in names), *folder.glob(f"{UNFINISHED}*")):
            path.unlink(missing_ok=True)
        folder.rmdir()


# -- locks on folders: a locked one is in use, an unlocked one was left by a killed program -------


_HAS_LOCKS = "fcntl" in globals()


def lock_if_possible(folder: Path) -> int | None:
    """Lock a folder for as long as this process, or one that it forked, lives.

    Where the file system has no locks, the folder is only opened.

    Returns:
        A file descriptor; closing it unlocks the folder. None if another process has
        locked the folder, or if it does not exist any more.

    Raises:
        OSError: the folder cannot be opened.
    """
    if not _HAS_LOCKS:
        return os.open(os.devnull, os.O_RDONLY) if folder.is_dir() else None
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.stat(folder), os.fstat(descriptor)):
            return descriptor
    except (BlockingIOError, FileNotFoundError):
        pass
    except OSError:  # there are no locks
        return descriptor
    os.close(descriptor)
    return None


@contextlib.contextmanager
def one_writer() -> Iterator[None]:
    """Let no other thread or program of this host extend a trace inside the block.

    What is locked is this file: a file beside the trace would stay if the program was killed, and
    the folder may be locked by whoever runs the program.
    """
    descriptor = os.open(__file__, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError, NameError):  # its file system, or Windows, has no locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
