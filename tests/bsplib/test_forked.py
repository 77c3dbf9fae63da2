"""A group and a pool belong to the process in which they were made, and not to its children."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest

import bsplib
from bsplib.recording.trace import read_trace

from .random_programs.lives import PRIMITIVES, in_child
from .test_ended_groups import keep

OF_ANOTHER = r"this process was forked from the one that runs main, to which the group belongs"


@pytest.mark.procs(1, 2)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if number % 9 == 0 else pytest.mark.slow)
        for number, name in enumerate(PRIMITIVES)
    ],
)
def test_a_child_that_main_has_forked_cannot_use_the_group(bsp, name):
    x = keep(bsp)[1]
    said = in_child(lambda: PRIMITIVES[name](bsp, x))
    bsp.put(0, 7.0, x, offset=1)
    bsp.sync()
    assert said.startswith(f"PartitionError: {name}: this group cannot be used: {OF_ANOTHER}")
    assert (x[1], bsp.qsize()) == (0 if bsp.pid else 7, (0, 0))


@pytest.mark.procs(2)
@pytest.mark.real_processes
@pytest.mark.parametrize("profile", [False, True])
def test_a_child_that_comes_to_the_end_of_main_reports_nothing(run, tmp_path, capfd, profile):
    def main(bsp):
        os_pid = os.fork() if bsp.pid else -1
        if os_pid > 0:
            assert os.waitstatus_to_exitcode(os.waitpid(os_pid, 0)[1]) == 1
        if os_pid:
            bsp.sync()
        return bsp.pid

    options = {"profile": tmp_path / "trace.bsp"} if profile else {}
    assert run(main, **options) == [0, 1]
    assert "main: this group cannot be used: this process was forked" in capfd.readouterr().err
    if profile:
        assert read_trace(tmp_path / "trace.bsp").runs[0].complete


def test_processes_of_a_run_inside_a_run_have_groups_of_their_own():
    def inner(bsp):
        return bsp.allreduce(1)

    def outer(bsp):
        found = bsplib.run(inner, nprocs=2, backend="shm")
        return found, bsp.allreduce(1)

    assert bsplib.run(outer, nprocs=2, backend="sim") == [([2, 2], 2)] * 2


# -- pools -----------------------------------------------------------------------------------------


def double(bsp, n):
    return 2 * n


@pytest.mark.parametrize("where", ["shm", "sim"])
def test_a_child_cannot_use_the_pool_of_its_parent(where):
    with bsplib.Pool(2, backend=where) as pool:
        assert pool.run(double, 1) == [2, 2]
        for use in (lambda: pool.run(double, 4), lambda: pool.map(abs, [1])):
            assert in_child(use).startswith(
                "UsageError: this pool belongs to the process that made it, and this one was forked"
            )
        assert in_child(pool.close) == "None"
        assert pool.run(double, 5) == [10, 10]


def test_a_child_leaves_the_block_of_its_parents_pool_and_ends_nothing():
    with bsplib.Pool(2, backend="shm") as pool:

        def leave():
            with pool:
                raise KeyError("gone")

        assert in_child(leave).startswith("UsageError: this pool belongs to")
        assert in_child(lambda: pool.__exit__(None, None, None)) == "None"
        assert pool.run(double, 5) == [10, 10]


def test_a_child_that_is_forked_during_a_run_of_another_thread_does_not_wait_for_it():
    begun, told = os.pipe(), os.pipe()
    with bsplib.Pool(2, backend="shm", start_method="fork") as pool:

        def main(bsp):
            if bsp.pid == 0:
                os.write(begun[1], b"1")
                os.read(told[0], 1)
            return bsp.pid

        found = []
        pool.run(double, 1)
        thread = threading.Thread(target=lambda: found.append(pool.run(main)))
        thread.start()
        os.read(begun[0], 1)
        said = in_child(pool.close)
        os.write(told[1], b"1")
        thread.join()
        assert (said, found) == ("None", [[0, 1]])


def test_a_child_makes_a_pool_of_its_own():
    def own():
        with bsplib.Pool(2, backend="shm") as pool:
            return pool.run(double, 4)

    with bsplib.Pool(2, backend="shm") as pool:
        assert in_child(own) == "[8, 8]"
        assert pool.run(double, 5) == [10, 10]


@pytest.mark.lengthy
def test_a_function_of_a_map_that_forks_loses_no_items():
    def function(item):
        if not os.fork():
            return 0  # and not os._exit
        os.wait()
        return int(np.square(item))

    assert bsplib.map(function, range(8), nprocs=2, backend="shm") == [n * n for n in range(8)]
