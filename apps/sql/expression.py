"""Values calculated from the columns of a row, and conditions on them.

``col("units") * col("price")`` is a value, ``col("day") >= date(2002, 1, 1)`` a
condition. Conditions know three answers, as SQL does: true, false, and unknown where a
NULL is compared.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from datetime import date
from typing import Any, NamedTuple

import numpy as np

from bsplib.apps.sql.column import Column, Mask, alike
from bsplib.apps.sql.errors import QueryError
from bsplib.apps.sql.relation import Relation

Literal = int | float | str | date
Operator = Callable[[Any, Any], Any]

_NUMBERS = ("integer", "float")
_FITS = 2**63


class Truth(NamedTuple):
    """For which rows a condition is true, and for which false; it is unknown for the others."""

    true: Mask
    false: Mask


class Condition:
    """Something that is true, false or unknown of a row; combined by ``&``, ``|`` and ``~``."""

    def __init__(self, answer: Callable[[Relation], Truth]) -> None:
        self.answer = answer

    def truth(self, relation: Relation) -> Mask:
        """Return for which rows it is true."""
        return self.answer(relation).true

    def __and__(self, other: Condition) -> Condition:
        def answer(relation: Relation) -> Truth:
            one, two = self.answer(relation), other.answer(relation)
            return Truth(one.true & two.true, one.false | two.false)

        return Condition(answer)

    def __or__(self, other: Condition) -> Condition:
        return ~(~self & ~other)

    def __invert__(self) -> Condition:
        return Condition(lambda relation: Truth(*reversed(self.answer(relation))))


class Value:
    """A value of each row; calculated with and compared by the usual operators."""

    def __init__(self, column: Callable[[Relation], Column]) -> None:
        self.column = column

    def __add__(self, other: Value | Literal) -> Value:
        return _calculation(operator.add, "+", self, other)

    def __sub__(self, other: Value | Literal) -> Value:
        return _calculation(operator.sub, "-", self, other)

    def __mul__(self, other: Value | Literal) -> Value:
        return _calculation(operator.mul, "*", self, other)

    def __truediv__(self, other: Value | Literal) -> Value:
        """Divide, as floats; by 0 it is NULL."""
        return _calculation(operator.truediv, "/", self, other)

    def __eq__(self, other: object) -> Condition:  # type: ignore[override]  # a condition
        return _comparison(operator.eq, self, other)

    def __ne__(self, other: object) -> Condition:  # type: ignore[override]  # a condition
        return _comparison(operator.ne, self, other)

    def __lt__(self, other: Value | Literal) -> Condition:
        return _comparison(operator.lt, self, other)

    def __le__(self, other: Value | Literal) -> Condition:
        return _comparison(operator.le, self, other)

    def __gt__(self, other: Value | Literal) -> Condition:
        return _comparison(operator.gt, self, other)

    def __ge__(self, other: Value | Literal) -> Condition:
        return _comparison(operator.ge, self, other)

    __hash__ = None  # type: ignore[assignment]  # since == does not compare

    def is_null(self) -> Condition:
        """Tell whether the value is NULL, which is never unknown."""

        def answer(relation: Relation) -> Truth:
            known = self.column(relation).known()
            return Truth(~known, known)

        return Condition(answer)

    def is_in(self, others: Iterable[Literal]) -> Condition:
        """Tell whether the value is one of some literals (``IN``)."""
        nothing = _comparison(operator.ne, self, self)  # false, or unknown for NULL
        for other in others:
            nothing = nothing | (self == other)
        return nothing


def col(name: str) -> Value:
    """Return the value of a column."""
    return Value(lambda relation: relation[name])


def literal(value: Literal) -> Value:
    """Return a value that is equal in all rows.

    Raises:
        QueryError: the value is of no kind that a column can have.
    """
    if isinstance(value, str):
        words = np.array([value], object)
        return Value(lambda relation: Column(np.zeros(relation.rows, np.int32), None, words))
    if isinstance(value, date):
        array = np.asarray(np.datetime64(value, "D"))
    elif _is_number(value):
        array = np.asarray(value)
    else:
        raise QueryError(f"{value!r} is no integer, float, string or date; for NULL ask is_null()")
    if array.dtype.kind not in "ifM":
        raise QueryError(f"{value!r} does not fit 64 bits")
    return Value(lambda relation: Column(np.full(relation.rows, array)))


def _is_number(value: Any) -> bool:
    is_one = isinstance(value, (int, float, np.integer, np.floating))
    return is_one and bool(value == value)  # noqa: PLR0124  # NaN is none


def _as_value(other: Any) -> Value:
    return other if isinstance(other, Value) else literal(other)


def _comparison(op: Operator, one: Value, other: Any) -> Condition:
    second = _as_value(other)

    def answer(relation: Relation) -> Truth:
        columns = [one.column(relation), second.column(relation)]
        if any(column.kind not in _NUMBERS for column in columns):
            columns = alike(columns, "a comparison")
        true = op(columns[0].values, columns[1].values)
        known = columns[0].known() & columns[1].known()
        return Truth(true & known, ~true & known)

    return Condition(answer)


def _calculation(op: Operator, sign: str, one: Value, other: Any) -> Value:
    second = _as_value(other)

    def column(relation: Relation) -> Column:
        first, last = one.column(relation), second.column(relation)
        kinds = first.kind, last.kind
        if kinds == ("date", "date") and op is operator.sub:
            days = (first.values - last.values).astype(np.int64)
            return Column(days).where(first.known() & last.known())
        if any(kind not in _NUMBERS for kind in kinds):
            raise QueryError(f"{kinds[0]} {sign} {kinds[1]} cannot be calculated")
        return _calculated(op, first, last)

    return Value(column)


def _calculated(op: Operator, first: Column, last: Column) -> Column:
    valid = _both(first, last)
    if op is operator.truediv:
        divisible = last.values != 0
        with np.errstate(divide="ignore", invalid="ignore"):
            made = Column(first.values / last.values, valid)
        return made if divisible.all() else made.where(divisible)
    if "float" in (first.kind, last.kind):
        return Column(op(first.values, last.values), valid)
    return Column(_exactly(op, first.values, last.values), valid)


def _both(first: Column, last: Column) -> Mask | None:
    if first.valid is None or last.valid is None:
        return first.valid if last.valid is None else last.valid
    return first.valid & last.valid


def _exactly(op: Operator, first: Any, last: Any) -> Any:
    """Calculate with integers, 64 bits wide.

    Raises:
        QueryError: a result has more.
    """
    ends = [[int(side.min()), int(side.max())] for side in (first, last) if len(side)]
    if not ends or all(-_FITS <= op(a, b) < _FITS for a in ends[0] for b in ends[1]):
        return op(first.astype(np.int64, copy=False), last.astype(np.int64, copy=False))
    exact = op(first.astype(object), last.astype(object))
    if not all(-_FITS <= number < _FITS for number in (exact.min(), exact.max())):
        raise QueryError("a calculation with integers exceeds 64 bits; convert them to floats")
    return exact.astype(np.int64)
