"""Rows in an order."""

from __future__ import annotations

from collections.abc import Sequence

import bsplib
from bsplib.apps.sql.keys import By, agree
from bsplib.apps.sql.relation import Relation
from bsplib.apps.sql.sorting import SampleSort, sort_rows

_DEFAULT = SampleSort()


def order_by(
    bsp: bsplib.Group,
    relation: Relation,
    order: Sequence[By | str],
    *,
    stable: bool = False,
    sort: SampleSort = _DEFAULT,
) -> Relation:
    """Put rows in order (``ORDER BY``): those of process 0 first.

    Args:
        bsp: the group.
        relation: the rows of this process.
        order: columns, the first one first: by name, ascending with NULLs last; or
            ``By("price", descending=True, nulls_first=True)``.
        stable: rows that are equal in all of them keep their order (process, position).
        sort: how.

    Returns:
        The rows that are due here, in order.

    Raises:
        QueryError: there is no such column, or a float to order by is NaN.

    Supersteps: 3, and those of the sample sort: 4 with the sample on one process.
    Cost: of the sample sort, with records of a key (4 or 8 bytes where the ranges of
        all columns together have 63 bits, else 9 bytes a column) and a row.
    Source: Jarvis et al. 2002, section 4.2.
    """
    keyed = [By(by) if isinstance(by, str) else by for by in order]
    columns = relation.among(by.name for by in keyed)
    encoding, _ = agree(bsp, [columns], keyed)
    _, ordered = sort_rows(bsp, encoding.keys(columns), relation, sort, stable=stable)
    return ordered
