"""Meetings of many processes in log2 p rounds; on MPI with so few that they would meet directly."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

import bsplib
from bsplib.backends.mpi.heads import MOST_BODY
from bsplib.backends.mpi.meetings import MOST_PROCESSES, Gathering, rounds_of
from bsplib.backends.mpi.ranks import DIRECT
from bsplib.errors import SyncMismatchError
from tests import drawn
from tests.bsplib.random_programs.checks import check, check_fault
from tests.bsplib.random_programs.faults import Breaker
from tests.bsplib.random_programs.seeded import program_of

from .conftest import DEADLINE_S

pytestmark = [pytest.mark.lengthy, pytest.mark.timeout(2 * DEADLINE_S)]

SLOW = pytest.mark.slow
SEEDS = list(
    itertools.islice(
        (seed for seed in itertools.count() if program_of(seed).nprocs > 1), drawn.times(6)
    )
)


@pytest.fixture
def in_rounds(mpi, over_mpi, monkeypatch):
    """Let groups of two processes and more meet in rounds."""
    monkeypatch.setenv(DIRECT, "1")  # this takes other ranks


def run(main, *args, nprocs, **options):
    return bsplib.run(main, *args, nprocs=nprocs, backend="mpi", **options)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 7, 8, 9, 33, 64, 65, 300, MOST_PROCESSES])
def test_all_processes_hear_the_flags_of_all_and_how_many_posts_come(count):
    draw = random.Random(count)
    flags = [draw.choice((3, 3, 3, draw.randrange(128))) for _ in range(count)]
    most = min(count, 100)
    receivers = [
        {draw.randrange(count) for _ in range(draw.randrange(most) * draw.randrange(2))} - {own}
        for own in range(count)
    ]
    heard = [Gathering(pid, count, flags[pid], 1000 + pid, receivers[pid]) for pid in range(count)]
    for turn in range(rounds_of(count)):
        sent = [(each.to_pass_on(turn), each.latest) for each in heard]
        assert all(len(body) <= MOST_BODY for body, _ in sent)
        for pid, (body, stamp) in enumerate(sent):
            heard[(pid + (1 << turn)) % count].take(turn, body, stamp)
    coming = np.bincount([to for some in receivers for to in some], minlength=count)
    assert [each.count() for each in heard] == coming.tolist()
    assert all(each.all_flags() == flags for each in heard)
    assert {each.latest for each in heard} == {999 + count}
    assert all(each.is_unanimous() == (len(set(flags)) == 1) for each in heard)


@pytest.mark.usefixtures("in_rounds")
@pytest.mark.parametrize(
    "count", [5, *(pytest.param(n, marks=SLOW) for n in (2, 3, 4, 6, 7, 8, 9))]
)
def test_programs_do_in_rounds_what_they_do_directly(count):
    def main(bsp):
        x = bsp.zeros(bsp.nprocs, int)
        large = bsp.zeros(10_000)
        seen = []
        for step in range(4):
            for pid in range(0, bsp.nprocs, 1 + step):
                bsp.put(pid, bsp.pid, x, offset=bsp.pid)
            if bsp.pid == step % bsp.nprocs:  # most have nothing for anybody
                bsp.hpput((bsp.pid + 1) % bsp.nprocs, np.full(10_000, step + 1.0), large)
                bsp.send(0, step)
            bsp.sync()
            got = bsp.get((bsp.pid + step) % bsp.nprocs, x)
            bsp.sync()
            seen.append((x.tolist(), large.sum(), got.tolist(), bsp.qsize()))
            bsp.sync()
        bsp.send((bsp.pid + 1) % bsp.nprocs, bsp.pid)
        bsp.oblsync(1)
        seen.append(bsp.move())
        with bsp.split(bsp.pid % 2) as sub:
            seen.append(sub.allreduce(sub.pid))
        return seen

    expected = bsplib.run(main, nprocs=count, backend="sim")
    for _ in range(2):
        assert run(main, nprocs=count) == expected


@pytest.mark.slow
@pytest.mark.usefixtures("in_rounds")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_program_does_in_rounds_what_the_contract_says(seed):
    check(program_of(seed), "mpi", 0)


@pytest.mark.slow
@pytest.mark.usefixtures("in_rounds")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_fault_raises_its_error_in_rounds(seed):
    check_fault(program_of(seed, Breaker), "mpi", 0)


def outside(bsp):
    """Process 4 waits in the parent, of whose rounds none leads to process 2."""
    if bsp.pid != 4:
        with bsp.partition([5, bsp.nprocs]) as sub:
            sub.sync()
    bsp.sync()


def ended_otherwise(bsp):
    bsp.sync()
    (bsp.oblsync if bsp.pid == 4 else lambda _: bsp.sync())(0)


def waits_for_a_message(bsp):
    """Process 0 waits for a message from process 5, which is at a sync."""
    bsp.sync()
    bsp.oblsync(1) if bsp.pid == 0 else bsp.sync()


def ended_early(bsp):
    if bsp.pid == 4:
        return
    bsp.sync()


@pytest.mark.slow
@pytest.mark.usefixtures("in_rounds")
@pytest.mark.parametrize("main", [outside, ended_otherwise, waits_for_a_message, ended_early])
def test_a_mismatch_is_found_in_rounds(main):
    with pytest.raises(SyncMismatchError):
        run(main, nprocs=7)
