"""The six algorithms as programs: process 0 has the problem, hands out work and gathers results.

That is how the programs of the paper work. Every program is a function of the group, the size
and the problem of that size (of :data:`PROBLEMS`; made at the beginning if it is not given); it
returns a result on process 0 that does not depend on the number of processes. With one process
it is the sequential program, without any communication.

A model has one W for all sizes, so that work on many values is done in blocks of a fixed size,
which fit into the cache of a core.

Source: Shi, sections 3 to 9; his programs for the Synergy system are not printed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bsplib

Array = NDArray[Any]
SPLITS = ("pixel", "column", "part")
"""Ways to divide a fractal, from fine to coarse: see :mod:`bsplib.apps.papers.steady.grain`."""
LIMIT = 128
"""Most iterations of a pixel."""
SLICES = 8
"""Time slices of the Monte Carlo simulation."""
_DRAWS = 64
"""Random steps of an object in a time slice."""
_PIXELS = 1 << 14
"""Pixels that are iterated together."""
_RANKED, _COMPARED = 127, 4096
"""Keys that are compared together, and the others that they are compared with, which may be up to
twice as many: numpy takes ten times as long for each of fewer than 2500. A count of the first fits
into a byte."""


def sort(bsp: bsplib.Group, n: int, given: Array | None = None) -> Array | None:
    """Sort n keys: split, sort, and merge on process 0."""
    return _sorted_by(bsp, n, given, np.sort)


def slow_sort(bsp: bsplib.Group, n: int, given: Array | None = None) -> Array | None:
    """Sort n keys by n squared comparisons: split, sort, and merge on process 0."""
    return _sorted_by(bsp, n, given, by_rank)


def fractal(
    bsp: bsplib.Group,
    n: int,
    given: None = None,  # noqa: ARG001  # the size is the whole problem
    split: str = "part",
) -> Array | None:
    """Return the iterations of n by n pixels of the Mandelbrot set.

    Args:
        bsp: the group.
        n: pixels on each side.
        given: nothing.
        split: one of ``SPLITS``.

    Raises:
        ValueError: there is no such split.
    """
    if split not in SPLITS:
        raise ValueError(f"there is no split {split!r}; choose one of {', '.join(SPLITS)}")
    mine = np.concatenate([_pixels(n, piece) for piece in _dealt(bsp, n, split)])
    found = bsp.gather((mine, iterations(n, mine)))
    if found is None:
        return None
    whole = np.empty(n * n, np.int32)
    for places, counts in found:
        whole[places] = counts
    return whole


def monte_carlo(
    bsp: bsplib.Group,
    n: int,
    given: None = None,  # noqa: ARG001  # the size is the whole problem
) -> Array | None:
    """Move n objects at random in each of several time slices; process 0 has them between."""
    places = np.zeros(n) if bsp.pid == 0 else None
    for number in range(SLICES):
        start, mine = bsp.scatter(_cut(bsp, places))
        random = np.random.default_rng([number, start])
        for _ in range(_DRAWS):
            mine = mine + random.standard_normal(len(mine))
        back = bsp.gather(mine)
        places = None if back is None else np.concatenate(back)
    return None if places is None else np.array([len(places), bool(np.isfinite(places).all())])


def matrices(bsp: bsplib.Group, n: int, given: Array | None = None) -> Array | None:
    """Multiply two n by n matrices: rows of the first, and all of the second for each process."""
    first, second = _given(given, factors, n) if bsp.pid == 0 else (None, None)
    rows = bsp.scatter(_rows(bsp, first))
    second = bsp.broadcast(second, stages=1)
    back = bsp.gather(rows @ second)
    return None if back is None else np.concatenate(back)


def elimination(bsp: bsplib.Group, n: int, given: Array | None = None) -> Array | None:
    """Make n by n matrix upper triangular; in each wave rows go out and come back."""
    whole = _given(given, dominant, n).copy() if bsp.pid == 0 else None
    for wave in range(n - 1):
        pivot, below = None, None
        if whole is not None:
            pivot, below = whole[wave, wave:].copy(), whole[wave + 1 :, wave:]
        if bsp.nprocs == 1:
            assert below is not None
            _eliminate(pivot, below)
            continue
        parts = None if below is None else [(pivot, part) for part in _rows(bsp, below) or ()]
        pivot, mine = bsp.scatter(parts)
        mine = np.array(mine)
        _eliminate(pivot, mine)
        back = bsp.gather(mine)
        if whole is not None and back is not None:
            whole[wave + 1 :, wave:] = np.concatenate(back)
    return whole


PROGRAMS: dict[str, Callable[..., Array | None]] = {
    "sort": sort,
    "slow-sort": slow_sort,
    "fractal": fractal,
    "monte-carlo": monte_carlo,
    "matrices": matrices,
    "elimination": elimination,
}


def keys(n: int) -> Array:
    """Return the keys that are sorted."""
    return np.random.default_rng(n).random(n)


def factors(n: int) -> Array:
    """Return the two matrices that are multiplied."""
    return np.random.default_rng(n).random((2, n, n))


def dominant(n: int) -> Array:
    """Return the matrix that is made triangular; its diagonal dominates it."""
    return np.random.default_rng(n).random((n, n)) + n * np.eye(n)


PROBLEMS: dict[str, Callable[[int], Array]] = {
    "sort": keys,
    "slow-sort": keys,
    "matrices": factors,
    "elimination": dominant,
}
"""What process 0 has at the beginning, by program and size; the others need their size only."""


def rounds(name: str, n: int) -> int:
    """Return how many times a program hands out work and gathers results.

    Args:
        name: from ``PROGRAMS``.
        n: its size.
    """
    return {"monte-carlo": SLICES, "elimination": n - 1}.get(name, 1)


def _given(given: Array | None, make: Callable[[int], Array], n: int) -> Array:
    return make(n) if given is None else given


def iterations(n: int, pixels: Array) -> Array:
    """Return the iterations of some pixels, numbered by columns, of n by n of them."""
    counts = np.empty(len(pixels), np.int32)
    for start in range(0, len(pixels), _PIXELS):
        part = slice(start, start + _PIXELS)
        counts[part] = _iterations(n, pixels[part])
    return counts


def _iterations(n: int, pixels: Array) -> Array:
    column, row = np.divmod(pixels, n)
    c = -2 + 2.5 * column / n + 1j * (-1.25 + 2.5 * row / n)
    z, counts = np.zeros_like(c), np.zeros(len(pixels), np.int32)
    left = np.arange(len(pixels))
    for _ in range(LIMIT):
        z = z * z + c[left]
        inside = z.real * z.real + z.imag * z.imag < 4
        counts[left[inside]] += 1
        left, z = left[inside], z[inside]
    return counts


def _sorted_by(
    bsp: bsplib.Group, n: int, given: Array | None, sort_part: Callable[[Array], Array]
) -> Array | None:
    parts = np.array_split(_given(given, keys, n), bsp.nprocs) if bsp.pid == 0 else None
    back = bsp.gather(sort_part(bsp.scatter(parts)))
    if back is None:
        return None
    return np.sort(np.concatenate(back), kind="stable") if bsp.nprocs > 1 else back[0]


def by_rank(part: Array) -> Array:
    """Sort numbers by comparing each with all."""
    ranks = np.zeros(len(part), np.int64)  # how many are less than each
    pieces = max(len(part) // _COMPARED, 1)
    for start in range(0, len(part), _RANKED):
        some = part[start : start + _RANKED, None]
        ranks += np.concatenate(
            [
                np.add.reduce((some < others).view(np.int8), dtype=np.int8)
                for others in np.array_split(part, pieces)
            ]
        )
    places = np.zeros(len(part), np.int64)
    places[ranks] = np.arange(len(part))
    first = np.zeros(len(part), np.int64)
    first[ranks] = ranks
    return part[places[np.maximum.accumulate(first)]]  # equal ones follow the first of them


def _dealt(bsp: bsplib.Group, n: int, split: str) -> list[Any]:
    """Hand out the pieces of a fractal: numbers of pixels or of columns, or parts of columns."""
    parts: list[Any] | None = None
    if bsp.pid == 0 and split == "part":
        ends = [n * pid // bsp.nprocs for pid in range(bsp.nprocs + 1)]
        parts = [[range(*ends[pid : pid + 2])] for pid in range(bsp.nprocs)]
    elif bsp.pid == 0 and split == "column":
        parts = [[range(i, i + 1) for i in range(pid, n, bsp.nprocs)] for pid in range(bsp.nprocs)]
    elif bsp.pid == 0:
        parts = [[np.arange(pid, n * n, bsp.nprocs)] for pid in range(bsp.nprocs)]
    dealt: list[Any] = bsp.scatter(parts)
    return dealt


def _pixels(n: int, piece: Any) -> Array:
    if isinstance(piece, range):
        return np.arange(piece.start * n, piece.stop * n)
    return np.asarray(piece)


def _cut(bsp: bsplib.Group, places: Array | None) -> list[tuple[int, Array]] | None:
    if places is None:
        return None
    ends = [len(places) * pid // bsp.nprocs for pid in range(bsp.nprocs + 1)]
    return [(ends[pid], places[ends[pid] : ends[pid + 1]]) for pid in range(bsp.nprocs)]


def _rows(bsp: bsplib.Group, whole: Array | None) -> list[Array] | None:
    return None if whole is None else np.array_split(whole, bsp.nprocs)


def _eliminate(pivot: Any, rows: Array) -> None:
    rows -= np.outer(rows[:, 0] / pivot[0], pivot)
