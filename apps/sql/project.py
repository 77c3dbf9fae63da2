"""Choosing columns, and making new ones."""

from __future__ import annotations

from dataclasses import replace

from bsplib.apps.sql.expression import Value
from bsplib.apps.sql.relation import Relation


def project(relation: Relation, *names: str, **made: Value | str) -> Relation:
    """Choose columns by name, and make others (``SELECT``); duplicates stay.

    Args:
        relation: the rows of this process.
        *names: columns to keep, in this order.
        **made: columns to make: from an expression, ``value=col("units") * col("price")``,
            or by another name of a column, ``floor="price"``.

    Raises:
        QueryError: there is no such column, or what is not a number is calculated with.

    Supersteps: 0.
    Cost: w = O(rows) for each column that is calculated.
    """
    columns = {name: relation[name] for name in names}
    for name, source in made.items():
        columns[name] = relation[source] if isinstance(source, str) else source.column(relation)
    placed = relation.placed_by
    stays = placed and all(columns.get(name) is relation[name] for name in placed)
    return replace(relation, columns=columns, placed_by=placed if stays else None)
