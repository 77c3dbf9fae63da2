"""The six queries evaluated by Arrow in one process, to compare with."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from bsplib.apps.sql.arrow import compute, pa
from bsplib.apps.sql.files import read_blocks, to_arrow
from bsplib.apps.sql.generate import Generator
from bsplib.apps.sql.queries import INPUTS

Tables = Mapping[str, "pa.Table"]


def reference(source: int | Generator | Mapping[str, pa.Table | Path | str]) -> dict[str, pa.Table]:
    """Return TEMP1 to TEMP6; the argument is that of :func:`bsplib.apps.sql.program.main`."""
    tables = whole_tables(source)
    temp1 = _sums(tables["TRAN"], "item", ["units"])
    temp2 = _join(temp1, tables["ITEM"], "item")
    value = compute.multiply(temp2["units"].cast(pa.float64()), temp2["price"].cast(pa.float64()))
    temp2 = temp2.select(["item", "class", "units"]).append_column("value", value)
    temp3 = _sums(temp2, "class", ["units", "value"])
    temp4 = _join(temp3, tables["QNT"], "class")
    temp5 = _dearer(temp4, tables["ITEM"])
    temp6 = _low(temp5, "gap", 100)
    return {f"TEMP{n}": t for n, t in enumerate((temp1, temp2, temp3, temp4, temp5, temp6), 1)}


def whole_tables(source: int | Generator | Mapping[str, pa.Table | Path | str]) -> Tables:
    """Return ITEM, QNT and TRAN, with the columns that the queries read."""
    if isinstance(source, int):
        source = Generator(source)
    if isinstance(source, Generator):
        made = source
        return {n: to_arrow(made.relation(n).only(columns)) for n, columns in INPUTS.items()}
    return {
        name: table.select(list(INPUTS[name]))
        if isinstance(table, pa.Table)
        else read_blocks(Path(table), INPUTS[name], 1, 0, 1)
        for name, table in source.items()
    }


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


def _sums(table: pa.Table, name: str, columns: list[str]) -> pa.Table:
    grouped = table.group_by(name, use_threads=False)
    made = grouped.aggregate([(column, "sum") for column in columns])
    return made.rename_columns([made_name.removesuffix("_sum") for made_name in made.column_names])


def _join(left: pa.Table, right: pa.Table, name: str) -> pa.Table:
    place = left.column_names.index(name)
    left = left.set_column(place, name, left[name].cast(right[name].type))
    return left.join(right, name, join_type="inner", use_threads=False)


def _dearer(temp4: pa.Table, item: pa.Table) -> pa.Table:
    """Pair each class with the items dearer than its floor, class by class."""
    item = item.filter(compute.is_valid(item["price"])).sort_by("price")
    prices = np.asarray(item["price"].combine_chunks(), np.float64)
    parts = []
    for row in temp4.filter(compute.is_valid(temp4["floor"])).to_pylist():
        dearer = item.slice(int(np.searchsorted(prices, row["floor"], "right")))
        parts.append((row, dearer.select(["item", "price"])))
    none = item.slice(0, 0).select(["item", "price"])
    pairs = pa.concat_tables([none, *(part for _, part in parts)])
    which = np.repeat(np.arange(len(parts)), [part.num_rows for _, part in parts])
    rows = pa.Table.from_pylist([row for row, _ in parts], schema=temp4.schema)
    chosen = rows.take(pa.array(which, pa.int64()))
    return pa.table(
        {
            "class": chosen["class"],
            "units": chosen["units"],
            "item": pairs["item"],
            "price": pairs["price"],
            "gap": compute.subtract(pairs["price"], chosen["floor"]),
        }
    )


def _low(table: pa.Table, name: str, part: int) -> pa.Table:
    """Keep the rows whose value is not above the n/part-th least one."""
    values = np.sort(np.asarray(table[name].drop_null().combine_chunks()))
    if not len(values):
        return table.slice(0, 0)
    return table.filter(compute.less_equal(table[name], values[-(-len(values) // part) - 1]))
