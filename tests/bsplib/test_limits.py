"""The greatest numbers of processes, the largest transfers and the least shared memory."""

from __future__ import annotations

import os
import time

import numpy as np
import pytest

import bsplib

pytestmark = [pytest.mark.real_processes, pytest.mark.fresh]  # memory is measured, and filled

GIB = 1 << 30
BIG = 2 * GIB + 4099
"""Beyond what 31 bits count, and no multiple of anything."""


def free_shared_memory():
    stat = os.statvfs("/dev/shm")
    return stat.f_bavail * stat.f_frsize


def available_memory():
    with open("/proc/meminfo", encoding="ascii") as file:
        fields = dict(line.split(":") for line in file)
    return int(fields["MemAvailable"].split()[0]) * 1024


def need_room(nbytes):
    """Skip where a transfer of ``nbytes`` does not fit."""
    free = min(free_shared_memory(), available_memory())
    if free < nbytes:
        pytest.skip(f"{nbytes} bytes of memory and /dev/shm are needed, {free} are free")


# -- many processes -----------------------------------------------------------------------------


@pytest.mark.not_on_mpi("256 is the limit of shared memory")
@pytest.mark.procs(256)
@pytest.mark.slow
def test_256_processes_exchange_and_sync(bsp):
    x = bsp.zeros(1, int)
    bsp.put((bsp.pid + 1) % bsp.nprocs, bsp.pid, x)
    bsp.sync()
    assert int(x[0]) == (bsp.pid - 1) % bsp.nprocs


# -- large transfers ------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.procs(2)
def test_an_array_of_more_than_2_gib_is_put_whole(run):
    need_room(4 * BIG)

    def main(bsp):
        x = bsp.empty(BIG if bsp.pid == 1 else 0, np.uint8)
        if bsp.pid == 0:
            values = np.zeros(BIG, np.uint8)
            values[[0, 1 << 31, -1]] = 1, 2, 3
            bsp.put(1, values, x, offset=0)
        bsp.sync()
        return x[[0, 1, 1 << 31, -2, -1]].tolist() if bsp.pid == 1 else None

    assert run(main)[1] == [1, 0, 2, 0, 3]


@pytest.mark.procs(2)
@pytest.mark.slow
def test_a_message_of_more_than_2_gib_arrives_whole(run):
    need_room(4 * BIG)

    def main(bsp):
        if bsp.pid == 0:
            values = np.zeros(BIG, np.uint8)
            values[[0, 1 << 31, -1]] = 1, 2, 3
            bsp.send(1, values, tag="large")
            del values
        bsp.sync()
        if bsp.pid == 0:
            return None
        size = bsp.qsize()
        tag, payload = bsp.hpmove()
        return size, tag, payload.shape, payload[[0, 1, 1 << 31, -2, -1]].tolist()

    assert run(main)[1] == ((1, BIG), "large", (BIG,), [1, 0, 2, 0, 3])


@pytest.mark.slow
@pytest.mark.procs(2)
def test_tens_of_thousands_of_transfers_fit_into_one_superstep(bsp):
    x = bsp.zeros(40_000, int)
    for number in range(40_000):
        bsp.put(1 - bsp.pid, number, x, offset=number)
    for number in range(10_000):
        bsp.send(1 - bsp.pid, number)
    bsp.sync()
    read = [payload for _, _, payload in bsp.messages()]
    assert (x == np.arange(40000)).all()
    assert read == list(range(10000))


# -- what a run reserves --------------------------------------------------------------------------


def reserved(bsp):
    """Bytes of the segment that are reserved, once all processes have met."""
    x = bsp.zeros(bsp.nprocs, np.uint8)
    for pid in range(bsp.nprocs):
        bsp.put(pid, 1, x, offset=bsp.pid)
    bsp.send((bsp.pid + 1) % bsp.nprocs, bsp.pid)
    bsp.sync()
    bsp.sync()
    return _blocks(bsp)


def _blocks(bsp):
    return os.fstat(bsp._port._segment.descriptor).st_blocks * 512


@pytest.mark.lengthy
@pytest.mark.parametrize("most", [16, pytest.param(64, marks=pytest.mark.slow)])
def test_what_a_run_reserves_grows_with_its_processes_and_not_with_their_square(most):
    few, many = (bsplib.run(reserved, nprocs=nprocs)[0] for nprocs in (4, most))
    assert many / most < 1.5 * few / 4
    assert many < most << 20


@pytest.mark.lengthy
def test_a_process_with_nothing_to_say_reserves_little():
    def main(bsp):
        bsp.sync()
        return _blocks(bsp)

    assert max(bsplib.run(main, nprocs=16)) < 16 * (1 << 20)


@pytest.mark.not_on_mpi("it looks at the segment in shared memory")
@pytest.mark.procs(2)
def test_freed_arrays_are_used_again(bsp):
    sizes = []
    for number in range(60):
        x = bsp.zeros(1_000_000 + 1000 * (number % 7), np.uint8)
        assert not x.any()
        x[:] = 255
        bsp.pop_reg(x)
        bsp.sync()
        sizes.append(_blocks(bsp))
    assert sizes[-1] == sizes[20] < 8 << 20


@pytest.mark.not_on_mpi("it looks at the segment in shared memory")
@pytest.mark.procs(2)
def test_what_carries_transfers_is_used_again(bsp):
    x = bsp.zeros(1_000_000, np.uint8)
    sizes = []
    for _ in range(40):
        bsp.put(1 - bsp.pid, np.ones(1_000_000, np.uint8), x)
        bsp.send(1 - bsp.pid, bytes(500_000))
        got = bsp.get(1 - bsp.pid, x)
        bsp.sync()
        assert got.shape == x.shape
        sizes.append(_blocks(bsp))
    assert sizes[-1] == sizes[10] < 48 << 20


@pytest.mark.not_on_mpi("it looks at the segment in shared memory")
@pytest.mark.procs(2)
@pytest.mark.real_processes
def test_what_is_sent_beside_a_large_put_needs_little_memory_of_its_own(run):
    size = 4 << 20

    def main(bsp):
        x = bsp.zeros(size, np.uint8)
        for turn in range(12):
            bsp.put(1 - bsp.pid, np.full(size, turn, np.uint8), x)
            bsp.send(1 - bsp.pid, b"few bytes")
            bsp.put_at(1 - bsp.pid, np.arange(10), np.full(10, turn, np.uint8), x)
            bsp.sync()
            assert (x == turn).all()
        return _blocks(bsp)

    # Each process: the array, two staging buffers at most, and little more.
    assert max(run(main)) <= 2 * (3 * size + (4 << 20))


@pytest.mark.not_on_mpi("it looks at the segment in shared memory")
@pytest.mark.procs(2)
@pytest.mark.real_processes
def test_the_first_hpput_into_an_array_needs_no_memory_but_the_array(run):
    size = 4 << 20

    def main(bsp):
        x = bsp.zeros(size, np.uint8)
        right = (bsp.pid + 1) % bsp.nprocs
        bsp.sync()
        while not bsp._port.meeting.has_delivered(right):
            time.sleep(0.001)
        before = _blocks(bsp)
        bsp.hpput(right, np.full(size, 7, np.uint8), x)
        bsp.sync()
        assert (x == 7).all()
        return _blocks(bsp) - before

    assert max(run(main)) < size


@pytest.mark.not_on_mpi("it looks at the segment in shared memory")
@pytest.mark.procs(2)
def test_arrays_of_sub_groups_are_freed_when_they_are_left(bsp):
    sizes = []
    for _ in range(40):
        with bsp.partition([bsp.nprocs]) as sub:
            sub.zeros(1_000_000, np.uint8)
            sub.sync()
        bsp.sync()
        sizes.append(_blocks(bsp))
    assert sizes[-1] == sizes[10] < 16 << 20


# -- little shared memory -------------------------------------------------------------------------


def test_what_was_sent_before_memory_ran_out_can_be_caught_and_the_rest_go_on(with_little):
    """An allocation that fails leaves the process as it was."""
    done = with_little("""
        import numpy as np
        import bsplib

        def main(bsp):
            x = bsp.zeros(1000, np.uint8)
            try:
                bsp.send(0, bytes(100 << 20))
            except bsplib.OutOfSharedMemoryError:
                bsp.send(0, b"smaller")
            bsp.put(1 - bsp.pid, np.ones(1000, np.uint8), x)
            bsp.sync()
            return [len(payload) for _, _, payload in bsp.messages()], int(x.sum())

        if __name__ == "__main__":
            print(bsplib.run(main, nprocs=2))
    """)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "[([7, 7], 1000), ([], 1000)]\n"


# -- memory that is used again --------------------------------------------------------------------

LARGE = 1 << 20
"""Bytes: what is so large is copied into memory that has been delivered before."""


@pytest.mark.procs(2, 3)
@pytest.mark.parametrize("with_put", [False, True], ids=["alone", "beside_a_put"])
def test_a_large_message_can_be_read_while_its_sender_puts_already(bsp, with_put):
    right = (bsp.pid + 1) % bsp.nprocs
    x = bsp.zeros(LARGE, np.uint8)
    bsp.sync()
    for turn in range(6):
        if with_put:
            bsp.put(right, np.full(LARGE, 100 + turn, np.uint8), x)
        bsp.send(right, np.full(LARGE, turn, np.uint8))
        bsp.sync()
        bsp.put(right, np.full(LARGE, 200 + turn, np.uint8), x)
        time.sleep(0.01)  # the left one has put as well, where it is a process
        _, message = bsp.hpmove()
        assert (message == turn).all()
        bsp.sync()
        assert (x == 200 + turn).all()
