"""Runs whose traces say themselves who waited for whom, as those of mpi4py, in windows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bsplib.profiler import window
from bsplib.recording import tables
from bsplib.recording.records import MPI_CALL, WAIT, Frame
from bsplib.sync_kinds import Kind

from .test_windows import check_same, said

RECEIVE = Frame(MPI_CALL, "Recv", 0, 0)


def of_mpi(run, waits):
    """The run as one of mpi4py, whose supersteps end in calls of MPI."""
    stacks = tuple((*stack, RECEIVE) for stack in run.stacks)
    return replace(run, stacks=stacks, waits=np.array(sorted(waits), WAIT))


def late_for_messages(script, lates):
    """Return a run in which process 1 is late for messages, and the place of each record."""
    program = script(2)
    for late in lates:
        program.step(
            "main receive",
            w=[10_000, late],
            waits=[late - 10_000, 0],
            puts=[(1, 0, 8)],
            kind=Kind.OBLSYNC,
        )
    made = program.run()
    keys = zip(made.records["pid"].tolist(), made.records["superstep"].tolist(), strict=True)
    return made, {key: at for at, key in enumerate(keys)}


@pytest.fixture
def run(script):
    """Process 1 is late for 40 messages; some are waited for two supersteps later."""
    lates = np.random.default_rng(5).integers(20_000, 90_000, 40).tolist()
    made, place = late_for_messages(script, lates)
    waits = [(place[0, step], place[1, max(0, step - 2 * (step % 3 == 0))]) for step in range(40)]
    return of_mpi(made, waits)


@pytest.mark.slow
def test_many_windows_say_what_one_says(run, monkeypatch):
    (whole,) = window.windows(run)
    expected = said(run)
    for module in (tables, window):
        monkeypatch.setattr(module, "ROWS", 6)
    parts = list(window.windows(run))
    assert len(parts) > 5
    check_same(said(run), expected)
    waits = np.concatenate([part.position[part.run.waits["record"] - part.halo] for part in parts])
    assert sorted(waits.tolist()) == whole.run.waits["record"].tolist()


def test_windows_are_not_cut_where_all_wait_across(run, monkeypatch):
    superstep, pid = run.records["superstep"], run.records["pid"]
    first, last = np.flatnonzero(((superstep == 0) & (pid == 0)) | ((superstep == 39) & (pid == 1)))
    run = replace(run, waits=np.array([(first, last)], WAIT))
    for module in (tables, window):
        monkeypatch.setattr(module, "ROWS", 6)
    assert len(list(window.windows(run))) == 1
