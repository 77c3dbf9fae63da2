"""Command lines that start an MPI program across hosts, with their agent in place of ssh."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence

from tests.hosts import link
from tests.hosts.hosts import Hosts
from tests.mpi_installations import MPICH, OPEN_MPI, Mpi


def mpiexec(
    hosts: Hosts,
    mpi: Mpi,
    nprocs: int,
    per_host: int,
    *program: object,
) -> list[str]:
    """Return the command line, for this machine, that starts ranks on hosts.

    Of the caller's environment it needs ``HOME`` only. Ranks 0 to ``per_host - 1`` are on host 0,
    and so on.

    Args:
        hosts: where.
        mpi: the implementation; it has to be installed.
        nprocs: number of ranks.
        per_host: ranks on each host; the last one may have fewer.
        program: a program and its arguments.

    Raises:
        ValueError: there are fewer hosts than this takes.
    """
    needed = -(-nprocs // per_host)
    if needed > len(hosts.names):
        raise ValueError(
            f"{nprocs} ranks, {per_host} on each host, need {needed} hosts: "
            f"there are {len(hosts.names)}"
        )
    # Each host takes itself to be alone on the cores, which all of them share.
    variables = mpi.variables(crowded=True)
    options = _OPTIONS[mpi.name](hosts, hosts.names[:needed], per_host, variables)
    start = mpi.start(nprocs, *options, *map(str, program))
    settings = [f"{name}={value}" for name, value in variables.items()]
    return hosts.on(0, "env", *settings, *start)


def on_ranks_of(
    hosts: Hosts, mpi: Mpi, per_host: int, *program: object, count: int | None = None
) -> list[str]:
    """Return the command line that runs a program of bsplib in ranks on the hosts.

    Args:
        hosts: where.
        mpi: the implementation; it has to be installed.
        per_host: ranks on each host.
        program: what follows ``python`` in the command line of the program.
        count: how many hosts have ranks, the first ones; None: all.
    """
    nprocs = per_host * (count or len(hosts.names))
    run = (sys.executable, "-m", "bsplib", "run", "--backend", "mpi")
    return mpiexec(hosts, mpi, nprocs, per_host, *run, *program)


def start_without_hosts(hosts: Hosts, mpi: Mpi) -> list[str]:
    """Return the start of a command line of ``mpiexec``, which says how ranks get to hosts.

    What follows says to which ones, as by ``--hostfile``.
    """
    variables = mpi.variables(crowded=True)
    return [str(mpi.file(mpi.launcher)), *_AGENTS[mpi.name](hosts, variables)]


def _of_open_mpi(
    hosts: Hosts, names: Sequence[str], per_host: int, variables: Mapping[str, str]
) -> list[str]:
    return [
        *_agent_of_open_mpi(hosts, variables),
        *("--host", ",".join(f"{name}:{per_host}" for name in names)),
        *("--map-by", f"ppr:{per_host}:node"),
    ]


def _agent_of_open_mpi(hosts: Hosts, variables: Mapping[str, str]) -> list[str]:
    exported = (name for name in variables if not name.startswith("OMPI_"))  # those are, anyhow
    return [
        *("--prtemca", "plm_ssh_agent", str(hosts.agent)),
        *("--bind-to", "none", "--mca", "btl_tcp_if_include", link.NAME),
        *(word for name in exported for word in ("-x", name)),
    ]


def _of_mpich(
    hosts: Hosts, names: Sequence[str], per_host: int, variables: Mapping[str, str]
) -> list[str]:
    agent = _agent_of_mpich(hosts, variables)
    return [*agent, "-hosts", ",".join(names), "-ppn", str(per_host)]


def _agent_of_mpich(hosts: Hosts, _: Mapping[str, str]) -> list[str]:
    return ["-launcher", "ssh", "-launcher-exec", str(hosts.agent), "-iface", link.NAME]


_OPTIONS: dict[str, Callable[[Hosts, Sequence[str], int, Mapping[str, str]], list[str]]] = {
    OPEN_MPI.name: _of_open_mpi,
    MPICH.name: _of_mpich,
}
_AGENTS: dict[str, Callable[[Hosts, Mapping[str, str]], list[str]]] = {
    OPEN_MPI.name: _agent_of_open_mpi,
    MPICH.name: _agent_of_mpich,
}
