"""The six queries of Jarvis et al. 2002, compared with DuckDB and polars.

They are evaluated with items numbered from 0 on, and with numbers of items that are scattered over
2^40.

The time is measured from a sync at which every process has its rows of ITEM, QNT and TRAN in
arrays to a sync at which it has its rows of TEMP1 to TEMP6. The peers have the relations in
their own form in memory, and return TEMP6. It is checked that all produce the same rows
before.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import bsplib
from benchmarks.cases.query_peers import PEERS
from benchmarks.measure import Case, Section
from benchmarks.timing import seconds_of
from bsplib.apps.sql.files import to_arrow
from bsplib.apps.sql.generate import Generator
from bsplib.apps.sql.plan import OWNER
from bsplib.apps.sql.queries import INPUTS, sql_process
from bsplib.apps.sql.reference import difference
from bsplib.apps.sql.relation import Column, Relation

NPROCS = 2
GENERATOR = Generator(size=10_000_000, skew=1.3, items=200_000)
SMALL = Generator(size=1_000_000, skew=1.3, items=20_000)
_STEP, _SPAN = 2654435761, 1 << 40
"""Scattered items are multiples of the step, modulo the span."""
_COUNT = 3
"""Number of evaluations for a sample, which is their median, after one that warms up."""


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
    return statistics.median([seconds_of(evaluate) for _ in range(1 + _COUNT)][1:])


def _cases(given: Input, stack: ExitStack) -> Sequence[Case]:
    """Compare our queries with those of the peers."""
    pool = stack.enter_context(bsplib.Pool(NPROCS))  # first, because it forks: peers have threads
    expected = pa.concat_tables(pool.run(temp6, given))
    ours = Case(f"bsplib, p = {NPROCS}", lambda: pool.run(queries, given)[0])
    return [*_peers(given, expected, stack), ours]


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


SECTIONS = tuple(
    Section(f"Six queries, {what}, p = {NPROCS}", "evaluation", partial(_cases, given))
    for what, given in {
        "10^7 rows of TRAN": Input(GENERATOR),
        "10^6 rows, scattered items": Input(SMALL, scattered=True),
    }.items()
)
