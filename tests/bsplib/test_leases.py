"""What a process lays out for others stays as it is until all have read it, or have left."""

from __future__ import annotations

import os

import numpy as np
import pytest

import bsplib


@pytest.mark.lengthy
def test_a_process_that_only_serves_gets_does_not_take_more_and_more_memory():
    def main(bsp):
        x = bsp.array(np.arange(8))
        used = []
        for superstep in range(500):
            if bsp.pid:
                bsp.get_at([0], [superstep % 8], x)
            bsp.sync()
            if superstep in (20, 499):
                used.append(os.fstat(bsp._port._segment.descriptor).st_blocks)
        return used

    for before, after in bsplib.run(main, nprocs=3):
        assert after == before


@pytest.mark.lengthy
def test_memory_written_before_an_exception_ended_a_sub_group_is_given_back():
    """No process has been told of it, since this one has posted nothing in that group."""

    def send_and_fail(bsp):
        with bsp.partition([1, 2]) as sub:
            sub.send(0, np.zeros(1 << 16))
            raise RuntimeError

    def main(bsp):
        used = []
        for turn in range(60):
            with pytest.raises(RuntimeError):
                send_and_fail(bsp)
            if turn in (5, 59):
                bsp.sync()
                used.append(os.fstat(bsp._port._segment.descriptor).st_blocks)
        return used

    for before, after in bsplib.run(main, nprocs=2):
        assert after == before
