"""The terms that a formula may be chosen from: what parallel algorithms usually cost.

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
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bsplib.experiments.formula import FormulaError, read_formula

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

    def column(self, values: Mapping[str, Vector]) -> Vector:
        """Return its value for each measurement.

        Raises:
            FormulaError: a value is not a finite number.
        """
        return read_formula(f"({self.text})*term[0]").columns(values)[0][:, 0]


def processes_of(names: Sequence[str]) -> str | None:
    """Return the variable that is the number of processes by its name, if there is just one."""
    found = [name for name in names if name.lower() in PROCESSES]
    return found[0] if len(found) == 1 else None


def library(
    values: Mapping[str, Vector], processes: str | None, *, levels: bool = False
) -> list[Term]:
    """Return the terms for some measurements; first the constant.

    Variables with one value have no terms; those with a value below 1 have no logarithms. Terms
    that are not finite for all measurements are left out, such as roots of negative values.

    Args:
        values: values of the variables, one element for each measurement.
        processes: the variable that is the number of processes, if one is.
        levels: whether there are terms for costs that rise to a new level.
    """
    varied = [name for name, column in values.items() if np.ptp(column) > 0]
    logs = [name for name in varied if values[name].min() >= 1]
    sizes = [name for name in varied if name != processes]
    terms = [Term("1", 1)]
    shared = processes in varied and processes in logs
    for name in sizes:
        if shared:
            assert processes is not None
            terms += _shared(name, processes, name in logs)
        else:
            terms += _alone(name, name in logs)
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


def _growths(logs: bool) -> list[tuple[float, int, float]]:
    return [growth for growth in _GROWTHS if logs or not growth[1]]


def _grown(of: str, power: float, log: int) -> str:
    """Return a power of an expression times a power of its logarithm."""
    factor = {0.5: f"sqrt({of})", 1: of}.get(power, f"{of}**{power:g}")
    inner = of[1:-1] if of.startswith("(") else of
    return f"{factor}*{_LOGS[log].format(inner)}" if log else factor


def _alone(name: str, logs: bool) -> Iterator[Term]:
    """Yield how a computation grows with a size, by one process or by each of them."""
    if logs:
        yield Term(f"log2({name})", 3)
    for power, log, weight in _growths(logs):
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


def _shared(n: str, p: str, logs: bool) -> Iterator[Term]:
    """Yield how processes share the work and the communication that grow with a size."""
    for power, log, weight in _growths(logs):
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
