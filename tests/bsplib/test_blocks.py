"""Collectives that join arrays along an axis, or cut them into blocks."""

from __future__ import annotations

import numpy as np
import pytest

import bsplib


def piece(pid, axis):
    """An array whose length along one axis is that of no other process."""
    shape = [2, 3]
    shape[axis] = pid + 1
    return np.arange(np.prod(shape)).reshape(shape) + 100 * pid


def whole(rows, columns=4):
    return np.arange(rows * columns).reshape(rows, columns)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_gather_joins_arrays_on_the_root(run, nprocs, axis):
    root = nprocs - 1
    expected = np.concatenate([piece(pid, axis) for pid in range(nprocs)], axis)
    *others, got = run(lambda bsp: bsp.gather(piece(bsp.pid, axis), bsp.nprocs - 1, axis=axis))
    assert others == [None] * root
    assert np.array_equal(got, expected)
    assert got.dtype == expected.dtype


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_allgather_joins_arrays_everywhere(run, nprocs, axis):
    expected = np.concatenate([piece(pid, axis) for pid in range(nprocs)], axis)
    results = run(lambda bsp: bsp.allgather(piece(bsp.pid, axis), axis=axis))
    assert [np.array_equal(got, expected) for got in results] == [True] * nprocs


@pytest.mark.parametrize(("rows", "axis"), [(12, 0), (5, 0), (2, 0), (0, 0), (5, 1), (5, -1)])
def test_scatter_cuts_an_array_as_array_split_does(run, nprocs, rows, axis):
    def main(bsp):
        x = whole(rows) if bsp.pid == 0 else None
        return bsp.scatter(x, axis=axis)

    expected = np.array_split(whole(rows), nprocs, axis)
    results = run(main)
    assert [got.tolist() for got in results] == [block.tolist() for block in expected]
    assert [got.shape for got in results] == [block.shape for block in expected]


def test_alltoall_makes_blocks_of_rows_into_blocks_of_columns_and_back(bsp):
    rows = np.array_split(whole(7, 5), bsp.nprocs)[bsp.pid]
    columns = bsp.alltoall(rows, axis=(1, 0))
    assert columns.tolist() == np.array_split(whole(7, 5), bsp.nprocs, 1)[bsp.pid].tolist()
    assert (
        bsp.alltoall(columns, axis=(0, 1)).tolist()
        == np.array_split(whole(7, 5), bsp.nprocs, 0)[bsp.pid].tolist()
    )


def test_lists_are_joined_as_the_arrays_that_they_make(run, nprocs):
    got = run(lambda bsp: bsp.allgather([bsp.pid, -1], axis=0).tolist())
    assert got == [[value for pid in range(nprocs) for value in (pid, -1)]] * nprocs


@pytest.mark.procs(2, 3)
def test_dtypes_are_promoted(run):
    def main(bsp):
        x = np.array([1], [np.int8, np.float64, np.int16][bsp.pid])
        text = np.array(["a" * (bsp.pid + 1)])
        return bsp.allgather(x, axis=0).dtype.name, bsp.allgather(text, axis=0).tolist()

    results = run(main)
    assert results == [("float64", ["a" * (pid + 1) for pid in range(len(results))])] * len(results)


@pytest.mark.procs(1, 3)
def test_what_they_return_is_the_callers_own(bsp):
    x = np.ones((2, 2))
    for got in (
        bsp.gather(x, axis=0),
        bsp.allgather(x, axis=1),
        bsp.scatter(np.ones((bsp.nprocs, 2)), axis=0),
        bsp.alltoall(x, axis=0),
    ):
        if got is not None:
            got[...] = 5
    bsp.sync()
    assert x.sum() == 4.0


@pytest.mark.procs(3)
@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda bsp: bsp.gather(np.ones(2), axis=1), "Shape", r"gather: .*\(2,\) has no axis 1"),
        (lambda bsp: bsp.allgather(3, axis=0), "Shape", r"allgather: .*shape \(\) has no axis 0"),
        (lambda bsp: bsp.gather([1], axis=0.5), "Usage", "gather: axis is 0.5; it is an integer"),
        (lambda bsp: bsp.scatter({}, axis=0), "Dtype", "scatter: x is no array of numbers"),
        (lambda bsp: bsp.alltoall([1, 2, 3], axis=(0, 1)), "Shape", "alltoall: .* no axis 1"),
        (lambda bsp: bsp.alltoall([1, 2, 3], axis=(0, None)), "Usage", "alltoall: axis is"),
        (
            lambda bsp: bsp.gather(np.ones((2, 1 + bsp.pid // 2)), axis=0),
            "Shape",
            r"gather: .* along axis 0: \(2, 1\) on processes 0 to 1; \(2, 2\) on process 2",
        ),
        (
            lambda bsp: (
                bsp.allgather(
                    np.array(["M", "i"][: 1 + bsp.pid], "U1" if bsp.pid else "M8[s]"), axis=0
                )
                if bsp.pid
                else bsp.allgather(np.array(["2001-01-01"], "M8[s]"), axis=0)
            ),
            "Dtype",
            r"allgather: blocks of these dtypes cannot be joined: datetime64\[s\] on process 0",
        ),
    ],
    ids=range(8),
)
def test_a_wrong_use_is_an_error(run, call, kind, words):
    with pytest.raises(getattr(bsplib, f"{kind}Error"), match=words):
        run(call)
