"""The table of backends, by name.

:func:`register` adds one. The modules of a backend are imported when it is first used. Other
distributions have backends as entry points of the group ``bsplib.backends``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from bsplib import call_site
from bsplib.backends.launching import MOST_SHARING, Backend, Work
from bsplib.errors import BspError, ProcessRangeError, StartError, UsageError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

DEFAULT: Final = "shm"
"""The backend of a run whose caller names none."""

_Value = TypeVar("_Value")

_backends: dict[str, Backend] = {}


def register(backend: Backend) -> None:
    """Add a backend, or replace the one that has its name."""
    _backends[backend.name] = backend
    if backend.source is not None:
        call_site.add_backend(backend.source)


def names() -> tuple[str, ...]:
    """Return the names of all backends, in the order in which they were registered."""
    return tuple(_backends)


@cache
def others() -> dict[str, EntryPoint]:
    """Return the backends of other distributions, by name. To look for them takes milliseconds."""
    from importlib.metadata import entry_points  # noqa: PLC0415  # as above

    return {each.name: each for each in entry_points(group="bsplib.backends")}


def every_name() -> tuple[str, ...]:
    """Return the names of all backends, and of those of other distributions."""
    return tuple(dict.fromkeys((*names(), *others())))


def virtual_names() -> tuple[str, ...]:
    """Return the names of the backends whose time is virtual."""
    return tuple(name for name, backend in _backends.items() if backend.is_virtual)


def probed_names() -> tuple[str, ...]:
    """Return the names of the backends on which there is something to measure."""
    return tuple(name for name, backend in _backends.items() if backend.probed_over is not None)


def summary() -> str:
    """Return a sentence for help texts that says what each backend is."""
    parts = (f"{backend.name}: {backend.summary}" for backend in _backends.values())
    return f"{'; '.join(parts)}."


def find(name: str) -> Backend:
    """Return the backend of a name, which may be that of another distribution.

    Raises:
        UsageError: there is no such backend.
    """
    if name not in _backends:
        if name not in others():
            known = ", ".join(every_name())
            raise UsageError(f"there is no backend {name!r}; choose one of {known}")
        register(others()[name].load()._replace(name=name))
    return _backends[name]


def own_cores() -> int:
    """Return how many cores this process may use; those of the computer where nothing limits it."""
    if hasattr(os, "sched_getaffinity"):  # on Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def load() -> None:
    """Import what a run on the default backend needs."""
    if sys.platform != "linux":
        return
    import bsplib.backends.shm.launch  # noqa: F401, PLC0415  # loaded late, as below


def _later(backend: str, name: str) -> Callable[..., Any]:
    """Return a function of the module ``launch`` of a backend; a call of it imports the module."""

    def call(*args: Any) -> Any:
        if backend != "sim" and sys.platform != "linux":
            raise StartError(
                f"run: the processes of backend {backend!r} need Linux, and this is "
                f'{sys.platform}; backend="sim" runs the same program in one process'
            )
        return getattr(import_module(f"bsplib.backends.{backend}.launch"), name)(*args)

    return call


def _usual_mpi() -> int:
    """Return the number of ranks that mpiexec has started, or the cores of this computer."""
    from bsplib.backends.mpi import ranks  # noqa: PLC0415  # loaded late, as above

    return own_cores() if ranks.current is None else ranks.current.size


# -- whether this process is one of many that mpiexec, or srun, has started ------------------------


TAKEN = "BSP_MPI_SEAT_TAKEN"
"""Environment variable of a process that is a rank already, and of all that it starts."""
_VARIABLES = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),  # Open MPI
    ("PMI_RANK", "PMI_SIZE"),  # MPICH, Intel MPI, Cray
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),  # srun
)
"""Environment variables of launchers: the rank of a process, and how many there are."""


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


_shown: IO[str] | None = None
"""The standard output of this process where it is dropped outside ``main``; else None."""


def own_rank() -> int:
    """Return the number of this process among those that a launcher has started; 0 where none."""
    if (found := _ranks()) is not None:
        return int(found.rank)
    seat = own_seat()
    return 0 if seat is None else seat.rank


def begin(
    name: str | None, nprocs: int | None, arguments: Sequence[str], command: str | None
) -> None:
    """Let a launcher start the processes of a command that runs programs, where they are ranks.

    It returns in each process that a launcher has started, and where there are to be no ranks.
    What ranks above 0 print to standard output outside ``main`` is dropped from then on.

    Args:
        name: the backend that the command line names; None where it names none.
        nprocs: number of processes that it names.
        arguments: of the command ``bsp``, which the ranks are given, too.
        command: starts ranks; None for the usual one.

    Raises:
        UsageError: the processes of that backend are not those of a launcher.
        StartError: there is no launcher here.
    """
    seat = own_seat()
    if seat is not None and seat.size > 1:
        _check_of_launcher(name, seat.size)
        if seat.rank:
            global _shown  # noqa: PLW0603  # so is the standard output
            _shown = sys.stdout
            sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # up to the end
    elif seat is None and name == "mpi":
        from bsplib.backends.mpi import launch  # noqa: PLC0415

        launch.execute(nprocs or own_cores(), arguments, command)


def backend_for(name: str | None, nprocs: int | None) -> str:
    """Return the backend of a run or a pool.

    Where a launcher has started this process as one of many that all execute the program, these
    are the processes of the run; the first call joins them.

    Args:
        name: the backend that the caller names; None where it names none.
        nprocs: number of processes that the caller names.

    Raises:
        UsageError: the caller asks for other processes than those of the launcher.
        BspError: the processes do not find each other.
    """
    seat, found = own_seat(), _ranks()
    if found is None and (seat is None or (seat.size == 1 and name != "mpi")):
        return name or DEFAULT
    if found is None:
        assert seat is not None  # as above
        _check_of_launcher(name, seat.size, nprocs)
        found = _joined(seat)
    if not found.busy:
        _check_of_launcher(name, found.size, nprocs)
        return "mpi"
    if name == "mpi":
        raise UsageError("run: backend is 'mpi' inside a run on mpi, whose ranks are all busy")
    return name or DEFAULT


def _ranks() -> Any:
    """Return the ranks of which this process is one; None before it has joined them."""
    module = sys.modules.get("bsplib.backends.mpi.ranks")
    return None if module is None else module.current


def _joined(seat: Seat) -> Any:
    """Join the ranks; no process that this one starts takes its place from then on."""
    from bsplib.backends.mpi import ranks  # noqa: PLC0415  # loaded late, as above

    found = ranks.joined(seat.rank, seat.size, _shown)
    os.environ[TAKEN] = "1"
    return found


def _check_of_launcher(name: str | None, size: int, nprocs: int | None = None) -> None:
    """Check that a run can be one of the processes that a launcher has started."""
    if name not in (None, "mpi"):
        raise UsageError(
            f"run: backend is {name!r}, and mpiexec, or srun, has started {size} processes of "
            f"this program, which run it together on mpi: leave the backend out, or start the "
            f"program without it"
        )
    if isinstance(nprocs, int) and nprocs > size:
        raise ProcessRangeError(
            f"run: nprocs is {nprocs}, and mpiexec, or srun, has started {size} processes: leave "
            f"nprocs out, or start as many"
        )


def run_in_ranks(run: Callable[[], _Value], work: Callable[[], Work]) -> _Value:
    """Do a run that :func:`backend_for` has allowed, with all processes that execute the program.

    Args:
        run: does it, in the process that leads the others.
        work: returns what the processes do, in the others.

    Returns:
        What ``run`` returns, in all of them.
    """
    ranks = _ranks()
    if ranks is None or ranks.busy:
        return run()
    value: _Value = ranks.share(run, work)
    return value


def come_to_end() -> None:
    """At the end of a program that a launcher has started: meet the ranks that still run it."""
    seat = own_seat()
    if seat is not None and seat.size > 1:  # it has made no call, and others may wait for one
        _joined(seat)


def end_by(error: BaseException, show: Callable[[], int]) -> int:
    """Show the error that ends a program; where ranks execute it, end them all.

    Args:
        error: what was raised.
        show: shows it, and returns the exit status.
    """
    if _ranks() is None:
        with suppress(BspError):
            come_to_end()  # others may wait there, whom the launcher would not end
    ranks = _ranks()
    return show() if ranks is None else ranks.fail(error, show)


def _medium_of_mpi(hosts: int) -> str:
    from bsplib.backends.mpi.ranks import may_share_memory  # noqa: PLC0415  # loaded late, as above

    return "shared memory of ranks of MPI" if hosts == 1 and may_share_memory() else "MPI"


register(
    Backend(
        name="shm",
        summary="real processes",
        launch=_later("shm", "launch"),
        keep=_later("shm", "keep"),
        most_processes=MOST_SHARING,
        usual_processes=own_cores,
        machine="shared-memory",
        probed_over=lambda _: "shared memory",
    )
)
register(
    Backend(
        name="sim",
        summary="virtual processors in one process",
        launch=_later("sim", "launch"),
        keep=_later("sim", "keep"),
        most_processes=4096,
        usual_processes=own_cores,
        machine="ideal",
        is_virtual=True,
    )
)
register(
    Backend(
        name="mpi",
        summary="ranks of MPI, on one host or many",
        launch=_later("mpi", "launch"),
        keep=_later("mpi", "keep"),
        most_processes=4096,
        usual_processes=_usual_mpi,
        machine="shared-memory",
        probed_over=_medium_of_mpi,
        is_spread=True,
    )
)
