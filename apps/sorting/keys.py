"""Keys to sort: random ones, and difficult cases.

A key is computed from its position among all keys, so that it does not depend on the process
that makes it. The only exception is ``adversarial``, which depends on the blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
import numpy as np

# numpy loads its random numbers when they are first used, which takes 10 ms: here, before the
# processes start, rather than in the first superstep of each.
from numpy.random import PCG64, Generator, default_rng
from numpy.typing import ArrayLike, DTypeLike, NDArray

Keys = NDArray[Any]
Fractions = NDArray[np.float64]
"""At least 0, less than 1."""

DTYPES = ("float64", "float32", "int64", "int32", "uint8", "str")
_FEW = 5
_ZIPF_EXPONENT = 1.3
_ZIPF_RANKS = 100_000


def number_of_keys(values: ArrayLike | int) -> int:
    """Return n, from the given keys or their given number.

    Raises:
        ValueError: the values do not have one dimension, or their number is negative.
    """
    if isinstance(values, int):
        if values < 0:
            raise ValueError(f"the number of keys is {values}; it must not be negative")
        return values
    shape = np.shape(values)
    if len(shape) != 1:
        raise ValueError(f"keys have one dimension, and these have shape {shape}")
    return int(shape[0])


def bounds(size: int, pid: int, nprocs: int) -> tuple[int, int]:
    """Return where block ``pid`` of ``size`` keys begins and ends: ceil(n / p) each."""
    length = -(-size // nprocs)
    return min(pid * length, size), min((pid + 1) * length, size)


def block_of(
    values: ArrayLike | int,
    pid: int,
    nprocs: int,
    *,
    distribution: str = "uniform",
    dtype: DTypeLike = "float64",
    seed: int = 0,
) -> Keys:
    """Return the keys that process ``pid`` has at the beginning.

    Args:
        values: all keys, or the number of keys to make.
        pid: the process.
        nprocs: number of processes.
        distribution: one of :data:`DISTRIBUTIONS`; ignored if keys are given.
        dtype: one of :data:`DTYPES`; ignored if keys are given.
        seed: seed of random keys; ignored if keys are given.

    Raises:
        ValueError: as :func:`number_of_keys`, or there is no such distribution or dtype.
    """
    size = number_of_keys(values)
    start, stop = bounds(size, pid, nprocs)
    if not isinstance(values, int):
        return np.asarray(values)[start:stop]
    for name, known in ((distribution, DISTRIBUTIONS), (np.dtype(dtype).name, DTYPES)):
        if name not in known:
            raise ValueError(f"{name!r} is not one of {', '.join(known)}")
    if distribution == "adversarial":
        fractions = _adversarial(size, pid, nprocs, seed)
    else:
        fractions = _BY_POSITION[distribution](size, start, stop, seed)
    return _as_dtype(fractions, np.dtype(dtype))


def all_keys(values: ArrayLike | int, nprocs: int, **how: Any) -> Keys:
    """Return the concatenated blocks of all processes; arguments as for :func:`block_of`."""
    if not isinstance(values, int):
        return block_of(values, 0, 1)
    return np.concatenate([block_of(values, pid, nprocs, **how) for pid in range(nprocs)])


def random_keys(start: int, stop: int, seed: int) -> Fractions:
    """Return the keys ``start .. stop - 1`` of an infinite sequence of random float64."""
    generator = PCG64(seed)
    return Generator(generator.advance(start)).random(stop - start)


# -- by position ----------------------------------------------------------------------------


def _uniform(_: int, start: int, stop: int, seed: int) -> Fractions:
    return random_keys(start, stop, seed)


def _sorted(size: int, start: int, stop: int, _: int) -> Fractions:
    return np.arange(start, stop) / max(size, 1)


def _reversed(size: int, start: int, stop: int, seed: int) -> Fractions:
    return _sorted(size, size - stop, size - start, seed)[::-1].copy()


def _equal(_: int, start: int, stop: int, __: int) -> Fractions:
    return np.full(stop - start, 0.5)


def _few(_: int, start: int, stop: int, seed: int) -> Fractions:
    return np.floor(random_keys(start, stop, seed) * _FEW) / _FEW


def _zipf(_: int, start: int, stop: int, seed: int) -> Fractions:
    """Draw rank r with a probability proportional to r to the power of -1.3."""
    weights = np.arange(1, _ZIPF_RANKS + 1) ** -_ZIPF_EXPONENT
    cumulated = np.cumsum(weights) / weights.sum()
    ranks = np.searchsorted(cumulated, random_keys(start, stop, seed))
    return np.minimum(ranks, _ZIPF_RANKS - 1) / _ZIPF_RANKS


_BY_POSITION: dict[str, Callable[[int, int, int, int], Fractions]] = {
    "uniform": _uniform,
    "sorted": _sorted,
    "reversed": _reversed,
    "equal": _equal,
    "few": _few,
    "zipf": _zipf,
}
DISTRIBUTIONS = (*_BY_POSITION, "adversarial")


# -- by block -------------------------------------------------------------------------------


def _adversarial(size: int, pid: int, nprocs: int, seed: int) -> Fractions:
    """Return keys for which regular sampling gives the greatest imbalance.

    Regular sampling takes every w-th key of a sorted block, w = n/p^2, and every p-th of
    these samples as a pivot. All keys of block 0 are in the middle third of the range. Each
    other block has one or two samples in the lower third, p in total. The w - 1 keys after
    the last of them are in the middle third, too. So nearly 2n/p keys are between two pivots.
    """
    start, stop = bounds(size, pid, nprocs)
    length = stop - start
    random = default_rng([seed, pid])
    fractions = 1 / 3 + np.sort(random.random(length)) / 3
    if pid:
        every = max(size // nprocs**2, 1)
        lower = 1 if pid < nprocs - 1 else 2
        fractions[: (lower - 1) * every + 1] -= 1 / 3
        fractions[lower * every :] += 1 / 3
    else:
        fractions[:1] = 1 / 3  # block 0 has the least key of the middle third
    random.shuffle(fractions)
    return np.minimum(fractions, np.nextafter(1, 0))


def _as_dtype(fractions: Fractions, dtype: np.dtype[Any]) -> Keys:
    if dtype.kind == "f":
        return fractions.astype(dtype)
    if dtype.kind == "U":
        return np.char.mod("%012d", np.floor(fractions * 1e12).astype(np.int64))
    return np.floor(fractions * float(np.iinfo(dtype).max)).astype(dtype)


# -- command line ---------------------------------------------------------------------------


def keys_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options ``size`` and those of :func:`block_of` for keys that are made."""
    option = click.option(
        "--dtype",
        default="float64",
        show_default=True,
        type=click.Choice(DTYPES),
        help="Of the keys.",
    )
    return made_options(option(command))


def made_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for keys that are made, but for their dtype."""
    for option in reversed(_MADE):
        command = option(command)
    return command


_MADE = (
    click.option(
        "--size",
        default=2**20,
        show_default=True,
        type=click.IntRange(0),
        help="Number of keys to make.",
    ),
    click.option(
        "--seed", default=0, show_default=True, type=click.IntRange(0), help="Seed of random keys."
    ),
    click.option(
        "--distribution",
        default="uniform",
        show_default=True,
        type=click.Choice(DISTRIBUTIONS),
        help="Of the keys that are made.",
    ),
)
