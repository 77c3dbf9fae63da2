"""The laws of Amdahl and Gustafson, which are the same law: section 1 of the paper.

Both take the fraction of the time that is sequential: Amdahl's that of the time on one
processor, Gustafson's that on P. The same number in both means different programs.
"""

from __future__ import annotations


def amdahl(sequential: float, nprocs: float) -> float:
    """Return the speedup, from the sequential fraction of the time on one processor."""
    _check(sequential)
    return nprocs / (sequential * nprocs + 1 - sequential)


def gustafson(sequential: float, nprocs: float) -> float:
    """Return the speedup, from the sequential fraction of the time on P processors."""
    _check(sequential)
    return nprocs - sequential * (nprocs - 1)


def on_one(sequential: float, nprocs: float) -> float:
    """Return the sequential fraction on one processor, from that on P.

    On one processor the parallel part takes P times as long.
    """
    _check(sequential)
    return sequential / (sequential + (1 - sequential) * nprocs)


def _check(sequential: float) -> None:
    if not 0 <= sequential <= 1:
        raise ValueError(f"a sequential fraction is 0 to 1, and not {sequential:g}")
