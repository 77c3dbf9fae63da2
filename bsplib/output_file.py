"""Files that are written completely or not at all, and which earlier files they may replace.

A file is written under a temporary name in the same folder and renamed when it is
complete. An earlier file is replaced only where that cannot be a mistake: a trace replaces a
trace and a saved page a saved page, each recognised by its content (:class:`OutputKind`).
Everything else replaces nothing, unless the user gives ``--force``. All outputs are written by
this module, so the rule stands here alone; :mod:`bsplib.command_options` applies it before a
command begins.

Only regular files are ever replaced: to rename a file over a device, a pipe or
a socket would remove it from the system. A symbolic link is kept, and the regular file
that it points to is replaced.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

UNFINISHED = ".bsp-"
"""Prefix of temporary names; a killed program leaves such a file behind."""

_HEAD_BYTES = 1 << 16
"""What is read of a file to recognise its kind."""


class OutputKind(NamedTuple):
    """A kind of output that may replace or continue an earlier file of the same kind."""

    name: str
    """Name of the kind with its article, such as ``a trace``."""
    begins: Callable[[bytes], bool]
    """Whether a file of this kind begins with these bytes."""
    by_force: bool = False
    """Whether a user can ask to replace another file."""

    def is_at(self, path: str | os.PathLike[str]) -> bool:
        """Tell whether the file at a path begins as this kind does.

        Raises:
            OSError: there is no file, or it cannot be read.
        """
        with open(path, "rb") as file:
            return self.begins(file.read(_HEAD_BYTES))


def _begins_as_trace(head: bytes) -> bool:
    return head.startswith(b"PK\x03\x04") and head[30:40] == b"trace.json"


PAGE_MARK = '<meta name="generator" content="bsplib">'
"""Stands in the head of each page that is saved."""

TRACE = OutputKind("a trace", _begins_as_trace)
PAGE = OutputKind("a page of bsplib", lambda head: PAGE_MARK.encode() in head[:1024], by_force=True)

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


def obstacle(
    path: str | os.PathLike[str], replaces: OutputKind | None = None, *, force: bool = False
) -> str:
    """Return why no file can be written at a path, for the end of an error text.

    Args:
        path: the file to write.
        replaces: what an earlier file may be; None: nothing is replaced.
        force: replace any regular file.

    Returns:
        For example ``/dev/null is a device; choose the name of a file``. Empty if a file
        can be created there, or the earlier file replaced, as far as is known before writing.
    """
    path = Path(path)
    try:
        folder = Path(os.path.realpath(path)).parent
        if kept := _reason_to_keep(path, replaces, force=force):
            return f"{path} {kept}"
    except (OSError, ValueError) as error:  # a loop of links, a NUL in the name
        return f"{path} cannot be written: {getattr(error, 'strerror', None) or error}"
    if not folder.is_dir():
        return f"there is no folder {folder}"
    if not os.access(folder, os.W_OK | os.X_OK):
        return f"no files can be created in the folder {folder}: permission denied"
    return ""


def _reason_to_keep(path: Path, replaces: OutputKind | None, *, force: bool) -> str:
    """Return why what is at a path must stay, and the way out; empty if it may be replaced.

    Raises:
        OSError: there is a file, and it cannot be read.
    """
    if kind := special_kind(path):
        return f"is {kind}; choose the name of a file"
    if force or not path.exists() or (replaces is not None and replaces.is_at(path)):
        return ""
    what = "exists already" if replaces is None else f"exists and is not {replaces.name}"
    if replaces is None or replaces.by_force:
        return f"{what}; name another file, or replace it by --force (in Python by force=True)"
    return f"{what}; name another file, or remove it"


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
    return _KINDS.get(stat.S_IFMT(mode), "")


@contextmanager
def written_whole(
    path: str | os.PathLike[str],
    replaces: OutputKind | None = None,
    *,
    force: bool = False,
    scratch: Path | None = None,
) -> Iterator[Path]:
    """Yield a temporary name to write to; rename that file to ``path`` at the end of the block.

    If the block raises, an earlier file at ``path`` is kept, and the new one is removed.

    Args:
        path: the file; of a symbolic link, the file that it points to is replaced.
        replaces: what an earlier file may be; None: nothing is replaced.
        force: replace any regular file.
        scratch: folder for the temporary file, on the same file system; default: the
            folder of ``path``.

    Raises:
        OSError: there is a file at the path that may not be replaced, or the file cannot be
            written.
    """
    target = Path(os.path.realpath(path))
    folder = target.parent if scratch is None else scratch
    temporary = folder / f"{UNFINISHED}{os.urandom(8).hex()}{target.suffix[:16]}"
    try:
        yield temporary
        rename(temporary, target, replaces, force=force)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(
    path: str | os.PathLike[str],
    text: str,
    replaces: OutputKind | None = None,
    *,
    force: bool = False,
) -> None:
    """Write a text in UTF-8; arguments and errors as for :func:`written_whole`."""
    with written_whole(path, replaces, force=force) as temporary:
        temporary.write_text(text, encoding="utf-8")


def rename(
    source: Path, target: Path, replaces: OutputKind | None = None, *, force: bool = False
) -> None:
    """Rename a complete file.

    Args:
        source: the file.
        target: its new name.
        replaces: what an earlier file of that name may be; None: nothing is replaced.
        force: replace any regular file.

    Raises:
        OSError: there is a file that may not be replaced, or the file cannot be renamed.
    """
    if kept := _reason_to_keep(target, replaces, force=force):
        number = errno.EISDIR if target.is_dir() else errno.EEXIST
        raise OSError(number, f"it {kept}", str(target))
    if target.exists():
        import shutil  # noqa: PLC0415  # few programs replace a file

        shutil.copymode(target, source)  # a private file stays private
    source.replace(target)
