"""Read-only input in memory that all processes of a run map: bsplib.shared."""

from __future__ import annotations

import functools
import gc
import os
from pathlib import Path

import numpy as np
import pytest

import bsplib

STRUCT = np.dtype([("key", np.int32), ("name", "U3")])

ARRAYS = {
    "numbers": np.arange(10_000),
    "a matrix in another order": np.asfortranarray(np.arange(12.0).reshape(3, 4)),
    "with gaps": np.arange(24).reshape(4, 6)[::2, ::-2],
    "records": np.array([(1, "a"), (2, "bcd")], STRUCT),
    "without axes": np.array(3.5),
    "empty": np.empty((3, 0)),
}
METHODS = pytest.mark.parametrize("start_method", ["fork", "forkserver", "spawn"])


def inode(array):
    """Which file the memory of an array belongs to; None if to no file."""
    address = array.__array_interface__["data"][0]
    with open("/proc/self/maps", encoding="utf-8") as maps:
        for line in maps:
            low, _, high = line.split(" ", 1)[0].partition("-")
            if int(low, 16) <= address < int(high, 16):
                return int(line.split()[4])
    return None


def looks(bsp, x):
    return x.tolist(), x.dtype == ARRAYS["records"].dtype, x.flags.writeable, type(x) is np.ndarray


@pytest.mark.procs(1, 3)
@pytest.mark.parametrize("name", ARRAYS)
def test_every_process_reads_the_values(run, name):
    x = bsplib.shared(ARRAYS[name])
    expected = ARRAYS[name].tolist(), ARRAYS[name].dtype == STRUCT, False, True
    assert all(result == expected for result in run(looks, x))


def where(bsp, x, view, more):
    return inode(x), inode(view), view.tolist(), inode(more["x"])


@METHODS
@pytest.mark.slow
def test_no_process_has_a_copy(start_method):
    x = bsplib.shared(np.arange(100_000))
    view = x[10:20][::-3]
    results = bsplib.run(where, x, view, {"x": x}, nprocs=2, start_method=start_method)
    assert results == [(inode(x), inode(x), [19, 16, 13, 10], inode(x))] * 2
    assert inode(x) not in (0, None)


@pytest.mark.slow
@METHODS
def test_a_function_may_hold_a_shared_array(start_method):
    x = bsplib.shared(np.arange(1000))
    main = functools.partial(lambda y, bsp: (inode(x), inode(y)), x)
    results = bsplib.run(main, nprocs=2, start_method=start_method)
    assert results == [(inode(x), inode(x))] * 2


def test_the_processes_of_a_pool_map_an_array_that_was_made_later():
    with bsplib.Pool(2) as pool:
        assert pool.run(lambda bsp: bsp.pid) == [0, 1]
        x = bsplib.shared(np.arange(1000))
        assert pool.run(where, x, x[1:2], {"x": x}) == [(inode(x), inode(x), [1], inode(x))] * 2


@pytest.mark.procs(1, 3)
def test_writing_into_a_shared_array_is_an_error(run):
    def main(bsp, x):
        x[0] = 1

    with pytest.raises(ValueError, match="read-only"):
        run(main, bsplib.shared(np.zeros(3)))


def test_the_caller_cannot_write_either_and_the_original_stays():
    original = np.arange(3)
    x = bsplib.shared(original)
    original[0] = 7
    assert x.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="read-only"):
        x[0] = 1
    with pytest.raises(ValueError, match="WRITEABLE"):
        x.flags.writeable = True


def test_nobody_can_write_into_the_file_of_a_shared_array():
    from bsplib.running.shared import _memory_of  # noqa: PLC0415

    x = bsplib.shared(np.arange(3))
    files = [Path("/proc/self/fd", number) for number in os.listdir("/proc/self/fd")]
    open_files = [file for file in files if file.is_symlink()]
    mine = [file for file in open_files if _memory_of(x).name in os.readlink(file)]
    assert mine
    for file in mine:
        with pytest.raises(PermissionError):
            os.pwrite(int(file.name), b"7", 0)


def test_what_is_shared_already_is_not_copied():
    x = bsplib.shared(np.arange(10))
    assert bsplib.shared(x) is x
    view = x[3:]
    assert bsplib.shared(view) is view


@pytest.mark.procs(1, 3)
def test_it_can_be_put_and_returned(run):
    def main(bsp, x):
        y = bsp.zeros(3)
        bsp.put((bsp.pid + 1) % bsp.nprocs, x, y)
        bsp.sync()
        return y.tolist(), x

    for y, x in run(main, bsplib.shared(np.array([1.0, 2.0, 3.0]))):
        assert y == x.tolist() == [1.0, 2.0, 3.0]


def test_its_memory_is_freed_with_the_array():
    gc.collect()  # of what other tests have left
    descriptors = os.listdir("/proc/self/fd")
    x = bsplib.shared(np.zeros(1 << 20))
    assert len(os.listdir("/proc/self/fd")) > len(descriptors)
    number = inode(x)
    del x
    gc.collect()
    assert os.listdir("/proc/self/fd") == descriptors
    with open("/proc/self/maps", encoding="utf-8") as maps:
        assert str(number) not in maps.read().split()


def test_objects_cannot_be_shared():
    with pytest.raises(bsplib.DtypeError, match="shared: dtype object holds Python objects"):
        bsplib.shared([None, {}])


def test_more_than_there_is_cannot_be_shared():
    huge = np.broadcast_to(np.float64(0), 1 << 50)
    with pytest.raises(bsplib.OutOfSharedMemoryError, match=f"shared: {1 << 53} bytes are needed"):
        bsplib.shared(huge)


@pytest.mark.fresh
@pytest.mark.lengthy
def test_a_shared_array_that_is_dropped_before_its_run_is_an_error():
    def main(bsp, make):
        return make()

    x = bsplib.shared(np.arange(3))
    from bsplib.running.shared import _found, _memory_of  # noqa: PLC0415

    memory = _memory_of(x)
    place = memory.process, memory.name
    del memory
    del x
    gc.collect()
    late = functools.partial(_found, *place, (3,), np.dtype(int), 0, (8,))
    with pytest.raises(bsplib.StartError, match=r"shared: .*keep the array until the run has end"):
        bsplib.run(main, late, nprocs=2)


PROGRAM = """
import sys

import numpy as np

import bsplib


def own_bytes():
    with open("/proc/self/status", encoding="utf-8") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("RssAnon"))


def main(bsp, x):
    return float(x[bsp.pid :: 1 << 16].sum()), own_bytes()


if __name__ == "__main__":
    size = int(sys.argv[2])
    x = bsplib.shared(np.broadcast_to(np.float64(1), size >> 3))
    results = bsplib.run(main, x, nprocs=4, start_method=sys.argv[1])
    print(min(value for value, _ in results) > 0)
    print(max(own_bytes(), *(nbytes for _, nbytes in results)) < size // 2)
"""


@pytest.mark.slow
@pytest.mark.parametrize("method", ["forkserver", "spawn"])
def test_a_large_input_is_not_copied_for_any_process(execute, method):
    done = execute(PROGRAM, method, str(1 << 28))
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\nTrue\n", "")
