"""The six queries of Jarvis et al. 2002, compared with DuckDB, polars and pandas.

They are evaluated with items numbered from 0 on, and with numbers of items that are scattered over
2^40. Besides, units are summed by names of items, which are strings.

The time is measured from a sync at which every process has its rows of ITEM, QNT and TRAN in
arrays to a sync at which it has its rows of TEMP1 to TEMP6. The peers have the relations in
their own form in memory, and return TEMP6. It is checked that all produce the same rows
before.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import bsplib
from benchmarks import compiled
from benchmarks.goals import Goal
from benchmarks.harness import Case, Section
from benchmarks.query_peers import PEERS
from benchmarks.timing import seconds_of
from bsplib.apps.sql.files import to_arrow
from bsplib.apps.sql.generate import Generator
from bsplib.apps.sql.group_by import group_by
from bsplib.apps.sql.plan import OWNER
from bsplib.apps.sql.queries import INPUTS, sql_process
from bsplib.apps.sql.reference import difference
from bsplib.apps.sql.relation import CODE, Column, Relation

NPROCS = 2
GENERATOR = Generator(size=10_000_000, skew=1.3, items=200_000)
SMALL = Generator(size=1_000_000, skew=1.3, items=20_000)
_STEP, _SPAN = 2654435761, 1 << 40
"""Scattered items are multiples of the step, modulo the span."""
_WARM_UP = 1
_COUNT = 3
"""Number of evaluations for a sample, which is their median."""
_DUCKDB = "DuckDB, 2 threads"
_POLARS = "polars, 2 threads"
_GOALS = {_DUCKDB: 1.0, _POLARS: 1.0, "pandas": 1 / 5}


@dataclass(frozen=True)
class Input:
    """The relations of a section."""

    generator: Generator
    scattered: bool = False

    def relation(self, name: str, places: NDArray[np.int64] | None = None) -> Relation:
        """Return some rows of a relation; all of them if no places are named."""
        made = self.generator.relation(name, places).only(INPUTS[name])
        if not self.scattered or "item" not in made.columns:
            return made
        items = made["item"].values.astype(np.int64) * _STEP % _SPAN
        return made.plus(item=Column(items, made["item"].valid))


@cache
def inputs_of(given: Input, pid: int, nprocs: int) -> dict[str, Relation]:
    """Generate the rows of a process, which keeps them for later runs."""
    made = {}
    for name in INPUTS:
        rows = given.generator.rows[name]
        places = np.arange(rows * pid // nprocs, rows * (pid + 1) // nprocs)
        made[name] = given.relation(name, places)
    return made


def queries(bsp: bsplib.Group, given: Input) -> float:
    """Return the seconds of the six queries from sync to sync."""
    inputs = inputs_of(given, bsp.pid, bsp.nprocs)

    def evaluate() -> None:
        sql_process(bsp, inputs, OWNER)
        bsp.sync()

    bsp.sync()
    return _median(evaluate)


def temp6(bsp: bsplib.Group, given: Input) -> pa.Table:
    """Return this process's rows of TEMP6."""
    inputs = inputs_of(given, bsp.pid, bsp.nprocs)
    return to_arrow(sql_process(bsp, inputs, OWNER)["TEMP6"])


def _median(evaluate: Callable[[], object]) -> float:
    return statistics.median([seconds_of(evaluate) for _ in range(_WARM_UP + _COUNT)][_WARM_UP:])


def _cases(stack: ExitStack, given: Input, wanted: Mapping[str, float]) -> Sequence[Case]:
    """Compare our queries with those of the peers."""
    pool = stack.enter_context(bsplib.Pool(NPROCS))  # first, because it forks: peers have threads
    expected = pa.concat_tables(pool.run(temp6, given))
    cases = _peers(given, expected, stack)
    if given.scattered and compiled.compiler():
        cases.append(_least(given))
    there = {case.name for case in cases}
    goals = tuple(Goal.times(times, of) for of, times in wanted.items() if of in there)
    ours = Case(
        f"bsplib, p = {NPROCS}",
        lambda: pool.run(queries, given)[0],
        tuple(sorted(there - wanted.keys())),
        goals,
    )
    return [*cases, ours]


def _least(given: Input) -> Case:
    """Return the least that scattered items add to the time with dense ones, for a process."""
    rows = given.generator.rows["TRAN"] // NPROCS
    sample = partial(compiled.sample, "least_numbering", rows, given.generator.items)
    return Case("C, numbering the items of TRAN once", sample)


def _peers(given: Input, expected: pa.Table, stack: ExitStack) -> list[Case]:
    """Return a case for each peer that is installed, after a check of its result."""
    tables = {name: _coded(to_arrow(given.relation(name))) for name in INPUTS}
    cases = []
    for name, prepare in PEERS.items():
        try:
            query = prepare(tables, stack)
        except ModuleNotFoundError as error:
            print(f"without {error.name}: pip install -e '.[bench]'")
            continue
        found = difference(_plain(query()), expected)
        if found is not None:
            raise RuntimeError(f"{name} returns another TEMP6 than bsplib: {found}")
        cases.append(Case(name, partial(_median, query)))
    return cases


def _coded(table: pa.Table) -> pa.Table:
    """Return a table with its strings encoded as a dictionary, as in bsplib."""
    for place, field in enumerate(table.schema):
        if pa.types.is_string(field.type):
            coded = table.column(place).combine_chunks().dictionary_encode()
            table = table.set_column(place, field.name, coded)
    return table


def _plain(table: pa.Table) -> pa.Table:
    """Return a table with its dictionaries decoded to strings."""
    for place, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(place, field.name, table.column(place).cast(pa.string()))
    return table


@cache
def named(pid: int, nprocs: int) -> Relation:
    """Generate units by names of items, of a process, which keeps them for later runs."""
    made = inputs_of(Input(SMALL), pid, nprocs)["TRAN"]
    words = np.array([f"item {number:08}" for number in range(SMALL.items)], object)
    return made.plus(item=Column(made["item"].values.astype(CODE), made["item"].valid, words))


def by_name(bsp: bsplib.Group) -> float:
    """Return the seconds of a sum of units by names, from sync to sync."""
    relation = named(bsp.pid, bsp.nprocs)

    def evaluate() -> None:
        group_by(bsp, relation, "item", ["units"])
        bsp.sync()

    bsp.sync()
    return _median(evaluate)


def _by_names(stack: ExitStack) -> Sequence[Case]:
    """Compare a sum by strings with that of DuckDB, whose strings are no dictionary."""
    pool = stack.enter_context(bsplib.Pool(NPROCS))
    import duckdb  # noqa: PLC0415  # it has threads, and may not be installed

    connection = stack.enter_context(duckdb.connect())
    connection.execute(f"SET threads = {NPROCS}")
    connection.register("given", to_arrow(named(0, 1)))
    connection.execute("CREATE TABLE tran AS SELECT item::VARCHAR AS item, units FROM given")
    statement = "SELECT item, sum(units) AS units FROM tran GROUP BY item"
    goals = (Goal.times(1, _DUCKDB),)
    return [
        Case(_DUCKDB, partial(_median, lambda: connection.sql(statement).to_arrow_table())),
        Case(f"bsplib, p = {NPROCS}", lambda: pool.run(by_name)[0], goals=goals),
    ]


def _scattered(times: float) -> dict[str, float]:
    return {_DUCKDB: times, _POLARS: times}


def sections() -> list[Section]:
    """Return what is to be measured."""
    kinds = {
        "10^7 rows of TRAN": (Input(GENERATOR), _GOALS),
        "10^6 rows of TRAN": (Input(SMALL), {_DUCKDB: 0.6}),
        "10^6 rows, scattered items": (Input(SMALL, scattered=True), _scattered(0.6)),
        "10^7 rows, scattered items": (Input(GENERATOR, scattered=True), _scattered(1.0)),
    }
    queries = [
        Section(
            f"Six queries, {what}, p = {NPROCS}",
            "evaluation",
            partial(_cases, given=given, wanted=wanted),
        )
        for what, (given, wanted) in kinds.items()
    ]
    names = Section(f"Sums of 10^6 rows by strings, p = {NPROCS}", "evaluation", _by_names)
    return [*queries, names]
