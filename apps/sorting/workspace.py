"""The files of a sort; the target is not changed until the result is complete.

They are in a folder ``.bsp-sort-...`` beside the target, which is removed when the sort
ends. A sort that is killed leaves its folder behind.
"""

from __future__ import annotations

import errno
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bsplib.apps.sorting.blockwork import Files
from bsplib.apps.sorting.keyfile import KeyFile, beside, create, trim
from bsplib.output_file import obstacle, rename

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


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
            scratch = beside(keys, folder / "blocks", bare=True)
            result = beside(keys, folder / "result", bare=False)
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
    """Create a folder for a sort, and remove it at the end.

    Raises:
        OSError: the folder cannot be created.
    """
    try:
        folder = tempfile.TemporaryDirectory(
            prefix=".bsp-sort-", dir=parent, ignore_cleanup_errors=True
        )
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(parent)) from None
    with folder as name:
        yield Path(name)
