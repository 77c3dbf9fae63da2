"""Read-only input of runs in memory that all processes of this host map.

:func:`shared` copies an array into a file that has no name and lives in memory. Forked
processes inherit its mapping. To all others the job of a run brings its name instead of the
values, by which they find the file among those of the calling process, and map it.
"""

from __future__ import annotations

import contextlib
import copyreg
import functools
import io
import mmap
import os
import pickle
import time
import weakref
from collections import ChainMap
from collections.abc import Callable
from types import CodeType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bsplib.backends.launching import Carrier
from bsplib.errors import DtypeError, OutOfSharedMemoryError, StartError
from bsplib.transfers.casting import as_array

with contextlib.suppress(ImportError):  # not on Windows, where no processes share memory
    import fcntl

_Array = NDArray[Any]


class _Memory(mmap.mmap):
    """The file, mapped for reading."""

    name: str
    """No other memory has it, on any host."""
    process: int
    """Number in the system of the process that has made the file, and keeps it open."""


_NAME = "bsplib-shared-"
_WAIT_S = 0.002
"""Seconds between two looks for the copy that another process makes."""
_mapped: weakref.WeakValueDictionary[str, _Memory] = weakref.WeakValueDictionary()
"""All files that this process has mapped, by name."""


def shared(array: ArrayLike) -> _Array:
    """Return an array in shared memory, as read-only input of runs.

    Give the result to ``run`` or to a pool as an argument, and drop the original: the values
    are copied here, once, and no run copies them again, however its processes are started.
    Views of the result are shared in the same way. Its memory is that of the system, not that
    of /dev/shm, and is freed when no process uses it any more. Ranks of MPI on other hosts than
    the caller share a copy on each host, which each run makes anew.

    Args:
        array: what ``numpy.asarray`` takes, of any dtype without Python objects. What is in
            shared memory already is returned as it is.

    Returns:
        A read-only array with the same values.

    Raises:
        DtypeError: the dtype holds Python objects, or it is a masked array.
        OutOfSharedMemoryError: there is no memory for the copy.
    """
    values = as_array("shared", array)
    if values.dtype.hasobject:
        raise DtypeError(
            f"shared: dtype {values.dtype} holds Python objects, which processes cannot share; "
            f"pass them as an ordinary argument"
        )
    if _memory_of(values) is not None:
        return values
    if not hasattr(os, "memfd_create"):  # macOS and Windows: virtual processors are in this process
        copy = values.copy()
        copy.flags.writeable = False
        return copy
    memory = _filled(values, os.urandom(8).hex())
    return np.ndarray(values.shape, values.dtype, memory)


def _filled(values: _Array, name: str) -> _Memory:
    """Copy values into a new file, in C order, which nobody can write any more."""
    nbytes = max(values.nbytes, 1)
    descriptor = os.memfd_create(f"{_NAME}{name}", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        _reserve(descriptor, nbytes)
        with mmap.mmap(descriptor, nbytes) as writable:
            np.ndarray(values.shape, values.dtype, writable)[...] = values
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)
        memory = _map(descriptor, name, os.getpid())
    except BaseException:
        os.close(descriptor)
        raise
    weakref.finalize(memory, os.close, descriptor)  # others open it as long as it is used here
    return memory


def _reserve(descriptor: int, nbytes: int) -> None:
    """Give a file its pages, so that a lack of memory is an error and not a signal."""
    free = _available()
    if nbytes <= free:  # or the system would end processes, this one perhaps, to find memory
        with contextlib.suppress(OSError):
            os.posix_fallocate(descriptor, 0, nbytes)
            return
    raise OutOfSharedMemoryError(
        f"shared: {nbytes} bytes are needed and the system has {free} free; share a smaller "
        f"array, or let each process read its part from a file (numpy.memmap)"
    )


def _available() -> int:
    """Return the number of bytes that the system can give without swapping."""
    with open("/proc/meminfo", encoding="ascii") as file:
        lines = dict(line.split(":", 1) for line in file)
    return int(lines["MemAvailable"].split()[0]) << 10


def _map(descriptor: int, name: str, process: int) -> _Memory:
    memory = _Memory(descriptor, os.fstat(descriptor).st_size, access=mmap.ACCESS_READ)
    memory.name, memory.process = name, process
    _mapped[name] = memory
    return memory


def _memory_of(array: _Array) -> _Memory | None:
    """Return the memory of a shared array or of a view of one; None for all others."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    return base if isinstance(base, _Memory) else None


# -- the way to other processes -----------------------------------------------------------------


def are_mapped() -> bool:
    """Tell whether this process has any shared array."""
    return bool(_mapped)


def pickled(value: Any, carrier: Carrier | None = None) -> bytes:
    """Pickle a job, or arguments, as cloudpickle does, but shared arrays by their names.

    Args:
        value: what is pickled.
        carrier: the process that brings the values to the host on which it is unpickled; None
            for this host.
    """
    return _dumped(value, _pickler(carrier, by_name=False))


def pickled_by_name(value: Any, carrier: Carrier | None = None) -> bytes:
    """Pickle a job as the module pickle does, but shared arrays by their names."""
    if not _mapped:
        return pickle.dumps(value, 5)
    return _dumped(value, _pickler(carrier, by_name=True))


def _dumped(value: Any, pickler: type[Any]) -> bytes:
    file = io.BytesIO()
    pickler(file, 5).dump(value)
    return file.getvalue()


@functools.lru_cache(maxsize=4)  # to make a class takes as long as to pickle a small job
def _pickler(carrier: Carrier | None, *, by_name: bool) -> type[Any]:
    """Return a class that pickles shared arrays by their names."""
    reduced: dict[type, Any] = {np.ndarray: functools.partial(_reduced, carrier=carrier)}
    if by_name:
        kind, table = pickle.Pickler, copyreg.dispatch_table
    else:
        import cloudpickle  # noqa: PLC0415  # a run of forked processes pickles no program

        kind, table = cloudpickle.Pickler, cloudpickle.Pickler.dispatch_table
        reduced[CodeType] = functools.partial(_reduced_code, reduce=table[CodeType])
    return type("Pickler", (kind,), {"dispatch_table": ChainMap(reduced, table)})


def _reduced_code(code: CodeType, reduce: Callable[[CodeType], tuple[Any, Any]]) -> Any:
    """Keep the file of a function, by which errors name its lines."""
    _, parts = reduce(code)
    return _code_in_file, (parts, code.co_filename)


def _reduced(array: _Array, carrier: Carrier | None) -> Any:
    """Return how an array is pickled, by its name if it is shared."""
    memory = _memory_of(array)
    if memory is None:
        return array.__reduce_ex__(5)
    first = np.frombuffer(memory, np.uint8).__array_interface__["data"][0]
    offset = array.__array_interface__["data"][0] - first
    if carrier is not None:
        import hashlib  # noqa: PLC0415  # only processes on several hosts need it

        part = f"{offset} {array.shape} {array.strides} {array.dtype}"
        name = f"{memory.name}-{hashlib.sha256(part.encode()).hexdigest()[:16]}"
        data = None
        if carrier.brings:
            packed = np.ascontiguousarray(array)
            data = pickle.PickleBuffer(packed.reshape(-1).view(np.uint8).data)
        return _carried_to_host, (name, carrier.os_pid, data, array.shape, array.dtype)
    place = memory.process, memory.name
    return _found, (*place, array.shape, array.dtype, offset, array.strides)


def _code_in_file(parts: tuple[Any, ...], file: str) -> CodeType:
    """Return the code of a function; cloudpickle leaves out its file from version 3.1.3 on."""
    return CodeType(*parts).replace(co_filename=file)


def _carried_to_host(
    name: str, os_pid: int, data: bytes | None, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> _Array:
    """Return an array of which one process of each host gets the values.

    Args:
        name: of the copy on this host.
        os_pid: the process that makes it.
        data: the values, in that process.
        shape: of the array.
        dtype: of the array.
    """
    memory = _mapped.get(name)
    if memory is None and data is not None:
        memory = _filled(np.ndarray(shape, dtype, bytes(data)), name)
    return np.ndarray(shape, dtype, memory or _opened(os_pid, name, waits=True))


def _found(
    os_pid: int,
    name: str,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    offset: int,
    strides: tuple[int, ...],
) -> _Array:
    """Return the array in a part of a file that another process has."""
    memory = _mapped.get(name) or _opened(os_pid, name)
    return np.ndarray(shape, dtype, memory, offset, strides)


def _opened(os_pid: int, name: str, *, waits: bool = False) -> _Memory:
    """Map the file of another process of this host.

    Args:
        os_pid: the process.
        name: of the memory.
        waits: the process may be about to make the file.
    """
    folder = f"/proc/{os_pid}/fd"
    while True:
        try:
            numbers = os.listdir(folder)
        except OSError as error:
            raise StartError(
                f"shared: process {os.getpid()} cannot open a shared array of process "
                f"{os_pid} ({error.strerror}); keep the array until the run has ended, or pass it "
                f"without bsplib.shared"
            ) from None
        for number in numbers:
            with contextlib.suppress(OSError):  # it was closed meanwhile
                file = f"{folder}/{number}"
                if os.readlink(file).startswith(f"/memfd:{_NAME}{name} "):
                    return _complete(file, name, os_pid)
        if not waits:
            raise StartError(
                f"shared: the memory of a shared array of process {os_pid} was freed before this "
                f"process used it; keep the array until the run has ended"
            )
        time.sleep(_WAIT_S)


def _complete(file: str, name: str, os_pid: int) -> _Memory:
    """Map a file of another process.

    Raises:
        BlockingIOError: the process still writes it.
    """
    descriptor = os.open(file, os.O_RDONLY)
    try:
        if not fcntl.fcntl(descriptor, fcntl.F_GET_SEALS) & fcntl.F_SEAL_WRITE:
            raise BlockingIOError
        return _map(descriptor, name, os_pid)
    finally:
        os.close(descriptor)
