"""Sums of the rows that are equal in a column.

There are two methods. By *owner*: each process adds up its own rows, sends its sum of
each group to the process that owns the group, and adds the sums that it receives. Each
process sends a value only once, however frequent it is, so that skew costs nothing. By
*sort*: the rows are sorted, adjacent equal rows are added up, and a group on several
processes is put together on the first of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bsplib
from bsplib.apps.kernels.numbering import KeyNumbers
from bsplib.apps.kernels.sums import add_integers, can_add
from bsplib.apps.sql.exchange import by_goal, exchange
from bsplib.apps.sql.keys import CHUNK, Encoding, Keys, agree, owners
from bsplib.apps.sql.relation import Column, QueryError, Relation, stacked
from bsplib.apps.sql.sorting import SampleSort, sort_rows
from bsplib.apps.work import charge_sums

Numbers = NDArray[np.int64]
"""For each row the number of its group."""

_KEY = "the key"
"""A name that no summed column has, since it contains a space."""


def group_by(
    bsp: bsplib.Group,
    relation: Relation,
    name: str,
    summed: Sequence[str],
    *,
    sort: SampleSort | None = None,
) -> Relation:
    """Add up columns of the rows that are equal in another (``SUM ... GROUP BY``).

    Args:
        bsp: the group.
        relation: the rows of this process.
        name: the column to group by; NULLs are equal to each other.
        summed: the columns to add up, of integers, exactly, or of floats. NULLs are left out, and
            the sum of nothing but NULLs is NULL.
        sort: options of the sort; if None, the groups are found by owner.

    Returns:
        One row for each group, on the process that owns it or, by sort, in order.

    Raises:
        QueryError: there is no such column, a column to add is not numeric, a sum
            leaves 64 bits, or a float to group by is NaN.

    Supersteps: 2 by owner; by sort 5, and those of the sample sort.
    Cost: by owner w = O(n/p), about twice as much where the keys are not dense; h = 4 or 8
        bytes for the key and 8 for each sum, of each group that this process has a row of,
        (p - 1)/p of them. By sort that of the sample sort, with records of the key and a row.
    """
    for each in summed:
        relation.numbers(each)
    encoding, like = agree(bsp, [relation[name]]), relation[name].take(slice(0))
    if sort is None:
        keys = partial(_keys_of, encoding, relation[name])
        mine = _added(bsp, encoding, keys, relation.rows, relation.only(summed))
        goal = owners(encoding.column(mine[_KEY].values, like), bsp.nprocs)
        (groups,) = exchange(bsp, by_goal(bsp, mine, goal))
        groups = _added_again(bsp, encoding, groups)
    else:
        groups = _sorted(bsp, encoding, name, relation, summed, sort)
    key = encoding.column(groups[_KEY].values, like)
    placed = name if sort is None else None
    return Relation({name: key, **groups.only(summed).columns}, placed)


def _keys_of(encoding: Encoding, column: Column, rows: slice) -> Keys:
    return encoding.keys(column.take(rows))


def _added(
    bsp: bsplib.Group,
    encoding: Encoding,
    keys: Callable[[slice], Keys],
    count: int,
    relation: Relation,
) -> Relation:
    """Add up rows of this process: w = O(rows).

    A dense key is the number of its group; other keys are numbered as they come.

    Args:
        bsp: the group.
        encoding: of the keys.
        keys: returns the keys of some of the rows; is called for one slice after the other.
        count: number of rows.
        relation: the columns to add up, perhaps none.

    Returns:
        One row for each group, with its key.
    """
    is_dense = encoding.is_dense(count)
    charge_sums(bsp, count * (len(relation.columns) + (not is_dense)))
    if not is_dense:
        numbers = KeyNumbers()
        sums = _sums(lambda rows: numbers.number(_as_words(keys(rows))), count, count, relation)
        return _as_rows(numbers.keys().astype(encoding.dtype), sums, slice(numbers.count))
    marks = np.zeros(encoding.span, bool)

    def numbered(rows: slice) -> Numbers:
        found = keys(rows).astype(np.int64, copy=False)
        marks[found] = True
        return found

    sums = _sums(numbered, count, encoding.span, relation)
    there = np.flatnonzero(marks)
    return _as_rows(there.astype(encoding.dtype), sums, there)


def _added_again(bsp: bsplib.Group, encoding: Encoding, groups: Relation) -> Relation:
    """Put together rows of :func:`_added` of several processes."""
    summed = groups.only(name for name in groups.columns if name != _KEY)
    return _added(bsp, encoding, lambda rows: groups[_KEY].values[rows], groups.rows, summed)


def _as_rows(keys: Keys, sums: Mapping[str, Column], groups: Any) -> Relation:
    return Relation({_KEY: Column(keys), **{n: each.take(groups) for n, each in sums.items()}})


def _as_words(keys: Keys) -> NDArray[np.uint64]:
    return keys.astype(np.uint64, copy=False)


# -- sums of numbered groups ----------------------------------------------------------------------


def _sums(
    numbers: Callable[[slice], Numbers], count: int, size: int, relation: Relation
) -> dict[str, Column]:
    """Add up each column by groups; the sum of nothing but NULLs is NULL.

    Args:
        numbers: returns the numbers of the groups of some rows, for one slice after the other.
        count: number of rows.
        size: number of groups, or more.
        relation: the columns.

    Raises:
        QueryError: a sum of integers exceeds 64 bits.
    """
    sums = {name: _Sum(column, size) for name, column in relation.columns.items()}
    for start in range(0, count, CHUNK):
        rows = slice(start, min(start + CHUNK, count))
        found = numbers(rows)
        for each in sums.values():
            each.add(found, rows)
    return {name: each.column() for name, each in sums.items()}


class _Sum:
    """The sums of a column; integers of Python where one may exceed 64 bits."""

    def __init__(self, column: Column, size: int) -> None:
        self._of = column
        self._seen = None if column.valid is None else np.zeros(size, bool)
        whole: Any = np.int64 if _fits(column) else object
        self._sums: NDArray[Any] = np.zeros(size, np.float64 if column.kind == "float" else whole)

    def add(self, numbers: Numbers, rows: slice) -> None:
        """Take some rows into account, with the numbers of their groups."""
        values = self._of.values[rows]
        if self._of.valid is not None and self._seen is not None:
            known = self._of.valid[rows]
            numbers, values = numbers[known], values[known]
            self._seen[numbers] = True
        if self._sums.dtype == np.int64:
            whole = values if can_add(values.dtype) else values.astype(np.int64)
            add_integers(self._sums, np.ascontiguousarray(numbers), np.ascontiguousarray(whole))
        else:
            np.add.at(self._sums, numbers, values.astype(self._sums.dtype))

    def column(self) -> Column:
        """Return the sum of each group."""
        sums = self._sums
        if sums.dtype == object:
            try:
                sums = sums.astype(np.int64)
            except OverflowError:
                raise QueryError(
                    "a sum of integers exceeds 64 bits; convert them to floats"
                ) from None
        return Column(sums) if self._seen is None else Column(sums).where(self._seen)


def _fits(column: Column) -> bool:
    """Tell whether no sum of some of the values can exceed 64 bits."""
    values = column.values
    if column.kind == "float" or values.dtype.itemsize < 8 or len(values) == 0:
        return True
    return max(-int(values.min()), int(values.max())) < 2**63 // len(values)


# -- groups by a sort -----------------------------------------------------------------------------


def _sorted(
    bsp: bsplib.Group,
    encoding: Encoding,
    name: str,
    relation: Relation,
    summed: Sequence[str],
    how: SampleSort,
) -> Relation:
    """Add up the rows of all processes by sorting them.

    Every row is sent, whole, as in the paper, however many rows of its group a process has. The
    method by owner is cheaper, and does not sort.

    Returns:
        The groups that begin on this process, in order, with their keys.

    Supersteps: 4, and those of the sample sort.
    Cost: h of the sample sort, with records of the key and a row; then p groups.
    """
    keys, rows = sort_rows(bsp, encoding.keys(relation[name]), relation, how)
    charge_sums(bsp, len(keys) * len(summed))
    first = np.append(True, keys[1:] != keys[:-1])[: len(keys)]
    numbers, distinct = np.cumsum(first) - 1, keys[first]
    sums = _sums(lambda some: numbers[some], len(keys), len(distinct), rows.only(summed))
    return _settled(bsp, encoding, _as_rows(distinct, sums, slice(None)))


def _settled(bsp: bsplib.Group, encoding: Encoding, groups: Relation) -> Relation:
    """Put together groups that are on several processes on the first of them: 2 supersteps.

    Such a group is the last of the process where it begins, the only one of those in
    between, and the first of the one where it ends.
    """
    begins = _owner_of_first(bsp, groups[_KEY].values)
    leaves = begins < bsp.pid
    outgoing = [groups.take(slice(int(leaves and pid == begins))) for pid in range(bsp.nprocs)]
    outgoing[bsp.pid] = groups.take(slice(int(leaves), None))
    come = exchange(bsp, outgoing)[0]
    last = max(groups.rows - leaves - 1, 0)
    if come.rows <= last + 1:
        return come
    whole = _added_again(bsp, encoding, come.take(slice(last, None)))  # all of the last group
    return stacked([come.take(slice(last)), whole])


def _owner_of_first(bsp: bsplib.Group, keys: Keys) -> int:
    """Return the first process that has the least of this process's keys: 1 superstep.

    Args:
        bsp: the group.
        keys: ascending, and over the processes too.
    """
    ends = bsp.allgather(keys[[0, -1]] if len(keys) else keys)
    pids = [pid for pid in range(bsp.pid) if len(ends[pid]) and len(keys)]
    same = [pid for pid in pids if ends[pid][-1] == keys[0]]
    return min(same, default=bsp.pid)
