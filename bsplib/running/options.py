"""The types of the options of a run, for programs that a type checker reads."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal, TypedDict

if TYPE_CHECKING:
    from bsplib.machine import Machine


BackendName = Literal["shm", "sim", "mpi"]
"""The backends that come with bsplib."""
Wait = Literal["auto", "spin", "block"]
"""How real processes wait for each other."""
StartMethod = Literal["fork", "forkserver", "spawn"]
"""How real processes are started."""


class RunOptions(TypedDict, total=False):
    """The keywords of :func:`bsplib.run` that it does not give to ``main``."""

    nprocs: int | None
    backend: BackendName | None
    profile: str | os.PathLike[str] | None
    lines: bool
    machine: Machine | str | None
    check: bool
    wait: Wait
    start_method: StartMethod | None
    sim_seed: int
    timeout: float | None
