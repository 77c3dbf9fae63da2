"""Collectives on single values: the result is Python's for Python's values, numpy's for numpy's."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from bsplib import ShapeError

pytestmark = pytest.mark.procs(1, 3)

BIG = 2**62


def all_results(run, value, *op):
    """Return what reduce, allreduce and scan make of ``value(pid)``; the last for the last pid."""

    def main(bsp):
        x = value(bsp.pid)
        return bsp.reduce(x, *op), bsp.allreduce(x, *op), bsp.scan(x, *op)

    found = run(main)
    assert len({repr(each[1]) for each in found}) == 1
    return found[0][0], found[0][1], found[-1][2]


@pytest.mark.parametrize("size", [1, BIG, 2**63, 2**64, 10**40, -(2**63)])
def test_integers_never_overflow(run, nprocs, size):
    for result in all_results(run, lambda pid: size + pid):
        assert type(result) is int
        assert result == sum(size + pid for pid in range(nprocs))


@pytest.mark.parametrize(
    ("values", "op", "expected"),
    [
        ((2, 3, 4), np.multiply, 24),
        ((2, 3, 4), "prod", 24),
        ((7, 2, 5), "min", 2),
        ((7, 2, 5), np.maximum, 7),
        ((6, 12, 10), "and", 0),
        ((6, 12, 10), "or", 14),
        ((6, 12, 10), "xor", 0),
        ((0.5, 0.25, 1), "sum", 1.75),
        ((True, False, True), "max", True),
        ((True, True, True), "sum", 3),
        ((True, False, True), "all", False),
        ((True, False, False), "any", True),
        ((1, 2, True), "sum", 4),
        ((1 + 2j, 3, 4.0), "sum", 8 + 2j),
        (("ab", "c", "\0"), "sum", "abc\0"),
        ((b"ab", b"c", b"\0"), np.add, b"abc\0"),
        ((12, 18, 27), np.gcd, 3),
        ((3.0, 4.0, 12.0), np.hypot, 13.0),
        ((1, BIG, 10**30), "max", 10**30),
    ],
)
@pytest.mark.procs(3)
def test_values_of_pythons_own_stay_so(run, values, op, expected):
    for result in all_results(run, values.__getitem__, op):
        assert (type(result), result) == (type(expected), expected)


@pytest.mark.procs(3)
def test_a_minimum_with_what_is_no_number_is_no_number_wherever_it_stands(run):
    for place in range(3):
        values = [1.0] * 3
        values[place] = math.nan
        assert all(map(math.isnan, all_results(run, values.__getitem__, "min")))


@pytest.mark.parametrize("kind", [np.int32, np.float32, np.uint8])
def test_numbers_of_numpy_stay_numpys(run, kind):
    for result in all_results(run, kind):
        assert type(result) is kind


def test_a_sum_of_truth_values_of_numpy_is_their_number(run, nprocs):
    for result in all_results(run, lambda pid: np.bool_(pid > 0)):
        assert (type(result), result) == (np.int64, nprocs - 1)


def test_an_array_without_axes_is_a_number_of_numpy(run, nprocs):
    for result in all_results(run, lambda pid: np.array(pid, np.int16)):
        assert (type(result), result) == (np.int16, sum(range(nprocs)))


@pytest.mark.procs(3)
def test_the_result_is_the_same_everywhere_where_kinds_are_mixed(run):
    values = (1, np.float32(0.5), 2)
    for result in all_results(run, values.__getitem__):
        assert result == 3.5


@pytest.mark.procs(3)
def test_other_values_are_combined_as_before(run):
    for result in all_results(run, lambda pid: Fraction(1, pid + 1)):
        assert result == Fraction(11, 6)
    for result in all_results(run, lambda pid: [pid, 2 * pid], "max"):
        assert result.tolist() == [2, 4]


@pytest.mark.procs(3)
@pytest.mark.raises(ShapeError, match=r"allreduce: the shapes of x differ: .*\(2,\)")
def test_a_number_and_an_array_are_of_different_shapes(bsp):
    bsp.allreduce(np.ones(2) if bsp.pid == 1 else 1)


@pytest.mark.procs(2)
def test_a_number_costs_what_it_always_did(record):
    def main(bsp):
        bsp.allreduce(bsp.pid)
        bsp.allreduce(0.5)

    run = record(main)
    assert set(run.traffic["bytes"].tolist()) == {8}
