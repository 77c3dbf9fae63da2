"""A run over four hosts, each with a clock of its own, is recorded as one."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections import Counter

import numpy as np
import pytest

from bsplib.directions import Direction
from bsplib.recording.trace import read_trace
from bsplib.sync_kinds import Kind
from tests.hosts.launching import on_ranks_of
from tests.mpi_installations import ALL
from tests.processes import run_command

pytestmark = pytest.mark.lengthy

NPROCS = 4
PROGRAM = """
import os, shutil, signal, sys
import numpy as np
import bsplib

def exchange(bsp, x):
    right = (bsp.pid + 1) % bsp.nprocs
    for size in (1, 1000, 300_000):
        bsp.put(right, np.full(size, bsp.pid, float), x, offset=0)
        bsp.sync()
        bsp.get(right, x[:size])
        bsp.send(0, bytes(size))
        bsp.sync()

def main(bsp, killed):
    x = bsp.zeros(300_000)
    exchange(bsp, x)
    bsp.allreduce(bsp.pid)
    with bsp.partition([1, bsp.nprocs]) as sub:
        sub.broadcast(np.arange(100), root=sub.nprocs - 1)
    bsp.put_at(np.arange(1000) % bsp.nprocs, np.arange(1000), 1.0, x, op=np.add)
    bsp.sync()
    for _ in range(5):
        bsp.send((bsp.pid + 1) % bsp.nprocs, bytes(50))
        bsp.oblsync(1)
    if killed == bsp.pid:
        os.kill(os.getpid(), signal.SIGKILL)
    bsp.sync()
    return bsp.time()

if __name__ == "__main__":
    backend, trace, copy, killed = sys.argv[1:]
    try:
        times = bsplib.run(main, int(killed), nprocs=4, backend=backend, profile=trace)
    finally:
        here = os.path.dirname(trace)
        for path in (trace, *(entry.path for entry in os.scandir(here) if entry.is_dir())):
            if os.path.exists(path) and ".bsp" in path:
                shutil.move(path, copy)
    assert all(time > 0 for time in times)
"""


@pytest.fixture(params=ALL, ids=lambda mpi: mpi.distribution)
def mpi(request):
    if not request.param.is_here():
        pytest.skip(f"{request.param.title} is not installed: pip install -e '.[dev]'")
    return request.param


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(PROGRAM))
    return path


@pytest.fixture
def execute(hosts, mpi, program, tmp_path):
    """Run the program; return how it ended. What it recorded is moved into a folder."""

    def execute_it(backend, trace, killed=-1):
        (tmp_path / backend).mkdir()
        words = program, backend, trace, tmp_path / backend, killed
        line = on_ranks_of(hosts, mpi, 1, *words)
        return run_command(*line)

    return execute_it


def h_by_place(run):
    """Bytes and messages by superstep, group, line, process, partner and direction."""
    found = Counter()
    for row in run.traffic:
        record = run.records[row["record"]]
        group = run.groups[record["group"]]
        line = run.stacks[record["stack"]][-1][1:]
        place = (tuple(group.members), int(record["superstep"]), line, int(record["pid"]))
        found[place, int(row["partner"]), Direction(row["direction"])] += int(row["bytes"])
    return found


def places(run):
    return Counter(
        (tuple(run.groups[row["group"]].members), int(row["superstep"]), int(row["kind"]))
        for row in run.records
    )


def check_times(run, bound_ns):
    """Check that no process left a global sync before the last one had come, but for the bound."""
    syncs = (run.records["group"] == 0) & (run.records["kind"] == Kind.SYNC)
    rows = run.records[syncs]
    for superstep in np.unique(rows["superstep"]):
        here = rows[rows["superstep"] == superstep]
        assert len(here) == NPROCS
        assert (here["end"] >= here["arrive"].max() - bound_ns).all()
        assert np.ptp(here["released"]) <= bound_ns
        assert abs(here["released"].max() - here["arrive"].max()) <= bound_ns


@pytest.mark.slow
def test_a_run_over_hosts_has_the_h_of_the_simulator_and_one_time(execute, hosts, tmp_path):
    for backend in ("mpi", "sim"):
        # No other host has this folder: the records come as parts.
        done = execute(backend, "/dev/shm/out.bsp")
        assert done.returncode == 0, done.stderr
        assert "TraceWarning" not in done.stderr
    run, virtual = (
        read_trace(tmp_path / backend / "out.bsp").runs[0] for backend in ("mpi", "sim")
    )
    assert run.complete
    assert h_by_place(run) == h_by_place(virtual)
    assert places(run) == places(virtual)
    assert run.meta["hosts"] == hosts.names
    bounds = run.meta["clock_bounds_s"]
    assert bounds[hosts.names[0]] < 1e-3 <= min(bounds[name] for name in hosts.names[1:])
    check_times(run, 2 * max(bounds.values()) * 1e9)
    assert not any(map(hosts.shared_memory_left, range(NPROCS)))


@pytest.mark.slow
def test_the_records_of_processes_that_were_killed_can_be_recovered_with_the_others(
    execute, hosts, tmp_path
):
    done = execute("mpi", "/dev/shm/out.bsp", killed=2)
    assert done.returncode > 0  # it is the launcher that tells
    moves = f"mv $TMPDIR/bsp-part-* {tmp_path}; mv /dev/shm/.bsp-records-* {tmp_path}/mpi; true"
    for host in range(NPROCS):
        fetch = hosts.on(host, "sh", "-c", moves)
        subprocess.run(fetch, stderr=subprocess.DEVNULL, timeout=60, check=True)
    (folder,) = (tmp_path / "mpi").iterdir()
    out = tmp_path / "merged.bsp"
    parts = list(tmp_path.glob("bsp-part-*"))
    assert any(part.name.endswith("-2") for part in parts)
    merge = [sys.executable, "-m", "bsplib", "recover", folder, *parts, "--out", out]
    done = run_command(*merge)
    assert done.returncode == 0, done.stderr
    (run,) = read_trace(out).runs
    assert not run.complete
    assert run.meta["hosts"] == hosts.names
    syncs = run.records[run.records["group"] == 0]
    assert np.bincount(syncs["pid"]).tolist() == [syncs["superstep"].max() + 1] * NPROCS
    assert run.records["superstep"].max() >= 7  # after the partition
