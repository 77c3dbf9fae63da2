"""The six queries as users of DuckDB and polars would write them.

Each function receives the relations as Arrow tables, with classes as a dictionary, and
converts them to the form of its library. It returns a function that evaluates the queries
once, with TEMP6 as an Arrow table.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack

import pyarrow as pa

from bsplib.apps.sql.queries import INPUTS, SQL

THREADS = 2
Query = Callable[[], pa.Table]
Tables = Mapping[str, pa.Table]


def duckdb_query(tables: Tables, stack: ExitStack) -> Query:
    """Evaluate one statement, the queries as common table expressions."""
    import duckdb  # noqa: PLC0415  # may not be installed

    connection = stack.enter_context(duckdb.connect())
    connection.execute(f"SET threads = {THREADS}")
    for name in INPUTS:
        connection.register("given", tables[name])  # a dictionary becomes an ENUM
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
    parts = [f"{name} AS MATERIALIZED ({text})" for name, text in SQL.items()]
    statement = f"WITH {', '.join(parts)} SELECT * FROM TEMP6"
    return lambda: connection.sql(statement).to_arrow_table()


def polars_query(tables: Tables, _: ExitStack) -> Query:
    """Evaluate one lazy frame."""
    os.environ["POLARS_MAX_THREADS"] = str(THREADS)
    import polars as pl  # noqa: PLC0415  # may not be installed, and reads the environment

    if pl.thread_pool_size() != THREADS:
        raise RuntimeError(f"polars has {pl.thread_pool_size()} threads; start afresh")
    item, qnt, tran = (pl.from_arrow(tables[name]).lazy() for name in INPUTS)  # type: ignore[union-attr]
    temp1 = tran.group_by("item").agg(pl.col("units").sum())
    temp2 = temp1.join(item, on="item").with_columns(value=pl.col("units") * pl.col("price"))
    temp3 = temp2.group_by("class").agg(pl.col("units", "value").sum())
    temp4 = temp3.join(qnt, on="class").select("class", "units", "floor")
    pairs = temp4.join_where(item.select("item", "price"), pl.col("floor") < pl.col("price"))
    temp5 = pairs.with_columns(gap=pl.col("price") - pl.col("floor")).drop("floor")
    rank = (pl.len() + 99) // 100
    temp6 = temp5.filter(pl.col("gap") <= pl.col("gap").bottom_k(rank).max())
    return lambda: temp6.collect().to_arrow()


PEERS = {
    "DuckDB, 2 threads": duckdb_query,
    "polars, 2 threads": polars_query,
}
