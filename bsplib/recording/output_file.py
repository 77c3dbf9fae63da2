"""Files that are written completely or not at all.

A file is written under a temporary name in the same folder and renamed when it is
complete. Only regular files are ever replaced: to rename a file over a device, a pipe or
a socket would remove it from the system. A symbolic link is kept, and the regular file
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
"""Prefix of temporary names; a killed program leaves such a file behind."""

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


def obstacle(path: str | os.PathLike[str]) -> str:
    """Return why no file can be written at a path, for the end of an error text.

    Returns:
        For example ``/dev/null is a device; choose the name of a file``. Empty if a file
        can be created there, or a regular file replaced, as far as is known before writing.
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
    """Return the kind of a file that is not regular, such as ``a device``.

    Symbolic links are followed. The result is empty for a regular file, and where there
    is no file.

    Raises:
        OSError: the file system does not tell the kind.
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
        return f"no files can be created in the folder {folder}: permission denied"
    return ""


@contextmanager
def written_whole(path: str | os.PathLike[str], *, scratch: Path | None = None) -> Iterator[Path]:
    """Yield a temporary name to write to; rename that file to ``path`` at the end of the block.

    If the block raises, an earlier file at ``path`` is kept, and the new one is removed.

    Args:
        path: the file; of a symbolic link, the file that it points to is replaced.
        scratch: folder for the temporary file, on the same file system; default: the
            folder of ``path``.

    Raises:
        OSError: there is something other than a regular file at the path, or the file
            cannot be written.
    """
    target = Path(os.path.realpath(path))
    _check_replaceable(target)
    folder = target.parent if scratch is None else scratch
    temporary = folder / f"{UNFINISHED}{secrets.token_hex(8)}{target.suffix[:16]}"
    try:
        yield temporary
        if target.exists():
            shutil.copymode(target, temporary)  # a private file stays private
        rename(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def rename(source: Path, target: Path) -> None:
    """Rename a complete file; a regular file of the new name is replaced.

    Raises:
        OSError: the target exists and is no regular file, or the file cannot be renamed.
    """
    _check_replaceable(target)
    source.replace(target)


def _check_replaceable(target: Path) -> None:
    kind = special_kind(target)
    if kind:
        number = errno.EISDIR if target.is_dir() else errno.EINVAL
        raise OSError(number, f"it is {kind}, not a file", str(target))
