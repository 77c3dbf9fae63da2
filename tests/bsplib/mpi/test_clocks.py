"""Differences of clocks: how they are measured, and what the processes agree on."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from bsplib.backends.mpi import clocks
from bsplib.backends.mpi.clocks import Clocks, Sample, sample
from tests.hosts.launching import mpiexec
from tests.mpi_installations import ALL
from tests.processes import run_command

# -- one round trip -------------------------------------------------------------------------------


def test_the_offset_is_that_of_the_middle_of_the_round_trip_and_its_error_at_most_half_of_it():
    found = sample(1000, 50_150, 1301)
    assert found == Sample(301, 50_150 - 1150)
    assert found.bound_ns == 151


# -- the processes together -----------------------------------------------------------------------


def test_clocks_are_measured_again_only_for_more_processes_or_where_it_is_asked_for():
    each, measured = Clocks(SimpleNamespace(rank=1), lambda: False), []
    each._measured = lambda nprocs: measured.append(nprocs) or (1, 2)
    for nprocs, again in ((1, False), (4, False), (2, False), (4, True), (5, False)):
        alignment = each.align(nprocs, again=again)
    assert measured == [1, 4, 4, 5]
    assert alignment[1:] == (1, 2)


# -- which processes have one clock ---------------------------------------------------------------


def test_a_process_has_the_same_clock_each_time():
    assert clocks.clock_key() == clocks.clock_key()


def test_where_the_system_does_not_tell_each_process_has_a_clock_of_its_own(monkeypatch):
    def nothing(_):
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_bytes", nothing)
    assert clocks.clock_key() != clocks.clock_key()


def test_the_key_can_travel_as_an_array():
    assert np.frombuffer(clocks.clock_key(), np.uint8).shape == (len(clocks.clock_key()),)


# -- across hosts ---------------------------------------------------------------------------------

ALIGN = """
import json, sys
from mpi4py import MPI
from bsplib.backends.mpi.clocks import Clocks

comm = MPI.COMM_WORLD
found = Clocks(comm, lambda: False).align(comm.size, again=False)
everywhere = comm.gather(found)
if comm.rank == 0:
    print(json.dumps(everywhere))
"""
HOSTS_APART_NS = 10**12
"""The clock of each of the test's hosts is so far ahead of that of the one before."""


@pytest.mark.slow
@pytest.mark.lengthy
@pytest.mark.parametrize("mpi", ALL, ids=lambda mpi: mpi.distribution)
def test_the_clocks_of_four_hosts_are_measured_within_the_bound(hosts, mpi):
    if not mpi.is_here():
        pytest.skip(f"{mpi.title} is not installed: pip install -e '.[dev]'")
    line = mpiexec(hosts, mpi, 8, 2, sys.executable, "-c", ALIGN)
    done = run_command(*line)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found[::2] == found[1::2]  # two processes on each host
    assert [host for host, _, _ in found[::2]] == hosts.names
    for number, (_, offset_ns, bound_ns) in enumerate(found[::2]):
        assert abs(offset_ns + number * HOSTS_APART_NS) <= bound_ns
        # A message takes at least 1 ms each way, and no bound can be better than that.
        assert (bound_ns >= 10**6) == (number > 0)
