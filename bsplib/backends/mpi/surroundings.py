"""Whether this process is one of many that mpiexec, or srun, has started."""

from __future__ import annotations

import os
from typing import NamedTuple

from bsplib.backends.mpi.installations import COMMAND

_VARIABLES = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),  # Open MPI
    ("PMI_RANK", "PMI_SIZE"),  # MPICH, Intel MPI, Cray
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),  # srun
)
"""Environment variables of launchers: the rank of a process, and how many there are."""

INSIDE = "BSP_MPI_INSIDE"
"""Environment variable of the driver: what ranks of one host exchange through. ``mpi``: through
MPI, like others; ``payloads``: as in a run on several hosts, where only payloads go through
shared memory; else through shared memory, where they can."""
DIRECT = "BSP_MPI_DIRECT"
"""Environment variable of rank 0: what :func:`most_direct` returns."""
_MOST_DIRECT = 64
"""See PROTOCOL.md, *Meetings of many*."""


def may_share_memory() -> bool:
    """Tell whether the environment lets ranks of one host exchange through shared memory."""
    return os.environ.get(INSIDE) != "mpi"


def may_share_payloads_only() -> bool:
    """Tell whether the environment lets them exchange only payloads in this way."""
    return os.environ.get(INSIDE) == "payloads"


def most_direct() -> int:
    """Return in how large a group each process sends a head to each other one at a meeting."""
    return int(os.environ.get(DIRECT, _MOST_DIRECT))


class Seat(NamedTuple):
    """The place of this process among those that a launcher has started."""

    rank: int
    size: int


def own_seat() -> Seat | None:
    """Return the place of this process; None where it is alone, or is to start ranks itself."""
    if os.environ.get(COMMAND):
        return None
    for rank, size in _VARIABLES:
        if rank in os.environ and size in os.environ:
            seat = Seat(int(os.environ[rank]), int(os.environ[size]))
            return seat if seat.size > 1 else None
    return None
