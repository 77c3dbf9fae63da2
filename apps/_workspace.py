"""The files of a sort, which leaves what was there until its result is whole."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from apps._blockwork import Files
from apps._keyfile import KeyFile, beside, create, trim

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def workspace(keys: KeyFile, target: Path) -> Iterator[Files]:
    """Make the files of a sort, and give the result its name if it has come so far.

    Raises:
        OSError: there is no room for them, or no files can be made beside the target.
    """
    try:
        folder = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(target.parent)) from None
    try:
        scratch = beside(keys, folder / "blocks", bare=True)
        result = beside(keys, folder / "result", bare=False)
        create(scratch)
        create(result)
        yield Files(keys, scratch, result)
        trim(result)
        shutil.copymode(target if target.exists() else keys.path, result.path)
        os.replace(result.path, target)
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        raise OSError(
            error.errno,
            f"there is no room beside {target}: the sort needs {2 * keys.nbytes} bytes, and "
            f"{shutil.disk_usage(target.parent).free} are free",
        ) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
