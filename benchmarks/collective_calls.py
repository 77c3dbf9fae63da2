"""The collectives that are measured, by name, for bsplib and for mpi4py.

Each collective gives the same values in both, and a result that is new each time. The caller
checks the results, so that no figure comes from a program that transfers nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from mpi4py import MPI

    import bsplib

NAMES = ("allreduce", "broadcast", "alltoall")
Numbers = NDArray[np.float64]


def values_of(pid: int, size: int) -> Numbers:
    """Return what a process gives."""
    return np.arange(size) + 100.0 * pid


def expected(name: str, nprocs: int, size: int) -> list[float]:
    """Return the first element of each array that a process gets."""
    firsts = [float(values_of(each, size)[0]) for each in range(nprocs)]
    return {"allreduce": [sum(firsts)], "broadcast": firsts[:1], "alltoall": firsts}[name]


def check(name: str, pid: int, nprocs: int, size: int, found: Any) -> None:
    """Raise unless a process has got the right values."""
    arrays = found if isinstance(found, list) else np.reshape(found, (-1, size))
    got = [float(np.reshape(each, -1)[0]) for each in arrays]
    if got != expected(name, nprocs, size):
        raise AssertionError(f"{name}: process {pid} got {got}")


def on_bsplib(bsp: bsplib.Group, name: str, size: int, *, given: bool = False) -> Callable[[], Any]:
    """Return a collective of bsplib as a function without arguments.

    Args:
        bsp: the group.
        name: of the collective.
        size: elements of an array.
        given: the results go to the same arrays each time.
    """
    own = values_of(bsp.pid, size)
    parts = [own.copy() for _ in range(bsp.nprocs)]
    at_root = bsp.pid == 0
    number: Any = float(own[0]) if size == 1 and not given else own  # as programs write it
    one, whole = (np.empty(size), np.empty((bsp.nprocs, size))) if given else (None, None)
    calls: dict[str, Callable[[], Any]] = {
        "allreduce": lambda: bsp.allreduce(number, out=one),
        "broadcast": lambda: bsp.broadcast(
            own if at_root else None, out=own if given and at_root else one
        ),
        "alltoall": lambda: bsp.alltoall(parts, out=whole),
    }
    return calls[name]


def on_mpi(ranks: MPI.Intracomm, name: str, size: int, *, given: bool = False) -> Callable[[], Any]:
    """Return a collective of mpi4py, on buffers, in the same form."""
    own = values_of(ranks.rank, size)
    parts = np.tile(own, ranks.size)
    reused = {length: np.empty(length) for length in (size, size * ranks.size)} if given else {}

    def into(length: int, call: Callable[[Any], Any]) -> Numbers:
        found = reused[length] if given else np.empty(length)
        call(found)
        return found

    def broadcast() -> Numbers:
        if ranks.rank == 0:
            ranks.Bcast(own)
            return own
        return into(size, ranks.Bcast)

    calls: dict[str, Callable[[], Any]] = {
        "allreduce": lambda: into(size, lambda found: ranks.Allreduce(own, found)),
        "broadcast": broadcast,
        "alltoall": lambda: into(size * ranks.size, lambda found: ranks.Alltoall(parts, found)),
    }
    return calls[name]
