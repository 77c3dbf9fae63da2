"""Aggregates of groups of rows.

There are two methods. By *owner*: each process aggregates its own rows, sends its part of
each group to the process that owns the group, and combines the parts that it receives. Each
process sends a value only once, however frequent it is, so that skew costs nothing. By
*sort*: the rows are sorted, adjacent equal rows are aggregated, and a group on several
processes is combined on the first of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import bsplib
from bsplib.apps.sql.aggregates import Aggregate, Part, check, parts_of
from bsplib.apps.sql.exchange import by_goal, exchange
from bsplib.apps.sql.groups import Groups, Partial
from bsplib.apps.sql.keys import agree
from bsplib.apps.sql.owner import owners
from bsplib.apps.sql.relation import Relation
from bsplib.apps.sql.sorted_groups import sorted_groups
from bsplib.apps.sql.sorting import SampleSort


def group_by(
    bsp: bsplib.Group,
    relation: Relation,
    names: Sequence[str],
    *,
    sort: SampleSort | None = None,
    **aggregates: Aggregate,
) -> Relation:
    """Aggregate the rows that are equal in some columns (``GROUP BY``).

    Args:
        bsp: the group.
        relation: the rows of this process.
        names: the columns to group by, at least one; NULLs are equal to each other.
        sort: options of the sort; if None, the groups are found by owner.
        **aggregates: aggregates of each group, by the names of their columns:
            ``units=total("units"), sales=count()``.

    Returns:
        One row for each group, on the process that owns it or, by sort, in order.

    Raises:
        QueryError: there is no such column, a column to add is not numeric, a sum
            leaves 64 bits, or a float to group by is NaN.

    Supersteps: 2 by owner; by sort 5, and those of the sample sort.
    Cost: by owner w = O(n/p), about twice as much where the keys are not dense; h = 4 or 8
        bytes for the key and 8 for each part of an aggregate, of each group that this
        process has a row of, (p - 1)/p of them. By sort that of the sample sort, with
        records of the key and the columns that are aggregated.
    """
    check(relation, aggregates, "group_by")
    columns = relation.among(names)
    encoding, _ = agree(bsp, [columns])
    groups = Groups(encoding, dict(zip(names, columns, strict=True)))
    parts = parts_of(aggregates)
    if sort is not None:
        return groups.relation(sorted_groups(bsp, groups, relation, parts, sort), aggregates)
    mine = groups.of_rows(bsp, relation, parts)
    owned = groups.merged(bsp, _to_owners(bsp, groups, mine, parts))
    return groups.relation(owned, aggregates, placed_by=tuple(names))


def _to_owners(bsp: bsplib.Group, groups: Groups, mine: Partial, parts: Sequence[Part]) -> Partial:
    """Send the parts of each group to the process that owns it: 1 superstep."""
    goal = owners(groups.columns(mine.keys), bsp.nprocs)
    (come,) = exchange(bsp, by_goal(bsp, groups.as_rows(mine), goal))
    return groups.from_rows(come, parts)
