"""Open MPI and MPICH from their wheels, for tests and benchmarks that start programs on them.

:mod:`bsplib.backends.mpi.installations` finds what the wheels install. This module adds what
programs need that are no runs of bsplib: the whole command, and an environment in which they
find this checkout and compare with bsplib under the same conditions.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from bsplib.backends.mpi import installations

_ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Mpi(installations.Mpi):
    """An implementation of MPI that comes as a wheel."""

    environment: tuple[tuple[str, str], ...] = ()

    @property
    def title(self) -> str:
        """Its name together with mpi4py."""
        return f"mpi4py + {self.name}"

    def start(self, nprocs: int, *program: str) -> list[str]:
        """Return the command that starts ranks."""
        return [*self.command(nprocs), "-n", str(nprocs), *program]

    def whole_environment(self, nprocs: int) -> dict[str, str]:
        """Return the environment of the ranks on this computer."""
        crowded = nprocs > len(os.sched_getaffinity(0))
        return {**os.environ, **self.variables(crowded=crowded)}

    def variables(self, *, crowded: bool) -> dict[str, str]:
        """Return what has to be in the environment of the ranks.

        Args:
            crowded: whether there are more ranks than cores.
        """
        return {
            "PYTHONPATH": str(_ROOT),
            "OMP_NUM_THREADS": "1",  # BLAS threads of each rank, as in the processes of bsplib
            "UCX_LOG_LEVEL": "fatal",  # hide warnings about resources that the MPI leaves open
            **super().variables(crowded=crowded),
            **dict(self.environment),
        }


OPEN_MPI = Mpi(
    **vars(installations.OPEN_MPI),
    environment=(
        ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
        ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
        ("OMPI_MCA_osc", "^ucx"),  # not used by windows in shared memory, but prints warnings
    ),
)
MPICH = Mpi(**vars(installations.MPICH))
ALL = (OPEN_MPI, MPICH)
