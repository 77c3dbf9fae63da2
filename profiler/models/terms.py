"""The terms that a formula may be chosen from: what parallel algorithms usually cost.

A library is made for the variables of the measurements. One of them may be the number of
processes P; the others are sizes. In a size N there are powers times powers of log2(N),
shared by the processes in the ways that algorithms share work and data: N/P for all, N/P
with the logarithm of the own part, N (P-1)/P for what is not sent to oneself, times log2(P)
for stages. A difference such as P - 1 is one term: so its parts need no negative
coefficients, and the whole is never negative.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from profiler.models.formula import read_formula

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

PROCESSES = ("p", "np", "nproc", "nprocs", "procs", "processes", "ranks", "nranks", "threads")
"""Names by which a variable is taken for the number of processes, in any case of letters."""

_GROWTHS = ((0.5, 0), (1, 0), (1, 1), (1, 2), (1.5, 0), (1.5, 1), (2, 0), (2, 1), (3, 0))
"""Powers of a size, and of its logarithm."""
_POWERS = {0.5: "sqrt({0})", 1: "{0}", 1.5: "{0}**1.5", 2: "{0}**2", 3: "{0}**3"}
_LOGS = ("", "log2({0})", "log2({0})**2")


@dataclass(frozen=True)
class Term:
    """An expression of the variables."""

    text: str
    """In the syntax of :mod:`profiler.models.formula`, without a parameter."""
    weight: int
    """How complicated it is; the constant has 1."""

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


def library(values: Mapping[str, Vector], processes: str | None) -> list[Term]:
    """Return the terms for some measurements; first the constant.

    Variables with one value have no terms; those with a value below 1 have no logarithms.

    Args:
        values: values of the variables, one element for each measurement.
        processes: the variable that is the number of processes, if one is.
    """
    varied = [name for name, column in values.items() if np.ptp(column) > 0]
    logs = [name for name in varied if values[name].min() >= 1]
    sizes = [name for name in varied if name != processes]
    terms = [Term("1", 1)]
    for name in sizes:
        terms += _growth(name, name in logs)
    for one, other in itertools.combinations(sizes, 2):
        terms += _products(one, other, logs)
    if processes in varied and processes in logs:
        assert processes is not None
        terms += _of_processes(processes)
        for name in sizes:
            terms += _shared(name, processes, name in logs)
        for one, other in itertools.combinations(sizes, 2):
            terms += [Term(f"{one}*{other}/{processes}", 4)]
    return list({term.text: term for term in terms}.values())


def _growth(name: str, logs: bool) -> Iterator[Term]:
    """Yield powers of a size, times powers of its logarithm."""
    if logs:
        yield Term(f"log2({name})", 2)
        yield Term(f"log2({name})**2", 3)
    for power, log in _growths(logs):
        yield Term(_grown(name, power, log), _weight(power) + log)


def _growths(logs: bool) -> list[tuple[float, int]]:
    return [(power, log) for power, log in _GROWTHS if logs or not log]


def _grown(of: str, power: float, log: int) -> str:
    """Return a power of an expression times a power of its logarithm."""
    factor = _POWERS[power].format(of)
    inner = of[1:-1] if of.startswith("(") else of
    return f"{factor}*{_LOGS[log].format(inner)}" if log else factor


def _products(one: str, other: str, logs: Sequence[str]) -> Iterator[Term]:
    yield Term(f"{one}*{other}", 3)
    for first, second in ((one, other), (other, one)):
        yield Term(f"{first}**2*{second}", 4)
        if second in logs:
            yield Term(f"{first}*log2({second})", 4)
            yield Term(f"{first}*{second}*log2({second})", 5)


def _of_processes(p: str) -> Iterator[Term]:
    """Yield what grows with the number of processes alone."""
    yield Term(f"log2({p})", 2)
    yield Term(f"log2({p})**2", 3)
    yield Term(f"{p}", 2)
    yield Term(f"({p} - 1)", 2)
    yield Term(f"{p}*log2({p})", 3)
    yield Term(f"{p}*log2({p})**2", 4)
    yield Term(f"{p}**2", 3)
    yield Term(f"1/{p}", 3)


def _shared(n: str, p: str, logs: bool) -> Iterator[Term]:
    """Yield how processes share what grows with a size."""
    for power, log in _growths(logs):
        whole, own = _grown(n, power, log), _grown(f"({n}/{p})", power, log)
        weight = _weight(power) + log
        yield Term(f"{whole}/{p}", weight + 1)
        if (power, log) != (1, 0):
            yield Term(own, weight + 1)
        if power >= 1:
            yield Term(f"{whole}*({p} - 1)/{p}", weight + 2)
            yield Term(f"{whole}/sqrt({p})", weight + 2)
        if power == 1:
            yield Term(f"{own}*log2({p})", weight + 2)
            yield Term(f"{own}*log2({p})**2", weight + 3)
            yield Term(f"{whole}*log2({p})", weight + 2)


def _weight(power: float) -> int:
    return 2 if power == 1 else 3
