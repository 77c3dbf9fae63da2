"""Aggregates of groups of rows by a sort."""

from __future__ import annotations

from collections.abc import Sequence

import bsplib
from bsplib.apps.sql.aggregates import Part
from bsplib.apps.sql.exchange import exchange
from bsplib.apps.sql.groups import Groups, Partial
from bsplib.apps.sql.keys import Keys
from bsplib.apps.sql.relation import Relation, stacked
from bsplib.apps.sql.sorting import SampleSort, sort_rows


def sorted_groups(
    bsp: bsplib.Group, groups: Groups, relation: Relation, parts: Sequence[Part], how: SampleSort
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


def settle(bsp: bsplib.Group, groups: Groups, partial: Partial, parts: Sequence[Part]) -> Partial:
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
