"""The files of a sort; the target is not changed until the result is complete.

They are in a folder ``.bsp-sort-...`` beside the target, which is removed when the sort
ends. If a sort is killed, its folder remains, and the next sort to the same place removes
it. The folder of a running sort is locked; the system releases the lock when the process
ends.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bsplib.apps.sorting.blockwork import Files
from bsplib.apps.sorting.keyfile import KeyFile, beside, create, trim
from bsplib.output_file import obstacle, rename
from bsplib.recording.folder_lock import lock, lock_if_possible

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_PREFIX = ".bsp-sort-"
_BLOCKS, _RESULT = "blocks", "result"
MADE_KEYS = "keys.npy"
"""A file of keys that are made to be sorted."""


@contextmanager
def workspace(keys: KeyFile, target: Path, *, force: bool = False) -> Iterator[Files]:
    """Create the files of a sort; rename the result to the target at the end of the block.

    Args:
        keys: the keys to sort.
        target: the file for the result.
        force: replace a file that exists; the file of the keys themselves is always replaced.

    Raises:
        OSError: there is no space for the files, or they cannot be created beside the target.
        ValueError: the target exists and may not be replaced.
    """
    force = force or (target.exists() and target.samefile(keys.path))
    if target.exists() and (reason := obstacle(target, force=force)):
        raise ValueError(reason)
    with scratch_folder(target.parent) as folder:
        try:
            scratch = beside(keys, folder / _BLOCKS, bare=True)
            result = beside(keys, folder / _RESULT, bare=False)
            create(scratch)
            create(result)
            yield Files(keys, scratch, result)
            trim(result)
            shutil.copymode(target if target.exists() else keys.path, result.path)
            rename(Path(result.path), target, force=force)
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise
            raise OSError(
                error.errno,
                f"there is no space beside {target}: the sort needs {2 * keys.nbytes} bytes, and "
                f"{shutil.disk_usage(target.parent).free} are free",
            ) from error


@contextmanager
def scratch_folder(parent: Path) -> Iterator[Path]:
    """Create a folder for a sort, and remove it at the end, with those that killed sorts left.

    Raises:
        OSError: the folder cannot be created.
    """
    try:
        clear_abandoned(parent)
        folder, descriptor = _make_locked(parent)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(parent)) from None
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def _make_locked(parent: Path) -> tuple[Path, int]:
    """Create a locked folder; try again if another sort removes it before it is locked."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        descriptor = lock_if_possible(folder)
        if descriptor is not None:
            return folder, descriptor


def clear_abandoned(parent: Path) -> None:
    """Remove the folders of sorts that have ended; warn if one cannot be removed."""
    for folder in parent.glob(f"{_PREFIX}*"):
        try:
            _clear(folder)
        except OSError as error:
            warnings.warn(
                f"{folder} was left by a sort that was killed, and cannot be removed: "
                f"{error.strerror}",
                RuntimeWarning,
                stacklevel=2,
            )


def _clear(folder: Path) -> None:
    descriptor = lock(folder)
    if descriptor is None:
        return
    try:
        for inner in folder.glob(f"{_PREFIX}*"):
            _clear(inner)
        for name in (_BLOCKS, _RESULT, MADE_KEYS):
            (folder / name).unlink(missing_ok=True)
        folder.rmdir()  # fails if it contains other files
    finally:
        os.close(descriptor)
