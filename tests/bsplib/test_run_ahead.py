"""Messages that wait to be read while processes go on: they stay what was sent."""

from __future__ import annotations

import multiprocessing
import time

import numpy as np
import pytest

from bsplib.backends.shm.control import BLOCKS

pytestmark = pytest.mark.timeout(60)

LARGE = 200
"""Numbers of a message that is staged, and not part of its record."""


@pytest.mark.real_processes
@pytest.mark.procs(4)
def test_a_process_that_leaves_a_later_sub_group_first_still_looks_at_the_earlier_one(run):
    """Its own oblsync waits for nobody: the others post when it is in the next sub-group."""

    def main(bsp):
        found = 0
        for _ in range(100):
            with bsp.partition([bsp.nprocs]) as whole:
                if whole.pid != 1:
                    time.sleep(0.0005)
                whole.oblsync(0)
            with bsp.partition([1, 2, bsp.nprocs]) as part:
                last = part.nprocs - 1
                part.send(last, np.ones(LARGE))
                part.oblsync(part.nprocs if part.pid == last else 0)
                found += sum(payload.size for _, _, payload in part.messages())
        return found

    assert run(main) == [100 * LARGE, 100 * LARGE, 0, 200 * LARGE]


@pytest.mark.forked
@pytest.mark.real_processes
@pytest.mark.procs(3)
def test_a_process_that_waits_lets_others_use_the_groups_again_that_it_has_left(run):
    """Process 2 has left all that fit at a time before the others have posted anything."""
    ahead = multiprocessing.Event()

    def main(bsp):
        if bsp.pid != 2:
            assert ahead.wait(30)
        for _ in range(BLOCKS - 1):  # the whole run takes one
            with bsp.partition([bsp.nprocs]) as whole:
                whole.oblsync(0)
        ahead.set()
        with bsp.partition([2, 3]) as part:
            return part.allgather(bsp.pid) if bsp.pid < 2 else None

    assert run(main, start_method="fork") == [[0, 1], [0, 1], None]


@pytest.mark.procs(2, 3)
def test_a_large_message_can_be_read_while_its_sender_is_supersteps_ahead(run):
    def main(bsp):
        bsp.send(0, np.full(5000, bsp.pid))
        bsp.sync()
        read = []
        if bsp.pid == 0:
            time.sleep(0.02)  # real processes are ahead by now; virtual ones for some seeds
            read = [(source, x.min(), x.max()) for source, _, x in bsp.messages()]
        for _ in range(4):
            bsp.send(bsp.pid, np.full(5000, -1))
            bsp.oblsync(1)
        bsp.sync()
        return read

    for seed in range(6):
        read = run(main, sim_seed=seed)
        assert read[0] == [(pid, pid, pid) for pid in range(len(read))]
