"""The table of a trace that says for whom a record waited in the end."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bsplib.errors import TraceError
from bsplib.record.join import join
from bsplib.recording.records import WAIT, Run, Trace
from bsplib.recording.trace import read_trace, write_trace
from tests.record.made_ranks import RankMaker, written


@pytest.fixture
def run(tmp_path) -> Run:
    """Two processes of which the second is waited for in each of four supersteps."""
    makers = [RankMaker(rank, 2) for rank in range(2)]
    for maker in makers:
        for step in range(4):
            maker.call("Barrier", 100 * step + (80 if maker.rank else 10), 100 * step + 100, line=5)
    return join(written(tmp_path / "out.ranks", makers)).runs[0]


def pairs(run):
    """Return pid and superstep of the records that waited, and of those to blame."""
    fields = list(zip(*(run.records[name].tolist() for name in ("pid", "superstep")), strict=True))
    return [(fields[record], fields[behind]) for record, behind in run.waits.tolist()]


def test_a_trace_keeps_for_whom_records_waited(run, tmp_path):
    write_trace(tmp_path / "out.bsp", Trace((run,)))
    kept = read_trace(tmp_path / "out.bsp").runs[0]
    assert pairs(kept) == [((0, step), (1, step)) for step in range(4)]
    assert kept.is_interleaved


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        ([(0, 99)], "a behind outside 0 .. 9"),
        ([(-1, 5)], "a record outside 0 .. 9"),
        ([(0, 5), (0, 6)], "a record out of order"),
        ([(0, 1)], "a process that waits for itself"),
    ],
)
def test_waits_that_cannot_be_true_are_refused(run, tmp_path, rows, fault):
    damaged = replace(run, waits=np.array(rows, WAIT))
    with pytest.raises(TraceError, match=fault):
        write_trace(tmp_path / "out.bsp", Trace((damaged,)))
