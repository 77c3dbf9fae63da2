"""The oversampling factor: how many keys a sample sort draws.

With factor s each of p processes draws s p keys, so that on average s p keys of the sample
are on each process after the exchange.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import click


def factor_of(oversampling: int | str, size: int, nprocs: int) -> int:
    """Return s as a number.

    Raises:
        ValueError: the value is neither a positive number nor ``"theory"``.
    """
    if oversampling == "theory":
        return theoretical_oversampling(size, nprocs)
    if isinstance(oversampling, str) or oversampling < 1:
        raise ValueError(f"oversampling is {oversampling!r}; it is 1 or more, or 'theory'")
    return int(oversampling)


def theoretical_oversampling(
    size: int, nprocs: int, excess: float = 0.1, risk: float = 1e-6
) -> int:
    """Return an s for which it is very improbable that a process gets many more than n/p keys.

    A process gets more than a n/p keys only if, for some key, fewer than s p of the next
    a n/p keys in order are in the sample, although a s p are expected. By Chernoff's bound
    the probability of this is at most exp(-(1 - 1/a)^2 a s p/2) for one key, and at most
    n times as much for any of the n keys.

    Args:
        size: n.
        nprocs: p.
        excess: a - 1.
        risk: probability up to which a process may get more than a n/p keys.

    Source: Blelloch et al. 1991, A comparison of sorting algorithms for the Connection
        Machine CM-2, whose oversampling ratio is s p here.
    """
    ratio = 1 + excess
    exponent = (1 - 1 / ratio) ** 2 * ratio / 2
    return math.ceil(math.log(max(size, 1) / risk) / exponent / nprocs)


def sample_sizes(sizes: Sequence[int], factor: int, nprocs: int) -> list[int]:
    """Return how many records each process samples.

    Args:
        sizes: lengths of the blocks.
        factor: s.
        nprocs: p.
    """
    total, size = factor * nprocs**2, sum(sizes)
    return [min(length, -(-length * total // size)) for length in sizes]


class Factor(click.ParamType):
    """An oversampling factor: a positive number, or ``theory``."""

    name = "factor"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | str:
        """Return the number, or ``theory``."""
        if value == "theory":
            return "theory"
        if not str(value).isdecimal() or int(value) < 1:
            self.fail(f"{value!r} is neither 1 or more nor 'theory'", param, ctx)
        return int(value)
