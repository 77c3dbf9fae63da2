"""The oversampling factor: how many keys a sample sort draws.

With factor s each of p processes draws s p keys, so that on average s p keys of the sample
are on each process after the exchange.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import click
import numpy as np


def factor_of(oversampling: float | str, size: int, nprocs: int) -> float:
    """Return s as a number; a fraction if it is not whole.

    Raises:
        ValueError: the value is neither a positive number nor ``"theory"``.
    """
    if oversampling == "theory":
        return theoretical_oversampling(size, nprocs)
    if isinstance(oversampling, str) or not 0 < oversampling < math.inf:
        raise ValueError(f"oversampling is {oversampling!r}; it is a number above 0, or 'theory'")
    return oversampling


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


def sample_sizes(sizes: Sequence[int], factor: float, nprocs: int) -> list[int]:
    """Return how many records each process samples.

    Args:
        sizes: lengths of the blocks.
        factor: s; below 1/p each process still samples one record.
        nprocs: p.
    """
    if nprocs == 1:
        return [0]  # there is no pivot to choose
    total, size = max(math.ceil(factor * nprocs**2), 1), sum(sizes)
    return [min(length, -(-length * total // size)) for length in sizes]


def regular_distance(sizes: Sequence[int]) -> int:
    """Return w, the distance of regular samples, for blocks of these lengths."""
    return max(sum(sizes) // len(sizes) ** 2, 1)


def expected_balance(factor: float, size: int, nprocs: int) -> float:
    """Return max/avg of the keys between pivots, in the median over samples of distinct keys.

    Of a sorted sample every k-th key is a pivot. So the shares are those between order
    statistics: gamma variates of shape k, divided by their sum. The more of the keys are in the
    sample, the less is left to chance: of n keys, m of which are in the sample, the variance is
    1 - m/n of that of endless keys.

    Args:
        factor: s.
        size: n.
        nprocs: p.

    Source: H. A. David and H. N. Nagaraja, Order Statistics, 3rd edition, section 2.5.
    """
    drawn = min(max(math.ceil(factor * nprocs**2), 1), size)
    if drawn == size or nprocs < 2:
        return 1.0
    between = drawn / nprocs / (1 - drawn / size)
    shares = np.random.default_rng(nprocs).gamma(max(between, 0.5), size=(1000, nprocs))
    return float(np.median(shares.max(axis=1) / shares.mean(axis=1)))


def factor(value: Any) -> float | str:
    """Return an oversampling factor of a command line, whole where it can be, or ``theory``.

    Raises:
        click.BadParameter: it is none.
    """
    if value == "theory":
        return "theory"
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise click.BadParameter(f"{value!r} is neither a number above 0 nor 'theory'")
    return int(number) if number.is_integer() else number
