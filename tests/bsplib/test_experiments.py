"""Blocks of a program that are measured: ``bsp.experiment``, on every backend."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

import bsplib
from bsplib.errors import UsageError
from bsplib.experiments import blocks
from bsplib.profiler.predict.experiments import passages
from bsplib.recording.trace import read_trace
from tests.recordings import record_run


def passes(bsp, count):
    for number in range(count):
        with bsp.experiment("f", "f[0] + f[1]*N/P", N=number + 1):
            bsp.charge(1e-3)
            bsp.sync()


@pytest.mark.procs(1, 3)
def test_each_passage_counts_with_its_time_on_every_process(record, nprocs):
    found = passages(record(passes, 2))
    assert [each.values for each in found] == [{"N": 1, "P": nprocs}, {"N": 2, "P": nprocs}]
    for each in found:
        assert len(each.amounts["time"]) == nprocs
        assert all(time > 0 for time in each.amounts["time"])


@pytest.mark.procs(3)
def test_without_records_nothing_is_measured(run, nprocs):
    def main(bsp):
        with bsp.experiment("f", "f[0]*N", N=1) as nothing:
            return nothing, bsp._terms.passages

    assert run(main) == [(None, None)] * nprocs


def test_a_program_without_blocks_has_none_in_its_trace(record):
    recorded = record(lambda bsp: bsp.sync())
    assert "blocks" not in recorded.meta
    assert passages(recorded) == []


def begins_together(bsp):
    x = bsp.zeros(1)
    bsp.send(bsp.pid, "kept")
    bsp.sync()
    bsp.put((bsp.pid + 1) % bsp.nprocs, bsp.pid, x)
    with bsp.experiment("f", "f[0]", sync=True):
        before = float(x[0])
    texts = [text for _, text, _ in bsp.messages()]
    bsp.sync()
    return before, float(x[0]), texts


@pytest.mark.procs(3)
def test_processes_begin_a_block_together_and_no_transfer_of_the_program_notices(
    run, nprocs, tmp_path
):
    expected = [(0.0, (pid - 1) % nprocs, [None]) for pid in range(nprocs)]
    plain = run(begins_together)
    path = tmp_path / "together.bsp"
    assert run(begins_together, profile=path) == plain
    assert [each[:2] for each in plain] == [each[:2] for each in expected]
    run = read_trace(path).runs[0]
    assert len(passages(run)) == 1
    assert all(passed[4] == 0 for each in run.meta["blocks"] for passed in each["passed"])


def in_parts(bsp):
    with bsp.partition([1, bsp.nprocs]) as sub, sub.experiment("g", "g[0] + g[1]*P"):
        sub.sync()


@pytest.mark.procs(3)
def test_a_block_in_a_sub_group_counts_the_processes_of_that_group(record):
    found = passages(record(in_parts))
    counts = [(each.values["P"], len(each.amounts["time"])) for each in found]
    assert sorted(counts) == [(1, 1), (2, 2)]


def by_pid(bsp):
    with bsp.experiment("h", "h[0] + h[1]*pid"):
        pass


@pytest.mark.procs(3)
def test_processes_with_other_values_are_other_points(record, nprocs):
    found = passages(record(by_pid))
    assert sorted(each.values["pid"] for each in found) == [0, 1, 2]
    assert all(each.values["P"] == nprocs for each in found)


def raises_inside(bsp):
    with contextlib.suppress(ZeroDivisionError), bsp.experiment("f", "f[0]"):
        bsp.pid // 0
    with bsp.experiment("g", "g[0]"), bsp.experiment("inner", "i[0]*n", n=np.int64(4)):
        pass


@pytest.mark.procs(1)
def test_a_passage_that_an_exception_ends_does_not_count_and_blocks_nest(record):
    found = passages(record(raises_inside))
    assert [each.name for each in found] == ["inner", "g"]
    assert found[0].values["n"] == 4


WRONG = {
    "a name without a value": (
        ("f", "f[0]*M"),
        {"N": 1},
        r"experiment f: M in the formula 'f\[0\]\*M' has no value; give it one, as in "
        r"experiment\(\.\.\., M=n\), or use P or pid, which are measured",
    ),
    "a product of parameters": (("f", "f[0]*f[1]"), {}, "experiment f: .* is not linear in"),
    "no parameter": (("f", "N"), {"N": 1}, "experiment f: 'N' has no parameter such as f"),
    "no formula": (("f", 3), {}, "experiment f: 3 is no formula; write a text"),
    "no name": (([], "f[0]"), {}, r"experiment: \[\] is no name; write a text"),
    "what is measured": (("f", "f[0]*P"), {"P": 1}, "experiment f: P is measured; give it no"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_block_is_refused_whether_it_is_measured_or_not(case, tmp_path):
    words, values, text = WRONG[case]

    def main(bsp):
        with bsp.experiment(*words, **values):
            pass

    with pytest.raises(UsageError, match=text + r".* \[process 0, superstep 0, "):
        bsplib.run(main, nprocs=1, backend="sim")
    with pytest.raises(UsageError, match=text):
        bsplib.run(main, nprocs=1, backend="sim", profile=tmp_path / "wrong.bsp")


@pytest.mark.parametrize("value", ["4", None, float("nan"), 1j, [1], 10**400])
def test_a_value_that_is_no_finite_number_is_refused_where_it_is_measured(value, tmp_path):
    def main(bsp):
        with bsp.experiment("f", "f[0]*N", N=value):
            pass

    with pytest.raises(UsageError, match=r"experiment f: N is .*; it is a finite num"):
        bsplib.run(main, nprocs=1, backend="sim", profile=tmp_path / "wrong.bsp")


def test_virtual_time_of_a_block_is_what_it_charges_and_what_its_supersteps_cost(tmp_path):
    def main(bsp):
        bsp.charge(0)
        with bsp.experiment("f", "f[0]*n", n=3):
            bsp.charge(3.0)
            bsp.sync()

    path = tmp_path / "virtual.bsp"
    bsplib.run(main, nprocs=2, backend="sim", machine="ideal:l=0.5", profile=path)
    assert passages(read_trace(path).runs[0])[0].amounts["time"] == [3.5, 3.5]


def test_what_a_process_waits_for_the_others_to_begin_together_is_no_time_of_the_block(tmp_path):
    def main(bsp):
        bsp.charge(10.0 * bsp.pid)
        with bsp.experiment("f", "f[0]", sync=True):
            bsp.charge(3.0)
            bsp.sync()

    path = tmp_path / "virtual.bsp"
    bsplib.run(main, nprocs=2, backend="sim", machine="ideal:l=0.5", profile=path)
    assert passages(read_trace(path).runs[0])[0].amounts["time"] == [3.5, 3.5]


@pytest.mark.lengthy
def test_a_pool_measures_too(tmp_path):
    path = tmp_path / "pool.bsp"
    with bsplib.Pool(nprocs=2, profile=path) as pool:
        for _ in range(2):
            pool.run(passes, 1)
    assert [len(passages(each)) for each in read_trace(path).runs] == [1, 1]


def test_passages_beyond_the_greatest_number_are_left_out_with_a_warning(tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "_MOST", 4)
    path = tmp_path / "many.bsp"
    with pytest.warns(bsplib.TraceWarning, match="the first 2 passages of blocks in a process"):
        run = record_run(path, passes, 5, nprocs=2, backend="sim")
    assert [each.values["N"] for each in passages(run)] == [1, 2]


def exchanges(bsp):
    x = bsp.zeros(5)
    bsp.put((bsp.pid + 1) % bsp.nprocs, np.ones(5), x)
    bsp.sync()
    with bsp.experiment("f", "f[0]", sync=True):
        bsp.put((bsp.pid + 1) % bsp.nprocs, np.ones(5), x)
        if bsp.pid:
            bsp.get(0, x[:1])
        bsp.sync()
        with bsp.partition([1, bsp.nprocs]) as sub:
            sub.send(0, np.ones(2))
            sub.sync()
    bsp.put((bsp.pid + 1) % bsp.nprocs, np.ones(5), x)
    bsp.sync()


@pytest.mark.procs(3)
def test_of_a_recorded_run_the_h_relations_inside_of_a_block_are_known(record):
    """Those of its supersteps and of its sub-groups, not those before, after and to itself."""
    (found,) = passages(record(exchanges))
    assert found.amounts["h"] == [40 + 2 * 8, 40 + 8 + 16, 40 + 8 + 16]
