"""The table of backends, by name.

:func:`register` adds one. The modules of a backend are imported when it is first used.
"""

from __future__ import annotations

import os

from bsplib import call_site
from bsplib.backends.launching import Backend, KeptProcesses, Options, Report, Work

DEFAULT = "shm"
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


def _launch_mpi(work: Work, options: Options) -> Report:
    from bsplib.backends.mpi.launch import launch  # noqa: PLC0415

    return launch(work, options)


def _keep_mpi(options: Options) -> KeptProcesses:
    from bsplib.backends.mpi.launch import keep  # noqa: PLC0415

    return keep(options)


register(
    Backend(
        name="shm",
        summary="real processes",
        launch=_launch_shm,
        keep=_keep_shm,
        most_processes=256,
        usual_processes=own_cores,
        machine="shared-memory",
        probed_over="shared memory",
    )
)
register(
    Backend(
        name="sim",
        summary="virtual processors in one process",
        launch=_launch_sim,
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
        usual_processes=own_cores,
        machine="shared-memory",
        probed_over="MPI",
        is_spread=True,
    )
)
