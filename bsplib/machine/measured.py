"""What a probe measured with one number of processes, and the price of a superstep from it.

A superstep costs::

    T(h) + (calls - calls of the pattern) c

with T the measured time of its pattern by the bytes of the h-relation, made of messages that are
read in place, and c the time of one more call. A superstep without communication costs what an
empty sync takes. T is measured in supersteps in a row: what first calls, new memory, late processes
and swept caches add to a superstep is not part of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np


class HRelation(NamedTuple):
    """What a superstep moves: numbers, or arrays with one element for each superstep."""

    h: Any
    """Bytes of the h-relation, by the rule of the Machine."""
    calls: Any = 0
    """Calls of put, get and send of the process that made most; an empty superstep has 0."""


@dataclass(frozen=True)
class Curve:
    """Seconds by bytes, as lines between knots; behind the last knot the last line goes on."""

    nbytes: tuple[int, ...]
    """Message size of each knot, ascending; at least two."""
    seconds: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.nbytes) != len(self.seconds) or len(self.nbytes) < 2:  # a line
            raise ValueError("a curve has at least two knots, each with its bytes and seconds")
        if any(one >= two for one, two in pairwise(self.nbytes)) or self.nbytes[0] < 0:
            raise ValueError("the bytes of a curve have to ascend from 0 or more")

    def at(self, nbytes: Any) -> Any:
        """Return the seconds for a number of bytes, or for an array of them."""
        wanted = np.asarray(nbytes, float)
        inside = np.interp(wanted, self.nbytes, self.seconds)
        (x, last), (y, top) = self.nbytes[-2:], self.seconds[-2:]
        slope = max((top - y) / (last - x), 0.0)
        return inside + np.maximum(wanted - last, 0.0) * slope


@dataclass(frozen=True)
class Measured:
    """What a probe measured with one number of processes; times are in seconds."""

    p: int
    """Number of processes."""
    empty: float
    """A superstep in which nothing is communicated."""
    call: float = 0.0
    """Each put that a process makes beyond those of the pattern, of an array of 8 bytes."""
    start: float | None = None
    """From the call of ``run`` to its return, where processes do nothing."""
    slowdown: float = 1.0
    """Time of a computation while all processes compute, divided by its time alone. Where
    processes share cores, this includes waiting for a core."""
    patterns: Mapping[str, Curve] = field(default_factory=dict)
    """Seconds of a superstep by the bytes of its h-relation, in memory in use, by pattern."""
    spread: float | None = None
    """Mean relative difference of the times of one half of the rounds and the other half."""

    def seconds(self, relation: HRelation, pattern: str) -> Any:
        """Return the seconds of a superstep, of which :attr:`empty` is the sync alone."""
        h, calls = np.asarray(relation.h), np.asarray(relation.calls)
        curve = self.patterns.get(pattern)
        moved = self.empty if curve is None else curve.at(h)
        own = 1 if pattern in ("exchange", "ping-pong", "all-to-one") else max(self.p - 1, 1)
        found = np.maximum(moved, self.empty) + np.maximum(calls - own, 0) * self.call
        return np.where((calls > 0) | (h > 0), found, self.empty)


_DEFAULT = "all-to-all"
"""Pattern of a superstep of which none is known."""


def price_parts(
    measured: Sequence[Measured], relation: HRelation, pattern: str | None, nprocs: int
) -> tuple[Any, Any]:
    """Return the seconds of a superstep for communication, and those of an empty one.

    Between two numbers of processes that were measured, times are interpolated; outside of
    them the nearest one holds.

    Args:
        measured: at least one, in order of p.
        relation: what the superstep moves; numbers or arrays.
        pattern: pattern of the superstep; None if it is not known.
        nprocs: number of processes of the group.
    """
    empty, total = 0.0, 0.0
    for part, share in _around(measured, nprocs):
        total = total + share * part.seconds(relation, pattern or _DEFAULT)
        empty += share * part.empty
    return total - empty, empty


def slowdown(measured: Sequence[Measured], nprocs: int) -> float:
    """Return the time of a computation beside ``nprocs - 1`` others, divided by its time alone."""
    return sum(share * part.slowdown for part, share in _around(measured, nprocs))


def _around(measured: Sequence[Measured], nprocs: int) -> Iterable[tuple[Measured, float]]:
    """Return the entries of the nearest numbers of processes, with their shares."""
    for one, two in pairwise(measured):
        if one.p <= nprocs < two.p:
            share = (nprocs - one.p) / (two.p - one.p)
            return [(one, 1 - share), (two, share)] if share else [(one, 1.0)]
    nearest = measured[0] if nprocs < measured[0].p else measured[-1]
    return [(nearest, 1.0)]
