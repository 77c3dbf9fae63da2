"""Ranks of one host exchange through shared memory, and go on through MPI where they cannot."""

from __future__ import annotations

import os
import time

import numpy as np
import pytest

import bsplib
from bsplib.backends.mpi import same_host
from bsplib.backends.mpi.ranks import INSIDE
from bsplib.recording.trace import read_trace
from tests import drawn
from tests.bsplib.random_programs.checks import check, check_fault
from tests.bsplib.random_programs.faults import Breaker
from tests.bsplib.random_programs.seeded import program_of
from tests.hosts.launching import on_ranks_of
from tests.mpi_ranks import end
from tests.processes import run_command

from .conftest import DEADLINE_S

pytestmark = [pytest.mark.lengthy, pytest.mark.timeout(2 * DEADLINE_S)]

SLOW = pytest.mark.slow
SEEDS = range(drawn.times(6))


def run(main, *args, nprocs, **options):
    return bsplib.run(main, *args, nprocs=nprocs, backend="mpi", **options)


def everything(bsp):
    """Use every kind of meeting; return what came of it, and what carried it."""
    x = bsp.zeros(bsp.nprocs, int)
    large = bsp.zeros(100_000)
    right = (bsp.pid + 1) % bsp.nprocs
    for pid in range(bsp.nprocs):
        bsp.put(pid, bsp.pid, x, offset=bsp.pid)
    bsp.hpput(right, np.full(100_000, float(bsp.pid)), large)
    bsp.sync()
    got = bsp.get(right, large[:1])
    bsp.send(right, ("a message", bsp.pid))
    bsp.sync()
    message = bsp.move()
    bsp.send(right, bytes(100_000))
    bsp.oblsync(1)
    with bsp.split(bsp.pid % 2) as sub:
        sums = sub.allreduce(bsp.pid)
    seen = x.tolist(), large.sum(), got.tolist(), message, bsp.qsize()[1], sums
    return type(bsp._port).__name__, seen


def expected(nprocs):
    return bsplib.run(lambda bsp: everything(bsp)[1], nprocs=nprocs, backend="sim")


def check_traffic_of_everything(folder):
    """Check that ``everything`` is recorded on ranks with the traffic of the simulator."""
    run(everything, nprocs=3, profile=folder / "run.bsp")
    (recorded,) = read_trace(folder / "run.bsp").runs
    bsplib.run(everything, nprocs=3, backend="sim", profile=folder / "sim.bsp")
    (simulated,) = read_trace(folder / "sim.bsp").runs
    assert sorted(recorded.traffic["bytes"]) == sorted(simulated.traffic["bytes"])
    assert len(recorded.records) == len(simulated.records)


@pytest.mark.usefixtures("mpi")
@pytest.mark.parametrize("count", [3, *(pytest.param(n, marks=SLOW) for n in (1, 2, 4, 8))])
def test_ranks_of_one_host_share_memory(count):
    ports, seen = zip(*run(everything, nprocs=count), strict=True)
    assert set(ports) == {"JoinedPort"}
    assert list(seen) == expected(count)


@pytest.mark.slow
@pytest.mark.usefixtures("mpi")
def test_runs_in_other_numbers_and_over_mpi_follow_each_other_on_the_same_ranks(monkeypatch):
    def numbered(bsp):
        return (*everything(bsp), os.getpid())

    known = {}
    for nprocs, through in ((4, ""), (2, ""), (3, "mpi"), (3, ""), (4, ""), (4, "mpi"), (4, "")):
        monkeypatch.setenv(INSIDE, through)
        ports, seen, os_pids = zip(*run(numbered, nprocs=nprocs), strict=True)
        assert set(ports) == {"MpiPort" if through else "JoinedPort"}
        assert list(seen) == expected(nprocs)
        for pid, os_pid in enumerate(os_pids):
            assert known.setdefault(pid, os_pid) == os_pid


@pytest.mark.slow
@pytest.mark.usefixtures("mpi")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_program_does_on_shared_memory_what_the_contract_says(seed):
    check(program_of(seed), "mpi", 0)


@pytest.mark.slow
@pytest.mark.usefixtures("mpi")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_fault_raises_its_error_on_shared_memory(seed):
    check_fault(program_of(seed, Breaker), "mpi", 0)


@pytest.mark.usefixtures("mpi")
def test_a_process_that_sleeps_in_shared_memory_is_stopped():
    def main(bsp):
        bsp.sync()
        if bsp.pid == 1:
            time.sleep(0.3)  # the others have gone to sleep by then
            raise KeyError("late")
        bsp.sync()

    with pytest.raises(KeyError, match="late") as caught:
        run(main, nprocs=3)
    assert "more processes" not in "".join(caught.value.__notes__)


@pytest.mark.usefixtures("mpi")
def test_a_run_in_shared_memory_is_recorded(tmp_path):
    check_traffic_of_everything(tmp_path)


@pytest.mark.slow
@pytest.mark.usefixtures("mpi")
@pytest.mark.parametrize("rank", [0, 1])
def test_ranks_that_cannot_share_memory_go_on_through_mpi(rank):
    """Let one of them fail to make or to open the memory, and try a second run."""

    def spoil(bsp, rank):
        if bsp.pid == rank:

            def fail(*_):
                raise OSError("refused")

            same_host.Memory.made = same_host.Memory.joined = fail

    end()
    assert run(spoil, rank, nprocs=2) == [None, None]
    for nprocs in (3, 3):
        ports, seen = zip(*run(everything, nprocs=nprocs), strict=True)
        assert set(ports) == {"MpiPort"}
        assert list(seen) == expected(nprocs)
    end()


SPREAD = """
import bsplib

def main(bsp):
    x = bsp.zeros(bsp.nprocs, int)
    for pid in range(bsp.nprocs):
        bsp.put(pid, bsp.pid, x, offset=bsp.pid)
    bsp.sync()
    return type(bsp._port).__name__, x.tolist()

if __name__ == "__main__":
    for nprocs in (2, 4, 8):
        print(bsplib.run(main, nprocs=nprocs, backend="mpi"))
"""


@pytest.mark.slow
def test_a_run_shares_memory_only_where_all_its_processes_are_on_one_host(mpi, hosts, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(SPREAD)
    command = on_ranks_of(hosts, mpi, 2, path)
    done = run_command(*command, timeout=DEADLINE_S)
    ports = {2: "JoinedPort", 4: "MpiPort", 8: "MpiPort"}
    assert done.stdout.splitlines() == [
        str([(port, list(range(nprocs)))] * nprocs) for nprocs, port in ports.items()
    ]
