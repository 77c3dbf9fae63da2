"""What the processes of a pool keep between runs, and what the next run must not see of it."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import bsplib
from bsplib.backends.shm.child import KeptPort
from bsplib.backends.shm.context import ProcessContext

pytestmark = pytest.mark.real_processes

# Functions that a pool is given stand inside the tests: see test_pool.py.


@pytest.fixture
def pool():
    with bsplib.Pool(nprocs=3, start_method="fork") as made:
        yield made


def some_supersteps(bsp, number):
    for _ in range(number):
        bsp.sync()


# -- groups and ports --------------------------------------------------------------------------


@pytest.mark.parametrize("with_oblsync", [False, True])
def test_a_death_in_a_later_run_names_the_superstep_of_that_run(pool, with_oblsync):
    """After an oblsync, the next run of the pool has a new root group."""

    def ends_a_superstep(bsp):
        bsp.oblsync(0) if with_oblsync else bsp.sync()

    def dies(bsp):
        bsp.sync()
        bsp.sync()
        if bsp.pid == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        bsp.sync()

    pool.run(some_supersteps, 7)
    pool.run(ends_a_superstep)
    with pytest.raises(bsplib.ProcessDiedError, match=r"^process 2 was .* in superstep 2"):
        pool.run(dies)


def test_partitions_of_one_process_alone_do_not_mislead_the_next_run(pool):
    """Nothing is posted in its sub-groups, so that the others do not notice."""

    def alone(bsp, number):
        if bsp.pid == 0:
            for _ in range(number):
                with bsp.partition([1, 3]):
                    pass
        bsp.sync()

    def together(bsp):
        with bsp.partition([2, 3]) as sub:
            first = sub.allgather(bsp.pid)
        with bsp.partition([1, 3]) as sub:
            return first, sub.allgather(bsp.pid)

    for number in (3, 1, 5):
        pool.run(alone, number)
        expected = [([0, 1], [0]), ([0, 1], [1, 2]), ([2], [1, 2])]
        assert pool.run(together) == expected


@pytest.mark.lengthy
def test_late_posts_in_the_subgroups_of_many_runs_use_up_no_blocks():
    """Often a process leaves a sub-group only after others had looked for the last time."""

    def main(bsp):
        with bsp.partition([bsp.nprocs]) as sub:
            sub.oblsync(0)  # no process waits for the others

    with bsplib.Pool(2, start_method="fork") as pool:
        for _ in range(400):
            pool.run(main)


def test_a_later_run_sees_no_transfer_that_the_last_superstep_of_a_run_has_left(pool):
    def leaves(bsp, size):
        x = bsp.zeros(size)
        bsp.sync()
        bsp.put(0, np.ones(size), x)
        bsp.send(0, np.ones(size))
        bsp.sync()  # process 0 has messages that it never reads

    def looks(bsp, size):
        before = bsp.qsize()
        x = bsp.zeros(size)
        bsp.sync()
        return before, bsp.qsize(), float(x.sum())

    for size in (1, 1000, 100_000):
        pool.run(leaves, size)
        assert pool.run(looks, size) == [((0, 0), (0, 0), 0.0)] * 3


def test_random_streams_differ_from_run_to_run_and_follow_the_seed_of_the_caller(pool):
    def draw(bsp):
        return random.random(), float(np.random.random())

    np.random.seed(5)  # so that it is imported here
    several = []
    for _ in range(2):
        random.seed(5)
        np.random.seed(5)
        several.append([pool.run(draw), pool.run(draw)])
    assert several[0] == several[1]
    numbers = [number for run in several[0] for process in run for number in process]
    assert len(set(numbers)) == len(numbers)


def test_the_time_of_each_run_begins_with_that_run(pool):
    def main(bsp):
        return time.perf_counter() - bsp.time()

    for _ in range(3):
        before = time.perf_counter()
        assert min(pool.run(main)) >= before


# -- reports ----------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [(0, 0, 0), (300, 0, 0), (0, 300_000, 0), (300_000,) * 3])
def test_results_of_every_size_come_from_each_process(pool, sizes):
    def main(bsp, sizes):
        return bytes([bsp.pid]) * sizes[bsp.pid]

    assert pool.run(main, sizes) == [bytes([pid]) * size for pid, size in enumerate(sizes)]


def test_a_result_is_not_lost_if_its_process_ends_before_others_have_reported(monkeypatch):
    begin_anew = KeptPort.begin_anew

    def ends_in_the_first_run(root):
        if root._context.pid == 0 and not root._context.runs:
            os._exit(3)
        begin_anew(root)

    monkeypatch.setattr(KeptPort, "begin_anew", ends_in_the_first_run)

    def main(bsp):
        time.sleep(0.05 * bsp.pid)
        return bsp.pid

    with bsplib.Pool(3, start_method="fork") as pool:
        assert pool.run(main) == [0, 1, 2]
        with pytest.raises(bsplib.ProcessDiedError, match=r"^process 0 exited with status 3"):
            pool.run(main)
        monkeypatch.undo()
        assert pool.run(main) == [0, 1, 2]


HAS_BEGUN_ANEW = multiprocessing.Event()


def fails_in_a_group(bsp):
    """Process 1 fails in a group in which process 0 goes on."""
    with bsp.partition([bsp.nprocs]) as sub:
        sub.sync()
        with sub.partition([sub.nprocs]) as inner:
            inner.sync()
        if sub.pid == 1:
            raise ValueError("the error of the program")
        HAS_BEGUN_ANEW.wait(0.2)
        sub.sync()


def test_a_process_that_fails_gives_back_nothing_while_others_are_in_the_run(monkeypatch):
    begin_anew = ProcessContext.begin_anew

    def noted_begin_anew(self):
        begin_anew(self)
        HAS_BEGUN_ANEW.set()

    monkeypatch.setattr(ProcessContext, "begin_anew", noted_begin_anew)
    with bsplib.Pool(2) as pool, pytest.raises(ValueError, match="the error of the program"):
        pool.run(fails_in_a_group)
    assert not HAS_BEGUN_ANEW.is_set()


# -- streams and checks -----------------------------------------------------------------------

PRINTS = """
import io, sys
import bsplib

def main(bsp, text):
    if bsp.pid == 1:
        print(text, "and", end=" ")
        print("more", end="")

def replaces(bsp):
    sys.stdout = io.StringIO()
    print("not seen")

with bsplib.Pool(3) as pool:
    pool.run(main, "first")
    pool.run(replaces)
    pool.run(main, "second")
"""


@pytest.mark.lengthy
def test_each_run_prints_what_it_has_begun_to_the_stream_of_its_process():
    done = subprocess.run(
        [sys.executable, "-c", PRINTS], stdout=subprocess.PIPE, check=True, text=True
    )
    assert done.stdout == "first and moresecond and more"
