"""Taking views apart, against numpy's own slicing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bsplib.transfers.place import (
    from_wire,
    memory_range,
    region_of,
)
from tests.drawn import examples


@st.composite
def arrays(draw):
    """An array of distinct numbers: of any strides, maybe a part of a larger one."""
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=4)))
    x = np.arange(np.prod(shape)).reshape(shape)
    if draw(st.booleans()):
        x = np.asfortranarray(x)
    if draw(st.booleans()):
        x = x.transpose(draw(st.permutations(range(x.ndim))))
    if draw(st.booleans()):
        steps = [draw(st.sampled_from([1, -1, 2])) for _ in x.shape]
        x = x[tuple(slice(None, None, step) for step in steps)]
    return x


@st.composite
def slices(draw, shape):
    """A basic index of an array of that shape, without numbers for all axes."""
    index = []
    for size in shape:
        bound = st.none() | st.integers(-size - 1, size + 1)
        step = st.sampled_from([None, 1, 2, 3, -1, -2])
        number = st.integers(-size, size - 1)
        index.append(draw(st.builds(slice, bound, bound, step) | number))
    return (*index, ...)


@st.composite
def views(draw):
    """An array, and a view of it that may be transposed and have new axes."""
    array = draw(arrays())
    view = array[draw(slices(array.shape))]
    view = view.transpose(draw(st.permutations(range(view.ndim))))
    if draw(st.booleans()):
        view = np.expand_dims(view, draw(st.integers(0, view.ndim)))
    return array, view


@examples(100)
@given(views())
def test_a_region_selects_the_elements_of_its_view(pair):
    array, view = pair
    if view.size == 0:
        return
    region = region_of(array, view)
    assert region is not None
    assert region.shape == view.shape
    selected = array[from_wire(region.wire())]
    assert np.array_equal(region.gather(selected), view)


@examples(100)
@given(views(), st.data())
def test_values_spread_to_a_region_land_where_numpy_puts_them(pair, data):
    array, view = pair
    if view.size == 0:
        return
    shape = data.draw(st.sampled_from([view.shape, view.shape[1:], (1,) * view.ndim, ()]))
    values = -1 - np.arange(int(np.prod(shape))).reshape(shape)
    region = region_of(array, view)
    assert region is not None
    here = array.copy()
    here[from_wire(region.wire())] = region.spread(values)
    view[...] = values
    assert np.array_equal(here, array)


@examples(100)
@given(views(), st.data())
def test_a_region_is_contiguous_only_where_its_elements_follow_one_another(pair, data):
    array, view = pair
    if view.size == 0:
        return
    region = region_of(array, view)
    assert region is not None
    grow = st.lists(st.integers(0, 2), min_size=array.ndim, max_size=array.ndim)
    shape = tuple(np.add(array.shape, data.draw(grow)))
    there = np.arange(int(np.prod(shape))).reshape(shape)
    named = there[from_wire(region.wire())].reshape(-1)
    start = region.flat(shape)
    if start is None:
        assert np.any(np.diff(named) != 1)
    else:
        assert named.tolist() == list(range(start, start + view.size))


@examples(100)
@given(views(), st.data())
def test_what_a_smaller_array_lacks_is_counted(pair, data):
    array, view = pair
    if view.size == 0:
        return
    region = region_of(array, view)
    assert region is not None
    shape = tuple(data.draw(st.integers(1, size + 1)) for size in array.shape)
    indices = np.stack(np.indices(array.shape))[(slice(None), *from_wire(region.wire()))]
    inside = np.all(indices.reshape(array.ndim, -1) < np.array(shape)[:, None], axis=0)
    assert region.outside(shape) == np.count_nonzero(~inside)
    assert (region.overshoot(shape) is None) == bool(inside.all())


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.reshape(-1),
        lambda x: np.diagonal(x),  # noqa: PLW0108  # reads like the others
        lambda x: x.view(np.uint8),
        lambda x: x.view(np.uint64),
        lambda x: np.lib.stride_tricks.sliding_window_view(x[0], 2),
        lambda x: np.broadcast_to(x[0], (2, 4)),
        lambda x: np.lib.stride_tricks.as_strided(x, (2, 4), (8, 8)),
    ],
)
def test_what_basic_slices_cannot_make_is_no_region(view):
    x = np.arange(12).reshape(3, 4)
    assert region_of(x, view(x)) is None


@examples(100)
@given(views())
def test_the_memory_range_holds_every_element_and_no_more(pair):
    _, view = pair
    low, high = memory_range(view)
    if view.size == 0:
        assert low == high
        return
    origin = view.__array_interface__["data"][0]
    offsets = [
        sum(stride * at for stride, at in zip(view.strides, index, strict=True))
        for index in np.ndindex(view.shape)
    ]
    assert (low, high) == (origin + min(offsets), origin + max(offsets) + view.itemsize)


# -- indices as plain values ----------------------------------------------------------------
