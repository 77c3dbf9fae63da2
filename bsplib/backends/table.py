"""The table of backends, by name.

:func:`register` adds one. The modules of a backend are imported when it is first used.
"""

from __future__ import annotations

import os
from typing import Final

from bsplib import call_site
from bsplib.backends.launching import Backend, KeptProcesses, Options, Report, Work

DEFAULT: Final = "shm"
"""The backend of a run whose caller names none."""

_backends: dict[str, Backend] = {}


def register(backend: Backend) -> None:
    """Add a backend, or replace the one that has its name."""
    _backends[backend.name] = backend
    if backend.source is not None:
        call_site.add_backend(backend.source)


def names() -> tuple[str, ...]:
    """Return the names of all backends, in the order in which they were registered."""
    return tuple(_backends)


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
    """Return the backend of a name.

    Raises:
        KeyError: there is no such backend.
    """
    return _backends[name]


def own_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0))


def _launch_shm(work: Work, options: Options) -> Report:
    from bsplib.backends.shm.launch import launch  # noqa: PLC0415  # loaded lazily, see above

    return launch(work, options)


def _keep_shm(options: Options) -> KeptProcesses:
    from bsplib.backends.shm.launch import keep  # noqa: PLC0415

    return keep(options)


def _launch_sim(work: Work, options: Options) -> Report:
    from bsplib.backends.sim.launch import launch  # noqa: PLC0415

    return launch(work, options)


def _keep_sim(options: Options) -> KeptProcesses:
    from bsplib.backends.sim.launch import keep  # noqa: PLC0415

    return keep(options)


def _launch_mpi(work: Work, options: Options) -> Report:
    from bsplib.backends.mpi.launch import launch  # noqa: PLC0415

    return launch(work, options)


def _keep_mpi(options: Options) -> KeptProcesses:
    from bsplib.backends.mpi.launch import keep  # noqa: PLC0415

    return keep(options)


def _usual_mpi() -> int:
    """Return the number of ranks that mpiexec has started, or the cores of this computer."""
    from bsplib.backends.mpi import foreign  # noqa: PLC0415

    return own_cores() if foreign.current is None else foreign.current.size


def enter(name: str | None) -> str:
    """Where a launcher has started this process as one of many, serve as one of a run's.

    It returns in the process that runs the program, which is that of rank 0.

    Args:
        name: the backend that the command line names; None where it names none.

    Returns:
        A sentence for the user, where each process runs a copy of the program; empty if not.
    """
    if name == "mpi":
        from bsplib.backends.mpi import foreign  # noqa: PLC0415

        foreign.enter()
        return ""
    from bsplib.backends.mpi.surroundings import own_seat  # noqa: PLC0415

    seat = own_seat()
    if seat is None or seat.rank:
        return ""
    return (
        f"bsplib: {seat.size} copies of this program run, each by itself; to run it once on all "
        f"these processes: bsp run --backend mpi"
    )


def _medium_of_mpi(hosts: int) -> str:
    from bsplib.backends.mpi.surroundings import may_share_memory  # noqa: PLC0415

    return "shared memory of ranks of MPI" if hosts == 1 and may_share_memory() else "MPI"


register(
    Backend(
        name="shm",
        summary="real processes",
        launch=_launch_shm,
        keep=_keep_shm,
        most_processes=256,
        usual_processes=own_cores,
        machine="shared-memory",
        probed_over=lambda _: "shared memory",
    )
)
register(
    Backend(
        name="sim",
        summary="virtual processors in one process",
        launch=_launch_sim,
        keep=_keep_sim,
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
        launch=_launch_mpi,
        keep=_keep_mpi,
        most_processes=4096,
        usual_processes=_usual_mpi,
        machine="shared-memory",
        probed_over=_medium_of_mpi,
        is_spread=True,
    )
)
