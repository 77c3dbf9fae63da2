"""What only the port of MPI has: pieces, credits, labels, and runs on the ranks of earlier ones."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

import bsplib
from bsplib.backends.base import Stopped
from bsplib.backends.mpi.heads import ROOT, label_of

pytestmark = pytest.mark.usefixtures("over_mpi")

MOST_AHEAD = 64
"""Oblivious supersteps that a process ends before another one has read its posts."""


def run(main, *args, nprocs):
    return bsplib.run(main, *args, nprocs=nprocs, backend="mpi")


def right_of(bsp):
    return (bsp.pid + 1) % bsp.nprocs


@pytest.mark.slow
@pytest.mark.usefixtures("mpi")
def test_what_is_larger_than_a_piece_arrives_whole():
    def main(bsp):
        from bsplib.backends.mpi import transport  # noqa: PLC0415  # it needs an MPI

        transport.PIECE_BYTES = 1000
        x = bsp.zeros(500)
        bsp.sync()
        values = np.arange(500.0) + bsp.pid
        bsp.hpput(right_of(bsp), values, x)
        bsp.send(right_of(bsp), values[:333])
        for index in range(200):  # a body that does not fit into its head, nor into a piece
            bsp.send(right_of(bsp), index)
        bsp.sync()
        got = bsp.get(right_of(bsp), x)
        messages = [payload for _, _, payload in bsp.messages()]
        bsp.sync()
        transport.PIECE_BYTES = 1 << 30  # the ranks stay
        return x.tolist(), messages[0].tolist(), messages[1:], got.tolist()

    for pid, (put, sent, small, got) in enumerate(run(main, nprocs=2)):
        assert put == [1 - pid + word for word in range(500)]
        assert sent == put[:333]
        assert small == list(range(200))
        assert got == [pid + word for word in range(500)]


@pytest.mark.slow
@pytest.mark.usefixtures("mpi")
def test_a_process_runs_ahead_until_the_other_one_has_to_read(tmp_path):
    progress = tmp_path / "progress"

    def main(bsp, progress):
        if bsp.pid == 0:
            for step in range(3 * MOST_AHEAD):
                Path(progress).write_text(str(step))
                bsp.oblsync(0)
            return None
        while not Path(progress).exists() or int(Path(progress).read_text() or 0) < MOST_AHEAD:
            time.sleep(0.01)
        time.sleep(0.3)
        ended = int(Path(progress).read_text())
        for _ in range(3 * MOST_AHEAD):
            bsp.oblsync(0)
        return ended

    assert run(main, str(progress), nprocs=2)[1] == MOST_AHEAD


@pytest.mark.slow
@pytest.mark.usefixtures("mpi")
def test_a_process_that_is_late_is_not_held_up_by_those_that_wait_elsewhere(tmp_path):
    """Process 0 waits for 1, which waits for 2, which has to catch up by dozens of posts to 0."""
    flag = tmp_path / "flag"

    def main(bsp, flag):
        if bsp.pid == 2:
            while not Path(flag).exists():
                time.sleep(0.01)
        for step in range(4 * MOST_AHEAD):
            if bsp.pid == 0 and step == MOST_AHEAD - 4:
                Path(flag).touch()
            bsp.oblsync(0)
        with bsp.split(0 if bsp.pid else 1) as sub:
            first = sub.allreduce(bsp.pid)
        with bsp.split(0 if bsp.pid < 2 else 1) as sub:
            return first, sub.allreduce(bsp.pid)

    assert run(main, str(flag), nprocs=3) == [(0, 1), (3, 1), (3, 2)]


def test_labels_differ_along_the_way_to_a_group():
    ways = [(ordinal, index) for ordinal in range(30) for index in range(30)]
    labels = {label_of(ROOT, *way) for way in ways}
    labels |= {label_of(label_of(ROOT, 1, 1), *way) for way in ways}
    assert len(labels | {ROOT}) == 2 * len(ways) + 1
    assert label_of(ROOT, 2, 3) == label_of(ROOT, 2, 3)


@pytest.mark.slow
@pytest.mark.usefixtures("mpi")
def test_a_rank_that_the_end_of_the_run_finds_waiting_looks_whether_all_has_come_by_now():
    def main(bsp):
        from bsplib.backends.mpi.waiting import LastLooks, RankWait  # noqa: PLC0415  # it needs MPI

        last_looks = LastLooks()

        def looks():
            patience = RankWait(memoryview(b"\1"), last_looks, 0)
            for count in range(1000):
                try:
                    patience.pause()
                except Stopped:
                    return count
            return None

        return looks(), looks()

    ((waiting, later),) = run(main, nprocs=1)
    assert 0 < waiting < 1000
    assert later == 0  # a process without an error must not go on for ever
