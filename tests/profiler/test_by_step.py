"""Records process by process are summed up as those of which the superstep is looked up."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bsplib.profiler._by_step import BySuperstep, TableBySuperstep, table_of
from bsplib.recording.records import RECORD, TRAFFIC, Run, root_group
from tests.drawn import examples


def run_of(nprocs, steps, before):
    """Returns a run of all processes, process by process, after a superstep before if wanted."""
    records = np.zeros(nprocs * (steps + before), RECORD)
    halo, fresh = records[: before * nprocs], records[before * nprocs :].reshape(nprocs, steps)
    halo["pid"] = np.arange(before * nprocs)
    halo["superstep"] = 3
    fresh["pid"] = np.arange(nprocs)[:, None]
    fresh["superstep"] = 4 + np.arange(steps)
    return Run(nprocs, (root_group(nprocs),), (), records, np.zeros(0, TRAFFIC))


@examples(60)
@given(st.data(), st.integers(1, 5), st.integers(0, 6), st.integers(0, 1))
def test_a_table_says_what_looking_up_says(data, nprocs, steps, before):
    run = run_of(nprocs, steps, before)
    if not len(run.records):
        assert table_of(run) is None
        return
    table = table_of(run)
    assert isinstance(table, TableBySuperstep)
    _, step = np.unique(run.records["superstep"], return_inverse=True)
    looked_up = BySuperstep(step, run.records["pid"])
    count = len(run.records)
    drawn = data.draw(st.lists(st.integers(-3, 3), min_size=count, max_size=count))
    values = np.array(drawn, np.int64)
    assert table.of_record.tolist() == step.tolist()
    for name in ("greatest", "least", "sums", "leader"):
        for each in (values, values.astype(np.float64)):
            ours, theirs = getattr(table, name)(each), getattr(looked_up, name)(each)
            assert ours.tolist() == theirs.tolist(), name
            assert ours.dtype == theirs.dtype, name
    by_step = np.arange(table.count)
    assert table.spread(by_step).tolist() == looked_up.spread(by_step).tolist()


@examples(30)
@given(st.integers(1, 5), st.integers(1, 6), st.integers(0, 1))
def test_a_table_knows_the_record_before_and_the_last_one(nprocs, steps, before):
    run = run_of(nprocs, steps, before)
    last, preceding = {}, []
    for row, pid in enumerate(run.records["pid"].tolist()):
        preceding.append(last.get(pid, -1))
        last[pid] = row
    table = table_of(run)
    assert table.preceding().tolist() == preceding
    assert table.last_records().tolist() == [last[pid] for pid in range(nprocs)]


@examples(60)
@given(st.data(), st.integers(2, 4), st.integers(2, 5))
def test_records_in_another_order_or_with_gaps_are_no_table(data, nprocs, steps):
    run = run_of(nprocs, steps, 0)
    row = data.draw(st.integers(0, len(run.records) - 1))
    name, by = data.draw(st.sampled_from([("pid", 1), ("superstep", 1), ("superstep", 100)]))
    run.records[name][row] += by
    table = table_of(run)
    if table is not None:  # another table, such as one whose first superstep is before the others
        _, step = np.unique(run.records["superstep"], return_inverse=True)
        assert table.of_record.tolist() == step.tolist()
        pairs = zip(step.tolist(), run.records["pid"].tolist(), strict=True)
        assert len(set(pairs)) == len(run.records)
