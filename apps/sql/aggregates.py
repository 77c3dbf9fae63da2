"""Aggregates of the rows of a group: sum, count, minimum, maximum, mean.

Each consists of *parts* that two processes can combine: a sum of sums, a sum of counts, the
minimum of minima. NULLs are ignored; the aggregate of no value is NULL, and its count is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsplib.apps.kernels.sums import add_integers, can_add
from bsplib.apps.sql.column import CHUNK, Column, Mask
from bsplib.apps.sql.errors import QueryError
from bsplib.apps.sql.relation import Relation

Index = NDArray[np.int64]
"""For each row the number of its group."""

_LOW = np.int64(2**32 - 1)


@dataclass(frozen=True)
class Aggregate:
    """An aggregate of a column, or without a column of all rows (``COUNT(*)``)."""

    function: str
    column: str | None = None


def total(column: str) -> Aggregate:
    """SUM: of integers, exact, or of floats."""
    return Aggregate("sum", column)


def count(column: str | None = None) -> Aggregate:
    """COUNT: of the values of a column, or of the rows."""
    return Aggregate("count", column)


def least(column: str) -> Aggregate:
    """MIN: of values of any kind."""
    return Aggregate("min", column)


def greatest(column: str) -> Aggregate:
    """MAX: of values of any kind."""
    return Aggregate("max", column)


def mean(column: str) -> Aggregate:
    """AVG: of integers or floats, a float."""
    return Aggregate("mean", column)


class PartialValue(NamedTuple):
    """A value for each group that several processes can combine."""

    function: str
    """``sum``, ``count``, ``min`` or ``max``."""
    column: str | None


def parts_of(aggregates: Mapping[str, Aggregate]) -> list[PartialValue]:
    """Return the parts of which aggregates consist, each once."""
    parts: dict[PartialValue, None] = {}
    for aggregate in aggregates.values():
        names = ("sum", "count") if aggregate.function == "mean" else (aggregate.function,)
        parts.update({PartialValue(name, aggregate.column): None for name in names})
    return list(parts)


def check(relation: Relation, aggregates: Mapping[str, Aggregate], what: str) -> None:
    """Raise QueryError if a column does not exist, or has a kind that cannot be added."""
    for aggregate in aggregates.values():
        if aggregate.column is None:
            continue
        kind = relation[aggregate.column].kind
        if aggregate.function in ("sum", "mean") and kind not in ("integer", "float"):
            raise QueryError(
                f"{what}: {aggregate.column!r} is a {kind}; a {aggregate.function} is of integers "
                f"or floats"
            )


class Made(NamedTuple):
    """The parts of the groups of some rows."""

    present: Mask
    """Whether a group has a row."""
    parts: dict[PartialValue, Column]
    """The parts; undefined for a group without rows."""

    def null_where_absent(self) -> dict[PartialValue, Column]:
        """Return the parts, NULL for a group that has no row."""
        return {part: column.where(self.present) for part, column in self.parts.items()}

    def of(self, groups: Any) -> Made:
        """Return the parts of some groups."""
        taken = {part: column.take(groups) for part, column in self.parts.items()}
        return Made(self.present[groups], taken)


class Grouping(NamedTuple):
    """The groups of some rows; their numbers may be found while the rows are gone through."""

    rows: int
    """Number of rows."""
    numbers: Callable[[int, int], Index]
    """Returns the numbers of the groups of a range of rows; is called for one after the other."""
    size: Callable[[], int]
    """Returns a number above those that have been returned so far; at the end that of all."""


def numbered_rows(index: Index, count: int) -> Grouping:
    """Return the groups of rows whose numbers are known.

    Args:
        index: the number of each row's group.
        count: number of groups.
    """
    return Grouping(len(index), lambda start, stop: index[start:stop], lambda: count)


def accumulate(grouping: Grouping, rows: Relation, parts: Sequence[PartialValue]) -> Made:
    """Compute each part of each group from the rows of this process.

    Args:
        grouping: the groups of the rows.
        rows: the columns of the rows, at least those that the parts name.
        parts: the parts to compute.

    Raises:
        QueryError: a sum of integers exceeds 64 bits.

    Cost: w = O(rows) for each part and each column with NULLs, with one random access each.
    """
    room = grouping.size()
    tallies = [
        _Tally(None if name is None else rows[name], of_name, room)
        for name, of_name in _by_column(parts).items()
    ]
    presence = _Presence(tallies, room)
    for start in range(0, grouping.rows, CHUNK):
        chunk = slice(start, min(start + CHUNK, grouping.rows))
        numbers = grouping.numbers(chunk.start, chunk.stop)
        if grouping.size() > room:
            room = 2 * grouping.size()
            _resize([*tallies, presence], room)
        presence.add(numbers, chunk)
        for tally in tallies:
            tally.add(numbers, chunk)
    _resize([*tallies, presence], grouping.size())
    made = {part: column for tally in tallies for part, column in tally.columns()}
    return Made(presence.mask(), {part: made[part] for part in parts})


def combine(grouping: Grouping, partial: Mapping[PartialValue, Column]) -> Made:
    """Combine the parts of each group that several processes have computed."""
    again = {
        PartialValue("sum" if part.function == "count" else part.function, f"part {number}"): part
        for number, part in enumerate(partial)
    }
    rows = Relation({str(new.column): partial[part] for new, part in again.items()})
    made = accumulate(grouping, rows, list(again))
    return Made(made.present, {part: made.parts[new] for new, part in again.items()})


def finish(
    aggregates: Mapping[str, Aggregate], made: Mapping[PartialValue, Column]
) -> dict[str, Column]:
    """Return the aggregates of each group from their parts."""
    return {name: _finished(aggregate, made) for name, aggregate in aggregates.items()}


def _finished(aggregate: Aggregate, made: Mapping[PartialValue, Column]) -> Column:
    if aggregate.function == "mean":
        sums, counts = (made[PartialValue(name, aggregate.column)] for name in ("sum", "count"))
        return Column(sums.values / np.maximum(_zero_for_null(counts), 1), sums.valid)
    column = made[PartialValue(aggregate.function, aggregate.column)]
    if aggregate.function == "count":
        return Column(_zero_for_null(column))
    return column


def _zero_for_null(column: Column) -> NDArray[Any]:
    return column.values if column.valid is None else np.where(column.valid, column.values, 0)


def _by_column(parts: Sequence[PartialValue]) -> dict[str | None, list[PartialValue]]:
    columns: dict[str | None, list[PartialValue]] = {}
    for part in parts:
        columns.setdefault(part.column, []).append(part)
    return columns


# -- accumulators -------------------------------------------------------------------------------


def _resized(values: NDArray[Any], size: int, start: Any = 0) -> NDArray[Any]:
    """Return the values of the first groups, and for each group that is new the start."""
    if size <= len(values):
        return values[:size]
    more = np.full(size, start, values.dtype)
    more[: len(values)] = values
    return more


class _Tally:
    """All parts of one column; or of the rows, where there is none."""

    def __init__(self, column: Column | None, parts: Sequence[PartialValue], size: int) -> None:
        self._column = column
        self._valid = None if column is None else column.valid
        self._seen = None if self._valid is None else np.zeros(size, bool)
        self._makers = [(part, _maker(part, column, size)) for part in parts]

    def witness(self) -> _Maker | None:
        """Return an accumulator whose values are above 0 exactly for groups with a row.

        Counts have this property, and so have sums of integers while :meth:`trusts` is true.
        """
        if self._valid is not None:
            return None
        makers = (maker for _, maker in self._makers)
        return next((maker for maker in makers if isinstance(maker, _Count | _Sum)), None)

    def resize(self, size: int) -> None:
        """Make room for some number of groups, or leave out those behind."""
        if self._seen is not None:
            self._seen = _resized(self._seen, size)
        _resize([maker for _, maker in self._makers], size)

    def trusts(self, maker: _Maker, rows: slice) -> bool:
        """Tell whether an accumulator keeps this property with further rows."""
        if isinstance(maker, _Count) or self._column is None:
            return True
        return bool(self._column.values[rows].min(initial=1) > 0)

    def add(self, index: Index, rows: slice) -> None:
        """Take some rows into account."""
        values = None if self._column is None else self._column.values[rows]
        if self._seen is not None and self._valid is not None and values is not None:
            known = self._valid[rows]
            index, values = index[known], values[known]
            self._seen[index] = True
        for _, maker in self._makers:
            maker.add(index, values)

    def columns(self) -> Iterator[tuple[PartialValue, Column]]:
        """Return the parts of each group; NULL for a group with rows but without values."""
        for part, maker in self._makers:
            values = maker.values()
            if part.function == "count" or self._column is None:
                yield part, Column(values)
            else:
                like = values if part.function == "sum" else self._column.values
                made = Column(_as(like.dtype, values), None, self._column.words)
                yield part, made if self._seen is None else made.where(self._seen)


class _Presence:
    """Finds the groups that have a row.

    As long as some part shows this (a sum of numbers above 0 is above 0), no mask is
    needed. After the first number that is not above 0, a mask is kept.
    """

    def __init__(self, tallies: Sequence[_Tally], size: int) -> None:
        witnesses = ((tally, maker) for tally in tallies if (maker := tally.witness()) is not None)
        self._witness = next(witnesses, None)
        self._seen = np.zeros(size, bool)

    def add(self, index: Index, rows: slice) -> None:
        """Take some rows into account, before their tallies do."""
        if self._witness is not None:
            tally, maker = self._witness
            if tally.trusts(maker, rows):
                return
            self._seen = self.mask()
            self._witness = None
        self._seen[index] = True

    def resize(self, size: int) -> None:
        """Make room for some number of groups, or leave out those behind."""
        self._seen = _resized(self._seen, size)

    def mask(self) -> Mask:
        """Return which groups have a row."""
        return self._seen if self._witness is None else self._witness[1].values() > 0


def _as(dtype: np.dtype[Any], values: NDArray[Any]) -> NDArray[Any]:
    return values.view(dtype) if dtype.kind == "M" else values.astype(dtype, copy=False)


class _Fold:
    """Combines the values of each group by a ufunc, in place."""

    def __init__(self, op: np.ufunc, size: int, start: float, dtype: Any) -> None:
        self._op = op
        self._start = start
        self._made = np.full(size, start, dtype)

    def resize(self, size: int) -> None:
        """Make room for some number of groups, or leave out those behind."""
        self._made = _resized(self._made, size, self._start)

    def add(self, index: Index, values: Any) -> None:
        """Take some values into account."""
        if values.dtype.kind == "M":
            values = values.view(np.int64)
        self._op.at(self._made, index, values.astype(self._made.dtype, copy=False))

    def values(self) -> NDArray[Any]:
        """Return one value for each group."""
        return self._made


class _Sum:
    """Adds integers whose sum fits into 64 bits."""

    def __init__(self, size: int) -> None:
        self._made = np.zeros(size, np.int64)

    def resize(self, size: int) -> None:
        """Make room for some number of groups, or leave out those behind."""
        self._made = _resized(self._made, size)

    def add(self, index: Index, values: Any) -> None:
        """Take some values into account."""
        if not can_add(values.dtype):
            values = values.astype(np.int64)
        add_integers(self._made, np.ascontiguousarray(index), np.ascontiguousarray(values))

    def values(self) -> NDArray[Any]:
        """Return one sum for each group."""
        return self._made


class _LongSum:
    """Adds integers whose sum may exceed 64 bits: the two halves of each separately."""

    def __init__(self, size: int) -> None:
        self._high = np.zeros(size, np.int64)
        self._low = np.zeros(size, np.int64)

    def resize(self, size: int) -> None:
        """Make room for some number of groups, or leave out those behind."""
        self._high, self._low = _resized(self._high, size), _resized(self._low, size)

    def add(self, index: Index, values: Any) -> None:
        """Take some values into account."""
        np.add.at(self._high, index, values >> 32)
        np.add.at(self._low, index, values & _LOW)

    def values(self) -> NDArray[Any]:
        """Return one sum for each group."""
        high = self._high + (self._low >> 32)
        if len(high) and not -(2**31) <= high.min() <= high.max() < 2**31:
            raise QueryError("a sum of integers exceeds 64 bits; convert them to floats (project)")
        return (high << 32) | (self._low & _LOW)


class _Count:
    """Counts."""

    def __init__(self, size: int) -> None:
        self._made = np.zeros(size, np.int64)

    def resize(self, size: int) -> None:
        """Make room for some number of groups, or leave out those behind."""
        self._made = _resized(self._made, size)

    def add(self, index: Index, values: Any) -> None:  # noqa: ARG002  # one of several makers
        """Take some rows into account."""
        np.add.at(self._made, index, 1)

    def values(self) -> NDArray[Any]:
        """Return how many there have been in each group."""
        return self._made


_Maker = _Fold | _Sum | _LongSum | _Count


def _resize(all_of: Sequence[_Tally | _Presence | _Maker], size: int) -> None:
    for one in all_of:
        one.resize(size)


def _maker(part: PartialValue, column: Column | None, size: int) -> _Maker:
    """Make the accumulator of a part."""
    if part.function == "count" or column is None:
        return _Count(size)
    is_float = column.kind == "float"
    wide = np.float64 if is_float else np.int64
    if part.function == "sum":
        if is_float:
            return _Fold(np.add, size, 0, wide)
        return _Sum(size) if _sum_fits(column.values) else _LongSum(size)
    if part.function == "min":
        return _Fold(np.minimum, size, np.inf if is_float else 2**63 - 1, wide)
    return _Fold(np.maximum, size, -np.inf if is_float else -(2**63), wide)


def _sum_fits(values: NDArray[Any]) -> bool:
    """Tell whether no sum of some of these integers can exceed 64 bits."""
    if values.dtype.itemsize < 8 or len(values) == 0:
        return len(values) < 2**31
    return max(-int(values.min()), int(values.max())) < 2**63 // len(values)
