"""Processes on several hosts that take samples on request: of bsplib, and of an MPI alone."""

from __future__ import annotations

import sys
from functools import partial

from benchmarks.mpi import Peers
from tests.hosts.hosts import Hosts
from tests.hosts.launching import mpiexec, on_ranks_of
from tests.mpi_installations import Mpi


class RanksAcross(Peers):
    """Ranks of an MPI that run the programs of :mod:`benchmarks.mpi_peer`.

    Args:
        hosts: where.
        mpi: the implementation.
        per_host: ranks on each host.

    Raises:
        MpiError: they do not start.
    """

    def __init__(self, hosts: Hosts, mpi: Mpi, per_host: int = 1) -> None:
        nprocs = per_host * len(hosts.names)
        program = sys.executable, "-m", "benchmarks.mpi_peer"
        command = partial(mpiexec, hosts, mpi, nprocs, per_host, *program)
        super().__init__(f"{mpi.title} on {nprocs} ranks across hosts", command, nprocs)


class PoolAcross(Peers):
    """A pool of bsplib, whose driver is on host 0; runs :mod:`benchmarks.programs`.

    Args:
        hosts: where.
        mpi: the implementation that it uses.
        per_host: processes on each host.

    Raises:
        MpiError: it does not start.
    """

    def __init__(self, hosts: Hosts, mpi: Mpi, per_host: int = 1) -> None:
        nprocs = per_host * len(hosts.names)
        program = "-m", "benchmarks.pool_peer", "mpi", nprocs
        command = partial(on_ranks_of, hosts, mpi, per_host, *program)
        super().__init__(f"bsplib on {nprocs} processes across hosts", command, 1)
