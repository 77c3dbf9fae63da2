"""What can be said of the rows of a group: sum, count, minimum, maximum, mean.

Each is made of *parts* that two processes can combine: a sum of sums, a sum of
counts, the least of the least. NULLs count for nothing; what has no value but NULLs
is NULL, and its count is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from apps.sql.column import CHUNK, Column, Mask
from apps.sql.errors import QueryError
from apps.sql.relation import Relation

Index = NDArray[np.int64]
"""For each row the number of its group."""

_LOW = np.int64(2**32 - 1)


@dataclass(frozen=True)
class Aggregate:
    """An aggregate of a column; of all rows where it has none (``COUNT(*)``)."""

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


class Part(NamedTuple):
    """What one process can say of a group and another add to."""

    function: str
    """``sum``, ``count``, ``min`` or ``max``."""
    column: str | None


def parts_of(aggregates: Mapping[str, Aggregate]) -> list[Part]:
    """Return the parts that aggregates are made of, each once."""
    parts: dict[Part, None] = {}
    for aggregate in aggregates.values():
        names = ("sum", "count") if aggregate.function == "mean" else (aggregate.function,)
        parts.update({Part(name, aggregate.column): None for name in names})
    return list(parts)


def check(relation: Relation, aggregates: Mapping[str, Aggregate], what: str) -> None:
    """Raise QueryError where a column is not there, or of no kind that can be added."""
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
    """What has been made of the groups of some rows."""

    present: Mask
    """Whether a group has a row."""
    parts: dict[Part, Column]
    """Of a group that has none, anything."""

    def null_where_absent(self) -> dict[Part, Column]:
        """Return the parts, NULL for a group that has no row."""
        return {part: column.where(self.present) for part, column in self.parts.items()}

    def of(self, groups: Any) -> Made:
        """Return what has been made of some groups."""
        taken = {part: column.take(groups) for part, column in self.parts.items()}
        return Made(self.present[groups], taken)


def accumulate(
    index: Callable[[int, int], Index],
    length: int,
    rows: Relation,
    parts: Sequence[Part],
    size: int,
) -> Made:
    """Make each part of each group of the rows of this process.

    Args:
        index: gives for some rows in a row the numbers of their groups.
        length: number of rows.
        rows: their columns, at least those that the parts name.
        parts: what to say of them.
        size: number of groups.

    Raises:
        QueryError: a sum of integers leaves 64 bits.

    Cost: w = O(rows) for each part and for what has NULLs, with one random access each.
    """
    tallies = [
        _Tally(None if name is None else rows[name], of_name, size)
        for name, of_name in _by_column(parts).items()
    ]
    presence = _Presence(tallies, size)
    for start in range(0, length, CHUNK):
        chunk = slice(start, min(start + CHUNK, length))
        numbers = index(chunk.start, chunk.stop)
        presence.add(numbers, chunk)
        for tally in tallies:
            tally.add(numbers, chunk)
    made = {part: column for tally in tallies for part, column in tally.columns()}
    return Made(presence.mask(), {part: made[part] for part in parts})


def slices_of(index: Index) -> Callable[[int, int], Index]:
    """Return the numbers of the groups of all rows in the way that :func:`accumulate` asks."""
    return lambda start, stop: index[start:stop]


def combine(index: Index, partial: Mapping[Part, Column], size: int) -> Made:
    """Make each part of each group from parts of it that several processes made."""
    again = {
        Part("sum" if part.function == "count" else part.function, f"part {number}"): part
        for number, part in enumerate(partial)
    }
    rows = Relation({str(new.column): partial[part] for new, part in again.items()})
    made = accumulate(slices_of(index), len(index), rows, list(again), size)
    return Made(made.present, {part: made.parts[new] for new, part in again.items()})


def finish(aggregates: Mapping[str, Aggregate], made: Mapping[Part, Column]) -> dict[str, Column]:
    """Return the aggregates of each group from their parts."""
    return {name: _finished(aggregate, made) for name, aggregate in aggregates.items()}


def _finished(aggregate: Aggregate, made: Mapping[Part, Column]) -> Column:
    if aggregate.function == "mean":
        sums, counts = (made[Part(name, aggregate.column)] for name in ("sum", "count"))
        return Column(sums.values / np.maximum(_zero_for_null(counts), 1), sums.valid)
    column = made[Part(aggregate.function, aggregate.column)]
    if aggregate.function == "count":
        return Column(_zero_for_null(column))
    return column


def _zero_for_null(column: Column) -> NDArray[Any]:
    return column.values if column.valid is None else np.where(column.valid, column.values, 0)


def _by_column(parts: Sequence[Part]) -> dict[str | None, list[Part]]:
    columns: dict[str | None, list[Part]] = {}
    for part in parts:
        columns.setdefault(part.column, []).append(part)
    return columns


# -- accumulators -------------------------------------------------------------------------------


class _Tally:
    """All parts of one column; or of the rows, where there is none."""

    def __init__(self, column: Column | None, parts: Sequence[Part], size: int) -> None:
        self._column = column
        self._is_integer = column is not None and column.kind == "integer"
        self._valid = None if column is None else column.valid
        self._seen = None if self._valid is None else np.zeros(size, bool)
        self._makers = [(part, _maker(part, column, size)) for part in parts]

    def witness(self) -> _Maker | None:
        """Return a maker whose values are above 0 for just the groups that have a row.

        Counts are, and so are sums of integers, as long as it :meth:`trusts` them.
        """
        if self._valid is not None:
            return None
        for part, maker in self._makers:
            is_sum = part.function == "sum" and isinstance(maker, _Fold)
            if isinstance(maker, _Count) or (is_sum and self._is_integer):
                return maker
        return None

    def trusts(self, maker: _Maker, rows: slice) -> bool:
        """Tell whether a witness will be right with these rows as well."""
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

    def columns(self) -> Iterator[tuple[Part, Column]]:
        """Return what has been made of each group; NULL where it has rows and no value."""
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

    Where some part tells, one need not look by oneself: a sum of numbers above 0 is
    above 0. From the first that is not on, one does.
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

    def mask(self) -> Mask:
        """Return which groups have a row."""
        return self._seen if self._witness is None else self._witness[1].values() > 0


def _as(dtype: np.dtype[Any], values: NDArray[Any]) -> NDArray[Any]:
    return values.view(dtype) if dtype.kind == "M" else values.astype(dtype, copy=False)


class _Fold:
    """Combines the values of each group by a ufunc, in place."""

    def __init__(self, op: np.ufunc, size: int, start: float, dtype: Any) -> None:
        self._op = op
        self._made = np.full(size, start, dtype)

    def add(self, index: Index, values: Any) -> None:
        """Take some values into account."""
        if values.dtype.kind == "M":
            values = values.view(np.int64)
        self._op.at(self._made, index, values.astype(self._made.dtype, copy=False))

    def values(self) -> NDArray[Any]:
        """Return one value for each group."""
        return self._made


class _LongSum:
    """Adds integers so large that their sum might leave 64 bits: each half by itself."""

    def __init__(self, size: int) -> None:
        self._high = np.zeros(size, np.int64)
        self._low = np.zeros(size, np.int64)

    def add(self, index: Index, values: Any) -> None:
        """Take some values into account."""
        np.add.at(self._high, index, values >> 32)
        np.add.at(self._low, index, values & _LOW)

    def values(self) -> NDArray[Any]:
        """Return one sum for each group."""
        high = self._high + (self._low >> 32)
        if len(high) and not -(2**31) <= high.min() <= high.max() < 2**31:
            raise QueryError("a sum of integers leaves 64 bits; make floats of them (project)")
        return (high << 32) | (self._low & _LOW)


class _Count:
    """Counts."""

    def __init__(self, size: int) -> None:
        self._made = np.zeros(size, np.int64)

    def add(self, index: Index, values: Any) -> None:  # noqa: ARG002  # one of several makers
        """Take some rows into account."""
        np.add.at(self._made, index, 1)

    def values(self) -> NDArray[Any]:
        """Return how many there have been in each group."""
        return self._made


_Maker = _Fold | _LongSum | _Count


def _maker(part: Part, column: Column | None, size: int) -> _Maker:
    """Make the accumulator of a part."""
    if part.function == "count" or column is None:
        return _Count(size)
    is_float = column.kind == "float"
    wide = np.float64 if is_float else np.int64
    if part.function == "sum":
        fits = is_float or _sum_fits(column.values)
        return _Fold(np.add, size, 0, wide) if fits else _LongSum(size)
    if part.function == "min":
        return _Fold(np.minimum, size, np.inf if is_float else 2**63 - 1, wide)
    return _Fold(np.maximum, size, -np.inf if is_float else -(2**63), wide)


def _sum_fits(values: NDArray[Any]) -> bool:
    """Tell whether no sum of some of these integers can leave 64 bits."""
    if values.dtype.itemsize < 8 or len(values) == 0:
        return len(values) < 2**31
    return max(-int(values.min()), int(values.max())) < 2**63 // len(values)
