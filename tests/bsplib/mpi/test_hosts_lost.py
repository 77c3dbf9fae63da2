"""A host that is stopped, cut off or switched off during a run is named; nothing is left of it."""

from __future__ import annotations

import re
import subprocess
import sys
import time

import pytest

from tests.hosts.launching import on_ranks_of
from tests.mpi_installations import ALL

pytestmark = [pytest.mark.slow, pytest.mark.timeout(90)]

LOST = 2
NAMED_S = 10.0
"""Seconds within which a host that is lost has to be named."""
LEFT_S = 10.0
"""Seconds for the ranks of a host that is cut off, which have to find out by themselves."""
PROGRAM = """
import time
import bsplib

def main(bsp):
    bsp.sync()
    if bsp.pid == 0:
        print("runs", flush=True)
    while True:
        bsp.sync()

def short(bsp):
    bsp.sync()
    return bsp.pid

if __name__ == "__main__":
    try:
        bsplib.run(main, nprocs=4, backend="mpi")
    except bsplib.ProcessDiedError as error:
        print(error, flush=True)
    input()
    print(bsplib.run(short, nprocs=4, backend="mpi"), flush=True)
"""


@pytest.fixture(params=ALL, ids=lambda mpi: mpi.distribution)
def mpi(request):
    if not request.param.is_here():
        pytest.skip(f"{request.param.title} is not installed: pip install -e '.[dev]'")
    return request.param


@pytest.fixture
def running(mpi, hosts, tmp_path):
    """A program on four hosts that is in the middle of a run."""
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    with subprocess.Popen(
        on_ranks_of(hosts, mpi, 1, sys.executable, path),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline() == "runs\n"
        yield process
        process.stdin.close()
        process.kill()


FAILING = """
import os, signal, sys
import bsplib

def main(bsp, how):
    bsp.sync()
    if bsp.pid == 2:
        {
            "raise": fail,
            "abort": lambda: bsp.abort("no more"),
            "exit": lambda: os._exit(3),
            "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
        }[how]()
    bsp.sync()
    bsp.sync()

def fail():
    raise KeyError("ill")

if __name__ == "__main__":
    for how in ("raise", "abort", "exit", "kill"):
        try:
            bsplib.run(main, how, nprocs=4, backend="mpi")
        except Exception as error:
            print(error, *getattr(error, "__notes__", ()), flush=True)
        input()
    bsplib.run(main, "raise", nprocs=4, backend="mpi")
"""
FAILURES = (
    r"'ill' \[process 2 on host {name}, superstep 1, .*",
    r".* \[process 2 is on host {name}\]",
    r"process 2 on host {name} exited with status 3 in superstep 1",
    r"process 2 on host {name} was killed by SIGKILL in superstep 1",
)
"""What the caller of FAILING is told, in turn."""


def ranks_left(hosts):
    """Return the ranks and watchers of all hosts that have not ended."""
    lines = [line for host in range(len(hosts.names)) for line in hosts.processes_left(host)]
    return [line for line in lines if "mpi.rank" in line]


def wait_until_none_is_left(hosts, seconds):
    until = time.monotonic() + seconds
    while (left := ranks_left(hosts)) and time.monotonic() < until:
        time.sleep(0.1)
    assert left == []


@pytest.mark.parametrize("how", ["stop", "cut", "kill"])
def test_a_host_that_is_lost_is_named_and_the_next_run_works(running, hosts, how):
    begun = time.monotonic()
    getattr(hosts, how)(LOST)
    while (line := running.stdout.readline()) and not line.startswith("process"):
        pass  # the launcher of Open MPI says something, too
    assert time.monotonic() < begun + NAMED_S
    name = re.escape(hosts.names[LOST])
    assert re.match(rf"process {LOST} on host {name} (was lost \(|was killed by SIGKILL)", line)
    if how == "cut":
        wait_until_none_is_left(hosts, LEFT_S)
    hosts.mend(LOST)
    wait_until_none_is_left(hosts, 2)
    assert not any(map(hosts.shared_memory_left, range(len(hosts.names))))
    running.stdin.write("\n")
    running.stdin.flush()
    assert running.stdout.readline() == "[0, 1, 2, 3]\n"


def test_a_process_that_fails_is_named_with_its_host_and_nothing_is_left_in_the_end(
    mpi, hosts, tmp_path
):
    path = tmp_path / "program.py"
    path.write_text(FAILING)
    with subprocess.Popen(
        on_ranks_of(hosts, mpi, 1, sys.executable, path),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        for words, all_survive in zip(FAILURES, (True, True, False, False), strict=True):
            line = process.stdout.readline().strip()
            assert re.fullmatch(words.format(name=re.escape(hosts.names[LOST])), line)
            if all_survive:  # they serve the next run
                assert ranks_left(hosts)
            else:
                wait_until_none_is_left(hosts, 2)
            assert not any(map(hosts.shared_memory_left, range(len(hosts.names))))
            process.stdin.write("\n")
            process.stdin.flush()
        assert process.wait(20) == 1
    wait_until_none_is_left(hosts, 2)
