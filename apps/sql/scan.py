"""Distribution of a relation to the processes, in blocks, cyclically."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import bsplib
from bsplib.apps.sql.arrow import pa
from bsplib.apps.sql.column import union
from bsplib.apps.sql.errors import QueryError
from bsplib.apps.sql.files import blocks_of, check_columns, from_arrow, read_blocks
from bsplib.apps.sql.relation import Relation
from bsplib.apps.work import charge_values

BLOCK = 1024
"""Rows of a block: with few rows for many processes some get a block more than others."""


def scan(
    bsp: bsplib.Group,
    source: pa.Table | Path | str,
    columns: Sequence[str] | None = None,
    *,
    block: int = BLOCK,
) -> Relation:
    """Read the rows of this process: block i goes to process i mod p (``FROM``).

    Collective, with the same arguments everywhere.

    Args:
        bsp: the group.
        source: a ``.csv`` or ``.parquet`` file, or an Arrow table; of integers, floats,
            dates and strings, with NULLs. In CSV an empty field is NULL.
        columns: the columns to read; all if None.
        block: rows of a block, 1 or more.

    Raises:
        QueryError: there is no such file, it cannot be read, a column is missing, twice
            there or of another type, or a float is NaN. Nothing is ever written.

    Supersteps: 1 where there are strings, else none.
    Cost: w = O(n) to read a CSV file, O(n/p) else; h = p times the distinct strings of a
        process.
    Source: Jarvis et al. 2002, section 4: a simple block-cyclic distribution.
    """
    if block < 1:
        raise QueryError(f"scan: a block cannot have {block} rows; it has 1 or more")
    if isinstance(source, pa.Table):
        what = "the table"
        check_columns(source.column_names, columns, what)
        chosen = source.select(list(columns or source.column_names))
        table, places = blocks_of(chosen, block, bsp.pid, bsp.nprocs)
    else:
        path = Path(source)
        what = path.name
        table, places = read_blocks(path, columns, block, bsp.pid, bsp.nprocs)
    rows = from_arrow(table, places, what)
    charge_values(bsp, rows.values)
    return share_words(bsp, rows)


def share_words(bsp: bsplib.Group, relation: Relation) -> Relation:
    """Convert strings to positions among the words of all processes: 1 superstep, or none.

    Args:
        bsp: the group.
        relation: the rows of this process, with their own words; the same columns everywhere.
    """
    mine = {name: col.words for name, col in relation.columns.items() if col.words is not None}
    if not mine:
        return relation
    told = bsp.allgather(mine)
    shared = {name: union([words[name] for words in told]) for name in mine}
    return relation.plus(
        **{name: relation[name].with_words(words) for name, words in shared.items()}
    )
