"""Rows as records, the form that the sorts need; strings are sent without their words."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsplib.apps.sql.column import Column
from bsplib.apps.sql.keys import Keys
from bsplib.apps.sql.relation import Relation

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
        fields.append((f"value {number}", _plain(column.values).dtype))
        if name in masked:
            fields.append((f"known {number}", np.bool_))
    records = np.empty(len(keys), fields)
    records[KEY] = keys
    for number, (name, column) in enumerate(relation.columns.items()):
        records[f"value {number}"] = _plain(column.values)
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


def _plain(values: NDArray[Any]) -> NDArray[Any]:
    return values.view(np.int64) if values.dtype.kind == "M" else values
