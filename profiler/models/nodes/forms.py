"""Closed forms of a quantity: sums of rational numbers times BSP's own terms."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from bsplib.experiments.collective_costs import COST_FUNCTIONS
from bsplib.experiments.formula import FUNCTIONS
from bsplib.profiler.models.nodes.values import PROCESSES
from bsplib.profiler.models.terms import column

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

_NAME = re.compile(r"[A-Za-z_]\w*")
_FUNCTIONS = frozenset(FUNCTIONS)
_WHOLE = frozenset({"ceil", "floor", "exp", "grid_rows", *COST_FUNCTIONS})
"""Functions of terms that say themselves what becomes of parts of elements."""


@dataclass(frozen=True)
class Form:
    """A sum of coefficients times terms; without terms it is 0."""

    coefficients: tuple[Fraction | float, ...]
    """Fractions where the form is exact."""
    terms: tuple[str, ...]
    rounded: bool
    """Whether log2(p) is rounded up."""
    weight: float = 0
    """How complicated it is."""

    def at(self, values: Mapping[str, Vector]) -> Vector:
        """Return the value at some points.

        Raises:
            FormulaError: a variable is missing, or a value is not finite.
        """
        count = max((len(array) for array in values.values()), default=1)
        total = np.zeros(count)
        for coefficient, term in zip(self.coefficients, self.terms, strict=True):
            total = total + float(coefficient) * column(term, values, rounded=self.rounded)
        return total

    def times(self, factor: float) -> Form:
        """Return a multiple of the form."""
        return replace(self, coefficients=tuple(factor * each for each in self.coefficients))

    def plus(self, other: Form) -> Form:
        """Return the sum with another form."""
        return replace(
            self,
            coefficients=self.coefficients + other.coefficients,
            terms=self.terms + other.terms,
            weight=self.weight + other.weight,
        )

    def joined(self) -> Form:
        """Return the same sum with each term once."""
        found: dict[str, Fraction | float] = {}
        for coefficient, term in zip(self.coefficients, self.terms, strict=True):
            found[term] = found.get(term, 0) + coefficient
        return replace(self, coefficients=tuple(found.values()), terms=tuple(found))

    def by(self, other: Form) -> Form:
        """Return the product with another form."""
        pairs = [
            (one * another, product(term, other_term))
            for one, term in zip(self.coefficients, self.terms, strict=True)
            for another, other_term in zip(other.coefficients, other.terms, strict=True)
        ]
        return replace(
            self,
            coefficients=tuple(factor for factor, _ in pairs),
            terms=tuple(term for _, term in pairs),
            weight=self.weight + other.weight,
        )

    def depending_on(self, names: Collection[str]) -> Form:
        """Return the terms that have one of some variables, without the others."""
        kept = [
            pair
            for pair in zip(self.coefficients, self.terms, strict=True)
            if not set(_NAME.findall(pair[1])).isdisjoint(names)
        ]
        return replace(
            self,
            coefficients=tuple(each for each, _ in kept),
            terms=tuple(term for _, term in kept),
        )

    @property
    def shared(self) -> str:
        """The only size that it divides among processes as if parts of elements were possible.

        It is empty where there is none, or where several are divided together.
        """
        divided = [term for term in self.terms if "/p" in term]
        named = {name for term in divided for name in _NAME.findall(term)}
        if named & _WHOLE:
            return ""
        sizes = named - _FUNCTIONS - {PROCESSES}
        return sizes.pop() if len(sizes) == 1 else ""

    @property
    def text(self) -> str:
        """The form as a formula, as in ``16*n*(p - 1)/p``."""
        parts = []
        for coefficient, term in zip(self.coefficients, self.terms, strict=True):
            parts.append(_with_factor(coefficient, term))
        text = " + ".join(parts).replace("+ -", "- ")
        return text or "0"


def product(one: str, other: str) -> str:
    """Return the product of two terms; what is divided comes first, as in ``n*(p - 1)/p``."""
    if "1" in (one, other):
        return other if one == "1" else one
    return f"{other}*{one}" if one.startswith("1/") else f"{one}*{other}"


def _with_factor(coefficient: Fraction | float, term: str) -> str:
    if not isinstance(coefficient, Fraction):
        number = f"{coefficient:.4g}"
        return number if term == "1" else f"{number}*{term}"
    top, under = coefficient.numerator, coefficient.denominator
    if term.startswith("1/"):
        text = f"{top}{term[1:]}"
    elif term == "1":
        text = str(top)
    else:
        text = {1: "", -1: "-"}.get(top, f"{top}*") + term
    return text if under == 1 else f"{text}/{under}"


ZERO = Form((), (), rounded=True)
