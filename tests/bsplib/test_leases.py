"""What a process lays out for others stays as it is until all have read it, or have left."""

from __future__ import annotations

import os

import numpy as np
import pytest

import bsplib

ROUNDS = 40
"""Partitions of a run. Before replies to gets were kept, more than half of all single ones
went wrong."""


def open_sub_group(bsp, way):
    """Return the sub-group in which process 0 only serves the gets of the others."""
    return bsp.partition([bsp.nprocs]) if way == "partition" else bsp.split(0)


@pytest.mark.lengthy(values="all")
@pytest.mark.procs(2, 3, 4)
@pytest.mark.parametrize("way", ["partition", "split"])
def test_replies_to_gets_stay_when_who_serves_them_leaves_the_sub_group(run, way):
    """Process 0 has nothing to send, and uses memory again while the others still read."""

    def main(bsp):
        wrong = []
        for turn in range(ROUNDS):
            with open_sub_group(bsp, way) as sub:
                x = sub.array(np.arange(1, 5) + turn)
                sub.sync()
                got = sub.get_at([0, 0], [1, 3], x) if sub.pid else None
                sub.sync()
            y = bsp.zeros(7)
            y[:] = -1
            bsp.sync()
            if got is not None and got.tolist() != [turn + 2, turn + 4]:
                wrong.append((turn, got.tolist()))
        return wrong

    assert not any(run(main))


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
