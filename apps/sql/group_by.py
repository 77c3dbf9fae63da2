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
from bsplib.apps.sql.aggregates import Aggregate, PartialValue, check, parts_of
from bsplib.apps.sql.exchange import by_goal, exchange
from bsplib.apps.sql.groups import Groups, Partial
from bsplib.apps.sql.keys import Keys, agree
from bsplib.apps.sql.owner import owners
from bsplib.apps.sql.relation import Relation, stacked
from bsplib.apps.sql.sorting import SampleSort, sort_rows


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


def _to_owners(
    bsp: bsplib.Group, groups: Groups, mine: Partial, parts: Sequence[PartialValue]
) -> Partial:
    """Send the parts of each group to the process that owns it: 1 superstep."""
    goal = owners(groups.columns(mine.keys), bsp.nprocs)
    (come,) = exchange(bsp, by_goal(bsp, groups.as_rows(mine), goal))
    return groups.from_rows(come, parts)


# -- aggregates of groups of rows by a sort -------------------------------------------------------


def sorted_groups(
    bsp: bsplib.Group,
    groups: Groups,
    relation: Relation,
    parts: Sequence[PartialValue],
    how: SampleSort,
) -> Partial:
    """Aggregate the rows of all processes by sorting them.

    Every row is sent, however many rows of its group a process has. The method by owner of
    :func:`bsplib.apps.sql.group_by.group_by` is cheaper, and does not sort.

    Returns:
        The groups that begin on this process, in order.

    Supersteps: 4, and those of the sample sort.
    Cost: h of the sample sort, with records of the key and the columns that are
        aggregated, or of whole rows; then p groups.
    """
    aggregated = [part.column for part in parts if part.column is not None]
    needed = relation if how.whole_rows else relation.only(aggregated)
    keys = groups.encoding.keys(relation.among(groups.names))
    keys, rows = sort_rows(bsp, keys, needed, how)
    return settle(bsp, groups, groups.of_runs(bsp, keys, rows, parts), parts)


def settle(
    bsp: bsplib.Group, groups: Groups, partial: Partial, parts: Sequence[PartialValue]
) -> Partial:
    """Combine groups that are on several processes on the first of them: 2 supersteps.

    Such a group is the last of the process where it begins, the only one of those in
    between, and the first of the one where it ends.
    """
    begins = owner_of_first(bsp, partial.keys)
    rows = groups.as_rows(partial)
    leaves = begins < bsp.pid
    outgoing = [rows.take(slice(int(leaves and pid == begins))) for pid in range(bsp.nprocs)]
    outgoing[bsp.pid] = rows.take(slice(int(leaves), None))
    come = exchange(bsp, outgoing)[0]
    last = max(rows.rows - leaves - 1, 0)
    if come.rows > last + 1:  # all that has come belongs to the last group here
        tail = groups.from_rows(come.take(slice(last, None)), parts)
        whole = groups.as_rows(groups.merged(bsp, tail))
        come = stacked([come.take(slice(last)), whole])
    return groups.from_rows(come, parts)


def owner_of_first(bsp: bsplib.Group, keys: Keys) -> int:
    """Return the first process that has the least of this process's keys: 1 superstep.

    Args:
        bsp: the group.
        keys: ascending, and over the processes too.
    """
    ends = bsp.allgather(keys[[0, -1]] if len(keys) else keys)
    pids = [pid for pid in range(bsp.pid) if len(ends[pid]) and len(keys)]
    same = [pid for pid in pids if ends[pid][-1] == keys[0]]
    return min(same, default=bsp.pid)
