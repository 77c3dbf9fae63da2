"""The six queries give what DuckDB gives, in every way, at every number of processes."""

from __future__ import annotations

import datetime
import random

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bsplib.apps.sql.files import to_arrow
from bsplib.apps.sql.generate import Generator
from bsplib.apps.sql.plan import PLANS, STAGES
from bsplib.apps.sql.program import main
from bsplib.apps.sql.queries import INPUTS, SQL
from bsplib.apps.sql.reference import difference, reference
from bsplib.profiler.callgraph import build
from tests.drawn import examples
from tests.recordings import record_run

COUNTS = (1, 2, 7)
SOME = examples(12)


@pytest.fixture(scope="module")
def evaluate(run_on):
    """Evaluates the queries; returns their relations by name."""

    def evaluate(source, nprocs, backend="sim", **how):
        answers = run_on(main, source, nprocs=nprocs, backend=backend, **how)
        return {name: pa.concat_tables([a.tables[name] for a in answers]) for name in SQL}

    return evaluate


def assert_alike(got, expected):
    differences = {name: difference(got[name], expected[name]) for name in expected}
    assert differences == dict.fromkeys(expected)
    for name, table in expected.items():
        assert got[name].column_names == table.column_names


GENERATED = Generator(3000, seed=5, nulls=0.03, items=250)


@pytest.fixture(scope="module")
def tables():
    return {name: to_arrow(GENERATED.relation(name)) for name in INPUTS}


@pytest.fixture(scope="module")
def expected(tables):
    return reference(tables)


@pytest.mark.parametrize("backend", ["sim", "shm"])
@pytest.mark.parametrize("nprocs", COUNTS)
@pytest.mark.parametrize("stage", PLANS)
def test_every_stage_gives_what_duckdb_gives(stage, nprocs, backend, evaluate, expected):
    assert_alike(evaluate(GENERATED, nprocs, backend, stage=stage, block=64), expected)


def test_the_rows_do_not_depend_on_who_makes_them(tables, evaluate, expected):
    assert_alike(evaluate(tables, 3, block=100), expected)


def test_the_result_of_the_less_than_join_is_linear_in_its_input():
    for size in (2000, 20_000, 200_000):
        tables = {name: to_arrow(Generator(size).relation(name)) for name in INPUTS}
        made = reference(tables)
        assert 0.2 < made["TEMP5"].num_rows / tables["ITEM"].num_rows < 2


# -- relations of other people -------------------------------------------------------------------

CLASSES = ["", "a", "b", "ä", "zz", None]
NUMBERS = st.integers(-5, 5) | st.none()
PRICES = st.sampled_from([0.0, -0.0, 1.0, 1.5, 2.0, 1e9, -3.25]) | st.none()


@st.composite
def relations(draw):
    """ITEM, QNT and TRAN with keys that repeat, keys that find none, and NULLs."""
    pick = random.Random(draw(st.integers(0, 2**32)))
    items = draw(st.lists(NUMBERS, min_size=1, max_size=5))
    prices = draw(st.lists(PRICES, min_size=1, max_size=5))

    def some(values, size, kind):
        return pa.array(pick.choices(values, k=size), kind)

    rows = [draw(st.integers(0, most)) for most in (20, 8, 40)]
    day = datetime.date(2001, 1, 1)
    return {
        "ITEM": pa.table(
            {
                "item": some([*items, 77], rows[0], pa.int64()),
                "class": some(CLASSES, rows[0], pa.string()),
                "price": some(prices, rows[0], pa.float64()),
                "since": some([day], rows[0], pa.date32()),
            }
        ),
        "QNT": pa.table(
            {
                "floor": some(prices, rows[1], pa.float64()),
                "class": some([*CLASSES, "none"], rows[1], pa.string()),
                "stock": some([1, None], rows[1], pa.int32()),
            }
        ),
        "TRAN": pa.table(
            {
                "item": some([*items, 78], rows[2], pa.int32()),
                "units": some([0, 1, -1, 99, None], rows[2], pa.int16()),
            }
        ),
    }


@pytest.mark.parametrize("backend", ["sim", pytest.param("shm", marks=pytest.mark.slow)])
@SOME
@given(
    tables=relations(),
    nprocs=st.sampled_from(COUNTS),
    stage=st.sampled_from(list(PLANS)),
    block=st.integers(1, 9),
)
def test_any_relations_give_what_duckdb_gives(tables, nprocs, backend, stage, block, evaluate):
    assert_alike(evaluate(tables, nprocs, backend, stage=stage, block=block), reference(tables))


# -- costs ---------------------------------------------------------------------------------------


def recorded(path, nprocs, **how):
    run = record_run(path, main, GENERATED, keep=(), nprocs=nprocs, backend="sim", **how)
    return build(run)


def cost_of(callgraph, name):
    nodes = callgraph.graph.nodes(data=True)
    (found,) = (data["cost"] for _, data in nodes if data["node"].name == name)
    return found


def test_a_group_by_owner_sends_no_more_for_a_skewed_key(tmp_path):
    """A process sends a group once, however many of its rows are of it."""
    graph = recorded(tmp_path / "trace.bsp", 4)
    groups = 250
    assert cost_of(graph, "temp1").h.maximum < 250 * (4 + 8 + 1) + 1000
    assert groups * 8 < GENERATED.size  # sending the rows would have cost more


@pytest.mark.parametrize("nprocs", [2, 7, 16])
def test_the_queries_by_owner_take_twenty_supersteps(tmp_path, nprocs):
    graph = recorded(tmp_path / "trace.bsp", nprocs)
    assert 14 <= cost_of(graph, "sql_process").count <= 20


@pytest.mark.parametrize("stage", STAGES)
def test_the_profile_shows_the_functions_of_the_paper(tmp_path, stage):
    graph = recorded(tmp_path / "trace.bsp", 4, stage=stage)
    names = {data["node"].name for _, data in graph.graph.nodes(data=True)}
    assert {"sql_process", "bspsort", *(f"temp{number}" for number in range(1, 7))} <= names
    assert ("balance_inputs" in names) == (stage != "original")


@pytest.mark.parametrize("stage", ["original", "bitonic", "owner"])
def test_other_columns_of_a_file_are_no_part_of_the_results(stage, evaluate):
    """Stages sort whole rows, also with columns whose names the queries use for others."""
    tables = {name: to_arrow(GENERATED.relation(name)) for name in INPUTS}
    more = {name: table.append_column("note", table.column(0)) for name, table in tables.items()}
    more["ITEM"] = more["ITEM"].append_column("units", more["ITEM"]["item"])
    more["QNT"] = more["QNT"].append_column("value", more["QNT"]["stock"])
    narrow, wide = (evaluate(each, 3, stage=stage) for each in (tables, more))
    assert_alike(wide, narrow)
