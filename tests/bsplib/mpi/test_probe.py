"""A probe over MPI says through what the ranks exchange, and knows two levels of several hosts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bsplib.backends.mpi.ranks import INSIDE
from bsplib.machine import load_machine
from bsplib.machine.probing.probe import probe
from bsplib.profiler.models.replay import replay
from bsplib.profiler.prices import ReplayPrices
from bsplib.profiler.timeline import Timeline
from bsplib.recording.trace import read_trace
from tests.hosts.launching import on_ranks_of
from tests.mpi_installations import ALL
from tests.processes import run_command

DELAY_S, RATE = 1e-3, 1e9  # of the fixture hosts, in bits a second
PROGRAM = """
import sys
from pathlib import Path

import numpy as np
import bsplib
from bsplib.machine.probing.probe import probe

def main(bsp):
    x = bsp.zeros(1000)
    with bsp.split(bsp.pid // 2) as sub:
        y = sub.zeros(1000)
        sub.put(1 - sub.pid, np.ones(1000), y)
        sub.sync()
    bsp.put((bsp.pid + 2) % bsp.nprocs, np.ones(1000), x)
    bsp.sync()

if __name__ == "__main__":
    machine, trace = map(Path, sys.argv[1:])
    machine.write_text(probe(4, "two hosts", backend="mpi", rounds=2).machine.text())
    bsplib.run(main, nprocs=4, backend="mpi", profile=trace)
"""


@pytest.fixture
def few_sizes(monkeypatch):
    monkeypatch.setattr("bsplib.machine.probing.times.SIZES", (64, 256))


@pytest.mark.slow
@pytest.mark.usefixtures("mpi", "few_sizes")
@pytest.mark.parametrize(
    ("inside", "over"), [("", "shared memory of ranks of MPI"), ("mpi", "MPI")]
)
def test_a_machine_of_one_host_says_through_what_its_ranks_exchange(inside, over, monkeypatch):
    monkeypatch.setenv(INSIDE, inside)
    machine = probe(2, "one host", backend="mpi", rounds=1, budget_s=0.1).machine
    assert f": 2 processes over {over}, " in machine.source


@pytest.mark.slow
@pytest.mark.parametrize("installed", ALL, ids=lambda mpi: mpi.distribution)
def test_a_probe_of_two_hosts_prices_what_is_between_them_and_what_is_inside(
    installed, hosts, tmp_path
):
    if not installed.is_here():
        pytest.skip(f"{installed.title} is not installed: pip install -e '.[dev]'")
    script, file, trace = (tmp_path / name for name in ("script.py", "hosts.toml", "run.bsp"))
    script.write_text(PROGRAM)
    line = on_ranks_of(hosts, installed, 2, script, file, trace, count=2)
    done = run_command(*line)
    assert done.returncode == 0, done.stderr
    machine = load_machine(str(file))
    assert "4 processes on 2 hosts over MPI" in machine.source
    assert machine.l > 0.9 * DELAY_S  # no message is faster, and no link carries more
    assert machine.g > 0.8 * 8 / RATE
    assert machine.inside.g < machine.g
    assert machine.inside.l < machine.l
    run = read_trace(trace).runs[0]
    assert run.meta["hosts"] == [hosts.names[0]] * 2 + [hosts.names[1]] * 2
    two, one = (
        replay(Timeline(run), "BSP", ReplayPrices(each)).total_s
        for each in (machine, replace(machine, inside=None))
    )
    saved = machine.price(8000) - machine.of_one_host().price(8000 * machine.share_inside())
    assert one - two == pytest.approx(saved, rel=0.01)  # split sends a few bytes, too
