"""Ranks on several hosts tell how far their clocks are from that of rank 0."""

from __future__ import annotations

import sys

import pytest

from bsplib.record.events import CALLS, rank_files, read_rank
from tests.hosts.launching import mpiexec
from tests.processes import run_command

from .conftest import DEADLINE_S, RECORDED

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

PROGRAM = "from mpi4py import MPI\nfor _ in range(20): MPI.COMM_WORLD.Barrier()\n"


def test_no_process_leaves_a_barrier_before_another_has_come(mpi, hosts, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    words = (sys.executable, "-c", RECORDED, tmp_path / "out.bsp", program)
    done = run_command(*mpiexec(hosts, mpi, 3, 1, *words), timeout=DEADLINE_S)
    assert done.returncode == 0, done.stderr
    ranks = [read_rank(path) for path in rank_files(tmp_path / "out.bsp.ranks")]
    assert len({rank.header["host"] for rank in ranks}) == 3
    assert [len(rank.clocks) for rank in ranks] == [2, 2, 2]
    enters, leaves = [], []
    for rank in ranks:
        barriers = rank.events[rank.events["call"] == CALLS.index("Barrier")]
        (at, offset, half), (end, later, other_half) = rank.clocks
        assert at < barriers["enter"][0] < end
        assert abs(later - offset) <= half + other_half
        enters.append(barriers["enter"] + offset - half)
        leaves.append(barriers["leave"] + offset + half)
    for enter in enters:
        for leave in leaves:
            assert (enter <= leave).all()
