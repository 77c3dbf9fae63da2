"""Large arrays that come in messages: their memory is the reader's, as if it had been copied."""

from __future__ import annotations

import gc
import os
from types import SimpleNamespace

import numpy as np
import pytest

import bsplib
from bsplib.backends.shm.joining import JoinedPort
from bsplib.backends.shm.segment import Segment
from bsplib.core.meeting import LARGE

from .poison import PoisonError
from .scheduled import defects

SIZE = LARGE // 8
"""Elements of an array that its reader may keep."""


def values(pid, turn, size=SIZE):
    return np.arange(size, dtype=float) + 1e6 * pid + 1e9 * turn


def take(bsp, way):
    """Return the array of the only message."""
    if way == "move":
        return bsp.move()
    [(_, _, array)] = bsp.messages()
    return array


@pytest.mark.parametrize("way", ["move", "messages"])
def test_what_was_taken_stays_as_long_as_it_or_a_view_of_it_lives(bsp, way):
    """Some arrays live for all turns, and some only in a part of them."""
    kept, views = [], []
    for turn in range(8):
        source = values(bsp.pid, turn)
        bsp.send((bsp.pid + 1) % bsp.nprocs, source)
        source[:] = -1.0
        bsp.sync()
        array = take(bsp, way)
        array += 0.5  # it can be written
        if turn % 2:
            kept.append((turn, array))
        else:
            views.append((turn, array[turn::7]))
        del array
        if turn == 5:
            kept.clear()
    left = (bsp.pid - 1) % bsp.nprocs
    assert (
        [np.array_equal(array, values(left, turn) + 0.5) for turn, array in kept]
        + [np.array_equal(array, (values(left, turn) + 0.5)[turn::7]) for turn, array in views]
    ) == [True] * 5


def test_what_was_taken_can_be_registered_and_written_by_others(run, nprocs):
    def main(bsp):
        right = (bsp.pid + 1) % bsp.nprocs
        bsp.send(right, values(bsp.pid, 0))
        bsp.sync()
        x = bsp.move()
        bsp.push_reg(x)
        bsp.sync()
        for turn in range(3):
            bsp.put(right, [float(turn)], x, offset=turn)
            bsp.hpput(right, values(bsp.pid, 3), x)
            bsp.sync()
        got = bsp.get(right, x)
        bsp.sync()
        bsp.pop_reg(x)
        bsp.send(right, values(bsp.pid, 1))
        bsp.sync()
        return np.array_equal(x[3:], values((bsp.pid - 1) % bsp.nprocs, 3)[3:]), got[5:7].tolist()

    got = [values(pid, 3, 7)[5:].tolist() for pid in range(nprocs)]
    assert run(main) == [(True, each) for each in got]


def test_what_was_taken_in_a_sub_group_outlives_it(bsp):
    found = []
    for turn in range(4):
        with bsp.split(0) as sub:
            sub.send((sub.pid + 1) % sub.nprocs, values(sub.pid, turn))
            sub.sync()
            found.append(sub.move())
        bsp.zeros(SIZE)[:] = -1.0
        bsp.sync()
    left = (bsp.pid - 1) % bsp.nprocs
    assert [np.array_equal(array, values(left, turn)) for turn, array in enumerate(found)] == [
        True
    ] * 4


def test_what_was_taken_outlives_a_run_of_a_pool():
    def first(bsp):
        bsp.send(1 - bsp.pid, values(bsp.pid, 1))
        bsp.sync()
        gc.kept_by_a_test = bsp.move()  # a module of the process, which later runs find again

    def later(bsp):
        for turn in range(3):
            bsp.zeros(SIZE)[:] = -1.0
            bsp.send(1 - bsp.pid, values(bsp.pid, turn))
            bsp.sync()
            bsp.move()
        return np.array_equal(gc.kept_by_a_test, values(1 - bsp.pid, 1))

    def last(bsp):
        del gc.kept_by_a_test
        return held(bsp)

    with bsplib.Pool(2) as pool:
        pool.run(first)
        assert [pool.run(later) for _ in range(3)] == [[True] * 2] * 3
        pool.run(last)
        assert pool.run(held) == [0, 0]


def held(bsp):
    """Return how many payloads others keep of what this process has sent in earlier runs."""
    bsp.zeros(1)
    return len(bsp._port._context.heap._kept)


@pytest.mark.lengthy
def test_memory_that_readers_have_dropped_is_used_again():
    def main(bsp):
        used = []
        for superstep in range(60):
            bsp.send(1 - bsp.pid, values(bsp.pid, superstep))
            bsp.sync()
            array = bsp.move()
            assert array.base is not None
            del array
            if superstep in (10, 59):
                used.append(os.fstat(bsp._port._segment.descriptor).st_blocks)
        return used

    for before, after in bsplib.run(main, nprocs=2):
        assert after == before


def test_readers_get_copies_while_shared_memory_is_short(monkeypatch):
    monkeypatch.setattr(Segment, "is_short", lambda _: True)

    def main(bsp):
        bsp.send(1 - bsp.pid, values(bsp.pid, 0))
        bsp.sync()
        array = bsp.move()
        return array.flags.owndata, np.array_equal(array, values(1 - bsp.pid, 0))

    assert bsplib.run(main, nprocs=2, start_method="fork") == [(True, True)] * 2


def test_memory_is_short_when_more_than_a_quarter_is_in_use(monkeypatch):
    segment = Segment.outside_files(1)
    assert not segment.is_short()  # it is in no file system, which has no limit
    for free, short in [(76, False), (74, True)]:
        found = SimpleNamespace(f_bavail=free, f_blocks=100)
        monkeypatch.setattr(os, "fstatvfs", lambda _, found=found: found)
        assert segment.is_short() == short
    segment.close()


def test_ranks_keep_no_memory_of_a_run_which_they_outlive():
    assert JoinedPort.keep(None, (1, 0, 8 * SIZE)) is None


def test_a_process_keeps_no_memory_of_its_own_messages():
    def main(bsp):
        bsp.send(0, values(0, 0))
        bsp.sync()
        return bsp.move().flags.owndata

    assert bsplib.run(main, nprocs=1) == [True]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_that_ends_gives_nothing_back():
    def main(bsp):
        bsp.send(1 - bsp.pid, values(bsp.pid, 0))
        bsp.sync()
        array = bsp.move()
        child = os.fork()
        if child == 0:
            del array
            os._exit(0)
        os.waitpid(child, 0)
        for turn in range(1, 4):
            bsp.send(1 - bsp.pid, values(bsp.pid, turn))
            bsp.sync()
            bsp.move()
        return np.array_equal(array, values(1 - bsp.pid, 0))

    assert bsplib.run(main, nprocs=2) == [True, True]


def test_a_payload_that_is_freed_although_it_is_kept_is_found(monkeypatch):
    monkeypatch.setenv("BSP_POISON", "tests.bsplib.poison")
    defects.put_back_of_payloads("free-payloads-with-their-lease", monkeypatch)

    def main(bsp):
        bsp.send(1 - bsp.pid, values(bsp.pid, 0))
        bsp.sync()
        array = bsp.move()
        for _ in range(4):
            bsp.sync()
        return array

    with pytest.raises(PoisonError, match="a payload that was kept"):
        bsplib.run(main, nprocs=2, start_method="fork")
