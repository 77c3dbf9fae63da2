"""The law of a quantity: its closed forms, where each holds, and what is not known."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.experiments.formula import FormulaError
from bsplib.profiler.models.band import Reach
from bsplib.profiler.models.nodes.forms import Form
from bsplib.profiler.models.nodes.values import PROCESSES
from bsplib.profiler.models.terms import column

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

Point = dict[str, float]

EXACT, FITTED, REFUSED = "exact", "fitted", "refused"
_EQUAL = 1e-9


class PredictedValue(NamedTuple):
    """A predicted value."""

    value: float
    """Not a number where it is refused."""
    low: float
    high: float
    why: str = ""
    """Why it is refused; otherwise empty."""
    settle: tuple[Point, ...] = ()
    """Runs that would settle it."""

    @property
    def is_known(self) -> bool:
        """Whether there is a value."""
        return not self.why


@dataclass(frozen=True)
class Where:
    """A bound of the points at which a form holds: a quantity on one side of a gap."""

    quantity: str
    """In the syntax of a formula, such as ``n/p``."""
    low: float
    """Greatest value that was observed below."""
    high: float
    """Least value that was observed above."""
    above: bool
    """Whether the form holds above."""

    def holds(self, point: Mapping[str, float]) -> bool | None:
        """Whether a point is on its side; None in the gap, or where it has no value."""
        try:
            value = float(column(self.quantity, _arrays(point), rounded=False)[0])
        except FormulaError:
            return None
        if value >= self.high * (1 - _EQUAL):
            return self.above
        if value <= self.low * (1 + _EQUAL):
            return not self.above
        return None

    @property
    def text(self) -> str:
        """The bound in words."""
        if self.above:
            return f"{self.quantity} >= {self.high:g}"
        return f"{self.quantity} <= {self.low:g}"


@dataclass(frozen=True)
class Piece:
    """The forms of a quantity on one side of a bound, or everywhere."""

    forms: tuple[Form, ...]
    """The simplest, and others as simple that the runs do not tell from it."""
    where: tuple[Where, ...] = ()
    """The bounds by which the runs can be divided so; without any it holds everywhere."""


@dataclass(frozen=True)
class Law:
    """How a quantity of a call chain depends on the variables."""

    kind: str
    """``exact``, ``fitted`` or ``refused``."""
    pieces: tuple[Piece, ...]
    """None where it is refused."""
    reach: Reach = field(default_factory=Reach)
    why: str = ""
    """Why it is refused, or what is doubtful."""
    settle: tuple[Point, ...] = ()
    """Runs that would settle it."""
    inside: str = ""
    """Why it holds only where the runs were; otherwise empty."""
    largest: tuple[tuple[Point, float], ...] = ()
    """The largest runs with their values. Beyond them each form goes on from the nearest one: where
    the data of the largest run outgrow a cache, no form fits this run and the smaller ones. Since
    that run may have been disturbed, the band holds the forms as they fit all runs, too."""

    def at(self, point: Point, distance: float = 0.0) -> PredictedValue:
        """Predict the value at a point.

        Args:
            point: values of all variables.
            distance: how far the point is from the runs, as
                :func:`bsplib.profiler.models.nested_regions.distance` counts.
        """
        if self.kind == REFUSED:
            return _refused(self.why, self.settle)
        if self.inside and distance > _EQUAL:
            return _refused(self.inside, self.settle)
        try:
            found = self._possible(point)
        except FormulaError as error:
            return _refused(str(error), ())
        off = self.reach.at(distance) if self.kind == FITTED else 0.0
        value, low, high = (max(each, 0.0) for each in (found[0], min(found), max(found)))
        is_open = high - low > _EQUAL * high
        low, high = low * math.exp(-off), high * math.exp(min(off, 300.0))
        return PredictedValue(value, low, high, settle=self.settle if is_open else ())

    def times(self, factor: int) -> Law:
        """Return the law of a multiple of the quantity."""
        pieces = [
            replace(piece, forms=tuple(form.times(factor) for form in piece.forms))
            for piece in self.pieces
        ]
        return replace(self, pieces=tuple(pieces))

    def _possible(self, point: Point) -> list[float]:
        """Return the values of all forms that may hold at a point."""
        pieces = [piece for piece in self.pieces if _may_hold(piece, point)] or self.pieces
        arrays = _arrays(point)
        forms = [form for piece in pieces for form in piece.forms]
        found = [float(form.at(arrays)[0]) for form in forms]
        if self.largest:
            levels = [self._level(piece, form, point) for piece in pieces for form in piece.forms]
            found = [*(value * level for value, level in zip(found, levels, strict=True)), *found]
        if self.kind == EXACT:
            found += [
                float(form.at(_arrays(there))[0])
                for form in forms
                for there in _whole_shares(point, form.shared)
            ]
        return found

    def _level(self, piece: Piece, form: Form, point: Point) -> float:
        """Return by what a form is multiplied at a point, so that it gives the nearest large run.

        Nothing changes at points that are smaller than all of these in some size.
        """
        runs = [
            (there, value)
            for there, value in self.largest
            if _may_hold(piece, there)
            and all(point[name] >= there[name] for name in there if name != PROCESSES)
        ]
        if not runs:
            return 1.0
        there, value = min(runs, key=lambda run: _doublings(run[0], point))
        fitted = float(form.at(_arrays(there))[0])
        return value / fitted if fitted > 0 else 1.0

    @property
    def text(self) -> str:
        """The law in one line."""
        if self.kind == REFUSED:
            return "refused"
        if self.kind == FITTED:
            return "; ".join(
                piece.forms[0].text + (f" where {piece.where[0].text}" if piece.where else "")
                for piece in self.pieces
            )
        if len(self.pieces) == 1:
            return " or ".join(form.text for form in self.pieces[0].forms)
        return "; ".join(
            f"{piece.forms[0].text} where {piece.where[0].text}" for piece in self.pieces
        )

    @property
    def is_zero(self) -> bool:
        """Whether it is 0 everywhere."""
        return self.kind == EXACT and all(
            not form.terms for piece in self.pieces for form in piece.forms
        )


def _whole_shares(point: Point, size: str) -> list[Point]:
    """Return the points around one at which the processes have equal shares of a size.

    Where p does not divide the size, the longest share is a whole number of elements, which lies
    between those of these points.
    """
    p = point.get(PROCESSES, 1.0)
    if not size or point[size] % p == 0:
        return []
    return [{**point, size: whole(point[size] / p) * p} for whole in (math.floor, math.ceil)]


def _may_hold(piece: Piece, point: Point) -> bool:
    return not piece.where or any(where.holds(point) is not False for where in piece.where)


def _doublings(one: Point, other: Point) -> float:
    """Return by how many doublings of variables two points differ."""
    return sum(abs(math.log2(other[name] / one[name])) for name in one if one[name] > 0)


def _refused(why: str, settle: Sequence[Point]) -> PredictedValue:
    return PredictedValue(math.nan, math.nan, math.nan, why, tuple(settle))


def _arrays(point: Mapping[str, float]) -> dict[str, Vector]:
    return {name: np.array([value]) for name, value in point.items()}
