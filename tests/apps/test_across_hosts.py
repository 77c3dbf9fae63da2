"""The applications on MPI, across four hosts with 1 ms and 1 Gbit/s between them.

They return what they return over shared memory, bit by bit, and move what they move in the
simulator: their records have the same h at every cost centre.
"""

from __future__ import annotations

import json
import subprocess

import pytest

from bsplib import webui
from bsplib.profiler.callgraph import build
from bsplib.recording.trace import read_trace
from tests.hosts import applications
from tests.hosts.applications import APPLICATIONS, HOSTS
from tests.mpi_installations import ALL

MUCH_BYTES = 100e6


@pytest.fixture(params=ALL, ids=lambda mpi: mpi.distribution)
def mpi(request):
    if not request.param.is_here():
        pytest.skip(f"{request.param.title} is not installed: pip install -e '.[dev]'")
    return request.param


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One for all runs: they share the files of the relations."""
    return tmp_path_factory.mktemp("across")


@pytest.fixture(scope="module")
def elsewhere(folder):
    """Runs an application on this machine, once; returns its outcome and its trace."""
    done = {}

    def run(name, size, backend):
        if (name, size, backend) not in done:
            trace = folder / f"{name}-{size}-{backend}.bsp"
            done[name, size, backend] = applications.run(name, size, backend, trace), trace
        return done[name, size, backend]

    return run


@pytest.fixture
def across(hosts, mpi, folder):
    """Runs an application across the hosts; returns its outcome and its trace."""

    def run(name, size):
        trace = folder / f"{name}-{size}-{mpi.distribution}.bsp"
        try:
            return applications.run_across(hosts, mpi, name, size, trace), trace
        except subprocess.CalledProcessError as error:
            pytest.fail(f"{name} on {mpi.name}: {error.stderr}")

    return run


def check(name, size, across, elsewhere, hosts):
    outcome, trace = across(name, size)
    assert outcome.results == elsewhere(name, size, "shm")[0].results
    run, virtual = applications.read(trace), applications.read(elsewhere(name, size, "sim")[1])
    assert run.complete
    per_host = APPLICATIONS[name].nprocs // HOSTS
    assert run.meta["hosts"] == [host for host in hosts.names for _ in range(per_host)]
    assert applications.centres(run) == applications.centres(virtual)
    check_page(trace, run)
    return applications.bytes_between_hosts(run)


def check_page(trace, run):
    """Check that the run opens in a page: all nodes of its call graph, and its hosts."""
    page = trace.with_suffix(".html")
    webui.write_html(read_trace(trace), page)
    text = page.read_text(encoding="utf-8")
    assert all(json.dumps(host) in text for host in run.meta["hosts"])
    assert all(json.dumps(node) in text for node in build(run).graph)


@pytest.mark.lengthy
@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in APPLICATIONS if name != "figure-3"])
def test_a_small_application_across_hosts_is_that_of_one_machine(name, across, elsewhere, hosts):
    assert 0 < check(name, "small", across, elsewhere, hosts) < MUCH_BYTES


@pytest.mark.lengthy
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", APPLICATIONS)
def test_an_application_that_moves_much_across_hosts_is_that_of_one_machine(
    name, across, elsewhere, hosts
):
    assert check(name, "large", across, elsewhere, hosts) >= MUCH_BYTES
