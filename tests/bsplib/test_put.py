from __future__ import annotations

import numpy as np
import pytest

import bsplib

from .neighbours import right


def test_put_is_invisible_before_sync_and_there_after(bsp):
    x = bsp.zeros(3)
    bsp.sync()
    bsp.put(right(bsp), [1, 2, 3], x)
    before = x.tolist()
    bsp.sync()
    assert (before, x.tolist()) == ([0, 0, 0], [1, 2, 3])


def test_put_copies_the_values_at_the_call(bsp):
    x = bsp.zeros(1000)
    values = np.ones(1000)
    bsp.put(right(bsp), values, x)  # in a send buffer, or staged
    bsp.put(right(bsp), values[:2], x[5:7])  # inline, or in a send buffer
    values[:] = 7
    bsp.sync()
    assert set(x.tolist()) == {1}


def test_a_single_value_is_broadcast_to_a_view(bsp):
    x = bsp.zeros((2, 3))
    bsp.put(right(bsp), 4, x)
    bsp.put(right(bsp), [[5], [6]], x[:, 1:])
    bsp.sync()
    assert x.tolist() == [[4, 5, 5], [4, 6, 6]]


@pytest.mark.procs(1, 2, 4)
@pytest.mark.parametrize("size", [127, 128, 129, 8192, 300_000], ids="n={}".format)
def test_puts_of_any_size_arrive_whole(bsp, size):
    x = bsp.zeros(size)
    bsp.put(right(bsp), np.arange(size) + bsp.pid, x)
    bsp.sync()
    assert (x == np.arange(size) + (bsp.pid - 1) % bsp.nprocs).all()


# -- who writes last --------------------------------------------------------------------


@pytest.mark.every_count
def test_of_puts_to_one_place_that_of_the_highest_pid_stays(bsp):
    x = bsp.zeros(1, int)
    bsp.put(0, bsp.pid + 1, x)
    bsp.sync()
    if bsp.pid == 0:
        assert int(x[0]) == bsp.nprocs


# -- pids -------------------------------------------------------------------------------


@pytest.mark.procs(2)
@pytest.mark.parametrize("kind", [int, np.int32, np.uint8, np.int64])
def test_numpy_integers_serve_as_pids(bsp, kind):
    x = bsp.zeros(1)
    bsp.put(kind(bsp.nprocs - 1), 1, x)
    bsp.sync()
    if bsp.pid == bsp.nprocs - 1:
        assert float(x[0]) == 1


@pytest.mark.procs(1, 4)
@pytest.mark.parametrize("which", ["-1", "last + 1"])
def test_a_put_to_no_process_of_the_group_is_an_error(run, nprocs, which):
    pid = -1 if which == "-1" else nprocs

    def main(bsp):
        bsp.put(pid, 1, bsp.zeros(1))

    with pytest.raises(
        bsplib.ProcessRangeError,
        match=rf"^put: there is no process {pid} among {nprocs} \(0 to {nprocs - 1}\) "
        r"\[process 0, superstep 0, test_put.py:\d+\](\n|$)",
    ) as raised:
        run(main)
    assert isinstance(raised.value, IndexError)


@pytest.mark.procs(2)
@pytest.mark.parametrize("pid", [1.0, "0", None])
def test_a_pid_is_an_integer(run, pid):
    with pytest.raises(bsplib.ProcessRangeError, match=rf"put: {pid!r} is no process; a pid is an"):
        run(lambda bsp: bsp.put(pid, 1, bsp.zeros(1)))


# -- dtypes -----------------------------------------------------------------------------


@pytest.mark.procs(2)
@pytest.mark.parametrize(
    ("values", "dtype", "expected"),
    [
        (np.array([1, 2], np.int32), "f8", [1.0, 2.0]),
        (np.array([1.5, 2.5], np.float64), "f4", [1.5, 2.5]),
        ([1, 2], "c16", [1, 2]),
        ([1, 255], "u1", [1, 255]),
        ([True, False], "i8", [1, 0]),
        (np.array([-1, 2], np.int64), "i1", [-1, 2]),
        (np.array([1.5, -2], np.float64), ">f8", [1.5, -2]),
        ([1.5, 2], "f4", [1.5, 2]),
    ],
)
def test_values_are_cast_to_the_dtype_of_the_array(bsp, values, dtype, expected):
    x = bsp.zeros(2, dtype)
    bsp.put(right(bsp), values, x)
    bsp.sync()
    assert x.tolist() == expected


@pytest.mark.procs(2)
@pytest.mark.parametrize(
    ("values", "dtype", "names"),
    [
        ([1.5], "i8", ("float64", "int64")),
        (np.array([1], np.complex128), "f8", ("complex128", "float64")),
        (np.array([1], np.int64), "u8", ("int64", "uint64")),
        ([2], "?", ("int64", "bool")),
        (np.array([0], np.float64), "?", ("float64", "bool")),
        (["text"], "f8", ("<U4", "float64")),
        (np.array(["2026-01-01"], "M8[D]"), "i8", (r"datetime64\[D\]", "int64")),
    ],
)
def test_values_that_would_change_their_kind_are_an_error_that_names_both_dtypes(
    run, values, dtype, names
):
    def main(bsp):
        bsp.put(0, values, bsp.zeros(1, dtype))

    with pytest.raises(
        bsplib.DtypeError,
        match=rf"^put: values of dtype {names[0]} cannot be cast to dtype {names[1]} .*convert",
    ) as raised:
        run(main)
    assert isinstance(raised.value, TypeError)


# -- nothing to put -----------------------------------------------------------------------


@pytest.mark.procs(2)
@pytest.mark.parametrize(
    "put",
    [
        lambda bsp, x: bsp.put(0, [], x),
        lambda bsp, x: bsp.put(0, [], x[3:3]),
        lambda bsp, x: bsp.put(0, np.zeros((0, 3)), x[1:2]),
        lambda bsp, x: bsp.put(0, [], x, offset=0),
        lambda bsp, x: bsp.put(0, [], x, offset=5),
        lambda bsp, x: bsp.put(0, [], x, at=np.s_[2:2]),
    ],
)
def test_a_put_of_no_elements_does_nothing(bsp, put):
    x = bsp.zeros(5)
    bsp.sync()
    put(bsp, x)  # nothing is pending after it
    assert x.tolist() == [0] * 5


@pytest.mark.procs(2)
@pytest.mark.core
def test_a_put_into_a_view_of_an_array_that_is_empty_only_here_does_nothing(run):
    def main(bsp):
        x = bsp.zeros(bsp.pid)
        bsp.sync()
        if bsp.pid == 0:
            bsp.put(1, [7.0], x, offset=0)  # from now on transfers of x are quick
            bsp.put(0, np.zeros(0), x[...])
        bsp.sync()
        return x.tolist()

    assert run(main) == [[], [7.0]]


@pytest.mark.parametrize("make", ["zeros", "push_reg", "a column"])
def test_a_view_of_another_shape_of_an_array_without_elements_names_it(bsp, make):
    column = np.zeros((1, 0, 3))[..., 1]
    x = bsp.zeros((1, 0)) if make == "zeros" else np.zeros((1, 0)) if make == "push_reg" else column
    if make != "zeros":
        bsp.push_reg(x)
    bsp.sync()
    bsp.put(0, np.zeros((0, 0)), x[:0])
    bsp.put(0, np.zeros((0, 0)), x[1:])  # which begins beyond the array
    got = bsp.get(0, x[:0])
    bsp.sync()
    assert got.shape == (0, 0)


@pytest.mark.procs(2)
@pytest.mark.parametrize(
    "put",
    [
        lambda bsp, x: bsp.put(0, [1, 2], x[3:3]),
        lambda bsp, x: bsp.put(0, 1, x[3:3]),
        lambda bsp, x: bsp.put(0, [1], x[:0]),
        lambda bsp, x: bsp.put(0, 1, x, at=np.s_[3:3]),
        lambda bsp, x: bsp.put(0, [1, 2], x, at=np.s_[5:]),
    ],
)
@pytest.mark.raises(bsplib.BspError, match=r"^put: .*shape \(0,\)")
def test_values_for_an_empty_place_are_an_error(bsp, put):
    x = bsp.zeros(5)
    bsp.sync()
    put(bsp, x)


# -- shapes that do not fit -----------------------------------------------------------------


@pytest.mark.procs(2)
@pytest.mark.parametrize(
    "shape", [(2,), (4,), (3, 1), (1, 1, 3, 3)], ids=lambda shape: "x".join(map(str, shape))
)
@pytest.mark.raises(
    bsplib.BoundsError,
    match=lambda shape: (
        rf"put: values of shape \({shape[0]},.* do not broadcast to the shape \(2, 3\)"
    ),
)
def test_values_that_do_not_broadcast_to_the_view_are_an_error(bsp, shape):
    x = bsp.zeros((2, 3))
    bsp.put(0, np.zeros(shape), x)


# -- transfers that nobody waits for ---------------------------------------------------------


@pytest.mark.raises(
    bsplib.PendingTransferError, match=r"main: 1 transfers? .*pending .*sync before"
)
def test_a_put_that_is_pending_when_main_returns_is_an_error(bsp):
    bsp.put(0, 1, bsp.zeros(1))


def test_a_failed_put_leaves_nothing_behind(bsp):
    x = bsp.zeros(3)
    bsp.sync()
    for wrong in ({"offset": 3}, {"offset": -1}, {"at": 3}, {"at": [0]}):
        with pytest.raises(bsplib.UsageError, match=r"^put: "):
            bsp.put(0, 1, x, **wrong)
    assert x.tolist() == [0, 0, 0]
