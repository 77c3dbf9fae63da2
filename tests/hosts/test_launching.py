"""Both MPIs start ranks across hosts, with the hosts' agent in place of ssh."""

from __future__ import annotations

import json
import sys

import pytest

from tests.bsplib.phases import eventually
from tests.hosts.launching import mpiexec
from tests.mpi_installations import ALL
from tests.processes import run_command

NAMES = """
import json, os
from mpi4py import MPI
here = MPI.Get_processor_name(), MPI.get_vendor()[0]
found = MPI.COMM_WORLD.allgather(here)
if MPI.COMM_WORLD.rank == 0:
    print(json.dumps(found))
"""


@pytest.mark.lengthy
@pytest.mark.parametrize("per_host", [1, 2])
@pytest.mark.parametrize("mpi", ALL, ids=lambda mpi: mpi.distribution)
def test_ranks_of_all_hosts_tell_each_other_where_they_are(hosts, mpi, per_host):
    if not mpi.is_here():
        pytest.skip(f"{mpi.title} is not installed: pip install -e '.[dev]'")
    nprocs = 4 if per_host == 1 else 3  # with 2 on a host, the last one has fewer
    line = mpiexec(hosts, mpi, nprocs, per_host, sys.executable, "-c", NAMES)
    done = run_command(*line)
    assert done.returncode == 0, done.stderr
    names = [hosts.names[rank // per_host] for rank in range(nprocs)]
    assert json.loads(done.stdout) == [[name, mpi.name] for name in names]
    assert eventually(lambda: not any(map(hosts.processes_left, range(4))))
    assert not any(map(hosts.shared_memory_left, range(4)))
