"""Every relational primitive gives the rows that DuckDB gives, on any number of processes."""

from __future__ import annotations

import datetime
import math
import random
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import NamedTuple

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bsplib.apps.sql.equi_join import equi_join, sorted_join
from bsplib.apps.sql.exchange import rebalance
from bsplib.apps.sql.files import scan, to_arrow
from bsplib.apps.sql.group_by import group_by
from bsplib.apps.sql.less_than_join import less_than_join
from bsplib.apps.sql.lowest import lowest
from bsplib.apps.sql.relation import Relation
from bsplib.apps.sql.sorting import SampleSort
from tests.drawn import examples

COUNTS = (1, 3, 7)
MANY = examples(6)
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
    assert got.num_rows == expected.num_rows
    both = (in_some_order(rows_of(table)) for table in (got, expected))
    for one, other in zip(*both, strict=True):
        for value, wanted in zip(one, other, strict=True):
            if isinstance(value, float) and isinstance(wanted, float):
                assert value == wanted or math.isclose(value, wanted, rel_tol=1e-9, abs_tol=1e-9)
            else:
                assert value == wanted
                assert type(value) is type(wanted) or value is wanted


# -- what is checked -----------------------------------------------------------------------------


class Case(NamedTuple):
    """A program and the SQL that says what it is to give."""

    program: Callable
    sql: str
    kinds: tuple[str, ...] = ("ikxds",)


@pytest.fixture(scope="module")
def check(run_on, query):
    """Checks what a case gives of some tables, block by block."""

    def check(case, *given, block=2, **place):
        parts = run_on(spmd, case.program, block, *given, **place)
        assert_same_rows(pa.concat_tables(parts), query(case.sql, *given))

    return check


def grouped(name, sort=None):
    summed = [other for other in "iy" if other != name]
    sums = {"i": "sum(i)::BIGINT AS i", "y": "sum(y) AS y"}
    listed = ", ".join(sums[other] for other in summed)
    return Case(
        lambda bsp, a: group_by(bsp, a, name, summed, sort=sort),
        f"SELECT {name}, {listed} FROM a GROUP BY {name}",
        kinds=("ikxyds",),
    )


def joined(join, name):
    def program(bsp, a, b):
        renamed = {f"r{other}": column for other, column in b.columns.items()}
        del renamed[f"r{name}"]
        return join(bsp, a, Relation({name: b[name], **renamed}), name)

    left = ", ".join(f"a.{other}" for other in "ikxds" if other != name)
    right = ", ".join(f"b.{other} AS r{other}" for other in "ikxds" if other != name)
    return Case(
        program,
        f"SELECT {name}, {left}, {right} FROM a JOIN b USING ({name})",
        kinds=("ikxds", "ikxds"),
    )


def less_than(name):
    def program(bsp, a, b):
        return less_than_join(bsp, a, Relation({f"r{name}": b[name]}), name, f"r{name}")

    return Case(
        program,
        f"SELECT a.*, b.{name} AS r{name} FROM a JOIN b ON a.{name} < b.{name}",
        kinds=("ikxds",) * 2,
    )


CASES = {
    "scan": Case(lambda bsp, a: a, "SELECT * FROM a"),
    **{f"group by {name}": grouped(name) for name in "kixds"},
    "group by sort": grouped("k", ONE),
    "group by sort of strings": grouped("s", ALL),
    **{f"equi-join on {name}": joined(equi_join, name) for name in "ksx"},
    "join by sort": joined(partial(sorted_join, sort=ONE), "k"),
    "join by sort on strings": joined(partial(sorted_join, sort=ALL), "s"),
    **{f"less-than-join on {name}": less_than(name) for name in "xisd"},
    "lowest": Case(
        lambda bsp, a: lowest(bsp, a, "x", 0.3),
        "SELECT * FROM a QUALIFY rank() OVER (ORDER BY x) <= ceil(count(x) OVER () * 3 / 10)",
    ),
    "lowest strings": Case(
        lambda bsp, a: lowest(bsp, a, "s"),
        "SELECT * FROM a QUALIFY rank() OVER (ORDER BY s) <= ceil(count(s) OVER () / 100)",
    ),
    "rebalance": Case(rebalance, "SELECT * FROM a"),
}
USUAL_PLACES = [(1, "sim"), (7, "sim"), (3, "shm")]
"""Where make test runs every primitive; tests with drawn tables take all numbers of processes."""
PLACES = [
    pytest.param(*place, marks=() if place in USUAL_PLACES else pytest.mark.slow)
    for place in product(COUNTS, ("sim", "shm"))
]


@pytest.mark.parametrize(("nprocs", "backend"), PLACES)
@pytest.mark.parametrize("name", CASES)
def test_skewed_rows_give_what_duckdb_gives(name, nprocs, backend, check):
    case = CASES[name]
    table = skewed().append_column("y", skewed()["x"])
    given = [table.select(list(kinds)) for kinds in case.kinds]
    given[1:] = [table.slice(0, 30) for table in given[1:]]
    check(case, *given, nprocs=nprocs, backend=backend)


@pytest.mark.parametrize("backend", ["sim", "shm"])
@pytest.mark.parametrize("name", CASES)
@MANY
@given(data=st.data())
def test_any_rows_give_what_duckdb_gives(name, backend, data, check):
    case = CASES[name]
    given = [data.draw(tables(kinds)) for kinds in case.kinds]
    nprocs, block = data.draw(st.sampled_from(COUNTS)), data.draw(st.integers(1, 9))
    check(case, *given, nprocs=nprocs, backend=backend, block=block)
