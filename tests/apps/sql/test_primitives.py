"""Every relational primitive gives the rows that DuckDB gives, on any number of processes."""

from __future__ import annotations

import datetime
import math
import random
from functools import partial
from itertools import product

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bsplib
from bsplib.apps.sql.aggregate import aggregate
from bsplib.apps.sql.aggregates import count, greatest, least, mean, total
from bsplib.apps.sql.distinct import distinct
from bsplib.apps.sql.equi_join import equi_join
from bsplib.apps.sql.expression import col
from bsplib.apps.sql.files import to_arrow
from bsplib.apps.sql.filter import filter_rows
from bsplib.apps.sql.group_by import group_by
from bsplib.apps.sql.keys import By
from bsplib.apps.sql.left_join import left_join
from bsplib.apps.sql.less_than_join import less_than_join
from bsplib.apps.sql.lowest import lowest
from bsplib.apps.sql.order_by import order_by
from bsplib.apps.sql.project import project
from bsplib.apps.sql.rebalance import rebalance
from bsplib.apps.sql.scan import scan
from bsplib.apps.sql.sorted_join import sorted_join
from bsplib.apps.sql.sorting import SampleSort
from tests.drawn import examples

COUNTS = (1, 2, 3, 4, 7, 16)
MANY = examples(6)
FEW = examples(1)
ONE, ALL = SampleSort(2, "one"), SampleSort(2, "bitonic")

# -- tables --------------------------------------------------------------------------------------

SMALL = st.integers(-3, 3)
INTEGERS = SMALL | st.integers(-(2**31), 2**31 - 1)
FLOATS = st.sampled_from([0.0, -0.0, 0.5, -1.25, 1e300, math.inf, -math.inf]) | st.floats(
    -1e6, 1e6, width=32
)
DAYS = st.dates(datetime.date(1999, 12, 25), datetime.date(2000, 1, 5)) | st.dates(
    datetime.date(1600, 1, 1), datetime.date(2400, 1, 1)
)
STRINGS = st.sampled_from(["", "a", "b", "A", "aa", " "]) | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=4
)
MODERATE = st.floats(-1e6, 1e6, width=32)
TYPES = {
    "y": (pa.float64(), MODERATE),
    "i": (pa.int32(), INTEGERS),
    "k": (pa.int64(), SMALL),
    "x": (pa.float64(), FLOATS),
    "d": (pa.date32(), DAYS),
    "s": (pa.string(), STRINGS),
}


@st.composite
def tables(draw, names="ikxds", most=25):
    """A table with columns of all kinds, NULLs, duplicates; perhaps empty.

    What may stand in a column is drawn, and which of it stands where follows from a seed:
    to draw every value takes too long.
    """
    size = draw(st.integers(0, most))
    pick = random.Random(draw(st.integers(0, 2**32)))
    columns = {}
    for name in names:
        kind, values = TYPES[name]
        palette = draw(st.lists(values | st.none(), min_size=1, max_size=6))
        columns[name] = pa.array(pick.choices(palette, k=size), kind)
    return pa.table(columns)


def skewed(size=150):
    """Half of all rows have one key; the others are few of each."""
    keys = [7 if row % 2 else row % 61 for row in range(size)]
    return pa.table(
        {
            "i": pa.array(
                [None if row % 13 == 5 else row * 7 % 50 - 20 for row in range(size)], pa.int32()
            ),
            "k": pa.array(
                [None if row % 17 == 3 else key for row, key in enumerate(keys)], pa.int64()
            ),
            "x": pa.array([row % 29 / 4 for row in range(size)]),
            "d": pa.array([datetime.date(2001, 1, 1 + row % 28) for row in range(size)]),
            "s": pa.array([f"word {row % 11}" for row in range(size)]),
        }
    )


# -- running -------------------------------------------------------------------------------------


def spmd(bsp, program, block, *given):
    result = program(bsp, *(scan(bsp, table, block=block) for table in given))
    return to_arrow(result)


def run(program, *given, nprocs, pools=None, block=2):
    """The rows of all processes, those of process 0 first."""
    if pools is None:
        parts = bsplib.run(spmd, program, block, *given, nprocs=nprocs, backend="sim")
    else:
        parts = pools(nprocs).run(spmd, program, block, *given)
    return pa.concat_tables(parts)


@pytest.fixture(scope="module")
def query():
    """What DuckDB makes of tables a, b; in one thread, so that processes can be forked."""
    with duckdb.connect(config={"threads": 1}) as connection:

        def ask(sql, *given):
            for name, table in zip("ab", given, strict=False):
                connection.register(name, table)
            return connection.sql(sql).to_arrow_table()

        yield ask


def rows_of(table):
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def rank(value):
    """An order of values of all kinds: NULL first, floats last since they may be inexact."""
    return (value is not None, repr(value) if not isinstance(value, float) else "")


def in_some_order(rows):
    return sorted(rows, key=lambda row: [(rank(v), v if isinstance(v, float) else 0) for v in row])


def assert_same_rows(got, expected):
    assert got.column_names == expected.column_names
    assert_rows_alike(in_some_order(rows_of(got)), in_some_order(rows_of(expected)))


def assert_rows_alike(got, expected):
    assert len(got) == len(expected)
    for one, other in zip(got, expected, strict=True):
        for value, wanted in zip(one, other, strict=True):
            if isinstance(value, float) and isinstance(wanted, float):
                assert value == wanted or math.isclose(value, wanted, rel_tol=1e-9, abs_tol=1e-9)
            else:
                assert value == wanted
                assert type(value) is type(wanted) or value is wanted


# -- what is checked -----------------------------------------------------------------------------


class Case:
    """A program and the SQL that says what it is to give."""

    def __init__(self, program, sql, *, kinds=("ikxds",), ordered=False):
        self.program = program
        self.sql = sql
        self.kinds = kinds
        self.ordered = ordered

    def check(self, query, *given, **place):
        got = run(self.program, *given, **place)
        expected = query(self.sql, *given)
        assert got.column_names == expected.column_names
        if self.ordered:
            assert_rows_alike(rows_of(got), rows_of(expected))
        else:
            assert_same_rows(got, expected)


def of_all_kinds(bsp, a):
    extremes = {f"low_{name}": least(name) for name in "ixds"}
    extremes |= {f"high_{name}": greatest(name) for name in "ixds"}
    return group_by(bsp, a, ["k"], n=count(), given=count("s"), **extremes)


SQL_OF_ALL_KINDS = (
    "SELECT k, count(*) AS n, count(s) AS given, "
    + ", ".join(f"min({name}) AS low_{name}" for name in "ixds")
    + ", "
    + ", ".join(f"max({name}) AS high_{name}" for name in "ixds")
    + " FROM a GROUP BY k"
)
SUMS = {"t": total("i"), "f": total("y"), "m": mean("i"), "my": mean("y"), "n": count("i")}
SQL_SUMS = "sum(i)::BIGINT AS t, sum(y) AS f, avg(i) AS m, avg(y) AS my, count(i) AS n"


def grouped(names, sort=None):
    def program(bsp, a):
        return group_by(bsp, a, list(names), sort=sort, **SUMS)

    listed = ", ".join(names)
    return Case(program, f"SELECT {listed}, {SQL_SUMS} FROM a GROUP BY {listed}", kinds=("ikyds",))


def distincts(names, sort=None):
    return Case(
        lambda bsp, a: distinct(bsp, a.only(list(names)), sort=sort),
        f"SELECT DISTINCT {', '.join(names)} FROM a",
    )


def joined(join, sql, names):
    """A join of two tables that have the columns to join on in common."""
    both = [f"{name}" for name in names]

    def program(bsp, a, b):
        others = {f"r{name}": name for name in b.columns if name not in both}
        return join(bsp, a, project(b, *both, **others), both)

    using = ", ".join(both)
    left = ", ".join(f"a.{name}" for name in "ikxds" if name not in both)
    right = ", ".join(f"b.{name} AS r{name}" for name in "ikxds" if name not in both)
    return Case(
        program,
        f"SELECT {using}, {left}, {right} FROM a {sql} JOIN b USING ({using})",
        kinds=("ikxds", "ikxds"),
    )


def less_than(name):
    def program(bsp, a, b):
        return less_than_join(
            bsp, a, project(b, "k", **{f"r{name}": name}).only([f"r{name}"]), name, f"r{name}"
        )

    return Case(
        program,
        f"SELECT a.*, b.{name} AS r{name} FROM a JOIN b ON a.{name} < b.{name}",
        kinds=("ikxds",) * 2,
    )


def ordered(*order, sort=ONE, stable=True):
    """All columns take part, so that the order is one."""
    rest = [name for name in "ikxds" if name not in [by.name for by in order]]

    def program(bsp, a):
        return order_by(bsp, a, [*order, *rest], sort=sort, stable=stable)

    way, ends = {True: "DESC", False: "ASC"}, {True: "FIRST", False: "LAST"}
    words = [f"{by.name} {way[by.descending]} NULLS {ends[by.nulls_first]}" for by in order]
    words += [f"{name} ASC NULLS LAST" for name in rest]
    return Case(program, f"SELECT * FROM a ORDER BY {', '.join(words)}", ordered=True)


CONDITION = ((col("i") > 0) & (col("d") <= datetime.date(2000, 1, 1))) | ~(col("s") == "a")
SQL_CONDITION = "(i > 0 AND d <= DATE '2000-01-01') OR NOT (s = 'a')"

CASES = {
    "scan": Case(lambda bsp, a: a, "SELECT * FROM a"),
    "filter": Case(
        lambda bsp, a: filter_rows(a, CONDITION), f"SELECT * FROM a WHERE {SQL_CONDITION}"
    ),
    "filter by NULL": Case(
        lambda bsp, a: filter_rows(a, col("x").is_null() | col("s").is_in(["b", "", "zz"])),
        "SELECT * FROM a WHERE x IS NULL OR s IN ('b', '', 'zz')",
    ),
    "filter by columns": Case(
        lambda bsp, a: filter_rows(a, (col("i") != col("k")) & (col("x") >= col("i"))),
        "SELECT * FROM a WHERE i <> k AND x >= i",
    ),
    "project": Case(
        lambda bsp, a: project(a, "s", e=col("i") * 2 - col("k"), f=col("k") / 4 + 0.5, k="k"),
        "SELECT s, i::BIGINT * 2 - k AS e, k / 4 + 0.5::DOUBLE AS f, k FROM a",
    ),
    "days between": Case(
        lambda bsp, a: project(a, n=col("d") - datetime.date(2000, 1, 1)),
        "SELECT d - DATE '2000-01-01' AS n FROM a",
    ),
    "aggregate": Case(
        lambda bsp, a: aggregate(bsp, a, all=count(), low=least("s"), high=greatest("d"), **SUMS),
        f'SELECT count(*) AS "all", min(s) AS low, max(d) AS high, {SQL_SUMS} FROM a',
        kinds=("ikyds",),
    ),
    "group by": grouped("k"),
    "group by sort": grouped("k", ONE),
    "group by bitonic sort": grouped("k", ALL),
    "group by several": grouped("sdk"),
    "group by several by sort": grouped("sdk", ONE),
    "group by large integers": grouped("i"),
    "group by floats": Case(
        lambda bsp, a: group_by(bsp, a, ["x", "k"], t=total("i")),
        "SELECT x, k, sum(i)::BIGINT AS t FROM a GROUP BY x, k",
    ),
    "extremes": Case(of_all_kinds, SQL_OF_ALL_KINDS),
    "distinct": distincts("sk"),
    "distinct of all kinds": distincts("ikxds"),
    "distinct by sort": distincts("kd", ONE),
    "equi-join": joined(equi_join, "", "k"),
    "equi-join on strings": joined(equi_join, "", "s"),
    "equi-join on several": joined(equi_join, "", "ks"),
    "equi-join on floats": joined(equi_join, "", "x"),
    "join by sort": joined(partial(sorted_join, sort=ONE), "", "k"),
    "join by sort on several": joined(partial(sorted_join, sort=ALL), "", "sd"),
    "left join": joined(left_join, "LEFT", "k"),
    "left join on strings": joined(left_join, "LEFT", "sk"),
    "less-than-join": less_than("x"),
    "less-than-join of integers": less_than("i"),
    "less-than-join of strings": less_than("s"),
    "less-than-join of dates": less_than("d"),
    "lowest": Case(
        lambda bsp, a: lowest(bsp, a, "x", 0.3),
        "SELECT * FROM a QUALIFY rank() OVER (ORDER BY x) <= ceil(count(x) OVER () * 3 / 10)",
    ),
    "lowest strings": Case(
        lambda bsp, a: lowest(bsp, a, "s"),
        "SELECT * FROM a QUALIFY rank() OVER (ORDER BY s) <= ceil(count(s) OVER () / 100)",
    ),
    "order by": ordered(By("k")),
    "order by several": ordered(By("s", descending=True), By("x", nulls_first=True)),
    "order by with NULLs first": ordered(By("d", descending=True, nulls_first=True), sort=ALL),
    "order by, unstably": ordered(By("i"), By("k", descending=True), stable=False),
    "rebalance": Case(rebalance, "SELECT * FROM a"),
}
USUAL_PLACES = [(1, "sim"), (3, "sim"), (16, "sim"), (3, "shm")]
"""Where make test runs every primitive; tests with drawn tables take all numbers of processes."""
PLACES = [
    pytest.param(*place, marks=() if place in USUAL_PLACES else pytest.mark.slow)
    for place in product(COUNTS, ("sim", "shm"))
]


@pytest.mark.parametrize(("nprocs", "backend"), PLACES)
@pytest.mark.parametrize("name", CASES)
def test_skewed_rows_give_what_duckdb_gives(name, nprocs, backend, pools, query):
    case = CASES[name]
    table = skewed().append_column("y", skewed()["x"])
    given = [table.select(list(kinds)) for kinds in case.kinds]
    given[1:] = [table.slice(0, 30) for table in given[1:]]
    case.check(query, *given, nprocs=nprocs, pools=pools if backend == "shm" else None)


@pytest.mark.parametrize("name", CASES)
@MANY
@given(data=st.data())
def test_virtual_processors_give_what_duckdb_gives(name, data, query):
    case = CASES[name]
    given = [data.draw(tables(kinds)) for kinds in case.kinds]
    case.check(
        query, *given, nprocs=data.draw(st.sampled_from(COUNTS)), block=data.draw(st.integers(1, 9))
    )


@pytest.mark.parametrize("name", CASES)
@FEW
@given(data=st.data())
def test_real_processes_give_what_duckdb_gives(name, data, pools, query):
    case = CASES[name]
    given = [data.draw(tables(kinds)) for kinds in case.kinds]
    case.check(query, *given, nprocs=data.draw(st.sampled_from(COUNTS)), pools=pools)
