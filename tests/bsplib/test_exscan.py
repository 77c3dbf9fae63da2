"""The exclusive prefix: what the processes before this one have."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import bsplib
from bsplib.machine import Machine

ONE_STAGE = Machine("all latency", "made up", g=0.0, l=1e-6)
TWO_STAGES = Machine("all bandwidth", "made up", g=1e-9, l=0.0)
BOTH = pytest.mark.parametrize("machine", [ONE_STAGE, TWO_STAGES], ids=lambda one: one.name)


@pytest.mark.procs(3)
@pytest.mark.parametrize(
    ("values", "op", "expected"),
    [
        ((2, 3, 5), "prod", [1, 2, 6]),
        ((True, False, True), "or", [False, True, True]),
        ((6, 3, 5), "and", [-1, 6, 2]),
        ((True, False, True), "all", [True, True, False]),
        ((2**70, 1, 1), "sum", [0, 2**70, 2**70 + 1]),
        ((0.5, 1.5, 9.0), "sum", [0.0, 0.5, 2.0]),
        (("a", "b", "c"), "sum", ["", "a", "ab"]),
        ((b"a", b"b", b"c"), "sum", [b"", b"a", b"ab"]),
        ((3, 1, 2), "min", [None, 3, 1]),
        ((3, 1, 2), max, [None, 3, 3]),
        (([1], [2], [3]), operator.add, [None, [1], [1, 2]]),
        ((np.int8(1), np.int8(2), np.int8(3)), "sum", [np.int8(0), np.int8(1), np.int8(3)]),
    ],
    ids=str,
)
def test_process_0_has_the_identity_where_there_is_one(run, values, op, expected):
    results = run(lambda bsp: bsp.exscan(values[bsp.pid], op))
    assert results == expected
    assert [*map(type, results)] == [*map(type, expected)]


@pytest.mark.procs(3)
@BOTH
def test_arrays_without_an_identity_give_process_0_none(run, machine):
    def main(bsp):
        got = bsp.exscan(np.array([3, 9, 2, 4]) * (1 - 2 * (bsp.pid % 2)), "max")
        return None if got is None else got.tolist()

    assert run(main, machine=machine) == [None, [3, 9, 2, 4], [3, 9, 2, 4]]


@pytest.mark.procs(3)
@BOTH
def test_the_identity_has_the_dtype_of_the_result(run, machine):
    def main(bsp):
        x = np.array([1, 0, 3, 2], np.uint8)
        return [
            (got.dtype.name, got.tolist())
            for got in (bsp.exscan(x, "and"), bsp.exscan(x, np.logical_and))
        ]

    first = run(main, machine=machine)[0]
    assert first == [("uint8", [255] * 4), ("bool", [True] * 4)]


def test_it_gives_the_positions_of_pieces_of_unequal_size(bsp):
    mine = np.full(bsp.pid + 1, bsp.pid)
    first = bsp.exscan(len(mine))
    whole = bsp.zeros(bsp.allreduce(len(mine)), int)
    bsp.put(0, mine, whole, offset=first)
    bsp.sync()
    if bsp.pid == 0:
        assert whole.tolist() == [pid for pid in range(bsp.nprocs) for _ in range(pid + 1)]


@pytest.mark.lengthy
@pytest.mark.procs(2)
@pytest.mark.raises(bsplib.SyncMismatchError, match="exscan: process 0 is in scan")
def test_a_process_in_a_scan_is_a_mismatch(bsp):
    (bsp.exscan if bsp.pid else bsp.scan)(1)
