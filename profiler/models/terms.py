"""The terms that a formula may be chosen from: what parallel algorithms cost, and how often.

There are two sets. :func:`library` has what times may grow with, :func:`counted_terms` what
supersteps and bytes may.

A library is made for the variables of the measurements. One of them may be the number of
processes P; the others are sizes. Each term has a weight: the terms that every
bulk-synchronous program has are light. These are computations that are shared by the
processes, N/P f(N) or (N/P) f(N/P), communications such as N (P-1)/P, which leaves out what
is sent to oneself, or N/P log2(P), in stages, and what grows with P alone: starts, barriers.
Broken powers are heavy: they follow a time that grows more steeply where caches end. Such a
time does not go on to grow so: what an element costs rises to a new level. So there are terms
N**2/(N + c) and N**2 log2(N)/(N + c), too, for some sizes c that were measured: far below c
they grow by a power more than N and N log2(N), and far above as these.
A difference such as P - 1 is one term: so its parts need no negative coefficients, and the
whole is never negative.

What is counted follows from the structure of a program: a growth of the sizes times a function of
p. The functions are those of collectives (p - 1 partners, (p - 1)^2 samples), of networks and
recursions (log2(p), log2(p) (log2(p) + 1)), of what processes share (1/p, (p - 1)/p), and of the
longest of p blocks or of the blocks of a grid, in whole elements.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bsplib.experiments.formula import Formula, FormulaError, read_formula

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

PROCESSES = ("p", "np", "nproc", "nprocs", "procs", "processes", "ranks", "nranks", "threads")
"""Names by which a variable is taken for the number of processes, in any case of letters."""

_GROWTHS = (
    (1, 0, 1.5),
    (1, 1, 2.0),
    (2, 0, 2.0),
    (3, 0, 2.5),
    (1, 2, 3.0),
    (0.5, 0, 3.0),
    (1.5, 0, 3.0),
    (0.75, 0, 3.5),
    (1.25, 0, 3.5),
    (2, 1, 4.0),
    (0.75, 1, 4.5),
    (1.25, 1, 4.5),
)
"""Powers of a size and of its logarithm, and how unusual such a computation is."""
_BETWEEN = (0.75, 1.25)
"""Powers that only many sizes tell from their neighbours."""
_LOGS = ("", "log2({0})", "log2({0})**2")
_LEVEL, _LEVEL_AND_LOG = 3.0, 3.5
"""How unusual it is that the cost of an element rises to a new level."""
_BETWEEN_LEVELS = 3.0
"""Least ratio of two sizes c."""
_MOST_LEVELS = 5


@dataclass(frozen=True)
class Term:
    """An expression of the variables."""

    text: str
    """In the syntax of :mod:`bsplib.experiments.formula`, without a parameter."""
    weight: float
    """How complicated and how unusual it is; the constant has 1."""
    growth: str = ""
    """The factor that depends on the sizes; empty for terms that are not for counts."""
    shared: str = ""
    """The factor that depends on p; empty for terms that are not for counts. Terms of the same
    growth are told apart only if there are more values of p than such terms."""

    def column(self, values: Mapping[str, Vector], *, rounded: bool = False) -> Vector:
        """Return its value for each measurement, as :func:`column` does."""
        return column(self.text, values, rounded=rounded)


def column(text: str, values: Mapping[str, Vector], *, rounded: bool = False) -> Vector:
    """Return the value of a term, one element for each point.

    Args:
        text: the term.
        values: the variables; arrays of equal length.
        rounded: whether log2(p) is rounded up: a program cannot have half a stage.

    Raises:
        FormulaError: a variable is missing, or a value is not finite.
    """
    count = max((len(array) for array in values.values()), default=1)
    found = _read(in_stages(text, rounded=rounded)).columns(values)[0][:, 0]
    return np.broadcast_to(found, (count,))


def in_stages(text: str, *, rounded: bool) -> str:
    """Return a term in which log2(p) is rounded up, if it is to be."""
    return text.replace("log2(p)", "ceil(log2(p))") if rounded else text


@functools.cache
def _read(text: str) -> Formula:
    return read_formula(f"({text})*term[0]")


def processes_of(names: Sequence[str]) -> str | None:
    """Return the variable that is the number of processes by its name, if there is just one."""
    found = [name for name in names if name.lower() in PROCESSES]
    return found[0] if len(found) == 1 else None


def library(
    values: Mapping[str, Vector],
    processes: str | None,
    *,
    levels: bool = False,
    between: bool = True,
) -> list[Term]:
    """Return the terms for some measurements; first the constant.

    Variables with one value have no terms; those with a value below 1 have no logarithms. Terms
    that are not finite for all measurements are left out, such as roots of negative values.

    Args:
        values: values of the variables, one element for each measurement.
        processes: the variable that is the number of processes, if one is.
        levels: whether there are terms for costs that rise to a new level.
        between: whether there are growths between the usual ones, such as N**1.25 and
            N log2(N)**2, which only many sizes tell from their neighbours.
    """
    varied = [name for name, column in values.items() if np.ptp(column) > 0]
    logs = [name for name in varied if values[name].min() >= 1]
    sizes = [name for name in varied if name != processes]
    terms = [Term("1", 1)]
    shared = processes in varied and processes in logs
    for name in sizes:
        if shared:
            assert processes is not None
            terms += _shared(name, processes, name in logs, between)
        else:
            terms += _alone(name, name in logs, between)
        if levels:
            terms += _levels(name, processes if shared else None, values)
    for one, other in itertools.combinations(sizes, 2):
        products = list(_products(one, other, logs))
        terms += products
        if shared:
            terms += [Term(f"{product.text}/{processes}", product.weight) for product in products]
    if shared:
        assert processes is not None
        terms += _of_processes(processes)
    different = {term.text: term for term in terms}.values()
    return [term for term in different if _is_finite(term, values)]


def _is_finite(term: Term, values: Mapping[str, Vector]) -> bool:
    try:
        term.column(values)
    except FormulaError:
        return False
    return True


def _growths(logs: bool, between: bool) -> list[tuple[float, int, float]]:
    return [
        (power, log, weight)
        for power, log, weight in _GROWTHS
        if (logs or not log) and (between or (log < 2 and power not in _BETWEEN))
    ]


def _grown(of: str, power: float, log: int) -> str:
    """Return a power of an expression times a power of its logarithm."""
    factor = {0.5: f"sqrt({of})", 1: of}.get(power, f"{of}**{power:g}")
    inner = of[1:-1] if of.startswith("(") else of
    return f"{factor}*{_LOGS[log].format(inner)}" if log else factor


def _alone(name: str, logs: bool, between: bool) -> Iterator[Term]:
    """Yield how a computation grows with a size, by one process or by each of them."""
    if logs:
        yield Term(f"log2({name})", 3)
    for power, log, weight in _growths(logs, between):
        yield Term(_grown(name, power, log), weight)


def _levels(name: str, processes: str | None, values: Mapping[str, Vector]) -> Iterator[Term]:
    """Yield how a computation grows whose cost for each element rises to a new level."""
    own = f"({name}/{processes})" if processes else name
    sizes = values[name] / values[processes] if processes else values[name]
    if sizes.min() < 1:  # logarithms, and what is small against c, need sizes
        return
    distinct = np.unique(sizes)[1:].tolist()
    found: list[float] = []
    while distinct and len(found) < _MOST_LEVELS:
        found.append(distinct[-1])
        distinct = [size for size in distinct if size <= found[-1] / _BETWEEN_LEVELS]
    for at in found:
        rising = f"({own} + {at:.10g})"
        yield Term(f"{own}**2/{rising}", _LEVEL)
        yield Term(f"{own}**2*log2({own.strip('()')})/{rising}", _LEVEL_AND_LOG)


def _products(one: str, other: str, logs: Sequence[str]) -> Iterator[Term]:
    yield Term(f"{one}*{other}", 2)
    for first, second in ((one, other), (other, one)):
        yield Term(f"{first}**2*{second}", 3)
        if second in logs:
            yield Term(f"{first}*log2({second})", 3)
            yield Term(f"{first}*{second}*log2({second})", 3)


def _of_processes(p: str) -> Iterator[Term]:
    """Yield what grows with the number of processes alone: starts, barriers, stages."""
    yield Term(f"log2({p})", 1.5)
    yield Term(f"log2({p})**2", 2)
    yield Term(f"{p}", 1.5)
    yield Term(f"({p} - 1)", 1.5)
    yield Term(f"{p}*log2({p})", 2)
    yield Term(f"{p}**2", 4)


def _shared(n: str, p: str, logs: bool, between: bool) -> Iterator[Term]:
    """Yield how processes share the work and the communication that grow with a size."""
    for power, log, weight in _growths(logs, between):
        own = f"({n}/{p})" if log or power > 1 or power < 1 else f"{n}/{p}"
        yield Term(_grown(own, power, log), weight)
        if (power > 1 or log) and power >= 1:
            yield Term(f"{_grown(n, power, log)}/{p}", weight + 0.5)
    # What is communicated: to all others, in stages, in a square of processes, by everyone.
    yield Term(f"{n}*({p} - 1)/{p}", 2)
    yield Term(f"{n}*({p} - 1)/{p}**2", 3)
    yield Term(f"{n}**2*({p} - 1)/{p}", 3)
    yield Term(f"({n}/{p})*log2({p})", 2)
    yield Term(f"({n}/{p})*log2({p})**2", 2.5)
    yield Term(f"{n}/sqrt({p})", 3.5)
    yield Term(f"{n}*log2({p})", 3.5)
    # What all processes compute.
    yield Term(f"{n}", 2.5)
    if logs:
        yield Term(f"({n}/{p})*log2({n}/{p})*log2({p})", 3)
        yield Term(f"{n}*log2({n})", 4)


# -- what is counted: supersteps and bytes --------------------------------------------------------


_COUNTED_GROWTHS = (
    ("{0}", 1),
    ("log2({0})", 2),
    ("{0}*log2({0})", 2),
    ("sqrt({0})", 2),
    ("{0}**2", 2),
    ("log2({0})**2", 3),
)
"""Growths of one size, with how complicated they are."""
_OF_PARTNERS = (
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
_SHARED_COUNTS = (
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
"""Constant divisors of a size that are tried, such as 2 in n / 2."""
_MOST_COMPLICATED = 5
_ALONE = 6
"""Weight of a term that no other one goes with: of many such pairs, some give nearly any values."""


def counted_terms(sizes: Sequence[str], *, with_processes: bool) -> list[Term]:
    """Return all terms of some sizes, and of p if it has several values; the simplest first.

    Args:
        sizes: names of the sizes that have several values.
        with_processes: whether p has several values.
    """
    found = []
    for growth, weight in _counted_growths(sizes):
        functions = _OF_PARTNERS if with_processes else _OF_PARTNERS[:1]
        for function, more in functions:
            text = "*".join(filter(None, (growth, function))) or "1"
            found.append(Term(text, 1 + weight + more, growth, function))
        if with_processes:
            found += [
                Term(form.format(growth or "1").removeprefix("1*"), 1 + weight + more, growth, form)
                for form, more in _SHARED_COUNTS
            ]
    for size in sizes:
        if with_processes:
            found += [Term(form.format(size), 2 + more, size, form) for form, more in _IN_BLOCKS]
        found += [
            Term(f"{rounded}({size}/{part})", _ALONE, size, f"{rounded} of {part}")
            for part in _FRACTIONS
            for rounded in ("floor", "ceil")
        ]
    found = [term for term in found if term.weight <= 1 + _MOST_COMPLICATED]
    return sorted(found, key=lambda term: term.weight)


def _counted_growths(sizes: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Yield the products of the growths of some sizes."""
    each = [
        [("", 0), *((form.format(name), weight) for form, weight in _COUNTED_GROWTHS)]
        for name in sizes
    ]
    for chosen in itertools.product(*each):
        yield "*".join(filter(None, (text for text, _ in chosen))), sum(w for _, w in chosen)


def are_powers_of_two(values: Vector) -> bool:
    """Whether all numbers are powers of two: then log2 needs no rounding."""
    exponents = np.log2(values)
    return bool((exponents == np.round(exponents)).all())
