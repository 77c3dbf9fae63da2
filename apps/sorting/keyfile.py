"""Files of keys of a fixed size: ``.npy`` files, or keys without header."""

from __future__ import annotations

import errno
import mmap
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import DTypeLike

from bsplib.output_file import special_kind

PAGE = mmap.PAGESIZE
"""Without the page cache, offsets, lengths and addresses must be multiples of this."""
_MAGIC = npy.magic(1, 0)
_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


@dataclass(frozen=True)
class KeyFile:
    """The position of keys in a file."""

    path: str
    dtype: np.dtype[Any]
    count: int
    """Number of keys."""
    offset: int = 0
    """Bytes before the first key; if not 0, they are the header of ``.npy``."""

    def start_of(self, index: int) -> int:
        """Return the byte at which a key begins."""
        return self.offset + index * self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all keys."""
        return self.count * self.dtype.itemsize


def find_keys(path: str | os.PathLike[str], dtype: DTypeLike | None = None) -> KeyFile:
    """Return the position of the keys in a file.

    Args:
        path: path of the file.
        dtype: dtype of the keys; required for a file that is no ``.npy`` file.

    Raises:
        OSError: the file cannot be read.
        ValueError: its keys do not have one dimension, its length does not fit its header,
            or the keys have another dtype, or one that cannot be stored in a file.
    """
    kind = special_kind(Path(path))
    if kind not in ("", "a folder"):  # to open a folder is an error of its own
        raise ValueError(f"{path} is {kind}; name a file with keys")
    with open(path, "rb") as file:
        is_npy = file.read(len(_MAGIC))[:-2] == _MAGIC[:-2]
        file.seek(0)
        keys = _read_header(file, str(path)) if is_npy else _bare_keys(str(path), dtype)
    if is_npy and dtype is not None and np.dtype(dtype) != keys.dtype:
        raise ValueError(f"{path} has keys of dtype {keys.dtype}, not {np.dtype(dtype)}")
    if os.path.getsize(path) != keys.start_of(keys.count):
        raise ValueError(
            f"{path} is not as long as its header says: {keys.count} keys of dtype {keys.dtype} "
            f"end at byte {keys.start_of(keys.count)}, and it has {os.path.getsize(path)}"
        )
    return keys


def _read_header(file: Any, path: str) -> KeyFile:
    try:
        shape, _, dtype = _HEADERS[npy.read_magic(file)](file)
    except (KeyError, ValueError) as error:
        raise ValueError(f"{path} has a damaged header of .npy: {error}") from None
    if len(shape) != 1:
        raise ValueError(f"keys have one dimension, and those of {path} have shape {shape}")
    if shape[0] < 0:
        raise ValueError(f"{path} has a damaged header of .npy: its shape is {shape}")
    _check_dtype(path, dtype)
    return KeyFile(path, dtype, shape[0], file.tell())


def _bare_keys(path: str, dtype: DTypeLike | None) -> KeyFile:
    if dtype is None:
        raise ValueError(f"{path} is no .npy file: give the dtype of its keys")
    kind, size = np.dtype(dtype), os.path.getsize(path)
    _check_dtype(path, kind)
    if size % kind.itemsize:
        raise ValueError(
            f"{path} has {size} bytes, which is no number of keys of {kind.itemsize} bytes"
        )
    return KeyFile(path, kind, size // kind.itemsize)


def _check_dtype(path: str, dtype: np.dtype[Any]) -> None:
    if dtype.hasobject or not dtype.itemsize:
        raise ValueError(f"{path}: keys of dtype {dtype} cannot be stored in a file directly")


def header(keys: KeyFile) -> bytes:
    """Return the ``.npy`` header for these keys, one page long; empty for keys without header."""
    if not keys.offset:
        return b""
    text = repr(
        {"descr": npy.dtype_to_descr(keys.dtype), "fortran_order": False, "shape": (keys.count,)}
    )
    start = _MAGIC + (PAGE - len(_MAGIC) - 2).to_bytes(2, "little") + text.encode("latin1")
    if len(start) >= PAGE:
        raise ValueError(f"the dtype {keys.dtype} is too long for a header of .npy")
    return start.ljust(PAGE - 1) + b"\n"


def create(keys: KeyFile) -> None:
    """Create a file for keys, with a header and space for all of them.

    The length is rounded up to whole pages; :func:`trim` removes the rest at the end.

    Raises:
        OSError: there is no space for the file, or it cannot be created.
    """
    room = -(-keys.start_of(keys.count) // PAGE) * PAGE
    with open(keys.path, "xb") as file:
        if room:
            os.posix_fallocate(file.fileno(), 0, room)
        file.write(header(keys))


def trim(keys: KeyFile) -> None:
    """Cut a file after its last key, and write it to the disk."""
    with open(keys.path, "r+b") as file:
        file.truncate(keys.start_of(keys.count))
        os.fsync(file.fileno())


def beside(keys: KeyFile, path: Path, *, bare: bool) -> KeyFile:
    """Return the position of such keys in another file, beginning at a page boundary."""
    return replace(keys, path=str(path), offset=PAGE if keys.offset and not bare else 0)


class FileChannel:
    """Reads and writes parts of a file, without the page cache where that is possible.

    A sort that reads each key many times would fill the page cache, to the disadvantage of
    other programs. If the file is larger than the cache, it would not be faster, either.
    """

    def __init__(self, path: str, *, write: bool, direct: bool) -> None:
        flags = os.O_RDWR if write else os.O_RDONLY
        self._cached = os.open(path, flags | os.O_CLOEXEC)
        self._direct: int | None = None
        if direct and hasattr(os, "O_DIRECT"):
            try:
                self._direct = os.open(path, flags | os.O_CLOEXEC | os.O_DIRECT)
            except OSError as error:
                if error.errno != errno.EINVAL:  # the file system has no direct access
                    os.close(self._cached)
                    raise

    def close(self) -> None:
        """Close the file."""
        os.close(self._cached)
        if self._direct is not None:
            os.close(self._direct)

    def read(self, into: memoryview, offset: int) -> None:
        """Fill memory from the file.

        Raises:
            OSError: the file cannot be read, or is too short.
        """
        while into.nbytes:
            done = os.preadv(self._choose(into, offset), [into], offset)
            if not done:
                raise OSError(errno.EIO, f"the file has become shorter than {offset} bytes")
            into, offset = into[done:], offset + done

    def write(self, data: memoryview, offset: int) -> None:
        """Write memory to the file.

        Raises:
            OSError: the disk is full, or the file cannot be written.
        """
        while data.nbytes:
            done = os.pwrite(self._choose(data, offset), data, offset)
            data, offset = data[done:], offset + done

    def _choose(self, data: memoryview, offset: int) -> int:
        """Return the descriptor to use: the cached one if memory or offset are not whole pages.

        Blocks of keys that do not begin at a page boundary do not end at one, either.
        """
        if self._direct is None or offset % PAGE or data.nbytes % PAGE:
            return self._cached
        return self._direct
