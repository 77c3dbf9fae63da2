"""Lanes: the fast path for repeated puts and gets of an array on another process.

The first put or get of an array on a process goes through :mod:`bsplib.transfers.target`,
with all checks. The facts that hold until registrations change are kept as a :class:`Lane`,
so that later puts and gets check only the dtype and the bounds of their values. Where these
checks are not enough, a method returns False (or 0): target.py then does all checks, and
raises the error if there is one.
"""

from __future__ import annotations

import ctypes
import operator
import struct
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

from bsplib.backends.base import Port
from bsplib.backends.parcels import Payload
from bsplib.errors import BspError
from bsplib.transfers.messages import INLINE, lend_or_pack, pack
from bsplib.transfers.outgoing import Early, Outgoing
from bsplib.transfers.place import Array
from bsplib.transfers.registry import Registration

Out = defaultdict[int, Outgoing]
"""What a process sends to others, by pid."""

_ndarray = np.ndarray
_ONE, _EMPTY = (1,), (0,)
_WAIT_SHIFT = 18
"""For each 256 KiB of values it is checked once more whether the other process is settled: a
short wait takes less time than a second copy of the values."""


class Lane:
    """A registered array as puts and gets of one process find it on another.

    Args:
        port: of the group.
        pid: the other process.
        registration: of the array; announced, and with an array on both processes.
        alone: no other registered array of this process shares memory with it.
    """

    __slots__ = (
        "_address",
        "_dtype",
        "_packs",
        "_pid",
        "_port",
        "_shape",
        "_shared_address",
        "_size",
        "_slot",
        "_step",
        "_there",
    )

    def __init__(self, port: Port, pid: int, registration: Registration, *, alone: bool) -> None:
        array = registration.array
        there = registration.extent_on(pid)
        assert array is not None
        assert there is not None  # see Args
        self._port = port
        self._pid = pid
        self._slot = registration.slot
        self._dtype = array.dtype
        self._shape = array.shape if there.shape == array.shape else None
        self._size = there.size
        self._address = (
            registration.address if alone and array.strides == (array.itemsize,) else None
        )
        self._step = (array.itemsize,)
        self._packs = _packs(array.dtype)
        self._shared_address = there.shared_address
        self._there: Array | None = None

    def put(self, out: Out, src: Any, first: Any, lent: bool = False) -> bool:
        """Accept a put; return False if it needs all checks.

        Args:
            out: where it is added.
            src: the values.
            first: element of the array there at which they begin; None for all of it.
            lent: the values do not change until the superstep has ended, and need not be
                copied.
        """
        if first.__class__ is not int:
            first = self._first(src, first)
        if src.__class__ is _ndarray:
            count = src.size
            if src.dtype is not self._dtype or not 0 <= first <= self._size - count or not count:
                return False
            if count != 1:
                payload = src.tobytes() if src.nbytes <= INLINE else self._staged(src, lent)
                if payload is None:
                    return False
                out[self._pid].add_stretch(self._slot, first, payload)
                return True
            word = src.tobytes()
        else:
            pack_word = self._packs.get(src.__class__)
            if pack_word is None or not 0 <= first < self._size:
                return False
            try:
                word = pack_word(src)
            except struct.error:  # an integer that is too large
                return False
        out[self._pid].add_word(self._slot, first, word)
        return True

    def _staged(self, src: Array, lent: bool) -> Payload | None:
        """Return large values as a payload; None where there is no memory for them."""
        try:
            if lent:
                return lend_or_pack(src, self._port, self._pid)
            return pack(src, self._port.stage, self._pid)
        except BspError:  # target.py tries again, and its error names the line
            return None

    def get(self, out: Out, dst: Any, first: Any) -> int:
        """Accept a get; return its bytes, or 0 if it needs all checks.

        Args:
            out: where it is added.
            dst: where the elements are written.
            first: as for :meth:`put`.
        """
        if dst.__class__ is not _ndarray or dst.dtype is not self._dtype:
            return 0
        if first.__class__ is not int:
            first = self._first(dst, first)
        count = dst.size
        if not (0 <= first <= self._size - count and dst.flags.writeable):
            return 0
        nbytes: int = dst.nbytes
        if nbytes:
            out[self._pid].add_stretch_get(self._slot, first, nbytes)
        return nbytes

    def write(self, out: Out, early: dict[int, Early], src: Any, first: Any) -> bool:
        """Accept an hpput: write the values now if that is possible, otherwise as :meth:`put`.

        Args:
            out: as for :meth:`put`.
            early: where it is counted if the values were written at once.
            src: as for :meth:`put`.
            first: as for :meth:`put`.
        """
        there = self._there
        if there is None and self._shared_address is not None:
            there = self._reach()
        if there is None or src.__class__ is not _ndarray:
            return self.put(out, src, first, True)
        if not self._port.is_settled(self._pid) and not self._settles_soon(src.nbytes):
            return self.put(out, src, first, True)
        if first.__class__ is not int:
            first = self._first(src, first)
        count = src.size
        if src.dtype is not self._dtype or not 0 <= first <= self._size - count or not count:
            return False
        if src.ndim == 1:
            there[first : first + count] = src
        else:
            there[first : first + count].reshape(src.shape)[...] = src
        done = early.get(self._pid)
        if done is None:
            done = early[self._pid] = Early()
        done.puts += 1
        done.bytes_written += src.nbytes
        return True

    def _reach(self) -> Array | None:
        """Find out, once, whether this process can write into the array there directly."""
        assert self._shared_address is not None  # the caller has checked
        nbytes = self._size * self._dtype.itemsize
        room = self._port.reach(self._pid, self._shared_address, nbytes)
        self._there = None if room is None else np.frombuffer(room, self._dtype)
        self._shared_address = None
        return self._there

    def _settles_soon(self, nbytes: int) -> bool:
        """Wait a little until the values can be written, if they are large; tell whether so."""
        is_settled, pid = self._port.is_settled, self._pid
        return any(is_settled(pid) for _ in range(nbytes >> _WAIT_SHIFT))

    def first_of(self, view: Array, src: Any) -> int:
        """Return the element of the array at which a view begins.

        Returns:
            Less than 0 if all checks are needed: the view is no contiguous stretch of one
            axis, or the values have another shape.
        """
        origin, step = self._address, self._step
        if origin is None or view.dtype is not self._dtype or view.strides != step:
            return -1
        shape = src.shape if src.__class__ is _ndarray else _ONE
        if shape != view.shape or shape == _EMPTY:
            return -1
        try:
            first, rest = divmod(_address_of_line(view) - origin, step[0])
        except (TypeError, ValueError):  # a read-only view, or a dtype without buffers
            return -1
        return -1 if rest else first

    def _first(self, src: Any, first: Any) -> int:
        """Return the first element of a put whose offset is no int; see :meth:`first_of`."""
        if first is None:
            return 0 if src.__class__ is _ndarray and src.shape == self._shape else -1
        try:
            return operator.index(first)
        except TypeError:
            return -1


def _address_of_line(view: Array) -> int:
    """Return the address of a contiguous array: three times as fast as ``array.ctypes``."""
    return ctypes.addressof(ctypes.c_char.from_buffer(view))  # type: ignore[arg-type]  # an array is one


def _packs(dtype: np.dtype[Any]) -> dict[type, Callable[[Any], bytes]]:
    """Return functions from a number to its bytes, by its type; only where no cast is needed."""
    if dtype == np.float64 and dtype.isnative:
        return dict.fromkeys((float, np.float64), struct.Struct("=d").pack)
    if dtype == np.int64 and dtype.isnative:
        return dict.fromkeys((int, np.int64), struct.Struct("=q").pack)
    return {}
