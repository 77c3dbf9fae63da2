"""Blocks of a program that are measured: ``bsp.experiment``, on every backend."""

from __future__ import annotations

import contextlib
import json
import mmap

import numpy as np
import pytest

import bsplib
from bsplib.errors import UsageError
from bsplib.experiments import datafile
from bsplib.experiments.counters import reason_against
from bsplib.experiments.runs import collected, measured


def passes(bsp, count):
    for number in range(count):
        with bsp.experiment("f", "f[0] + f[1]*N/P", N=number + 1):
            bsp.charge(1e-3)
            bsp.sync()


def of_name(rows, name):
    return [row for row in rows if row["callpath"] == name]


@pytest.mark.procs(1, 3)
def test_each_passage_counts_with_its_time_on_every_process(run, nprocs):
    with collected() as rows:
        run(passes, 2)
    assert [row["params"] for row in rows] == [{"N": 1, "P": nprocs}, {"N": 2, "P": nprocs}]
    for row in rows:
        assert row["pids"] == list(range(nprocs))
        assert len(row["times"]) == nprocs
        assert all(time > 0 for time in row["times"])
        assert row["value"] == max(row["times"])
        assert row["supersteps"] == 1


@pytest.mark.procs(3)
def test_without_anybody_who_collects_nothing_is_measured(run, nprocs):
    def main(bsp):
        with bsp.experiment("f", "f[0]*N", N=1) as nothing:
            return nothing, bsp._terms.samples

    assert run(main) == [(None, None)] * nprocs


@pytest.mark.procs(3)
def test_a_block_is_measured_in_a_recorded_run_too(record, nprocs):
    with collected() as rows:
        recorded = record(passes, 1)
    assert len(rows) == 1
    assert recorded.nprocs == nprocs


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
def test_processes_begin_a_block_together_and_no_transfer_of_the_program_notices(run, nprocs):
    expected = [(0.0, (pid - 1) % nprocs, [None]) for pid in range(nprocs)]
    plain = run(begins_together)
    with collected() as rows:
        assert run(begins_together) == plain
    assert [each[:2] for each in plain] == [each[:2] for each in expected]
    assert len(rows) == 1
    assert rows[0]["supersteps"] == 0


def in_parts(bsp):
    with bsp.partition([1, bsp.nprocs]) as sub, sub.experiment("g", "g[0] + g[1]*P"):
        sub.sync()


@pytest.mark.procs(3)
def test_a_block_in_a_sub_group_counts_the_processes_of_that_group(run):
    with collected() as rows:
        run(in_parts)
    assert sorted((row["params"]["P"], row["pids"]) for row in rows) == [(1, [0]), (2, [1, 2])]


def by_pid(bsp):
    with bsp.experiment("h", "h[0] + h[1]*pid"):
        pass


@pytest.mark.procs(3)
def test_processes_with_other_values_are_other_points(run, nprocs):
    with collected() as rows:
        run(by_pid)
    assert sorted(row["params"]["pid"] for row in rows) == [0, 1, 2]
    assert all(row["params"]["P"] == nprocs for row in rows)


def raises_inside(bsp):
    with contextlib.suppress(ZeroDivisionError), bsp.experiment("f", "f[0]"):
        bsp.pid // 0
    with bsp.experiment("g", "g[0]"), bsp.experiment("inner", "i[0]*n", n=np.int64(4)):
        pass


@pytest.mark.procs(1)
def test_a_passage_that_an_exception_ends_does_not_count_and_blocks_nest(run):
    with collected() as rows:
        run(raises_inside)
    assert [row["callpath"] for row in rows] == ["inner", "g"]
    assert rows[0]["params"]["n"] == 4


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
def test_a_wrong_block_is_refused_whether_it_is_measured_or_not(case):
    words, values, text = WRONG[case]

    def main(bsp):
        with bsp.experiment(*words, **values):
            pass

    with pytest.raises(UsageError, match=text + r".* \[process 0, superstep 0, "):
        bsplib.run(main, nprocs=1, backend="sim")
    with collected(), pytest.raises(UsageError, match=text):
        bsplib.run(main, nprocs=1, backend="sim")


@pytest.mark.parametrize("value", ["4", None, float("nan"), 1j, [1]])
def test_a_value_that_is_no_finite_number_is_refused_where_it_is_measured(value):
    def main(bsp):
        with bsp.experiment("f", "f[0]*N", N=value):
            pass

    with collected(), pytest.raises(UsageError, match=r"experiment f: N is .*; it is a finite num"):
        bsplib.run(main, nprocs=1, backend="sim")


def test_virtual_time_of_a_block_is_what_it_charges_and_what_its_supersteps_cost():
    def main(bsp):
        bsp.charge(0)
        with bsp.experiment("f", "f[0]*n", n=3):
            bsp.charge(3.0)
            bsp.sync()

    with collected() as rows:
        bsplib.run(main, nprocs=2, backend="sim", machine="ideal:l=0.5")
    assert rows[0]["times"] == [3.5, 3.5]


def test_what_a_process_waits_for_the_others_to_begin_together_is_no_time_of_the_block():
    def main(bsp):
        bsp.charge(10.0 * bsp.pid)
        with bsp.experiment("f", "f[0]", sync=True):
            bsp.charge(3.0)
            bsp.sync()

    with collected() as rows:
        bsplib.run(main, nprocs=2, backend="sim", machine="ideal:l=0.5")
    assert rows[0]["times"] == [3.5, 3.5]


def test_a_pool_and_several_runs_add_to_one_file(tmp_path):
    path = tmp_path / "data.jsonl"
    for _ in range(2):
        with measured(path) as rows:
            bsplib.run(passes, 1, nprocs=2)
            with bsplib.Pool(nprocs=2) as pool:
                pool.run(passes, 1)
        assert [row["run"]["number"] for row in rows] == [0, 1]
    found = datafile.read(path)
    assert len(found) == 4
    assert len({row["run"]["id"] for row in found}) == 2


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
    with collected() as rows:
        record(exchanges)
    assert [row["h"] for row in rows] == [[40 + 2 * 8, 40 + 8 + 16, 40 + 8 + 16]]


@pytest.mark.procs(2)
@pytest.mark.real_processes
def test_counters_count_on_each_process_where_the_system_has_them(run):
    if reason := reason_against("page-faults"):
        pytest.skip(f"page-faults are not counted here: {reason}")

    def touches(bsp):
        with bsp.experiment("f", "f[0]"):
            new = mmap.mmap(-1, 2**22)  # np.ones may be given memory that was touched before
            np.frombuffer(new, np.uint8)[:] = 1

    with collected(counters=("page-faults", "instructions")) as rows:
        run(touches)
    assert len(rows[0]["counted"]["page-faults"]) == 2
    assert all(faults > 0 for faults in rows[0]["counted"]["page-faults"])


# -- the data file -----------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "data.jsonl"
    with measured(path):
        bsplib.run(passes, 3, nprocs=2, backend="sim")
    return path


def test_an_execution_that_was_cut_short_does_not_count(path):
    text = path.read_text()
    first, *_ = text.splitlines(keepends=True)
    path.write_text(text + text.replace('"id": "', '"id": "other')[: 2 * len(first) + 9])
    assert len(datafile.read(path)) == 3


def test_files_are_merged_and_what_is_in_two_of_them_counts_once(path, tmp_path):
    other, out = tmp_path / "other.jsonl", tmp_path / "all.jsonl"
    with measured(other):
        bsplib.run(passes, 2, nprocs=1, backend="sim")
    assert datafile.merge([path, other, path], out) == 5
    (found,) = datafile.experiments(datafile.read(out)).values()
    assert found.name == "f"
    assert sorted(found.values["P"]) == [1, 1, 2, 2, 2]
    assert found.formulas == ("f[0] + f[1]*N/P",)


@pytest.mark.parametrize(
    "changes",
    [
        {"times": []},
        {"times": 3},
        {"times": [10**400]},
        {"value": float("inf")},
        {"params": {"N": 10**400}},
        {"h": ["8", "16"]},
        {"h": []},
        {"counted": {"cycles": [1, None]}},
        {"counted": [1]},
        {"run": {"id": 3, "of": 1}},
    ],
)
def test_a_passage_with_values_that_cannot_be_is_refused(path, changes):
    first, *_ = path.read_text().splitlines()
    path.write_text(json.dumps(json.loads(first) | changes) + "\n")
    with pytest.raises(UsageError, match=r"line 1 is no passage of an experiment; "):
        datafile.read(path)


def test_names_that_no_encoding_has_can_be_merged(path, tmp_path):
    path.write_text(path.read_text().replace('"callpath": "f"', '"callpath": "\\ud800"'))
    datafile.merge([path], tmp_path / "all.jsonl")
    assert [row["callpath"] for row in datafile.read(tmp_path / "all.jsonl")] == ["\ud800"] * 3


@pytest.mark.parametrize(
    "text", ['{"params": {}}\n', "N,P\n1,2\n", "[1]\n", '{"a": 1}', '{"params": 3, "value": "x"}\n']
)
def test_another_file_is_refused_in_one_sentence(tmp_path, text):
    path = tmp_path / "other.jsonl"
    path.write_text(text)
    with pytest.raises(UsageError, match=r"other.jsonl, line 1 is no passage of an experiment; "):
        datafile.read(path)


def test_a_file_that_is_missing_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"nowhere.jsonl: there is no such file"):
        datafile.read(tmp_path / "nowhere.jsonl")
