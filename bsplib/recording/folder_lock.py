"""Locks on folders: a locked folder is in use, an unlocked one was left by a killed program."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

with contextlib.suppress(ImportError):  # not on Windows, where nothing is locked
    import fcntl

_HAS_LOCKS = "fcntl" in globals()


def lock(folder: Path) -> int | None:
    """Lock a folder for as long as this process, or one that it forked, lives.

    Returns:
        A file descriptor; closing it unlocks the folder. None if another process has
        locked the folder, or if it does not exist any more.

    Raises:
        OSError: the folder cannot be opened, or its file system has no locks.
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
    except OSError:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return None


def lock_if_possible(folder: Path) -> int | None:
    """Lock a folder as :func:`lock` does; where the file system has no locks, only open it."""
    try:
        return lock(folder)
    except OSError:
        return os.open(folder, os.O_RDONLY)


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
