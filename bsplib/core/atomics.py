"""What the interpreted and the compiled core do in different ways: memory, clocks, arrays.

This file is the interpreted form; ``atomics.pxd`` has the same functions in C, and a
compiled module takes those. All other modules of this package have one source for both.

Memory is named by its address, an integer. A **word** has eight bytes. :func:`load` and
:func:`store` are for words by which processes see each other: what a process wrote before
a store is visible to every process whose load has found the stored value (release and
acquire). :func:`peek` and :func:`poke` are for words that only one process uses at a time.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys
import threading
import time
from functools import lru_cache
from typing import Any, cast

import numpy as np

STORES_IN_ORDER = platform.machine().lower() in {"x86_64", "amd64", "i386", "i686"}
"""Total store order: of all pairs of accesses, only a store and a later load may swap."""

FLOAT, INTEGER = 1, 2
"""Kinds of dtypes whose single elements can be given as Python numbers."""

_MOST_OF_NUMPY = np.dtype(np.half).num
_SWAPPED = 32

_BOTH_ENDS = 128
"""Bytes of the new destination of a get that are filled."""

_MASK = (1 << 64) - 1
_SYS_FUTEX = {"x86_64": 202, "aarch64": 98, "riscv64": 98}.get(
    platform.machine() if sys.platform == "linux" else ""
)
_FUTEX_WAIT, _FUTEX_WAKE = 0, 1

_word_at = ctypes.c_uint64.from_address
_memmove = ctypes.memmove


def full_fence() -> None:
    """Complete all earlier loads and stores, visibly, before any later one.

    Python has no fence instruction. A lock that is released and acquired again is one.
    """
    lock = threading.Lock()
    lock.acquire()
    lock.release()
    lock.acquire()


def load(address: int) -> int:
    """Return a word; what its writer wrote before it is visible from now on (acquire)."""
    value: int = _word_at(address).value
    if not STORES_IN_ORDER:
        full_fence()
    return value


def store(address: int, value: int) -> None:
    """Write a word, after everything that this process has written before (release)."""
    if not STORES_IN_ORDER:
        full_fence()
    _word_at(address).value = value


def peek(address: int) -> int:
    """Return a word that no other process writes at present."""
    value: int = _word_at(address).value
    return value


def peek_half(address: int) -> int:
    """Return four bytes that no other process writes at present, as a number from 0 on."""
    value: int = ctypes.c_uint32.from_address(address).value
    return value


def poke(address: int, value: int) -> None:
    """Write a word at which no other process looks at present."""
    _word_at(address).value = value


def copy(to: int, source: int, nbytes: int) -> None:
    """Copy bytes from one address to another; the two may overlap."""
    _memmove(to, source, nbytes)


def copy_out(to: int, source: int, nbytes: int) -> None:
    """Do as :func:`copy` where another process reads the copy, and this one hardly ever does.

    Once :func:`store` has told another process of the copy, it finds all bytes.
    """
    _memmove(to, source, nbytes)


def compiler_fence() -> None:
    """Keep the compiler from moving a load before an earlier store; nothing to do here."""


def relax() -> None:
    """Tell the core that this process looks at a word again and again."""


def give_way() -> None:
    """Let another process run on this core."""
    os.sched_yield()


def this_thread() -> int:
    """Return the number of the present thread, as ``threading.get_ident`` does."""
    return threading.get_ident()


def now_ns() -> int:
    """Return the time of the clock of ``time.perf_counter_ns``."""
    return time.perf_counter_ns()


def cpu_ns() -> int:
    """Return the CPU time of this thread."""
    return time.thread_time_ns()


def rounded(value: float) -> int:
    """Return the nearest integer; of two that are equally near, the even one."""
    return round(value)


def bit_length(value: int) -> int:
    """Return how many bits a number has that is greater than 0."""
    return value.bit_length()


def wrapped(value: int) -> int:
    """Return a number modulo 2**64, as an address is computed."""
    return value & _MASK


# -- sleeping ---------------------------------------------------------------------------------

if _SYS_FUTEX is not None:
    _waits = ctypes.CDLL(None, use_errno=True).syscall
    _waits.restype = ctypes.c_long
    _never_waits = ctypes.PyDLL(None).syscall
    _never_waits.restype = ctypes.c_long
_pack_time = struct.Struct("qq").pack


def sleep_while(address: int, value: int, nanoseconds: int) -> None:
    """Sleep until another process calls :func:`wake_up`, unless a word has changed.

    It also returns after a time, when a signal has come, and sometimes without a reason.

    Args:
        address: of the word; its lower half is compared.
        value: what the word was.
        nanoseconds: how long to sleep at most.
    """
    if _SYS_FUTEX is None:
        time.sleep(min(nanoseconds, 1_000_000) * 1e-9)
        return
    until = _pack_time(*divmod(nanoseconds, 1_000_000_000))
    where, low = ctypes.c_void_p(address), ctypes.c_uint32(value & 0xFFFFFFFF)
    _waits(_SYS_FUTEX, where, _FUTEX_WAIT, low, until, None, 0)


def wake_up(address: int) -> None:
    """Change a word, and wake the process that sleeps until it changes."""
    word = _word_at(address)
    word.value = word.value + 1 & _MASK
    if _SYS_FUTEX is not None:
        _never_waits(_SYS_FUTEX, ctypes.c_void_p(address), _FUTEX_WAKE, 1, None, None, 0)


# -- arrays -----------------------------------------------------------------------------------


def prepare() -> None:
    """Do what a compiled module needs before it uses arrays."""


def is_array(value: Any) -> bool:
    """Tell whether a value is a numpy array, and of no subclass."""
    return type(value) is np.ndarray


def base_of(array: Any) -> Any:
    """Return the object in whose memory a view lies; None if the memory is its own."""
    return array.base


def address_of(array: Any) -> int:
    """Return the address of the first element of an array."""
    return cast(int, array.__array_interface__["data"][0])


def nbytes_of(array: Any) -> int:
    """Return the bytes of the elements of an array."""
    return cast(int, array.nbytes)


def itemsize_of(array: Any) -> int:
    """Return the bytes of one element."""
    return cast(int, array.itemsize)


def ndim_of(array: Any) -> int:
    """Return the number of axes."""
    return cast(int, array.ndim)


def length_of(array: Any, axis: int) -> int:
    """Return the number of elements along an axis."""
    return cast(int, array.shape[axis])


def stride_of(array: Any, axis: int) -> int:
    """Return the bytes from one element to the next along an axis."""
    return cast(int, array.strides[axis])


def is_boolean(array: Any) -> bool:
    """Tell whether the elements of an array are truth values."""
    return cast(bool, array.dtype.kind == "b")


def is_packed(array: Any) -> bool:
    """Tell whether the elements are contiguous, in C order."""
    return cast(bool, array.flags.c_contiguous)


def is_writable(array: Any) -> bool:
    """Tell whether a program may write into an array."""
    return cast(bool, array.flags.writeable)


def owns_memory(array: Any) -> bool:
    """Tell whether the memory of an array is no other array's."""
    return cast(bool, array.flags.owndata)


def is_of(array: Any, dtype: Any) -> bool:
    """Tell whether the dtype of an array is this object; an equal one may be another object."""
    return array.dtype is dtype


def same_form(one: Any, other: Any) -> bool:
    """Tell whether two arrays have the same elements, in the same shape, and one dtype object."""
    return (
        one.dtype is other.dtype
        and one.shape == other.shape
        and one.strides == other.strides
        and address_of(one) == address_of(other)
    )


def form_of(array: Any) -> int:
    """Return type number and byte order of an array of numbers in one word; 0 for other arrays."""
    dtype = array.dtype
    if dtype.num > _MOST_OF_NUMPY or dtype.kind not in "biufc" or dtype.metadata is not None:
        return 0
    return cast(int, dtype.num + 1 + (0 if dtype.isnative else _SWAPPED))


def same_shape(one: Any, other: Any) -> bool:
    """Tell whether two arrays have the same shape."""
    return cast(bool, one.shape == other.shape)


def packed(array: Any) -> Any:
    """Return an array with these elements, contiguous in C order."""
    return np.ascontiguousarray(array)


def new_like(array: Any) -> Any:
    """Return a new array of the shape and dtype of another one, in C order."""
    return np.empty(array.shape, array.dtype)


def copied(array: Any) -> Any:
    """Return a copy of an array, in C order."""
    return array.copy()


@lru_cache(maxsize=256)
def filler(dtype: Any) -> Any:
    """Return an element that a get has not written yet.

    It is not a number, the least integer, the greatest one without a sign, True, or U+FFFD in a
    string; otherwise all its bits are set.
    """
    if dtype.kind in "imM" and dtype.isnative:
        return np.array(-1 << 8 * dtype.itemsize - 1, f"i{dtype.itemsize}").view(dtype)
    if dtype.kind == "U":
        return np.array("\ufffd" * (dtype.itemsize // 4), dtype)
    if dtype.kind == "b":
        return np.array(True)
    return np.full(dtype.itemsize, 0xFF, np.uint8).view(dtype)[0]


def fill_new(array: Any) -> None:
    """Fill both ends of the new destination of a get, so that early reads are seen.

    An array of up to 128 bytes is filled as a whole; of a larger one the first 64 bytes and some
    64 at the end, since more would make gets slower.
    """
    nbytes, itemsize = array.nbytes, array.itemsize
    if nbytes == 0:
        return
    values = array.reshape(-1)
    if nbytes <= _BOTH_ENDS:
        values[:] = filler(array.dtype)
        return
    count = max(_BOTH_ENDS // 2 // itemsize, 1)
    values[:count] = values[-count:] = filler(array.dtype)


# -- numbers and bytes --------------------------------------------------------------------------


def small_integer(value: Any) -> int:
    """Return an int, or numpy's int64, of 0 or more that fits into 62 bits; -1 for others."""
    if type(value) not in (int, np.int64) or not 0 <= value < 1 << 62:
        return -1
    return int(value)


def fits(kind: int, value: Any) -> bool:
    """Tell whether a value is a Python number, or numpy's, of such a kind."""
    if kind == FLOAT:
        return type(value) in (float, np.float64)
    return kind == INTEGER and type(value) in (int, np.int64) and -(1 << 63) <= value < 1 << 63


def write_number(address: int, kind: int, value: Any) -> None:
    """Write a number that :func:`fits` as the element of an array."""
    if kind == FLOAT:
        ctypes.c_double.from_address(address).value = value
    else:
        ctypes.c_int64.from_address(address).value = int(value)


def bytes_at(address: int, nbytes: int) -> bytes:
    """Return a copy of memory."""
    return ctypes.string_at(address, nbytes)


def bytearray_at(address: int, nbytes: int) -> bytearray:
    """Return a copy of memory that can be written."""
    return bytearray((ctypes.c_char * nbytes).from_address(address))


def write_bytes(address: int, data: bytes) -> None:
    """Write bytes into memory, for another process as :func:`copy_out` does."""
    _memmove(address, data, len(data))


def new_array(shape: Any, dtype: Any, data: bytes) -> Any:
    """Return a new array of some shape with a copy of bytes as its elements."""
    return np.ndarray(shape, dtype, bytearray(data))


def array_at(shape: Any, dtype: Any, address: int, nbytes: int) -> Any:
    """Return memory as an array that nobody may change; it is valid as long as the memory."""
    memory = (ctypes.c_ubyte * nbytes).from_address(address)
    values = np.ndarray(shape, dtype, memoryview(memory))
    values.flags.writeable = False
    return values


def number_in(data: bytes, kind: int) -> Any:
    """Return the number whose element in an array has these bytes."""
    return struct.unpack("=d" if kind == FLOAT else "=q", data)[0]
