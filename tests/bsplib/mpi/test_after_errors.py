"""After an error the same ranks serve the next run, and nothing of the failed one reaches it."""

from __future__ import annotations

import os
import random
import sys

import numpy as np
import pytest

import bsplib

from .conftest import DEADLINE_S

pytestmark = [pytest.mark.lengthy, pytest.mark.timeout(4 * DEADLINE_S)]

LARGE = 300_000
"""Words that no MPI sends before they are asked for."""


def run(main, *args, nprocs=3, **options):
    return bsplib.run(main, *args, nprocs=nprocs, backend="mpi", **options)


def identity(bsp):
    """Return the process, and what connects it: shared memory, or MPI."""
    bsp.sync()
    return os.getpid(), type(bsp._port).__name__


def shifted(bsp, number):
    """Move large and small values in all ways; return what has come from the left."""
    x = bsp.zeros(LARGE)
    right = (bsp.pid + 1) % bsp.nprocs
    bsp.sync()
    bsp.hpput(right, np.full(LARGE, 10.0 * number + bsp.pid), x)
    bsp.send(right, [number] * 3000)
    bsp.sync()
    [(_, _, message)] = bsp.messages()
    bsp.send(right, np.full(LARGE, number))
    bsp.oblsync(1)
    [(_, _, values)] = bsp.messages()
    with bsp.split(bsp.pid % 2) as sub:
        total = sub.allreduce(1)
    return x.min(), x.max(), set(message), set(values.tolist()), total


def expected(number, nprocs):
    left = [10.0 * number + (pid - 1) % nprocs for pid in range(nprocs)]
    sizes = [(nprocs + 1 - pid % 2) // 2 for pid in range(nprocs)]
    return [(v, v, {number}, {number}, n) for v, n in zip(left, sizes, strict=True)]


def raise_before_sync(bsp):
    """Let nobody receive what process 0 has sent obliviously."""
    x = bsp.zeros(LARGE)
    bsp.sync()
    if bsp.pid:
        raise KeyError(bsp.pid)
    for pid in range(1, bsp.nprocs):
        bsp.put(pid, np.ones(LARGE), x)
        bsp.send(pid, list(range(5000)))
    bsp.oblsync(0)
    bsp.oblsync(0)
    bsp.sync()


def raise_while_payloads_come(bsp):
    """Let a process stop in a sync in which large values are on their way to memory of others."""
    x = bsp.zeros(LARGE * bsp.nprocs)
    bsp.sync()
    for pid in range(bsp.nprocs):
        bsp.hpput(pid, np.ones(LARGE), x, offset=LARGE * bsp.pid)
    if bsp.pid == bsp.nprocs - 1 and type(bsp._port).__name__ == "MpiPort":
        from bsplib.backends.mpi.link import Link  # noqa: PLC0415  # it imports MPI

        start = Link.open

        def fail(link, *args):
            start(link, *args)
            Link.open = start
            raise bsplib.BspError("no more")

        Link.open = fail
    bsp.sync()
    raise KeyError(bsp.pid)


def raise_in_sub_group(bsp):
    with bsp.split(bsp.pid % 2) as sub:
        sub.send(0, np.ones(LARGE))
        sub.oblsync(0)
        if bsp.pid == 0:
            raise KeyError(0)
        sub.sync()
    bsp.sync()


def leave_by_sys_exit(bsp):
    bsp.send(0, np.ones(LARGE))
    if bsp.pid == bsp.nprocs - 1:
        sys.exit(3)
    bsp.sync()


class Unreadable:
    """A value that rank 1 cannot read, so that it does not come to the run that begins."""

    def __reduce__(self):
        return read, ()


def read():
    rank = os.environ.get("PMI_RANK") or os.environ["OMPI_COMM_WORLD_RANK"]
    if rank == "1":
        raise KeyError("rank 1")


def take(bsp, _):
    bsp.sync()


def raise_at_once(bsp):
    raise KeyError(bsp.pid)


def mismatch(bsp):
    if bsp.pid:
        bsp.sync()


def abort(bsp):
    bsp.sync()
    if bsp.pid == 0:
        bsp.abort("stop")
    bsp.sync()


WITH_TRANSFERS = [
    *(raise_before_sync, raise_while_payloads_come, raise_in_sub_group, leave_by_sys_exit),
]
WITHOUT = [raise_at_once, mismatch, abort]
FAILING = [*WITH_TRANSFERS, *WITHOUT]


@pytest.mark.usefixtures("mpi", "exchange")
@pytest.mark.parametrize(
    "main", [*WITH_TRANSFERS, *(pytest.param(main, marks=pytest.mark.slow) for main in WITHOUT)]
)
def test_the_same_ranks_serve_the_next_run_after_an_error(main):
    ranks = run(identity)
    for number in range(3):
        with pytest.raises((KeyError, bsplib.BspError)):
            run(main)
        assert run(shifted, number) == expected(number, 3)
    assert run(identity) == ranks


@pytest.mark.slow
@pytest.mark.usefixtures("mpi", "exchange")
@pytest.mark.parametrize("seed", range(3))
def test_runs_that_fail_and_runs_that_do_not_follow_each_other_on_the_same_ranks(seed):
    rng = random.Random(seed)
    ranks = run(identity, nprocs=4)
    for number in range(30):
        nprocs = rng.randint(2, 4)
        if rng.random() < 0.5:
            with pytest.raises((KeyError, bsplib.BspError)):
                run(rng.choice(FAILING), nprocs=nprocs)
        else:
            assert run(shifted, number, nprocs=nprocs) == expected(number, nprocs)
    assert run(identity, nprocs=4) == ranks


@pytest.mark.slow
@pytest.mark.usefixtures("mpi", "exchange")
def test_ranks_that_were_stopped_while_a_run_began_serve_the_next_one(tmp_path):
    ranks = run(identity)
    for number in range(3):
        with pytest.raises(KeyError, match="rank 1"):
            run(take, Unreadable(), profile=tmp_path / "trace.bsp")
        assert run(shifted, number) == expected(number, 3)
    assert run(identity) == ranks
