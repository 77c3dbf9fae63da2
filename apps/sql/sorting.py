"""Rows in order over all processes, by :mod:`bsplib.apps.sorting.sample_sort`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bsplib
from bsplib.apps.sorting.sample_sort import OVERSAMPLING, sort_blocks
from bsplib.apps.sql.keys import Keys, integers
from bsplib.apps.sql.relation import Column, Relation
from bsplib.apps.work import charge_values


@dataclass(frozen=True)
class SampleSort:
    """Options of a sort: those of ``sort_blocks`` of the sample sort."""

    oversampling: float | str = OVERSAMPLING
    sample_sort: str = "one"
    seed: int = 0


def sort_rows(
    bsp: bsplib.Group, keys: Keys, relation: Relation, how: SampleSort
) -> tuple[Keys, Relation]:
    """Sort rows by their keys: those of process 0 come first.

    Args:
        bsp: the group.
        keys: one for each row of this process.
        relation: the rows.
        how: to sort them.

    Returns:
        The keys and the rows that are due here.

    Supersteps: those of the sample sort, and 2.
    Cost: of the sample sort, with records of a key and a row.
    """
    masked = _masked(bsp, relation)
    charge_values(bsp, relation.values + relation.rows)
    records = bspsort(bsp, as_records(keys, relation, masked), how)
    charge_values(bsp, len(records) * (1 + len(relation.columns)))
    return np.ascontiguousarray(records[KEY]), from_records(records, relation)


def bspsort(bsp: bsplib.Group, records: Records, how: SampleSort) -> Records:
    """Sort records by their keys; the function has the same name in the paper's profile.

    As in the paper, it ends with a superstep, which shows the time of stage 7.
    """
    ordered = sort_blocks(
        bsp,
        records,
        key=KEY,
        oversampling=how.oversampling,
        sample_sort=how.sample_sort,
        seed=how.seed,
    )
    bsp.sync()
    return ordered


def _masked(bsp: bsplib.Group, relation: Relation) -> frozenset[str]:
    """Return which columns have NULLs on some process: 1 superstep."""
    mine = np.array([column.valid is not None for column in relation.columns.values()])
    some = bsp.allreduce(mine, np.logical_or)
    return frozenset(name for name, is_some in zip(relation.columns, some, strict=True) if is_some)


# -- rows as records, the form that the sorts need; strings are sent without their words ----------


Records = NDArray[np.void]

KEY = "key"


def as_records(keys: Keys, relation: Relation, masked: frozenset[str]) -> Records:
    """Lay out rows with their keys as elements of one array.

    Args:
        keys: one for each row.
        relation: the rows.
        masked: columns that have a NULL on some process; each gets a field for its mask.
    """
    fields: list[tuple[str, Any]] = [(KEY, keys.dtype)]
    for number, (name, column) in enumerate(relation.columns.items()):
        fields.append((f"value {number}", integers(column.values).dtype))
        if name in masked:
            fields.append((f"known {number}", np.bool_))
    records = np.empty(len(keys), fields)
    records[KEY] = keys
    for number, (name, column) in enumerate(relation.columns.items()):
        records[f"value {number}"] = integers(column.values)
        if name in masked:
            records[f"known {number}"] = column.known()
    return records


def from_records(records: Records, like: Relation) -> Relation:
    """Return the rows from records of :func:`as_records`.

    Args:
        records: some of them, in any order.
        like: a relation with the same columns.
    """
    columns = {}
    for number, (name, column) in enumerate(like.columns.items()):
        values = np.ascontiguousarray(records[f"value {number}"]).view(column.values.dtype)
        mask = f"known {number}"
        known = records[mask].copy() if mask in (records.dtype.names or ()) else None
        columns[name] = Column(values, known, column.words)
    return Relation(columns)
