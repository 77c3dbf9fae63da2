"""The six queries of Jarvis et al. 2002, compared with DuckDB, polars and pandas.

The time is measured from a sync at which every process has its rows of ITEM, QNT and TRAN in
arrays to a sync at which it has its rows of TEMP1 to TEMP6. The peers have the relations in
their own form in memory, and return TEMP6. It is checked that all produce the same rows
before.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import cache, partial

import numpy as np
import pyarrow as pa

import bsplib
from apps.sql.files import to_arrow
from apps.sql.generate import Generator
from apps.sql.plan import OWNER
from apps.sql.queries import INPUTS, sql_process
from apps.sql.reference import difference
from apps.sql.relation import Relation
from benchmarks.goals import Goal
from benchmarks.harness import Case, Section
from benchmarks.query_peers import PEERS
from benchmarks.timing import seconds_of

NPROCS = 2
GENERATOR = Generator(size=10_000_000, skew=1.3, items=200_000)
_WARM_UP = 1
_COUNT = 3
"""Number of evaluations for a sample, which is their median."""
_GOALS = {"DuckDB, 2 threads": 1.0, "polars, 2 threads": 1.0, "pandas": 1 / 5}


@cache
def inputs_of(generator: Generator, pid: int, nprocs: int) -> dict[str, Relation]:
    """Generate the rows of a process, which keeps them for later runs."""
    made = {}
    for name, columns in INPUTS.items():
        rows = generator.rows[name]
        places = np.arange(rows * pid // nprocs, rows * (pid + 1) // nprocs)
        made[name] = generator.relation(name, places).only(columns)
    return made


def queries(bsp: bsplib.Group, generator: Generator) -> float:
    """Return the seconds of the six queries from sync to sync."""
    inputs = inputs_of(generator, bsp.pid, bsp.nprocs)

    def evaluate() -> None:
        sql_process(bsp, inputs, OWNER)
        bsp.sync()

    bsp.sync()
    return _median(evaluate)


def temp6(bsp: bsplib.Group, generator: Generator) -> pa.Table:
    """Return this process's rows of TEMP6."""
    inputs = inputs_of(generator, bsp.pid, bsp.nprocs)
    return to_arrow(sql_process(bsp, inputs, OWNER)["TEMP6"])


def _median(evaluate: Callable[[], object]) -> float:
    return statistics.median([seconds_of(evaluate) for _ in range(_WARM_UP + _COUNT)][_WARM_UP:])


def _cases(stack: ExitStack) -> Sequence[Case]:
    """Compare our queries with those of the peers."""
    pool = stack.enter_context(bsplib.Pool(NPROCS))  # first, because it forks: peers have threads
    expected = pa.concat_tables(pool.run(temp6, GENERATOR))
    cases = _peers(expected, stack)
    there = {case.name for case in cases}
    goals = tuple(Goal.times(times, of) for of, times in _GOALS.items() if of in there)
    ours = Case(f"bsplib, p = {NPROCS}", lambda: pool.run(queries, GENERATOR)[0], goals=goals)
    return [*cases, ours]


def _peers(expected: pa.Table, stack: ExitStack) -> list[Case]:
    """Return a case for each peer that is installed, after a check of its result."""
    tables = {
        name: _coded(to_arrow(GENERATOR.relation(name).only(columns)))
        for name, columns in INPUTS.items()
    }
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


def sections() -> list[Section]:
    """Return what is to be measured."""
    return [Section(f"Six queries, 10^7 rows of TRAN, p = {NPROCS}", "evaluation", _cases)]
