"""The backend ``mpi`` in tests outside of ``tests/bsplib``, on an MPI that is chosen."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bsplib.backends.mpi.installations import LIBRARY
from bsplib.backends.mpi.launch import end_kept

from .mpi_installations import MPICH, OPEN_MPI, Mpi

MPIS = {"mpi-mpich": MPICH, "mpi-openmpi": OPEN_MPI}


@contextmanager
def ranks_of(mpi: Mpi) -> Iterator[str]:
    """Let the backend ``mpi`` start ranks of an MPI, which stay until the end of the block.

    Yields:
        The name of the backend.
    """
    if not mpi.is_here():
        pytest.skip(f"{mpi.title} is not installed: pip install -e '.[dev]'")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(LIBRARY, str(mpi.file(mpi.library)))
        for name, value in mpi.environment:
            patch.setenv(name, value)
        yield "mpi"
        end_kept()
