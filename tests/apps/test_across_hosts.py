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
    return tmp_path_factory.mktemp("across")


@pytest.fixture(scope="module")
def elsewhere(folder):
    """Runs an application on this machine, once; returns its results and its trace."""
    done = {}

    def run(name, backend):
        if (name, backend) not in done:
            trace = folder / f"{name}-{backend}.bsp"
            done[name, backend] = applications.run(name, backend, trace), trace
        return done[name, backend]

    return run


@pytest.fixture
def across(hosts, mpi, folder):
    """Runs an application across the hosts; returns its results and its trace."""

    def run(name):
        trace = folder / f"{name}-{mpi.distribution}.bsp"
        try:
            return applications.run_across(hosts, mpi, name, trace), trace
        except subprocess.CalledProcessError as error:
            pytest.fail(f"{name} on {mpi.name}: {error.stderr}")

    return run


def check_page(trace, run):
    """Check that the run opens in a page: all nodes of its call graph, and its hosts."""
    page = trace.with_suffix(".html")
    webui.write_html(read_trace(trace), page)
    text = page.read_text(encoding="utf-8")
    assert all(json.dumps(host) in text for host in run.meta["hosts"])
    assert all(json.dumps(node) in text for node in build(run).graph)


@pytest.mark.lengthy
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", APPLICATIONS)
def test_an_application_across_hosts_is_that_of_one_machine(name, across, elsewhere, hosts):
    results, trace = across(name)
    assert results == elsewhere(name, "shm")[0]
    run, virtual = applications.read(trace), applications.read(elsewhere(name, "sim")[1])
    assert run.complete
    per_host = APPLICATIONS[name].nprocs // HOSTS
    assert run.meta["hosts"] == [host for host in hosts.names for _ in range(per_host)]
    assert applications.centres(run) == applications.centres(virtual)
    moved = applications.bytes_between_hosts(run)
    assert moved >= (MUCH_BYTES if name in ("sort", "fft-cyclic") else 1)
    check_page(trace, run)
