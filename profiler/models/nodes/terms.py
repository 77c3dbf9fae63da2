"""BSP's own terms: what supersteps and h-relations of programs grow with.

A term is a growth of the sizes times a function of the number of processes p. The functions of
p are those of collectives (p - 1 partners, (p - 1)^2 samples), of networks and recursions
(log2(p), log2(p) (log2(p) + 1)) and of what processes share (1/p, (p - 1)/p). A difference such
as p - 1 is one term, so that forms are short.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bsplib.experiments.formula import Formula, read_formula
from bsplib.profiler.models.nodes.values import PROCESSES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

_GROWTHS = (
    ("{0}", 1),
    ("log2({0})", 2),
    ("{0}*log2({0})", 2),
    ("sqrt({0})", 2),
    ("{0}**2", 2),
    ("log2({0})**2", 3),
)
"""Growths of one size, with how complicated they are."""
_OF_PROCESSES = (
    ("", 0),
    ("(p - 1)", 1),
    ("p", 1),
    ("log2(p)", 1),
    ("p*(p - 1)", 2),
    ("(p - 1)**2", 2),
    ("p**2", 2),
    ("log2(p)**2", 2),
    ("log2(p)*(log2(p) + 1)", 2),
    ("p*log2(p)", 2),
    ("(p - 1)*log2(p)", 3),
    ("p*log2(p)*(log2(p) + 1)", 3),
    ("sqrt(p)", 2),
    ("(sqrt(p) - 1)", 3),
    ("min(p - 1, 1)", 2),
    ("min(p - 1, 2)", 2),
)
_SHARED = (
    ("{0}/p", 1),
    ("{0}*(p - 1)/p", 1),
    ("{0}*log2(p)/p", 2),
    ("{0}*log2(p)*(log2(p) + 1)/p", 2),
    ("{0}*(p - 1)/p**2", 2),
    ("{0}*(p - 1)**2/p", 3),
    ("{0}/sqrt(p)", 3),
    ("{0}/p**2", 3),
    ("{0}*(sqrt(p) - 1)/p", 3),
)
"""How processes share what grows with the sizes."""
_ROWS, _WIDE = "ceil({0}/grid_rows(p))", "ceil({0}*grid_rows(p)/p)"
_IN_BLOCKS = (
    ("ceil({0}/p)", 2),
    ("(p - 1)*ceil({0}/p)", 2),
    ("({0} - ceil({0}/p))", 2),
    ("({0} - floor({0}/p))", 2),
    ("floor({0}/p)", 3),
    ("p*ceil({0}/p)", 3),
    ("ceil({0}/p)*log2(p)", 3),
    ("(p - 1)*floor({0}/p)", 3),
    ("(p - 1)*ceil(ceil({0}/p)/p)", 3),
    (f"(min(grid_rows(p) - 1, 2)*{_WIDE} + min(p/grid_rows(p) - 1, 2)*{_ROWS})", 3),
    (f"(min(grid_rows(p) - 1, 1)*{_WIDE} + min(p/grid_rows(p) - 1, 1)*{_ROWS})", 3),
)
"""What the longest of p blocks has of a size, whole elements; the last two are what a block of a
grid exchanges with the blocks beside it: one with edges, and one that is a torus."""
_FRACTIONS = (2, 3, 4, 5, 6, 8, 10, 16)
"""Numbers by which a program may divide a size without the number of processes."""
_MOST_COMPLICATED = 5
_ALONE = 6
"""Weight of a term that no other one goes with: of many such pairs, some give nearly any values."""


@dataclass(frozen=True)
class NodeTerm:
    """A growth of the sizes times a function of p."""

    text: str
    """In the syntax of :mod:`bsplib.experiments.formula`, without a parameter."""
    weight: int
    """How complicated it is; the constant has 1."""
    growth: str
    shared: str
    """The function of p. Terms of one growth need more values of p than there are of them."""


def node_terms(sizes: Sequence[str], *, with_processes: bool) -> list[NodeTerm]:
    """Return all terms of some sizes, and of p if it has several values; the simplest first.

    Args:
        sizes: names of the sizes that have several values.
        with_processes: whether p has several values.
    """
    found = []
    for growth, weight in _growths(sizes):
        functions = _OF_PROCESSES if with_processes else _OF_PROCESSES[:1]
        for function, more in functions:
            text = "*".join(filter(None, (growth, function))) or "1"
            found.append(NodeTerm(text, 1 + weight + more, growth, function))
        if with_processes:
            found += [
                NodeTerm(
                    form.format(growth or "1").removeprefix("1*"), 1 + weight + more, growth, form
                )
                for form, more in _SHARED
            ]
    for size in sizes:
        if with_processes:
            found += [
                NodeTerm(form.format(size), 2 + more, size, form) for form, more in _IN_BLOCKS
            ]
        found += [
            NodeTerm(f"{rounded}({size}/{part})", _ALONE, size, f"{rounded} of {part}")
            for part in _FRACTIONS
            for rounded in ("floor", "ceil")
        ]
    found = [term for term in found if term.weight <= 1 + _MOST_COMPLICATED]
    return sorted(found, key=lambda term: term.weight)


def _growths(sizes: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Yield the products of the growths of some sizes."""
    each = [
        [("", 0), *((form.format(name), weight) for form, weight in _GROWTHS)] for name in sizes
    ]
    for chosen in itertools.product(*each):
        yield "*".join(filter(None, (text for text, _ in chosen))), sum(w for _, w in chosen)


def column(text: str, values: Mapping[str, Vector], *, rounded: bool) -> Vector:
    """Return the value of a term, one element for each point.

    Args:
        text: the term.
        values: the variables; arrays of equal length.
        rounded: whether log2(p) is rounded up: a program cannot have half a stage.

    Raises:
        FormulaError: a variable is missing, or a value is not finite.
    """
    count = max((len(array) for array in values.values()), default=1)
    return np.broadcast_to(
        _read(in_stages(text, rounded=rounded)).columns(values)[0][:, 0], (count,)
    )


def in_stages(text: str, *, rounded: bool) -> str:
    """Return a term in which log2(p) is rounded up, if it is to be."""
    whole = f"ceil(log2({PROCESSES}))"
    return text.replace(f"log2({PROCESSES})", whole) if rounded else text


@functools.cache
def _read(text: str) -> Formula:
    return read_formula(f"({text})*term[0]")


def are_powers_of_two(values: Vector) -> bool:
    """Whether all numbers are powers of two: then log2 needs no rounding."""
    exponents = np.log2(values)
    return bool((exponents == np.round(exponents)).all())
