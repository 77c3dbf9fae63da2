"""Integers are added to the sums of their groups: by numpy, by the interpreted loop, compiled."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from tests.core_modules import compiled, interpreted


def loops(name):
    """Return the interpreted module, with the loop of the compiled one."""
    interpreted.cache_clear()
    module = interpreted(name)
    module.cython = SimpleNamespace(compiled=True)
    return module


def by_numpy(name):
    interpreted.cache_clear()
    return interpreted(name)


@pytest.fixture(params=[compiled, loops, by_numpy], ids=["compiled", "loops", "numpy"])
def sums(request):
    """Load the module in one of its builds."""
    return request.param("apps.kernels.sums")


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("rows", [0, 1, 2, 501])
def test_each_value_is_added_to_the_sum_of_its_group(sums, dtype, rows):
    random = np.random.default_rng(rows)
    ends = np.iinfo(dtype)
    values = random.integers(ends.min // 1000, ends.max // 1000, rows, dtype)
    groups = random.integers(0, 7, rows)
    made, expected = np.arange(7), list(range(7))
    for group, value in zip(groups.tolist(), values.tolist(), strict=True):
        expected[group] += value
    sums.add_integers(made, groups, values)
    assert made.tolist() == expected


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_the_least_and_the_greatest_value_keep_their_signs(sums, dtype):
    ends = np.iinfo(dtype)
    values = np.array([ends.min, -1, 0, 1, ends.max], dtype)
    made = np.zeros(5, np.int64)
    sums.add_integers(made, np.arange(5)[::-1].copy(), values)
    assert made.tolist() == values.tolist()[::-1]


def test_values_may_begin_in_the_middle_of_a_word(sums):
    values = np.arange(-5, 6, dtype=np.int32)[1:-1]
    made = np.zeros(1, np.int64)
    sums.add_integers(made, np.zeros(9, np.int64), values)
    assert made.tolist() == [values.sum()]


def test_only_integers_in_the_order_of_the_computer_can_be_added(sums):
    can_add = sums.can_add
    assert all(can_add(np.dtype(name)) for name in ("int32", "int64"))
    refused = ("uint32", "uint64", "int16", ">i4", ">i8", "float64", "datetime64[D]", "bool")
    assert not any(can_add(np.dtype(name)) for name in refused)
