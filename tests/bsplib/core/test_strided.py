"""Strided views of arrays, against numpy and against the search for basic slices."""

from __future__ import annotations

import numpy as np
import pytest

from bsplib.core.atomics import address_of
from bsplib.core.known_arrays import KnownArray, gather, scatter
from bsplib.transfers.place import region_of

SHAPES = [(7,), (4, 5), (1, 6), (3, 1, 4), (2, 3, 4), (2, 2, 2, 3)]


def known_of(array):
    return KnownArray(array, 0, [array.nbytes], alike=True, alone=True)


def some_part(rng, size):
    """Return an index of an axis: a number, or a slice in either direction."""
    if rng.random() < 0.25:
        return int(rng.integers(size))
    low, high = sorted(rng.integers(0, size + 1, 2).tolist())
    step = int(rng.integers(1, 3))
    part = slice(low, high, step)
    return slice(None, None, -step) if rng.random() < 0.3 else part


def some_view(rng, array):
    """Return a basic slice of an array, with its axes in any order."""
    view = array[tuple(some_part(rng, size) for size in array.shape)]
    if not isinstance(view, np.ndarray):
        return array[:1]
    return view.transpose(rng.permutation(view.ndim))


@pytest.mark.core
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.int16, np.complex128, "S3"], ids=str)
def test_a_strided_view_has_the_elements_of_its_view(shape, dtype):
    rng = np.random.default_rng([len(shape), *shape])
    for _ in range(60):
        array = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
        view = some_view(rng, array)
        known = known_of(array)
        nbytes = known.strided_of(view)
        assert (nbytes > 0) == (view.size > 0)
        if not nbytes:
            continue
        strided, values = address_of(known.words), np.zeros(view.shape, dtype)
        gather(strided, address_of(array), address_of(values))
        assert values.tolist() == view.tolist()
        assert known.strided_end <= array.nbytes
        before = array.copy()
        new = np.arange(view.size)[::-1].reshape(view.shape).astype(dtype)
        scatter(strided, address_of(array), address_of(np.ascontiguousarray(new)))
        assert view.tolist() == new.tolist()
        view[...] = values
        assert array.tolist() == before.tolist()  # nothing else was written


@pytest.mark.core
def test_what_is_no_basic_slice_is_not_strided():
    rng = np.random.default_rng(5)
    array = np.arange(60.0).reshape(3, 4, 5)
    known, strided = known_of(array), 0
    for _ in range(2000):
        shape = tuple(rng.integers(1, 4, rng.integers(1, 4)).tolist())
        steps = [int(step) * 8 for step in rng.integers(-25, 26, len(shape))]
        first = int(rng.integers(60))
        reach = [step * (size - 1) // 8 for step, size in zip(steps, shape, strict=True)]
        low, high = sum(min(r, 0) for r in reach), sum(max(r, 0) for r in reach)
        if first + low < 0 or first + high >= 60:
            continue
        view = np.lib.stride_tricks.as_strided(array.reshape(-1)[first:], shape, steps)
        is_region = region_of(array, view) is not None
        assert bool(known.strided_of(view)) == is_region, (shape, steps, first)
        strided += is_region
    assert strided > 50


@pytest.mark.core
def test_a_strided_view_of_another_dtype_or_memory_is_none():
    array, other = np.zeros((4, 4)), np.zeros((4, 4))
    known = known_of(array)
    assert known.strided_of(other[:, 1]) == 0
    assert known.strided_of(array.view(np.int64)[:, 1]) == 0
    assert known.strided_of(array.reshape(2, 8)[:, ::3]) == 0
