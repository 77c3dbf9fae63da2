"""Files that are written whole or not at all.

A file is written under another name in the same folder and renamed when it is whole.
Only regular files are ever replaced: to rename a file over a device, a pipe or a
socket would remove it from the system. A symbolic link stays, and the regular file
that it points to is replaced.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

UNFINISHED = ".bsp-"
"""Begins the name of a file that is not whole; one of a killed program stays."""

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


def obstacle(path: str | os.PathLike[str]) -> str:
    """Return why no file can be written at a path, as the end of a sentence.

    Returns:
        Such as ``/dev/null is a device; choose the name of a file``; empty where a new
        file can be made, or a regular one replaced, as far as can be said beforehand.
    """
    path = Path(path)
    try:
        kind = special_kind(path)
    except (OSError, ValueError) as error:  # a loop of links, a NUL in the name
        return f"{path} cannot be written: {getattr(error, 'strerror', None) or error}"
    if kind:
        return f"{path} is {kind}; choose the name of a file"
    return _obstacle_of_folder(Path(os.path.realpath(path)).parent)


def special_kind(path: Path) -> str:
    """Return what stands at a path, links followed; empty for a regular file or nothing.

    Raises:
        OSError: that cannot be said.
    """
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return ""
    return next((kind for is_kind, kind in _KINDS if is_kind(mode)), "")


def _obstacle_of_folder(folder: Path) -> str:
    if not folder.is_dir():
        return f"there is no folder {folder}"
    if not os.access(folder, os.W_OK | os.X_OK):
        return f"no files can be made in the folder {folder}: permission denied"
    return ""


@contextmanager
def written_whole(path: str | os.PathLike[str], *, scratch: Path | None = None) -> Iterator[Path]:
    """Write a file under the name that this yields; it gets its own name in the end.

    If the block raises, the file that was there stays, and the new one is removed.

    Args:
        path: the file; where it is a symbolic link, the file that it points to.
        scratch: folder of the same file system for the file until it is whole; the one
            of the file itself if None.

    Raises:
        OSError: the path names something that is no regular file, or cannot be written.
    """
    target = Path(os.path.realpath(path))
    _check_replaceable(target)
    folder = target.parent if scratch is None else scratch
    temporary = folder / f"{UNFINISHED}{secrets.token_hex(8)}{target.suffix[:16]}"
    try:
        yield temporary
        if target.exists():
            shutil.copymode(target, temporary)  # what was private stays so
        rename(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def rename(source: Path, target: Path) -> None:
    """Give a file that is whole its name, where no file or a regular one has it.

    Raises:
        OSError: the target is no regular file, or the file cannot be renamed.
    """
    _check_replaceable(target)
    source.replace(target)


def _check_replaceable(target: Path) -> None:
    kind = special_kind(target)
    if kind:
        number = errno.EISDIR if target.is_dir() else errno.EINVAL
        raise OSError(number, f"it is {kind}, not a file", str(target))
