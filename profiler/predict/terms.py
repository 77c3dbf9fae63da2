"""The terms that a formula of times is chosen from, in sizes and the number of processes.

A size n grows by its usual powers and logarithms. Each growth may be done by every process, or
shared by p of them; a block n/p may be sorted; and p alone gives the cost of starts, barriers and
trees, and the quotients by p that strong scaling has, where n is the same in all measurements.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.experiments.formula import Formula, FormulaError, read_formula

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

PROCESSES = ("p", "np", "nproc", "nprocs", "procs", "processes", "ranks", "nranks", "threads")
"""Names by which a variable is taken for the number of processes, in any case of letters."""


class Term(NamedTuple):
    """An expression of the variables."""

    text: str
    unusual: float
    """By how much it is less usual than a constant, as a difference of scores."""


_GROWTHS = (
    ("{0}", 0.0),
    ("{0}*log2({0})", 0.0),
    ("{0}**2", 0.5),
    ("log2({0})", 0.5),
    ("{0}**1.5", 1.0),
    ("{0}**3", 1.0),
    ("sqrt({0})", 1.0),
    ("{0}**0.75", 2.0),
    ("{0}*log2({0})**2", 1.0),
)
"""Growths of one size."""
_ALONE = (("1/{p}", 0.0), ("{p}", 0.5), ("log2({p})", 0.5), ("log2({p})/{p}", 0.5))
"""Functions of p alone, where no size varies: the most usual is a serial part and a shared one."""
_BESIDE = (
    ("{p}", 0.0),
    ("log2({p})", 0.0),
    ("{p}*log2({p})", 1.0),
    ("sqrt({p})", 1.0),
    ("log2({p})**2", 1.0),
)
"""Functions of p alone beside those of sizes, which say what processes share."""
_SHARED = (
    ("/{p}", 0.0),
    ("", 1.0),
    ("*log2({p})/{p}", 0.5),
    ("*({p} - 1)/{p}", 0.5),
    ("*({p} - 1)/{p}**2", 0.5),
    ("*log2({p})**2/{p}", 1.0),
    ("*log2({p})", 1.5),
    ("/sqrt({p})", 1.0),
)
"""What p makes of the growth of a size."""
_BLOCKS = (
    ("({n}/{p})*log2({n}/{p})", 0.0),
    ("({n}/{p})**2", 1.0),
    ("({n}/{p})*log2({n}/{p})**2", 1.0),
)
"""What a process does with its block."""


def processes_of(names: Sequence[str]) -> str | None:
    """Return the variable that is the number of processes by its name, if there is just one."""
    found = [name for name in names if name.lower() in PROCESSES]
    return found[0] if len(found) == 1 else None


def column(text: str, values: Mapping[str, Vector]) -> Vector:
    """Return the value of a term, one element for each point.

    Raises:
        FormulaError: a variable is missing, or a value is not finite.
    """
    count = max((len(np.atleast_1d(array)) for array in values.values()), default=1)
    used = [(name, values[name]) for name in _read(text).variables if name in values]
    numbers = tuple((name, np.asarray(array, np.float64).tobytes()) for name, array in used)
    return np.broadcast_to(_column(text, numbers), (count,))


@functools.lru_cache(2**14)
def _column(text: str, values: tuple[tuple[str, bytes], ...]) -> Vector:
    """Evaluate a term; the cost centres of a program try the same terms at the same points."""
    factors, _ = _read(text).columns({name: np.frombuffer(data) for name, data in values})
    return factors[:, 0]


@functools.cache
def _read(text: str) -> Formula:
    return read_formula(f"({text})*term[0]")


def library(values: Mapping[str, Vector], processes: str | None) -> list[Term]:
    """Return the terms for some measurements; first the constant.

    A term is left out where it is not finite and positive at some point, or the same as another.

    Args:
        values: values of the variables, one element for each measurement.
        processes: the variable that is the number of processes, if one is.
    """
    varied = [name for name, array in values.items() if np.ptp(array) > 0]
    found: list[Term] = [Term("1", 0.0)]
    units: list[Vector] = []  # proportional terms have the same
    if varied:
        count = max(len(array) for array in values.values())
        units.append(np.full(count, count**-0.5))
    for term in _terms([name for name in varied if name != processes], processes, varied):
        try:
            values_of = column(term.text, values)
        except FormulaError:
            continue
        unit = values_of / np.linalg.norm(values_of)
        known = np.reshape(units, (-1, len(unit)))
        # far below any noise of times
        if (values_of >= 0).all() and not (np.abs(known - unit).max(axis=1) < 1e-9).any():
            found.append(term)
            units.append(unit)
    return found


def _terms(sizes: Sequence[str], processes: str | None, varied: Sequence[str]) -> Iterator[Term]:
    """Yield the terms, the most usual of equal ones first."""
    p = processes if processes in varied else None
    growths = _growths(sizes)
    if p is not None:
        alone = _BESIDE if sizes else _ALONE
        yield from (Term(form.format(p=p), unusual) for form, unusual in alone)
    for growth, unusual in growths:
        for form, more in _SHARED if p is not None else (("", 0.0),):
            yield Term(growth + form.format(p=p), unusual + more)
    if p is not None:
        for size, (form, unusual) in itertools.product(sizes, _BLOCKS):
            yield Term(form.format(n=size, p=p), unusual)


def _growths(sizes: Sequence[str]) -> list[tuple[str, float]]:
    """Return the growths of each size, and the products of two, the most usual first."""
    alone = [[(form.format(name), unusual) for form, unusual in _GROWTHS] for name in sizes]
    found = [each for growths in alone for each in growths]
    for one, other in itertools.combinations(alone, 2):
        found += [
            (f"{first}*{second}", 0.5 + weight + more)
            for (first, weight), (second, more) in itertools.product(one[:4], other[:4])
        ]
    return sorted(found, key=lambda each: each[1])
