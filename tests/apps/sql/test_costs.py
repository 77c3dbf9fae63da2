"""Primitives take the supersteps that they state, and keep communication in balance."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import bsplib
from bsplib.apps.sql.equi_join import equi_join, sorted_join
from bsplib.apps.sql.exchange import rebalance
from bsplib.apps.sql.files import scan
from bsplib.apps.sql.group_by import group_by
from bsplib.apps.sql.keys import owners
from bsplib.apps.sql.less_than_join import less_than_join
from bsplib.apps.sql.lowest import lowest
from bsplib.apps.sql.relation import Column, Relation
from bsplib.apps.sql.sorting import SampleSort
from bsplib.apps.work import SUM_S, VALUE_S
from bsplib.profiler.costs import h_relation
from tests.recordings import record_run

ONE = SampleSort(8)
SORT = 4
"""Supersteps of the sample sort with its sample on one process, as it states them."""


def rows_of(bsp, size=3000, seed=0):
    numbers = np.random.default_rng([seed, bsp.pid])
    return Relation(
        {
            "k": Column(numbers.integers(0, 50, size // bsp.nprocs)),
            "x": Column(numbers.random(size // bsp.nprocs)),
        }
    )


def other(bsp, size=3000):
    made = rows_of(bsp, size, seed=1)
    return Relation({"k": made["k"], "y": made["x"]})


PRIMITIVES = {
    "group by": (2, lambda bsp: group_by(bsp, rows_of(bsp), "k", ["x"])),
    "equi-join": (2, lambda bsp: equi_join(bsp, rows_of(bsp), other(bsp), "k")),
    "less-than-join": (
        2,
        lambda bsp: less_than_join(bsp, other(bsp, 30).only(["y"]), rows_of(bsp), "y", "x"),
    ),
    "lowest": (3, lambda bsp: lowest(bsp, rows_of(bsp), "x")),
    "rebalance": (2, lambda bsp: rebalance(bsp, rows_of(bsp))),
    "group by sort": (5 + SORT, lambda bsp: group_by(bsp, rows_of(bsp), "k", ["x"], sort=ONE)),
    "join by sort": (5 + SORT, lambda bsp: sorted_join(bsp, rows_of(bsp), other(bsp), "k", ONE)),
}


def recorded(path, program, nprocs, *args):
    return record_run(path, program, *args, nprocs=nprocs, backend="sim")


def supersteps(run):
    return len(np.unique(run.records["superstep"][run.records["kind"] == 0]))


@pytest.mark.parametrize("nprocs", [1, 2, 4])
@pytest.mark.parametrize("name", PRIMITIVES)
def test_a_primitive_takes_the_supersteps_it_states(tmp_path, name, nprocs):
    stated, program = PRIMITIVES[name]

    def main(bsp):
        program(bsp)

    assert supersteps(recorded(tmp_path / "trace.bsp", main, nprocs)) == stated


@pytest.mark.parametrize("name", PRIMITIVES)
def test_a_primitive_charges_for_each_row_at_least(tmp_path, name):
    _, program = PRIMITIVES[name]

    def main(bsp):
        bsp.charge(0)
        program(bsp)

    run = recorded(tmp_path / "trace.bsp", main, 4)
    charged = (run.records["arrive"] - run.records["start"]).reshape(4, -1).sum(axis=1) / 1e9
    assert charged.min() >= min(SUM_S, VALUE_S) * 3000 / 4
    assert charged.max() < 1.5 * charged.min()  # as even as the rows


def test_a_scan_takes_one_superstep_where_there_are_strings(tmp_path):
    def main(bsp, table):
        scan(bsp, table)

    strings, numbers = pa.table({"s": ["a", "b"]}), pa.table({"k": [1, 2]})
    assert supersteps(recorded(tmp_path / "s.bsp", main, 3, strings)) == 1
    assert supersteps(recorded(tmp_path / "k.bsp", main, 3, numbers)) == 0


def test_pairs_are_spread_where_one_process_would_make_them_all(tmp_path):
    """All great values are on process 0; the less-than-join takes two supersteps more."""

    def main(bsp):
        left = Relation({"a": Column(np.arange(10.0))})
        right = Relation({"b": Column(np.full(800, 100.0 if bsp.pid == 0 else -1.0))})
        return less_than_join(bsp, left, right, "a", "b").rows

    assert set(bsplib.run(main, nprocs=4, backend="sim")) == {4 * 10 * 200}
    assert supersteps(recorded(tmp_path / "trace.bsp", main, 4)) == 4


def test_rows_that_are_placed_are_not_moved_again(tmp_path):
    def main(bsp, with_join):
        groups = group_by(bsp, rows_of(bsp), "k", ["x"])
        if with_join:
            joined = equi_join(bsp, groups, groups.only(["k"]), "k")
            assert joined.placed_by == "k"

    once = recorded(tmp_path / "once.bsp", main, 4, False)
    again = recorded(tmp_path / "again.bsp", main, 4, True)
    h = [np.maximum(*h_relation(run)).sum() for run in (once, again)]
    assert h[1] - h[0] <= 4 * 3 * 8 * 8  # ranges and numbers of rows, and not a row


def test_a_rebalanced_relation_differs_by_one_row_and_keeps_its_order():
    def main(bsp):
        sizes = [50, 0, 3, 1, 0, 20, 7]
        start = sum(sizes[: bsp.pid])
        mine = Relation({"n": Column(np.arange(start, start + sizes[bsp.pid]))})
        return rebalance(bsp, mine)["n"].values.tolist()

    found = bsplib.run(main, nprocs=7, backend="sim")
    assert [n for part in found for n in part] == list(range(81))
    assert {len(part) for part in found} == {11, 12}


def test_weights_are_spread_within_the_heaviest_row():
    def main(bsp):
        weights = np.random.default_rng(bsp.pid).integers(0, 100, 500 * (bsp.pid + 1))
        mine = Relation({"weight": Column(weights)})
        return int(rebalance(bsp, mine, weights)["weight"].values.sum())

    found = bsplib.run(main, nprocs=5, backend="sim")
    assert max(found) - sum(found) / 5 <= 100


@pytest.mark.parametrize("step", [1, 2, 16, 1000, 2**32])
def test_owners_share_values_in_any_arithmetic_progression(step):
    column = Column(np.arange(16_000) * step)
    shares = np.bincount(owners(column, 16), minlength=16)
    assert shares.max() < 1.1 * 1000


@pytest.mark.parametrize("nprocs", [2, 16])
def test_the_owner_of_a_value_does_not_depend_on_its_width(nprocs):
    values = np.arange(-50, 50)
    wide = owners(Column(values), nprocs)
    np.testing.assert_array_equal(owners(Column(values.astype(np.int8)), nprocs), wide)


def test_a_selection_ends_after_few_rounds_on_many_processes(tmp_path):
    def main(bsp):
        return lowest(bsp, rows_of(bsp, 64_000), "x", 0.5).rows

    assert sum(bsplib.run(main, nprocs=16, backend="sim")) == 32_000
    run = recorded(tmp_path / "trace.bsp", main, 16)
    assert 3 < supersteps(run) <= 3 + 2 * 10
    assert np.maximum(*h_relation(run)).max() <= 15 * 4096 * 8
