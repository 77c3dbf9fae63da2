"""What the relational primitives raise."""

from __future__ import annotations


class QueryError(ValueError):
    """A relation, a column or a query cannot be what was asked for; one sentence says why."""
