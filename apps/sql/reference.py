"""The six queries evaluated by DuckDB in one process, to compare with."""

from __future__ import annotations

import math

import numpy as np

from bsplib.apps.sql.arrow import duckdb, pa
from bsplib.apps.sql.files import read_blocks, to_arrow
from bsplib.apps.sql.generate import Generator
from bsplib.apps.sql.program import Source
from bsplib.apps.sql.queries import INPUTS, SQL


def reference(source: Source) -> dict[str, pa.Table]:
    """Return TEMP1 to TEMP6; the argument is that of :func:`bsplib.apps.sql.program.main`."""
    if isinstance(source, int):
        source = Generator(source)
    if isinstance(source, Generator):
        source = {name: to_arrow(source.relation(name)) for name in INPUTS}
    made = {}
    # In this thread alone, since a process with threads cannot be forked.
    with duckdb.connect(config={"threads": 1}) as connection:
        for name, columns in INPUTS.items():
            connection.register(name, read_blocks(source[name], columns, 1, 0, 1))
        for name, text in SQL.items():
            narrow = text.replace("SUM(units)", "SUM(units)::BIGINT")  # DuckDB's has 128 bits
            made[name] = connection.sql(narrow).to_arrow_table()
            connection.register(name, made[name])
    return made


def difference(got: pa.Table, expected: pa.Table, tolerance: float = 1e-9) -> str | None:
    """Say in what two tables of rows in any order differ; None if in nothing.

    Args:
        got: rows.
        expected: the rows that there should be, with the same columns.
        tolerance: relative, of floats, whose sums depend on the order.
    """
    if got.num_rows != expected.num_rows:
        return f"there are {got.num_rows} rows, and should be {expected.num_rows}"
    names = sorted(expected.column_names, key=lambda n: pa.types.is_floating(expected[n].type))
    order = [(name, "ascending") for name in names]
    got, expected = got.select(names).sort_by(order), expected.select(names).sort_by(order)
    for name in names:
        one, other = got[name].combine_chunks(), expected[name].combine_chunks()
        if pa.types.is_floating(other.type):
            first, second = (np.asarray(side.fill_null(math.inf)) for side in (one, other))
            alike = np.allclose(first, second, rtol=tolerance, atol=0)
        else:
            alike = one.cast(other.type).equals(other)
        if not alike:
            return f"column {name!r} differs"
    return None
