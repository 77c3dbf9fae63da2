"""Numbers are sorted by their digits as numpy sorts them, whatever they are."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from tests.core_modules import compiled, interpreted


def loops(name):
    """Return the interpreted module, with the loops of the compiled one, and lower limits."""
    module = interpreted(name)
    module.cython = SimpleNamespace(compiled=True)
    module._MANY, module._FEW = 200, 10
    return module


@pytest.fixture(params=[compiled, loops, interpreted], ids=["compiled", "loops", "numpy"])
def radix(request):
    """Load the module in one of its builds."""
    interpreted.cache_clear()
    return request.param("apps.kernels.radix")


@pytest.fixture
def length(radix):
    """Return a number of keys that are sorted by the first digit, but not within each byte."""
    return 1000 if hasattr(radix, "cython") else 200_000


def of_bits(random, dtype, length):
    return random.integers(0, 2**64, length, np.uint64).view(dtype)


def organ_pipe(_, dtype, length):
    return np.concatenate([np.arange(length // 2), np.arange(length // 2)[::-1]]).astype(dtype)


KEYS = {
    "all bits": of_bits,
    "between 0 and 1": lambda random, dtype, length: (random.random(length) * 1000).astype(dtype),
    "small": lambda random, dtype, length: random.integers(0, 300, length).astype(dtype),
    "of both signs": lambda random, dtype, length: random.integers(-300, 300, length).astype(dtype),
    "few": lambda random, dtype, length: random.integers(0, 3, length).astype(dtype),
    "one": lambda random, dtype, length: np.full(length, random.integers(1, 9)).astype(dtype),
    "sorted": lambda random, dtype, length: np.sort(random.integers(0, 1 << 40, length)).astype(
        dtype
    ),
    "reversed": lambda random, dtype, length: np.arange(length)[::-1].astype(dtype),
    "an organ pipe": organ_pipe,
    "one number": lambda random, dtype, length: of_bits(random, dtype, length)[:1],
    "none": lambda random, dtype, length: of_bits(random, dtype, length)[:0],
}
DTYPES = ("int64", "uint64", "float64")


def bits(numbers):
    return numbers.view(np.uint64)


def around(numbers):
    """Return an array of the same length, and the array with a border in which it lies."""
    whole = np.full(len(numbers) + 2, 77, numbers.dtype)
    return whole[1:-1], whole


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", KEYS)
def test_numbers_are_sorted(radix, length, name, dtype):
    numbers = KEYS[name](np.random.default_rng(1), dtype, length)
    before = numbers.copy()
    out, whole = around(numbers)
    radix.sort_numbers(numbers, out)
    np.testing.assert_array_equal(out, np.sort(before))  # NaN equals NaN here
    np.testing.assert_array_equal(bits(numbers), bits(before))
    assert list(whole[[0, -1]]) == [77, 77]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", KEYS)
def test_numbers_are_sorted_where_they_are(radix, length, name, dtype):
    given = KEYS[name](np.random.default_rng(2), dtype, length)
    numbers, whole = around(given)
    numbers[...] = given
    expected = np.sort(given)
    radix.sort_numbers(numbers, numbers)
    np.testing.assert_array_equal(numbers, expected)
    assert list(whole[[0, -1]]) == [77, 77]


@pytest.mark.parametrize("digits", range(9))
@pytest.mark.parametrize("in_place", [False, True])
def test_digits_that_are_the_same_in_all_numbers_do_not_matter(radix, length, digits, in_place):
    random = np.random.default_rng(3)
    numbers = random.integers(0, 256**digits - 1, length, np.uint64, endpoint=True) + 0
    out = numbers if in_place else np.empty_like(numbers)
    expected = np.sort(numbers)
    radix.sort_numbers(numbers, out)
    assert out.tolist() == expected.tolist()


def test_numbers_that_are_none_come_last_whatever_their_sign_and_their_bits(radix, length):
    random = np.random.default_rng(4)
    numbers = random.normal(size=length)
    numbers[:50], numbers[50:100] = np.nan, -np.nan
    numbers[100:150], numbers[150:200] = np.inf, -np.inf
    bits(numbers)[200:250] = (0xFFF << 52) + random.integers(1, 1 << 52, 50, np.uint64)
    bits(numbers)[250:300] = 0x7FF << 52 | np.uint64(1)
    numbers[300:350], numbers[350:400] = 0.0, -0.0
    random.shuffle(numbers)
    out = np.empty_like(numbers)
    radix.sort_numbers(numbers, out)
    assert np.isnan(out[-200:]).all()
    np.testing.assert_array_equal(out, np.sort(numbers))


def test_numbers_of_eight_bytes_in_the_order_of_the_computer_can_be_sorted(radix):
    can_sort = radix.can_sort
    assert all(can_sort(np.dtype(name)) for name in DTYPES)
    refused = ("float32", ">f8", "int32", "complex64", "datetime64[s]", "i4,i4", "bool")
    assert not any(can_sort(np.dtype(name)) for name in refused)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize("in_place", [False, True])
def test_the_loops_use_no_memory_but_their_own(monkeypatch, name, dtype, in_place):
    interpreted.cache_clear()
    module = loops("apps.kernels.radix")
    owned = []

    def own(array):
        begin = module.address_of(array)
        owned.append((array, range(begin, begin + array.nbytes, 8)))
        return array

    def check(address, nbytes=8):
        assert not nbytes or any(
            address in each and address + nbytes - 8 in each for _, each in owned
        )

    peek, poke, copy = module.peek, module.poke, module.copy
    monkeypatch.setattr(module, "peek", lambda at: (check(at), peek(at))[1])
    monkeypatch.setattr(module, "poke", lambda at, value: (check(at), poke(at, value)))
    monkeypatch.setattr(
        module, "copy", lambda to, at, n: (check(to, n), check(at, n), copy(to, at, n))
    )
    empty = SimpleNamespace(empty=lambda *how: own(np.empty(*how)), uint64=np.uint64)
    monkeypatch.setattr(module, "np", empty)
    numbers = own(KEYS[name](np.random.default_rng(5), dtype, 500))
    expected = np.sort(numbers)
    out = numbers if in_place else own(np.empty_like(numbers))
    module.sort_numbers(numbers, out)
    np.testing.assert_array_equal(out, expected)
