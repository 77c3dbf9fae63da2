"""Numbers are sorted alike, by numpy and by their digits."""

from __future__ import annotations

import numpy as np
import pytest

import bsplib
from bsplib.apps.kernels import radix
from bsplib.apps.sorting import order, sample_sort
from bsplib.core import BUILD

LENGTH = 5000


@pytest.fixture
def by_digits(monkeypatch):
    """Let numbers be sorted by their digits, and note the dtypes of those that were."""
    if BUILD != "compiled":
        pytest.skip("the interpreted core sorts by numpy")
    sorted_so, sort = [], radix.sort_numbers

    def note(keys, out):
        sorted_so.append(keys.dtype.name)
        sort(keys, out)

    monkeypatch.setattr(order, "BY_DIGITS", True)
    monkeypatch.setattr(order.radix, "sort_numbers", note)
    return sorted_so


@pytest.mark.parametrize("dtype", ["int64", "uint64", "float64", "int32", "float32", "complex128"])
@pytest.mark.parametrize("in_place", [False, True])
def test_numbers_are_sorted_as_numpy_sorts_them(by_digits, dtype, in_place):
    given = np.random.default_rng(1).integers(0, 1000, LENGTH).astype(dtype)
    keys = given.copy()
    out = keys if in_place else np.empty_like(keys)
    order.sort_numbers(keys, out)
    assert out.tolist() == np.sort(given).tolist()
    assert in_place or keys.tolist() == given.tolist()
    assert by_digits == ([dtype] if "64" in dtype else [])


@pytest.mark.parametrize(
    "change",
    [
        lambda keys: keys[::2],
        lambda keys: keys[::-1],
        lambda keys: keys.astype(">i8"),
        lambda keys: keys[:100],
        lambda keys: np.frombuffer(b"x" + keys.tobytes() + b"1234567", np.int64, LENGTH, 1),
    ],
    ids=["every second", "reversed", "of another byte order", "few", "not aligned"],
)
def test_numbers_that_lie_otherwise_are_sorted_by_numpy(by_digits, change):
    keys = change(np.random.default_rng(2).integers(-1000, 1000, LENGTH))
    out = np.empty(len(keys), keys.dtype)
    order.sort_numbers(keys, out)
    assert out.tolist() == np.sort(keys).tolist()
    assert by_digits == []


@pytest.mark.parametrize("partition_first", [False, True])
@pytest.mark.parametrize("distribution", ["uniform", "sorted", "equal", "adversarial"])
def test_a_sample_sort_by_digits_gives_the_same(by_digits, distribution, partition_first):
    def main(bsp):
        made = {"distribution": distribution, "dtype": "float64", "seed": 3}
        return sample_sort.main(bsp, 3 * LENGTH, partition_first=partition_first, **made)

    blocks = bsplib.run(main, nprocs=2, backend="sim")
    expected = sample_sort.reference(3 * LENGTH, 2, distribution=distribution, seed=3)
    assert np.concatenate(blocks).tolist() == expected.tolist()
    assert by_digits
