"""Numbers for keys and sums of groups: by numpy, by interpreted loops, and compiled."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from tests.core_modules import compiled, interpreted


def loops(name):
    """Return the interpreted module, with the loops of the compiled one and a small first table."""
    interpreted.cache_clear()
    module = interpreted(name)
    module.cython = SimpleNamespace(compiled=True)
    module._FIRST_SLOTS = 8
    return module


def by_numpy(name):
    interpreted.cache_clear()
    return interpreted(name)


@pytest.fixture(params=[compiled, loops, by_numpy], ids=["compiled", "loops", "numpy"])
def load(request):
    """Loads a module in one of its builds."""
    return request.param


@pytest.fixture
def numbering(load):
    return load("apps.kernels.numbering")


class Plainly:
    """What is expected, by a dictionary."""

    def __init__(self):
        self.known = {}

    def number(self, keys):
        return [self.known.setdefault(key, len(self.known)) for key in keys.tolist()]

    def find(self, keys):
        return [self.known.get(key, -1) for key in keys.tolist()]


def check(numbering, *pieces):
    """Number pieces of keys, and look for all that come in the end, before each piece."""
    pieces = [np.ascontiguousarray(piece, np.uint64) for piece in pieces]
    numbers, expected = numbering.KeyNumbers(), Plainly()
    for piece in pieces:
        assert numbers.find(pieces[-1]).tolist() == expected.find(pieces[-1])
        found = numbers.number(piece)
        assert found.dtype == np.int64
        assert found.tolist() == expected.number(piece)
        assert numbers.count == len(expected.known)
    assert numbers.keys().tolist() == list(expected.known)


@pytest.mark.parametrize("rows", [0, 1, 2, 700])
def test_equal_keys_have_equal_numbers_in_the_order_in_which_they_come(numbering, rows):
    random = np.random.default_rng(rows)
    check(numbering, random.integers(3, size=rows), random.integers(9, size=rows))
    check(numbering, random.integers(2**64, size=rows, dtype=np.uint64))


def test_no_keys_have_no_numbers(numbering):
    numbers = numbering.KeyNumbers()
    assert numbers.count == 0
    assert numbers.keys().shape == (0,)
    assert numbers.find(np.zeros(3, np.uint64)).tolist() == [-1, -1, -1]


def test_keys_that_are_looked_for_get_no_numbers(numbering):
    numbers = numbering.KeyNumbers()
    numbers.number(np.array([5], np.uint64))
    assert numbers.find(np.array([6, 5], np.uint64)).tolist() == [-1, 0]
    assert numbers.count == 1


def test_the_first_and_the_last_word_are_keys_like_any_other(numbering):
    check(numbering, [0, 2**64 - 1, 0, 1, 2**63, 2**64 - 1])


def test_a_table_that_becomes_full_grows(numbering):
    rows = 20_000 if not hasattr(numbering, "cython") else 500
    keys = np.arange(rows) % (2 * rows // 3)
    check(numbering, keys[: rows // 7], keys[rows // 7 :], keys)


KEYS = {
    "one": lambda rows: np.full(rows, 7),
    "all different": np.arange,
    "of both signs": lambda rows: np.arange(rows) - rows // 2,
    "at both ends": lambda rows: np.where(np.arange(rows) % 2, 2**63 - 1, -(2**63)) + 0,
    "reversed": lambda rows: np.arange(rows)[::-1],
    "an organ pipe": lambda rows: np.minimum(np.arange(rows), np.arange(rows)[::-1]),
}
STEPS = (1 << 15, 1 << 32, 1 << 44, 2654435761, 0x9E3779B97F4A7C15)


@pytest.mark.parametrize("name", KEYS)
def test_keys_in_patterns_are_numbered(numbering, name):
    check(numbering, KEYS[name](2000).astype(np.int64).view(np.uint64))


@pytest.mark.parametrize("step", STEPS)
def test_keys_in_steps_are_numbered(numbering, step):
    check(numbering, np.arange(2000, dtype=np.uint64) * np.uint64(step))


def test_keys_that_begin_at_the_last_slot_go_on_at_the_first(monkeypatch):
    module = loops("apps.kernels.numbering")
    monkeypatch.setattr(module, "_mixed_word", lambda value: (value << 4) - 1 & 2**64 - 1)
    check(module, np.random.default_rng(0).integers(9, size=50))


# -- sums -----------------------------------------------------------------------------------------


@pytest.fixture
def sums(load):
    return load("apps.kernels.sums")


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
