from __future__ import annotations

import errno
import os

import numpy as np
import pytest

import bsplib

STRUCT = np.dtype([("key", np.int32), ("weight", np.float64)])


@pytest.mark.procs(2)
@pytest.mark.parametrize("shape", [0, 1, 7, (2, 3), [2, 3], (0, 3), (), np.int64(4)], ids=repr)
def test_zeros_have_the_shape_asked_for_and_are_zero(bsp, shape):
    x = bsp.zeros(shape)
    assert x.shape == np.zeros(shape).shape
    assert x.dtype == np.dtype(float)
    assert (x == 0).all()


@pytest.mark.procs(2)
@pytest.mark.parametrize("dtype", [bool, "u1", ">i4", "c16", "f2", "M8[s]", "S5", "U3", STRUCT])
def test_zeros_have_the_dtype_asked_for(bsp, dtype):
    x = bsp.zeros(3, dtype)
    assert x.dtype == np.dtype(dtype)
    assert x.tobytes() == np.zeros(3, dtype).tobytes()


def test_empty_is_registered_like_zeros(bsp):
    x = bsp.empty((2, 2), int)
    bsp.put((bsp.pid + 1) % bsp.nprocs, [[1, 2], [3, bsp.pid]], x)
    bsp.sync()
    assert x.tolist() == [[1, 2], [3, (bsp.pid - 1) % bsp.nprocs]]


@pytest.mark.procs(2)
def test_array_is_a_copy_with_shape_and_dtype_of_the_data(bsp):
    data = np.arange(6, dtype=np.int16).reshape(2, 3)
    x = bsp.array(data)
    x[0, 0] = 99
    if bsp.pid == 0:
        assert (x.tolist(), x.dtype, int(data[0, 0])) == (
            [[99, 1, 2], [3, 4, 5]],
            np.dtype(np.int16),
            0,
        )


@pytest.mark.procs(2)
def test_array_takes_lists_numbers_and_another_dtype(bsp):
    assert bsp.array([1, 2], dtype=np.float32).dtype == np.float32
    assert bsp.array(7).shape == ()
    assert bsp.array([[True], [False]]).tolist() == [[True], [False]]
    assert bsp.array(np.asfortranarray([[1, 2], [3, 4]])).tolist() == [[1, 2], [3, 4]]


def test_arrays_begin_on_cache_lines_and_do_not_overlap(bsp):
    arrays = [bsp.zeros(size, np.uint8) for size in (1, 63, 64, 65, 1000)]
    for number, x in enumerate(arrays):
        x[:] = number
    aligned = all(x.ctypes.data % 64 == 0 for x in arrays)
    assert aligned
    assert all(((x == number).all() for number, x in enumerate(arrays)))


def test_memory_that_was_freed_is_zero_when_it_comes_back(bsp):
    dirty = []
    for size in (10, 1000, 100_000):
        x = bsp.zeros(size)
        x[:] = 1
        bsp.pop_reg(x)
        bsp.sync()
        dirty.append(int(bsp.zeros(size).sum()))
    if bsp.pid == 0:
        assert dirty == [0, 0, 0]


@pytest.mark.procs(2)
@pytest.mark.parametrize(
    ("primitive", "of"),
    [
        ("zeros", (3, object)),
        ("empty", (3, object)),
        ("array", ([None, "text"],)),
        ("zeros", (3, [("n", int), ("o", object)])),
    ],
)
@pytest.mark.raises(
    bsplib.DtypeError, match=lambda primitive: rf"^{primitive}: dtype .* holds .*send them instead"
)
def test_python_objects_cannot_be_allocated(bsp, primitive, of):
    getattr(bsp, primitive)(*of)


@pytest.mark.procs(2)
@pytest.mark.parametrize("shape", [-1, (2, -1)])
@pytest.mark.raises(ValueError, match=r"negative")
def test_a_negative_size_is_an_error(bsp, shape):
    bsp.zeros(shape)


OWN_MEMORY = pytest.mark.not_on_mpi("arrays and buffers are not in /dev/shm there")


@pytest.fixture
def small_shared_memory(monkeypatch):
    """Returns a function that lets /dev/shm be full after some bytes of a run, in every process."""

    def limit(nbytes):
        given = os.posix_fallocate
        left = [nbytes]

        def fallocate(descriptor, start, length):
            if length > left[0]:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            left[0] -= length
            given(descriptor, start, length)

        monkeypatch.setattr(os, "posix_fallocate", fallocate)

    return limit


@OWN_MEMORY
@pytest.mark.real_processes
@pytest.mark.procs(1, 2, 4)
def test_full_shared_memory_is_an_error_that_says_what_is_needed_and_free(run, small_shared_memory):
    def main(bsp):
        bsp.zeros(1000)
        bsp.zeros(1 << 20)

    small_shared_memory(1 << 20)
    with pytest.raises(
        bsplib.OutOfSharedMemoryError,
        match=r"\d{7} bytes more are needed and /dev/shm has \d+ free.*"
        r"\[process 0, superstep 0, test_allocation.py:\d+\]",
    ):
        run(main)


@pytest.mark.procs(1, 2)
@pytest.mark.parametrize("size", [2**50, 2**60, (2**40, 2**40)])
def test_an_array_larger_than_any_memory_is_an_error_on_every_backend(run, size):
    with pytest.raises(
        bsplib.OutOfSharedMemoryError,
        match=r"memory is full: \d+ bytes more are needed.*; use smaller arrays.*\[process 0, sup",
    ):
        run(lambda bsp: bsp.zeros(size))


@OWN_MEMORY
@pytest.mark.real_processes
@pytest.mark.procs(1, 2)
def test_what_fits_to_the_last_page_is_given(run, small_shared_memory):
    def main(bsp):
        x = bsp.zeros(100_000, np.uint8)  # less than what would be reserved in advance
        x[:] = 1
        return int(x.sum())

    small_shared_memory(250_000)
    assert run(main)[0] == 100_000


@OWN_MEMORY
@pytest.mark.real_processes
@pytest.mark.procs(2, 4)
@pytest.mark.parametrize("transfer", ["put", "send", "get"])
def test_a_transfer_that_does_not_fit_into_shared_memory_is_an_error(
    run, small_shared_memory, transfer
):
    def main(bsp):
        mine = np.ones(1 << 18)
        bsp.push_reg(mine)
        bsp.sync()
        if transfer == "put":
            bsp.put(0, mine, mine)
        elif transfer == "send":
            bsp.send(0, mine)
        else:
            bsp.get(0, mine)
        bsp.sync()

    small_shared_memory(1 << 20)
    with pytest.raises(bsplib.OutOfSharedMemoryError, match=r"needed .* free.*test_allocation.py"):
        run(main)


@OWN_MEMORY
@pytest.mark.real_processes
@pytest.mark.procs(1, 8)
def test_a_run_that_cannot_even_begin_says_that_shared_memory_is_full(run, small_shared_memory):
    small_shared_memory(4096)
    with pytest.raises(bsplib.OutOfSharedMemoryError, match=r"shared memory is full"):
        run(lambda bsp: None)


@OWN_MEMORY
@pytest.mark.real_processes
@pytest.mark.procs(1, 2)
def test_a_program_may_go_on_after_memory_was_refused(run, small_shared_memory):
    def main(bsp):
        try:
            bsp.zeros(1 << 20)
        except bsplib.OutOfSharedMemoryError:
            x = bsp.zeros(10)
        bsp.put(0, np.ones(10), x)
        bsp.sync()
        return int(x.sum())

    small_shared_memory(1 << 20)
    assert run(main)[0] == 10


# -- zeros_like and full ------------------------------------------------------------------------


@pytest.mark.procs(1, 3)
@pytest.mark.parametrize("dtype", [None, np.int16], ids=["its dtype", "another one"])
def test_zeros_like_has_the_shape_and_dtype_of_an_array(run, dtype):
    def main(bsp):
        model = np.ones((bsp.pid + 1, 2), np.float32)
        x = bsp.zeros_like(model, dtype)
        bsp.put(bsp.nprocs - 1, bsp.pid + 1, x, at=np.s_[bsp.pid, 0])  # registered at once
        bsp.sync()
        return x.tolist(), x.dtype.name

    *others, last = run(main)
    name = "float32" if dtype is None else "int16"
    assert others == [([[0, 0]] * (pid + 1), name) for pid in range(len(others))]
    assert last == ([[pid + 1, 0] for pid in range(len(others) + 1)], name)


@pytest.mark.procs(1)
def test_zeros_like_takes_what_numpy_makes_an_array_of(run):
    assert run(lambda bsp: bsp.zeros_like([[1, 2, 3]]).tolist()) == [[[0, 0, 0]]]


@pytest.mark.procs(1, 3)
@pytest.mark.parametrize(
    ("shape", "value", "dtype", "expected"),
    [
        (3, 7, None, np.full(3, 7)),
        ((2, 3), 1.5, None, np.full((2, 3), 1.5)),
        ((2, 3), [1, 2, 3], float, np.array([[1.0, 2, 3]] * 2)),
        (2, "ab", None, np.array(["ab", "ab"])),
        (2, 3, np.uint8, np.full(2, 3, np.uint8)),
        (0, True, None, np.full(0, True)),
    ],
)
def test_full_has_one_value_everywhere(bsp, shape, value, dtype, expected):
    x = bsp.full(shape, value, dtype)
    got = bsp.get(0, x)
    bsp.sync()
    assert (got == expected).all()
    assert x.shape == expected.shape
    assert x.dtype == expected.dtype


@pytest.mark.procs(1, 3)
@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ((3, [1, 2]), bsplib.ShapeError, r"full: fill_value has shape \(2,\).*shape \(3,\)"),
        ((3.5, 1), bsplib.ShapeError, "full: shape is 3.5; it is an integer"),
        ((-1, 1), bsplib.ShapeError, "full: shape .* negative"),
        ((3, 1.5, int), bsplib.DtypeError, "full: values of dtype float64 cannot be cast to"),
        ((3, "abc", "U2"), bsplib.DtypeError, "full: .* would be cut"),
        ((3, None), bsplib.DtypeError, "full: dtype object holds Python objects"),
        ((3, 1, "nothing"), bsplib.DtypeError, "full: 'nothing' is no dtype"),
    ],
)
def test_full_says_what_is_wrong(run, arguments, kind, words):
    with pytest.raises(kind, match=words):
        run(lambda bsp: bsp.full(*arguments))
