"""Common parts of the Fourier transforms: signals, roots of unity, combination of halves.

The transform of the values ``a[0] .. a[N - 1]`` is ``A[k] = sum_j a[j] w^(j k)`` with
``w = exp(-2 pi i / N)``, as in ``numpy.fft.fft``. All are complex128.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import click
import numpy as np

# numpy loads these parts when they are first used, which takes 10 ms: here, before the processes
# start, rather than in the first superstep of each.
from numpy.fft import fft
from numpy.random import default_rng
from numpy.typing import ArrayLike, NDArray

from bsplib.apps.command import ProgramRun, place_options
from bsplib.visible import visible_lines

Values = NDArray[np.complex128]

_LONG = 2**14
"""From this length on, numpy's transform allocates memory on every call and does not fit
into the second-level cache of a core."""
_ROWS = 64
_APART = 4
"""Values between the rows of a matrix: a cache line. If the distance between rows were a
power of two, the values of a column would all be mapped to the same few cache sets."""
_CHUNK = 2**14
"""Number of values processed together, so that they stay in the cache between two steps."""
_TOLERANCE = 1e-14
"""Greatest relative error of a correct transform of any length."""


class LocalTransform:
    """The transform within one process, prepared for signals of one length.

    Short signals are transformed by numpy. A long one is arranged as a matrix of 64 rows;
    numpy transforms its columns and then its rows, each of which fits into the cache. The
    roots of unity are computed in advance, as numpy keeps its own for each length.

    Cost: w = O(n log n).
    Source: Bailey 1990, "FFTs in external or hierarchical memory".
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._turns: Values | None = None
        if size < _LONG or size % _ROWS:
            fft(np.zeros(size, np.complex128))  # numpy caches its roots of this length
            return
        columns = size // _ROWS
        self._turns, self._work = _matrix(columns), _matrix(columns)
        self._turns[:] = roots_of_unity(size, np.outer(np.arange(_ROWS), np.arange(columns)))
        fft(np.zeros(columns, np.complex128))  # so that numpy caches the roots

    def __call__(self, values: Values, out: Values) -> None:
        """Transform ``values`` into ``out``; both have the length that was prepared.

        Args:
            values: with any stride.
            out: contiguous, and no part of ``values``.
        """
        if self._turns is None:
            fft(values, out=out)
            return
        work = self._work
        np.copyto(work, values.reshape(work.shape))
        fft(work, axis=0, out=work)
        np.multiply(work, self._turns, out=work)
        fft(work, axis=1, out=work)
        np.copyto(out.reshape(work.shape[::-1]), work.T)


def _matrix(columns: int) -> Values:
    return np.empty((_ROWS, columns + _APART), np.complex128)[:, :columns]


def roots_of_unity(size: int, exponents: NDArray[np.int64]) -> Values:
    """Return ``exp(-2 pi i / size)`` to the given powers."""
    angles = (exponents % size) * (-2 * np.pi / size)  # small angles have small errors
    roots = np.empty(angles.shape, np.complex128)
    np.cos(angles, out=roots.real)
    np.sin(angles, out=roots.imag)
    return roots


def reversed_bits(number: int, count: int) -> int:
    """Return the number whose last ``count`` bits are those of ``number`` in reversed order."""
    return int(f"{number:0{count}b}"[::-1], 2) if count else 0


def combine(out: Values, even: Values, odd: Values, roots: Values) -> None:
    """Combine the transforms of the even and of the odd values of a signal.

    Args:
        out: twice as long as the others; ``even`` may be its first half, and ``odd``
            its second.
        even: transform of the values 0, 2, 4, ...
        odd: transform of the values 1, 3, 5, ...
        roots: the powers 0, 1, 2, ... of ``exp(-2 pi i / len(out))``, as many as
            ``even`` has, with any stride.

    Cost: w = O(n).
    Source: Roda et al. 1999, equation 14.
    """
    half = len(even)
    low, high = out[:half], out[half:]
    room = np.empty(min(half, _CHUNK), np.complex128)
    for start in range(0, half, _CHUNK):
        part = slice(start, min(start + _CHUNK, half))
        turned = room[: part.stop - start]
        np.multiply(odd[part], roots[part], out=turned)
        np.subtract(even[part], turned, out=high[part])
        np.add(even[part], turned, out=low[part])


def transform_across(parts: Sequence[Values], out: Values) -> None:
    """Transform the first values of all parts, the second ones, and so on.

    Args:
        parts: p arrays of m values.
        out: shape (p, m); column j becomes the transform of the values j.
    """
    step = max(_CHUNK // len(parts), 1)
    for start in range(0, out.shape[1], step):
        part = slice(start, start + step)
        chunks = [values[part] for values in parts]
        if len(parts) == 2:  # numpy is slow at transforms of two values
            np.subtract(chunks[0], chunks[1], out=out[1, part])
            np.add(chunks[0], chunks[1], out=out[0, part])
        else:
            fft(np.stack(chunks), axis=0, out=out[:, part])


# -- signals --------------------------------------------------------------------------------------


def number_of_values(values: ArrayLike | int) -> int:
    """Return N, where the values are given or their number is.

    Raises:
        ValueError: there are no values, or they do not have one dimension.
    """
    if isinstance(values, int):
        size = values
    elif np.ndim(values) != 1:
        raise ValueError(f"a signal has one dimension, and this one has shape {np.shape(values)}")
    else:
        size = len(np.asarray(values))
    if size < 1:
        raise ValueError(f"a signal has one value or more, and this one has {size}")
    return size


def signal(values: ArrayLike | int, seed: int) -> Values:
    """Return the given values, or the requested number of random ones."""
    if isinstance(values, int):
        pairs = default_rng(seed).uniform(-1, 1, (values, 2))
        return pairs.view(np.complex128)[:, 0]
    return np.asarray(values, np.complex128)


def reference(values: ArrayLike | int, *, seed: int = 0) -> Values:
    """Return the whole transform, computed by numpy in one process."""
    number_of_values(values)
    return fft(signal(values, seed))


def error_of(got: Values, expected: Values) -> float:
    """Return the norm of the error divided by the norm of the expected values."""
    return float(np.linalg.norm(got - expected) / (np.linalg.norm(expected) or 1.0))


# -- the command lines ----------------------------------------------------------------------------


def transform_command(
    main: Callable[..., Any], gather: Callable[[list[Any]], Values], text: str
) -> click.Command:
    """Return the command line of a transform.

    Args:
        main: the program.
        gather: combines the results of the processes into the whole transform.
        text: description of the command.
    """

    @click.command(help=text)
    @click.option(
        "--size", default=65536, show_default=True, type=click.IntRange(1), help="Values."
    )
    @click.option(
        "--seed", default=0, show_default=True, type=click.IntRange(0), help="Seed of the values."
    )
    @place_options
    def command(size: int, seed: int, place: ProgramRun) -> None:
        _transform(partial(place.run, main, size, seed=seed), gather, size, seed)

    return command


def _transform(
    run: Callable[[], list[Any]], gather: Callable[[list[Any]], Values], size: int, seed: int
) -> None:
    try:
        results = run()
    except ValueError as error:  # the size does not suit the number of processes
        raise click.ClickException(visible_lines(str(error))) from None
    difference = error_of(gather(results), reference(size, seed=seed))
    if not difference < _TOLERANCE:
        raise click.ClickException(
            f"the transform is wrong: its relative error is {difference:.2g}"
        )
    noun = "process" if len(results) == 1 else "processes"
    click.echo(f"{len(results)} {noun} transformed {size} values; relative error {difference:.2g}")
