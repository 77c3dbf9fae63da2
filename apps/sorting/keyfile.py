"""Files of keys of one fixed size: ``.npy``, or the bare keys."""

from __future__ import annotations

import errno
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import DTypeLike

from bsplib.recording.output_file import special_kind

PAGE = mmap.PAGESIZE
"""Offsets, lengths and addresses are multiples of it where the page cache is passed by."""
_MAGIC = npy.magic(1, 0)
_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


@dataclass(frozen=True)
class KeyFile:
    """Where keys lie in a file."""

    path: str
    dtype: np.dtype[Any]
    count: int
    """Number of keys."""
    offset: int = 0
    """Bytes before the first key; there is a header of ``.npy`` if there are any."""

    def place(self, index: int) -> int:
        """Return the byte at which a key begins."""
        return self.offset + index * self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all keys."""
        return self.count * self.dtype.itemsize


def find_keys(path: str | os.PathLike[str], dtype: DTypeLike | None = None) -> KeyFile:
    """Return what keys a file has.

    Args:
        path: of the file.
        dtype: of the keys, which a file needs that is no ``.npy``.

    Raises:
        OSError: the file cannot be read.
        ValueError: it has no keys in one row, is shorter or longer than its header
            says, or the keys are of another dtype or of none that lies in a file.
    """
    kind = special_kind(Path(path))
    if kind not in ("", "a folder"):  # to open a folder is an error of its own
        raise ValueError(f"{path} is {kind}; keys lie in a file")
    with open(path, "rb") as file:
        is_npy = file.read(len(_MAGIC))[:-2] == _MAGIC[:-2]
        file.seek(0)
        keys = _read_header(file, str(path)) if is_npy else _bare_keys(str(path), dtype)
    if is_npy and dtype is not None and np.dtype(dtype) != keys.dtype:
        raise ValueError(f"{path} has keys of dtype {keys.dtype}, not {np.dtype(dtype)}")
    if os.path.getsize(path) < keys.place(keys.count):
        raise ValueError(
            f"{path} breaks off: {keys.count} keys of dtype {keys.dtype} end at byte "
            f"{keys.place(keys.count)}, and it has {os.path.getsize(path)}"
        )
    if os.path.getsize(path) > keys.place(keys.count):
        raise ValueError(
            f"{path} has more than its header says: {keys.count} keys of dtype {keys.dtype} end "
            f"at byte {keys.place(keys.count)}, and it has {os.path.getsize(path)}; a sort would "
            "lose what follows"
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
        raise ValueError(f"{path} is no .npy: say of which dtype its keys are")
    kind, size = np.dtype(dtype), os.path.getsize(path)
    _check_dtype(path, kind)
    if size % kind.itemsize:
        raise ValueError(
            f"{path} has {size} bytes, which is no number of keys of {kind.itemsize} bytes"
        )
    return KeyFile(path, kind, size // kind.itemsize)


def _check_dtype(path: str, dtype: np.dtype[Any]) -> None:
    if dtype.hasobject or not dtype.itemsize:
        raise ValueError(f"{path}: keys of dtype {dtype} do not lie in a file as they are")


def header(keys: KeyFile) -> bytes:
    """Return the header of ``.npy`` for as many keys, a page long; none for bare keys."""
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
    """Make a file for keys, with a header and all the room that they need.

    The room is rounded up to whole pages; :func:`trim` cuts what is too much.

    Raises:
        OSError: there is no room for it, or it cannot be made.
    """
    room = -(-keys.place(keys.count) // PAGE) * PAGE
    with open(keys.path, "xb") as file:
        if room:
            os.posix_fallocate(file.fileno(), 0, room)
        file.write(header(keys))


def trim(keys: KeyFile) -> None:
    """End a file after its last key, and see to it that it is on the disk."""
    with open(keys.path, "r+b") as file:
        file.truncate(keys.place(keys.count))
        os.fsync(file.fileno())


def beside(keys: KeyFile, path: Path, *, bare: bool) -> KeyFile:
    """Return where such keys lie in another file, from a whole page on."""
    return replace(keys, path=str(path), offset=PAGE if keys.offset and not bare else 0)


class Channel:
    """Reads and writes stretches of a file; past the page cache where that is possible.

    A sort that reads each key many times would drive everything else out of the page
    cache, and be no faster for it where the file is larger than that.
    """

    def __init__(self, path: str, *, write: bool, direct: bool) -> None:
        flags = os.O_RDWR if write else os.O_RDONLY
        self._cached = os.open(path, flags | os.O_CLOEXEC)
        self._direct: int | None = None
        if direct and hasattr(os, "O_DIRECT"):
            try:
                self._direct = os.open(path, flags | os.O_CLOEXEC | os.O_DIRECT)
            except OSError as error:
                if error.errno != errno.EINVAL:  # the file system has no such thing
                    os.close(self._cached)
                    raise

    def close(self) -> None:
        """Close the file."""
        os.close(self._cached)
        if self._direct is not None:
            os.close(self._direct)

    def read(self, into: memoryview, offset: int) -> None:
        """Fill a stretch of memory.

        Raises:
            OSError: the file cannot be read, or ends before.
        """
        while into.nbytes:
            done = os.preadv(self._choose(into, offset), [into], offset)
            if not done:
                raise OSError(errno.EIO, f"the file has become shorter than {offset} bytes")
            into, offset = into[done:], offset + done

    def write(self, data: memoryview, offset: int) -> None:
        """Write a stretch of memory.

        Raises:
            OSError: the disk is full, or the file cannot be written.
        """
        while data.nbytes:
            done = os.pwrite(self._choose(data, offset), data, offset)
            data, offset = data[done:], offset + done

    def _choose(self, data: memoryview, offset: int) -> int:
        """Return the descriptor for a stretch: the cached one where it is not of whole pages.

        Memory that begins amid a page ends amid one too, as blocks of keys do.
        """
        if self._direct is None or offset % PAGE or data.nbytes % PAGE:
            return self._cached
        return self._direct


@contextmanager
def channel(path: str, *, write: bool, direct: bool) -> Iterator[Channel]:
    """Open a file for its stretches, and close it in the end."""
    opened = Channel(path, write=write, direct=direct)
    try:
        yield opened
    finally:
        opened.close()
