"""The lines that a recorded program of mpi4py executes, as samples in its trace."""

from __future__ import annotations

import pytest

from bsplib.core.sampling import why_not
from bsplib.profiler.lines import lines_of
from bsplib.record.join import join
from bsplib.recording.records import Doing

PROGRAM = """
import time
import numpy as np
from mpi4py import MPI

def multiplies(matrix):
    return matrix @ matrix

comm = MPI.COMM_WORLD
if comm.rank:
    for _ in range(60):
        multiplies(np.ones((600, 600)))
comm.Barrier()
if not comm.rank:
    time.sleep(0.5)
comm.Barrier()
"""


@pytest.mark.lengthy
@pytest.mark.skipif(bool(why_not()), reason=why_not() or "it samples")
def test_the_lines_that_compute_sleep_and_wait_have_samples(recorded, tmp_path):
    assert recorded(PROGRAM).status == 0
    (run,) = join(tmp_path / "out.bsp.ranks").runs
    assert run.measured["lines"] == ""
    lines = {line.line: line.own for line in lines_of(run)}
    assert lines[7].computing + lines[7].no_core > 0
    assert lines[15].blocked > lines[15].computing
    assert Doing.WAITING in run.samples["doing"]


PICKLES = """
from mpi4py import MPI

comm = MPI.COMM_WORLD
comm.allgather(list(range(100_000)))
comm.Barrier()
"""


@pytest.mark.lengthy
def test_pickles_are_measured_in_the_records_of_those_that_make_them(recorded, tmp_path):
    assert recorded(PICKLES).status == 0
    (run,) = join(tmp_path / "out.bsp.ranks").runs
    for pid in range(run.nprocs):
        mine = run.records[run.records["pid"] == pid]
        assert mine["pickled_bytes"].sum() > 200_000
        assert mine["pickling"].sum() > 100_000
