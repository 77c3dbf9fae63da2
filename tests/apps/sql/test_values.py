"""Keys are ordered as values, sums are exact, and what cannot be says so."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import bsplib
from bsplib.apps.sql.equi_join import equi_join, sorted_join
from bsplib.apps.sql.files import from_arrow, to_arrow
from bsplib.apps.sql.generate import Generator
from bsplib.apps.sql.group_by import group_by
from bsplib.apps.sql.keys import agree, ordinals
from bsplib.apps.sql.less_than_join import less_than_join
from bsplib.apps.sql.lowest import lowest
from bsplib.apps.sql.plan import plan_of
from bsplib.apps.sql.program import main
from bsplib.apps.sql.relation import Column, QueryError, Relation
from bsplib.apps.sql.sorting import SampleSort
from tests.drawn import examples

MANY = examples(40)

INTEGERS = st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1)
FLOATS = st.floats(allow_nan=False)
DAYS = st.dates()
STRINGS = st.text(st.characters(exclude_categories=["Cs"]), max_size=3)
KINDS = {
    pa.int64(): INTEGERS,
    pa.int8(): st.integers(-128, 127),
    pa.float64(): FLOATS,
    pa.date32(): DAYS,
    pa.string(): STRINGS,
}


def alone(program, *args):
    """What a program gives on one virtual processor."""
    return bsplib.run(program, *args, nprocs=1, backend="sim")[0]


@MANY
@given(st.sampled_from(list(KINDS)), st.data())
def test_keys_are_ordered_as_the_values_and_give_the_column_back(kind, data):
    values = data.draw(st.lists(KINDS[kind] | st.none(), max_size=12))
    assume(not {-(2**63), 2**63 - 1, None} <= set(values))  # the next test

    def program(bsp, table):
        column = from_arrow(table)["c"]
        encoding = agree(bsp, [column])
        keys = encoding.keys(column)
        assert keys.dtype == encoding.dtype
        return keys, to_arrow(Relation({"c": encoding.column(keys, column)}))

    keys, back = alone(program, pa.table({"c": pa.array(values, kind)}))
    assert back["c"].to_pylist() == values
    known = sorted(value for value in values if value is not None)
    found = [values[place] for place in np.argsort(keys, kind="stable")]
    assert found == known + [None] * (len(values) - len(known))


def test_integers_of_all_64_bits_are_keys_unless_a_null_is_beside_them():
    ends = [-(2**63), 2**63 - 1, 0]

    def program(bsp, values):
        return to_arrow(group_by(bsp, from_arrow(pa.table({"k": pa.array(values)})), "k", []))

    assert alone(program, ends)["k"].to_pylist() == ends
    with pytest.raises(QueryError, match="take all 64 bits beside NULL; convert them to floats"):
        alone(program, [*ends, None])


@MANY
@given(st.lists(FLOATS, min_size=2, max_size=2))
def test_ordinals_of_floats_are_ordered_as_floats(pair):
    first, second = ordinals(Column(np.array(pair))).tolist()
    assert (first < second) == (pair[0] < pair[1])
    assert (first == second) == (pair[0] == pair[1])


# -- sums ------------------------------------------------------------------------------------------


def group(columns, nprocs=3):
    """The sum of each key of the rows."""

    def program(bsp):
        mine = {name: np.array(values)[bsp.pid :: bsp.nprocs] for name, values in columns.items()}
        relation = Relation({name: Column(values) for name, values in mine.items()})
        return to_arrow(group_by(bsp, relation, "k", ["v"]))

    made = pa.concat_tables(bsplib.run(program, nprocs=nprocs, backend="sim"))
    return dict(zip(made["k"].to_pylist(), made["v"].to_pylist(), strict=True))


@MANY
@given(st.lists(st.integers(-(2**61), 2**61), min_size=1, max_size=4))
def test_sums_of_large_integers_are_exact(values):
    if abs(sum(values)) >= 2**63:
        values = values[:1]
    assert group({"k": [0] * len(values), "v": np.array(values, np.int64)}, 1) == {0: sum(values)}


@pytest.mark.parametrize("nprocs", [1, 2])
def test_a_sum_that_leaves_64_bits_is_an_error(nprocs):
    with pytest.raises(QueryError, match="a sum of integers exceeds 64 bits"):
        group({"k": [1, 1], "v": [2**62, 2**62]}, nprocs)


def test_a_sum_may_pass_64_bits_on_its_way():
    assert group({"k": [1] * 4, "v": [2**62, 2**62, -(2**62), -1]}, 1) == {1: 2**62 - 1}


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.uint32])
def test_sums_of_narrow_integers_are_wide(dtype):
    top = np.iinfo(dtype).max
    assert group({"k": [5, 5, 5], "v": np.full(3, top, dtype)}) == {5: 3 * int(top)}


@MANY
@given(
    rows=st.lists(st.tuples(st.integers(-4, 4), st.integers(1, 3) | st.integers(-3, 3))),
    chunk=st.integers(1, 5),
)
def test_groups_whose_sum_is_zero_are_there(rows, chunk):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bsplib.apps.sql.group_by.CHUNK", chunk)
        columns = {name: [row[place] for row in rows] for place, name in enumerate("kv")}
        made = group({name: np.array(c, np.int32) for name, c in columns.items()}, 1)
    expected = {}
    for key, value in rows:
        expected[key] = expected.get(key, 0) + value
    assert made == expected


def test_a_nan_is_not_grouped_by():
    with pytest.raises(QueryError, match="a float is NaN"):
        group({"k": [0.0, math.nan, 2.0], "v": np.ones(3)}, 1)


def test_infinity_is_a_value_and_minus_zero_is_zero():
    made = group({"k": [0.0, -0.0, math.inf, -math.inf, math.inf], "v": [1, 2, 3, 4, 5]})
    assert made == {0.0: 3, math.inf: 8, -math.inf: 4}


def test_groups_far_apart_are_found():
    made = group({"k": [-(2**63), 2**63 - 1, 0, 0], "v": [1, 2, 3, 4]})
    assert made == {-(2**63): 1, 2**63 - 1: 2, 0: 7}


# -- what cannot be --------------------------------------------------------------------------------

RELATION = Relation(
    {
        "i": Column(np.array([1, 2, 0])),
        "big": Column(np.array([2**62, 2, 3])),
        "x": Column(np.array([0.5, np.nan, 1.0])),
        "d": Column(np.array(["2001-01-01"] * 3, "datetime64[D]")),
        "s": from_arrow(pa.table({"s": ["a", "b", None]}))["s"],
    }
)
OTHER = Relation({"j": Column(np.array([1])), "i": Column(np.array([1.5]))})


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (lambda bsp: RELATION["y"], "no column 'y'; there are i, big, x, d, s"),
        (lambda bsp: group_by(bsp, RELATION, "x", []), "a float is NaN, which cannot be ordered"),
        (lambda bsp: lowest(bsp, RELATION, "x"), "a float is NaN"),
        (lambda bsp: lowest(bsp, RELATION, "i", 1.5), "the fraction is 1.5; it is 0 to 1"),
        (lambda bsp: group_by(bsp, RELATION, "i", ["d"]), "'d' is a date; a calculation is of"),
        (lambda bsp: group_by(bsp, RELATION, "i", ["z"]), "no column 'z'"),
        (lambda bsp: equi_join(bsp, RELATION, OTHER, "i"), "integer and float cannot"),
        (
            lambda bsp: equi_join(bsp, RELATION, RELATION, "i"),
            "both sides have a column 'big'; rename it",
        ),
        (
            lambda bsp: less_than_join(bsp, RELATION, OTHER, "i", "j"),
            "both sides have a column 'i'",
        ),
        (lambda bsp: plan_of("fast"), "no stage 'fast'; there are original, balanced"),
        (lambda bsp: main(bsp, {"ITEM": to_arrow(OTHER)}), "there is no relation QNT"),
        (lambda bsp: main(bsp, 10, block=0), "a block cannot have 0 rows"),
    ],
)
def test_what_cannot_be_is_one_sentence(program, message):
    with pytest.raises(QueryError, match=message) as caught:
        alone(program)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"size": 0}, "cannot be made of 0 rows"),
        ({"items": -1}, "cannot be made of -1 rows"),
        ({"skew": -0.5}, "the skew is -0.5"),
        ({"nulls": 1.5}, r"fraction of NULLs 1\.5"),
    ],
)
def test_relations_that_cannot_be_made(how, message):
    with pytest.raises(QueryError, match=message):
        Generator(**how)


def test_no_primitive_changes_what_it_is_given():
    names = ["i", "big", "d", "s"]
    before = to_arrow(RELATION.only(names))

    def program(bsp):
        given, other = RELATION.only(names), Relation({"s": RELATION["s"], "n": RELATION["i"]})
        group_by(bsp, given, "s", ["i", "big"])
        equi_join(bsp, given, other, "s")
        sorted_join(bsp, given, other, "s", SampleSort())
        less_than_join(bsp, given, other.only(["n"]), "i", "n")
        lowest(bsp, given, "i", 0.5)
        return to_arrow(given)

    assert alone(program).equals(before)
