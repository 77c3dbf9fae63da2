"""Keeping the rows for which something is true."""

from __future__ import annotations

from bsplib.apps.sql.expression import Condition
from bsplib.apps.sql.relation import Relation


def filter_rows(relation: Relation, condition: Condition) -> Relation:
    """Keep the rows of this process for which a condition is true (``WHERE``).

    Rows for which it is false or unknown go: a comparison with NULL is unknown.

    Args:
        relation: the rows of this process.
        condition: ``(col("units") > 3) & ~col("class").is_null()``.

    Raises:
        QueryError: there is no such column, or values of two kinds are compared.

    Supersteps: 0.
    Cost: w = O(rows).
    """
    return relation.take(condition.truth(relation))
