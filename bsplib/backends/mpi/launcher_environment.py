"""Whether this process is one of many that mpiexec, or srun, has started."""

from __future__ import annotations

import os
import sys
from typing import IO, NamedTuple

COMMAND = "BSP_MPIEXEC"
"""Environment variable with the command that starts ranks."""
TAKEN = "BSP_MPI_SEAT_TAKEN"
"""Environment variable of a process that is a rank already, and of all that it starts."""
_VARIABLES = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),  # Open MPI
    ("PMI_RANK", "PMI_SIZE"),  # MPICH, Intel MPI, Cray
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),  # srun
)
"""Environment variables of launchers: the rank of a process, and how many there are."""

INSIDE = "BSP_MPI_INSIDE"
"""Environment variable of rank 0: what ranks of one host exchange through. ``mpi``: through
MPI, as on several hosts; else through shared memory, where they can."""
DIRECT = "BSP_MPI_DIRECT"
"""Environment variable of rank 0: what :func:`most_direct` returns."""
_MOST_DIRECT = 64
"""See PROTOCOL.md, *Meetings of many*."""


def may_share_memory() -> bool:
    """Tell whether the environment lets ranks of one host exchange through shared memory."""
    return os.environ.get(INSIDE) != "mpi"


def most_direct() -> int:
    """Return in how large a group each process sends a head to each other one at a meeting."""
    return int(os.environ.get(DIRECT, _MOST_DIRECT))


class Seat(NamedTuple):
    """The place of this process among those that a launcher has started."""

    rank: int
    size: int


def own_seat() -> Seat | None:
    """Return the place of this process; None where no launcher started it, or it is a rank already.

    The first process of a batch job of Slurm has ``SLURM_PROCID``, too, and is no rank.
    """
    if TAKEN in os.environ:
        return None
    for rank, size in _VARIABLES:
        texts = os.environ.get(rank, ""), os.environ.get(size, "")
        if all(text.isdecimal() for text in texts):
            seat = Seat(*map(int, texts))
            is_batch = rank == "SLURM_PROCID" and "PMIX_RANK" not in os.environ
            return None if seat.size == 1 and is_batch else seat
    return None


def take_seat() -> None:
    """Note that this process is a rank, so that no process which it starts takes its place."""
    os.environ[TAKEN] = "1"


dropped: list[IO[str]] = []
"""The standard output of this process where it is dropped outside ``main``; else nothing."""


def drop_output() -> None:
    """Let only ``main`` print to standard output from now on: rank 0 prints the rest."""
    dropped.append(sys.stdout)
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # up to the end
