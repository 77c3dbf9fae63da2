"""The search for exact forms: sums of up to three terms that give every observed value.

All subsets of the terms are tried at once, for all quantities: a subset fits if what is left of
the values outside of the space of its columns is 0. The coefficients have to be fractions with
small denominators. Of the terms of one growth there are fewer than there are values of p, and of
one function of p fewer than values of the sizes: otherwise any values would be met, and the form
says nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from bsplib.profiler.models.nodes.forms import ZERO, Form
from bsplib.profiler.models.nodes.values import PROCESSES
from bsplib.profiler.models.terms import Term, column

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]
    Matrix = NDArray[np.float64]

MOST_TERMS = 3
_MOST_WEIGHT = {1: 6, 2: 9, 3: 8}
"""Greatest weight of a form, by its number of terms: how complicated it may be."""
_MOST_OF_EACH = {1: 6, 2: 5, 3: 5}
"""Greatest weight of each of its terms."""
_LEFT = 1e-12
"""Part of the squares of the values that may be left, before coefficients are made exact."""
_DENOMINATOR = 240
_EXACT = 1e-9
_PIECE = 20_000
_AS_SIMPLE = 2
"""How much heavier a term may be that is kept beside one with the same values."""
_MOST_ALIKE = 40


@dataclass(frozen=True)
class _Subsets:
    rows: NDArray[np.intp]
    """Numbers of the terms, one row for each subset."""
    base: Matrix
    """An orthonormal base of each, of shape ``(subsets, terms, points)``."""


class ExactSearch:
    """The search at some points."""

    def __init__(
        self,
        terms: Sequence[Term],
        values: Mapping[str, Vector],
        columns: Matrix,
        *,
        rounded: bool,
    ) -> None:
        """Prepare the columns of the terms.

        Args:
            terms: the terms.
            values: the variables, one element for each point; no point comes twice.
            columns: of :func:`columns_of`.
            rounded: whether log2(p) is rounded up.
        """
        self._rounded = rounded
        self._terms, self._columns, self._alike = _different(terms, columns)
        lengths = np.linalg.norm(self._columns, axis=1)
        self._usable = np.flatnonzero(lengths > 0)
        self._lengths = np.where(lengths > 0, lengths, 1)
        self._processes = len(set(values[PROCESSES].tolist())) if PROCESSES in values else 1
        others = [array.tolist() for name, array in values.items() if name != PROCESSES]
        self._sizes = len(set(zip(*others, strict=True))) if others else 1
        self._numbers = {term.text: number for number, term in enumerate(self._terms)}
        for number, alike in enumerate(self._alike):
            self._numbers |= {term.text: number for _, term in alike}
        self._subsets: dict[int, _Subsets] = {}

    def find(self, rows: Matrix, most: int = MOST_TERMS) -> list[list[Form]]:
        """Return the exact forms of each row of values, the simplest first.

        Args:
            rows: values at the points, one row for each quantity.
            most: greatest number of terms.

        Returns:
            For each row the forms with the least number of terms, and those with one more
            that are as simple as the first; none if there is no exact form.
        """
        found: list[list[Form]] = [[ZERO] if not row.any() else [] for row in rows]
        least = [0 if forms else most + 1 for forms in found]
        for count in range(1, most + 1):
            open_rows = [
                place for place, first in enumerate(least) if first > 0 and first >= count - 1
            ]
            if not open_rows:
                break
            known = [found[place] for place in open_rows]
            for place, forms in zip(
                open_rows, self._of(count, rows[open_rows], known), strict=True
            ):
                if forms:
                    least[place] = min(least[place], count)
                limit = min((form.weight for form in found[place]), default=10**9)
                every = (other for form in forms for other in self._as_good(form))
                found[place] += [form for form in every if form.weight <= limit]
        return [sorted(forms, key=lambda form: (form.weight, len(form.terms))) for forms in found]

    def _as_good(self, form: Form) -> list[Form]:
        """Return a form, and those with terms that the points do not tell from its own."""
        every = [
            [(factor, self._terms[number]), *((factor * scale, term) for scale, term in alike)]
            for factor, number, alike in (
                (factor, self._numbers[term], self._alike[self._numbers[term]])
                for factor, term in zip(form.coefficients, form.terms, strict=True)
            )
        ]
        found = []
        for chosen in itertools.islice(itertools.product(*every), _MOST_ALIKE):
            more = sum(
                term.weight - self._terms[self._numbers[own]].weight
                for (_, term), own in zip(chosen, form.terms, strict=True)
            )
            factors = tuple(factor for factor, _ in chosen)
            texts = tuple(term.text for _, term in chosen)
            found.append(Form(factors, texts, rounded=self._rounded, weight=form.weight + more))
        return found

    def _of(self, count: int, rows: Matrix, known: Sequence[Sequence[Form]]) -> list[list[Form]]:
        """Return for each row of values the exact forms of ``count`` terms.

        Args:
            count: number of terms.
            rows: values at the points.
            known: forms of fewer terms; those with further terms are not returned.
        """
        subsets = self._prepared(count)
        lengths = np.linalg.norm(rows, axis=1)
        found: list[list[Form]] = [[] for _ in rows]
        for start in range(0, len(subsets.rows), _PIECE):
            base = subsets.base[start : start + _PIECE]
            inside = ((base @ rows.T) ** 2).sum(axis=1)
            hits = inside >= lengths**2 * (1 - _LEFT)
            for place, forms in enumerate(known):
                for shorter in forms:
                    hits[self._have(shorter, subsets.rows[start : start + _PIECE]), place] = False
            for number, place in np.argwhere(hits).tolist():
                form = self._form(subsets.rows[start + number], rows[place])
                if form is not None:
                    found[place].append(form)
        return found

    def _have(self, form: Form, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return which subsets have all terms of a form."""
        numbers = [self._numbers[term] for term in form.terms]
        having: NDArray[np.bool_] = np.ones(len(rows), bool)
        for number in numbers:
            having &= (rows == number).any(axis=1)
        return having

    def _form(self, chosen: NDArray[np.intp], row: Vector) -> Form | None:
        """Return the form of some terms with exact coefficients, if it gives all values."""
        columns = self._columns[chosen]
        scaled = columns / self._lengths[chosen, None]
        solved = np.linalg.lstsq(scaled.T, row, rcond=None)[0] / self._lengths[chosen]
        exact = [Fraction(value).limit_denominator(_DENOMINATOR) for value in solved.tolist()]
        if not all(exact):
            return None
        given = sum(float(factor) * each for factor, each in zip(exact, columns, strict=True))
        if np.abs(given - row).max() > _EXACT * np.abs(row).max():
            return None
        if (np.abs(given - row) > 1e-6 * np.maximum(np.abs(row), 1)).any():
            return None
        weight = sum(self._terms[number].weight for number in chosen)
        weight += sum(_complexity(factor) for factor in exact)
        texts = tuple(self._terms[number].text for number in chosen)
        return Form(tuple(exact), texts, rounded=self._rounded, weight=weight)

    def _prepared(self, count: int) -> _Subsets:
        if count not in self._subsets:
            rows = self._allowed(count)
            columns = (self._columns / self._lengths[:, None])[rows]
            self._subsets[count] = _orthonormal(rows, columns)
        return self._subsets[count]

    def _allowed(self, count: int) -> NDArray[np.intp]:
        """Return the subsets of ``count`` terms that the points can tell from other values."""
        weights = np.array([term.weight for term in self._terms])
        rows = self._usable[:, None]
        for more in range(1, count):  # each subset in ascending order
            longer = np.repeat(rows, len(self._usable), axis=0)
            last = np.tile(self._usable, len(rows))[:, None]
            rows = np.concatenate([longer, last], axis=1)
            light = weights[rows].sum(axis=1) <= _MOST_WEIGHT[count] - (count - 1 - more)
            rows = rows[(rows[:, -1] > rows[:, -2]) & light]
        rows = rows[weights[rows].sum(axis=1) <= _MOST_WEIGHT[count]]
        rows = rows[(weights[rows] <= _MOST_OF_EACH[count]).all(axis=1)]
        growths = _numbered(term.growth for term in self._terms)[rows]
        functions = _numbered(term.shared for term in self._terms)[rows]
        sound = _most_alike(growths) <= max(self._processes - 2, 1)
        sound &= _most_alike(functions) <= max(self._sizes - 1, 1)
        return np.asarray(rows[sound])


def columns_of(terms: Sequence[Term], values: Mapping[str, Vector], *, rounded: bool) -> Matrix:
    """Return the values of terms at some points, one row for each term."""
    return np.stack([column(term.text, values, rounded=rounded) for term in terms])


def _different(
    terms: Sequence[Term], rows: Matrix
) -> tuple[list[Term], Matrix, list[list[tuple[Fraction, Term]]]]:
    """Return terms that the points tell apart, with their columns.

    Args:
        terms: the simplest first.
        rows: their values at the points.

    Returns:
        The terms, their columns, and for each of them the others that have the same column but
        for a factor, each with the factor by which its coefficient is that of the first.
    """
    places: dict[bytes, int] = {}
    kept: list[Term] = []
    columns: list[Vector] = []
    alike: list[list[tuple[Fraction, Term]]] = []
    for term, found in zip(terms, rows, strict=True):
        greatest = float(np.abs(found).max())
        if not greatest:
            continue
        key = (np.round(found / greatest, 11) + 0.0).tobytes()
        place = places.setdefault(key, len(kept))
        if place == len(kept):
            kept.append(term)
            columns.append(found)
            alike.append([])
        elif term.weight <= kept[place].weight + _AS_SIMPLE:
            scale = Fraction(float(np.abs(columns[place]).max()) / greatest)
            alike[place].append((scale.limit_denominator(_DENOMINATOR), term))
    return kept, np.stack(columns), alike


def _numbered(texts: Iterable[str]) -> NDArray[np.intp]:
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(text, len(numbers)) for text in texts])


def _most_alike(rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return for each row how often its most frequent number occurs in it."""
    return np.asarray((rows[:, :, None] == rows[:, None, :]).sum(axis=2).max(axis=1, initial=0))


def _orthonormal(rows: NDArray[np.intp], columns: NDArray[np.float64]) -> _Subsets:
    """Make the columns of each subset orthonormal; leave out subsets of dependent columns."""
    base = columns.copy()
    sound = np.ones(len(rows), bool)
    for place in range(base.shape[1]):
        for _ in range(2):  # twice is enough for full precision
            for before in range(place):
                share = (base[:, place] * base[:, before]).sum(axis=1, keepdims=True)
                base[:, place] -= share * base[:, before]
        length = np.linalg.norm(base[:, place], axis=1)
        sound &= length > 1e-7
        base[:, place] /= np.maximum(length, 1e-300)[:, None]
    return _Subsets(rows[sound], base[sound])


def _complexity(factor: Fraction) -> int:
    """Return how complicated a coefficient is: one below zero, or with an odd denominator, more."""
    under = factor.denominator
    return (2 if factor < 0 else 0) + (0 if under in (1, 2) else 1 if under in (3, 4, 6, 8) else 3)
