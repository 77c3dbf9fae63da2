"""Keys are ordered as SQL orders rows, sums are exact, and what cannot be says so."""

from __future__ import annotations

import datetime
import functools
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bsplib
from bsplib.apps.sql.aggregate import aggregate
from bsplib.apps.sql.aggregates import Aggregate, greatest, least, mean, total
from bsplib.apps.sql.column import Column
from bsplib.apps.sql.equi_join import equi_join
from bsplib.apps.sql.errors import QueryError
from bsplib.apps.sql.expression import col, literal
from bsplib.apps.sql.files import from_arrow, to_arrow
from bsplib.apps.sql.filter import filter_rows
from bsplib.apps.sql.generate import Generator
from bsplib.apps.sql.group_by import group_by
from bsplib.apps.sql.keys import ROOM, By, agree, ordinals
from bsplib.apps.sql.less_than_join import less_than_join
from bsplib.apps.sql.lowest import lowest
from bsplib.apps.sql.order_by import order_by
from bsplib.apps.sql.plan import plan_of
from bsplib.apps.sql.program import main
from bsplib.apps.sql.project import project
from bsplib.apps.sql.relation import Relation
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


@st.composite
def keyed(draw):
    """A table of one to four columns, and the order of each."""
    kinds = draw(st.lists(st.sampled_from(list(KINDS)), min_size=1, max_size=4))
    size = draw(st.integers(0, 12))
    columns = {}
    for number, kind in enumerate(kinds):
        values = draw(st.lists(KINDS[kind] | st.none(), min_size=size, max_size=size))
        columns[f"c{number}"] = pa.array(values, kind)
    order = [By(name, draw(st.booleans()), draw(st.booleans())) for name in columns]
    return pa.table(columns), order


def compared(order, one, other):
    """-1, 0 or 1 as SQL orders two rows."""
    for by, first, second in zip(order, one, other, strict=True):
        if first is None or second is None:
            if (first is None) != (second is None):
                return -1 if (first is None) == by.nulls_first else 1
        elif first != second:
            return -1 if (first < second) != by.descending else 1
    return 0


@MANY
@given(keyed())
def test_keys_are_ordered_as_the_rows_and_give_the_columns_back(case):
    table, order = case

    def program(bsp, table):
        columns = from_arrow(table).among(by.name for by in order)
        encoding, (count,) = agree(bsp, [columns], order)
        keys = encoding.keys(columns)
        assert keys.dtype == encoding.dtype
        assert encoding.packed == (encoding.span < ROOM)
        back = encoding.columns(keys, columns)
        return keys, count, to_arrow(Relation({f"c{i}": c for i, c in enumerate(back)}))

    keys, count, back = alone(program, table)
    assert count == table.num_rows
    assert back.to_pydict() == table.to_pydict()
    rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    key_of = functools.cmp_to_key(lambda a, b: compared(order, rows[a], rows[b]))
    assert [rows[i] for i in np.argsort(keys, kind="stable")] == [
        rows[i] for i in sorted(range(len(rows)), key=key_of)
    ]


@MANY
@given(st.lists(FLOATS, min_size=2, max_size=2))
def test_ordinals_of_floats_are_ordered_as_floats(pair):
    first, second = ordinals(Column(np.array(pair))).tolist()
    assert (first < second) == (pair[0] < pair[1])
    assert (first == second) == (pair[0] == pair[1])


# -- sums ------------------------------------------------------------------------------------------


def group(columns, nprocs=3, names=("k",), **aggregates):
    def program(bsp):
        mine = {name: np.array(values)[bsp.pid :: bsp.nprocs] for name, values in columns.items()}
        relation = Relation({name: Column(values) for name, values in mine.items()})
        return to_arrow(group_by(bsp, relation, list(names), **aggregates))

    return pa.concat_tables(bsplib.run(program, nprocs=nprocs, backend="sim")).to_pydict()


@MANY
@given(st.lists(st.integers(-(2**61), 2**61), min_size=1, max_size=4))
def test_sums_of_large_integers_are_exact(values):
    if abs(sum(values)) >= 2**63:
        values = values[:1]
    made = group({"k": [0] * len(values), "v": np.array(values, np.int64)}, 1, t=total("v"))
    assert made["t"] == [sum(values)]


@pytest.mark.parametrize("nprocs", [1, 2])
def test_a_sum_that_leaves_64_bits_is_an_error(nprocs):
    with pytest.raises(QueryError, match="a sum of integers exceeds 64 bits"):
        group({"k": [1, 1], "v": [2**62, 2**62]}, nprocs, t=total("v"))


def test_a_sum_may_pass_64_bits_on_its_way():
    made = group({"k": [1] * 4, "v": [2**62, 2**62, -(2**62), -1]}, 1, t=total("v"))
    assert made["t"] == [2**62 - 1]


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.uint32])
def test_sums_of_narrow_integers_are_wide(dtype):
    top = np.iinfo(dtype).max
    made = group({"k": [5, 5, 5], "v": np.full(3, top, dtype)}, t=total("v"), m=mean("v"))
    assert (made["t"], made["m"]) == ([3 * int(top)], [float(top)])


def test_groups_whose_sum_is_zero_are_there():
    made = group({"k": [1, 1, 2], "v": [5, -5, 0]}, t=total("v"))
    assert dict(zip(made["k"], made["t"], strict=True)) == {1: 0, 2: 0}


@MANY
@given(
    rows=st.lists(st.tuples(st.integers(-4, 4), st.integers(1, 3) | st.integers(-3, 3))),
    chunk=st.integers(1, 5),
)
def test_groups_are_there_wherever_their_sum_becomes_zero(rows, chunk):
    """Sums above 0 tell which groups have a row, up to the chunk where one is not above 0."""
    with pytest.MonkeyPatch.context() as patch:
        for module in ("aggregates", "keys"):
            patch.setattr(f"bsplib.apps.sql.{module}.CHUNK", chunk)
        columns = {name: [row[place] for row in rows] for place, name in enumerate("kv")}
        made = group({name: np.array(c, np.int32) for name, c in columns.items()}, 1, t=total("v"))
    expected = {}
    for key, value in rows:
        expected[key] = expected.get(key, 0) + value
    assert dict(zip(made["k"], made["t"], strict=True)) == expected


@pytest.mark.parametrize("place", [0, 3, 8])
def test_a_nan_is_found_wherever_it_is(place, monkeypatch):
    monkeypatch.setattr("bsplib.apps.sql.keys.CHUNK", 3)
    keys = np.arange(9.0)
    keys[place] = np.nan
    with pytest.raises(QueryError, match="a float is NaN"):
        group({"k": keys, "v": np.ones(9)}, 1, t=total("v"))


def test_infinity_is_a_value_and_minus_zero_is_zero():
    columns = {"k": [0.0, -0.0, math.inf, -math.inf, math.inf], "v": [1, 2, 3, 4, 5]}
    made = group(columns, t=total("v"))
    assert dict(zip(made["k"], made["t"], strict=True)) == {0.0: 3, math.inf: 8, -math.inf: 4}


def test_groups_far_apart_are_found():
    made = group({"k": [-(2**63), 2**63 - 1, 0, 0], "v": [1, 2, 3, 4]}, t=total("v"))
    found = dict(zip(made["k"], made["t"], strict=True))
    assert found == {-(2**63): 1, 2**63 - 1: 2, 0: 7}


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
        (lambda bsp: filter_rows(RELATION, col("s") > 3), "string and integer cannot be compared"),
        (lambda bsp: filter_rows(RELATION, col("d") == "x"), "date and string cannot be compared"),
        (lambda bsp: project(RELATION, n=col("s") + 1), r"string \+ integer cannot"),
        (lambda bsp: project(RELATION, n=col("d") * 2), r"date \* integer cannot"),
        (lambda bsp: project(RELATION, n=col("big") * 4), "exceeds 64 bits; convert them"),
        (lambda bsp: group_by(bsp, RELATION, ["x"]), "a float is NaN, which cannot be ordered"),
        (lambda bsp: order_by(bsp, RELATION, ["x"]), "a float is NaN"),
        (lambda bsp: lowest(bsp, RELATION, "x"), "a float is NaN"),
        (lambda bsp: lowest(bsp, RELATION, "i", 1.5), "the fraction is 1.5; it is 0 to 1"),
        (lambda bsp: group_by(bsp, RELATION, ["i"], t=total("d")), "'d' is a date; a sum is of"),
        (lambda bsp: aggregate(bsp, RELATION, t=mean("s")), "'s' is a string; a mean is of"),
        (lambda bsp: aggregate(bsp, RELATION, t=least("z")), "no column 'z'"),
        (lambda bsp: equi_join(bsp, RELATION, OTHER, ["i"]), "integer and float cannot"),
        (
            lambda bsp: equi_join(bsp, RELATION, RELATION, ["i"]),
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
    ("value", "message"),
    [
        (None, "for NULL ask is_null"),
        (math.nan, "nan is no integer, float, string or date"),
        (2**70, "does not fit 64 bits"),
        ([1], r"\[1\] is no integer"),
    ],
)
def test_a_literal_is_of_one_of_four_kinds(value, message):
    with pytest.raises(QueryError, match=message):
        literal(value)


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


# -- three answers ---------------------------------------------------------------------------------


def test_division_by_zero_is_null():
    made = to_arrow(project(RELATION, q=col("big") / col("i"))).to_pydict()
    assert made == {"q": [float(2**62), 1.0, None]}


def test_what_is_unknown_is_not_true_and_its_opposite_neither():
    condition = col("s") == "a"
    for each, rows in ((condition, [0]), (~condition, [1]), (condition | ~condition, [0, 1])):
        assert np.flatnonzero(each.truth(RELATION)).tolist() == rows


def test_a_string_that_no_row_has_may_be_compared():
    for condition, rows in (
        (col("s") > "aa", [1]),
        (col("s") <= "aa", [0]),
        (col("s") != "c", [0, 1]),
    ):
        assert np.flatnonzero(condition.truth(RELATION)).tolist() == rows


def test_days_may_be_compared_with_dates():
    found = filter_rows(RELATION, col("d") < datetime.date(2001, 1, 2))
    assert found.rows == 3


def test_no_primitive_changes_what_it_is_given():
    before = to_arrow(RELATION.only(["i", "big", "d", "s"]))

    def program(bsp):
        given = RELATION.only(["i", "big", "d", "s"])
        group_by(bsp, given, ["s"], t=total("i"), low=least("d"), high=greatest("s"))
        order_by(bsp, given, ["s", "i"])
        equi_join(bsp, given, project(given, "s", n="i"), ["s"])
        lowest(bsp, given, "i", 0.5)
        return to_arrow(given)

    assert alone(program).equals(before)


def test_an_aggregate_says_what_it_is():
    assert total("x") == Aggregate("sum", "x")
