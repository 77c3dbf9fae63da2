"""Grades ``exercises.py`` in this folder: ``pytest test_exercises.py``.

Each exercise is run on virtual processors, its results are compared with those of numpy, and its
supersteps and its h-relations with the limits. What follows the last sync is no superstep here.
h is a number of bytes: for each superstep the most that a process sends or receives, added up
over all supersteps.
"""

from __future__ import annotations

from math import ceil, log2
from typing import NamedTuple

import exercises
import numpy as np
import pytest

import bsplib

N = 240
"""Number of elements of all processes; 240 is divided by all numbers of processes."""
SIDE = 24
STEPS = 6
rng = np.random.default_rng(1)
VALUES = rng.integers(0, 100, 8).astype(float)
X, Y = rng.normal(size=(2, N))
MATRIX = rng.normal(size=(SIDE, SIDE))
VECTOR = rng.normal(size=SIDE)
NUMBERS = rng.integers(0, SIDE, N)
INDICES = rng.integers(0, N, N)
ORDER = rng.permutation(N)
FOLLOWING = np.empty(N, int)
FOLLOWING[ORDER[:-1]], FOLLOWING[ORDER[-1]] = ORDER[1:], ORDER[-1]
RANKS = np.empty(N, int)
RANKS[ORDER] = np.arange(N)[::-1]


class Exercise(NamedTuple):
    """An exercise on p processes: what each is given and has to return, and the limits."""

    given: list[tuple]
    expected: list
    supersteps: int
    h: float


def cut(array, p):
    """The parts of an array, one for each process."""
    return np.split(array, p)


def averaged(x):
    """Heat after all steps."""
    for _ in range(STEPS):
        x = (np.roll(x, 1) + np.roll(x, -1)) / 2
    return x


def exercise(name, p):
    """Return an exercise on p processes."""
    values, log, all_but_one = VALUES[:p], ceil(log2(p)), (p - 1) / p
    each = [(value,) for value in values]
    xs, ys = cut(X, p), cut(Y, p)
    of_x = [(x,) for x in xs]
    rows = cut(MATRIX, p)
    best = (X.max(), int(X.argmax()) // (N // p))
    heat = [(x, STEPS) for x in xs]
    bounds = np.split(np.sort(X), p)  # not where the parts of a sort end: only all of them count
    return {
        "greet": Exercise([()] * p, [f"process {pid} of {p}" for pid in range(p)], 0, 0),
        "shift": Exercise(each, np.roll(values, 1), 1, 8),
        "mirror": Exercise(of_x, xs[::-1], 1, 8 * N / p),
        "collect": Exercise(each, [values.tolist(), *[None] * (p - 1)], 1, 8 * (p - 1)),
        "total": Exercise(each, [values.sum()] * p, 1, 8 * (p - 1)),
        "spread": Exercise(of_x, [xs[0]] * p, 1, 8 * (N / p) * (p - 1)),
        "spread_in_two": Exercise([(X,)] * p, [X] * p, 2, 16 * N * all_but_one),
        "total_by_tree": Exercise(each, [values.sum(), *[None] * (p - 1)], log, 8 * log),
        "prefix": Exercise(each, values.cumsum(), 1, 8 * (p - 1)),
        "prefix_by_doubling": Exercise(each, values.cumsum(), log, 8 * log),
        "largest": Exercise(of_x, [best] * p, 1, 16 * (p - 1)),
        "dot": Exercise([*zip(xs, ys, strict=True)], [X @ Y] * p, 1, 8 * (p - 1)),
        "transpose": Exercise(
            [(each,) for each in rows], cut(MATRIX.T, p), 1, 8 * SIDE**2 / p * all_but_one
        ),
        "product": Exercise(
            [*zip(rows, cut(VECTOR, p), strict=True)],
            cut(MATRIX @ VECTOR, p),
            1,
            8 * SIDE * all_but_one,
        ),
        "heat": Exercise(heat, cut(averaged(X), p), STEPS, 16 * STEPS),
        "heat_by_two": Exercise(heat, cut(averaged(X), p), STEPS // 2, 16 * STEPS),
        "histogram": Exercise(
            [(each, SIDE) for each in cut(NUMBERS, p)],
            cut(np.bincount(NUMBERS, minlength=SIDE), p),
            1,
            16 * SIDE * all_but_one,
        ),
        "look_up": Exercise(
            [*zip(xs, cut(INDICES, p), strict=True)], cut(X[INDICES], p), 1, 24 * N / p
        ),
        "sort": Exercise(of_x, bounds, 2, 8 * p * (p - 1) + 16 * N / p),
        "rank": Exercise(
            [(each,) for each in cut(FOLLOWING, p)],
            cut(RANKS, p),
            ceil(log2(N)),
            64 * N / p * ceil(log2(N)),
        ),
    }[name]


NAMES = (
    *("greet", "shift", "mirror", "collect", "total", "spread", "spread_in_two", "total_by_tree"),
    *("prefix", "prefix_by_doubling", "largest", "dot", "transpose", "product", "heat"),
    *("heat_by_two", "histogram", "look_up", "sort", "rank"),
)


def main(bsp, function, given):
    """Run an exercise on what this process is given."""
    return function(bsp, *given[bsp.pid])


@pytest.mark.parametrize("nprocs", [2, 3, 4, 8])
@pytest.mark.parametrize("name", NAMES)
def test_exercise(bsp_trace, name, nprocs):
    """The results are right, and no more supersteps and bytes are needed than allowed."""
    wanted = exercise(name, nprocs)
    options = {"nprocs": nprocs, "backend": "sim", "check": True, "timeout": 20}
    results = bsplib.run(main, getattr(exercises, name), wanted.given, **options)
    if name == "sort":  # the processes may have parts of other lengths
        results, expected = np.concatenate(results), np.concatenate(wanted.expected)
    else:
        expected = wanted.expected
    for result, right in zip(results, expected, strict=True):
        if right is None or isinstance(right, str):
            assert result == right
        else:
            np.testing.assert_allclose(result, right)
    figures = bsp_trace.figures()
    assert figures.supersteps <= wanted.supersteps
    assert figures.h <= wanted.h
