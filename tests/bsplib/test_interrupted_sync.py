"""An exception that leaves a sync or a collective ends the use of the group."""

from __future__ import annotations

import os
import signal
from contextlib import suppress

import numpy as np
import pytest

import bsplib

from .random_programs.lives import Over, interruption

ABORTED = "whoever leaves a call of MPI aborts all ranks, as nothing is known of what it was doing"
WHY = r"this group cannot be used: its superstep \d+ was interrupted by {}"


@pytest.mark.procs(1, 2)
@pytest.mark.parametrize("name", ["put", "sync", "allreduce", "messages"])
@pytest.mark.raises(
    bsplib.PartitionError,
    match=lambda name: f"{name}: {WHY.format('Over: time is up')}.*process 0, superstep 1",
)
def test_a_sync_that_an_exception_has_left_ends_the_use_of_the_group(bsp, name):
    x = bsp.zeros(1)
    bsp.sync()
    bsp.zeros(1)  # so that all have to prepare it at the sync
    if bsp.pid == 0:
        with interruption("prepare"):
            bsp.sync()
        {
            "put": lambda: bsp.put(0, 1.0, x, offset=0),
            "sync": bsp.sync,
            "allreduce": lambda: bsp.allreduce(1),
            "messages": bsp.messages,
        }[name]()
    bsp.sync()
    bsp.sync()


@pytest.mark.procs(2)
@pytest.mark.real_processes
@pytest.mark.not_on_mpi(ABORTED)
@pytest.mark.raises(bsplib.PartitionError, match=f"send: {WHY.format('Over')}")
def test_a_signal_in_a_sync_ends_the_use_of_the_group(bsp):
    if bsp.pid == 0:

        def handle(number, frame):
            while frame is not None and frame.f_code.co_name != "wait_for":
                frame = frame.f_back
            if frame is not None:  # it waits in the sync
                raise Over

        signal.signal(signal.SIGALRM, handle)
        bsp.send(1, os.getpid())
        bsp.sync()
        signal.setitimer(signal.ITIMER_REAL, 1e-3, 1e-3)
        try:
            bsp.sync()
        except Over:
            signal.setitimer(signal.ITIMER_REAL, 0)
            bsp.send(1, "lost?")
    bsp.sync()
    assert bsp.pid
    signal.pause()  # stopped by the end of the run


@pytest.mark.procs(2)
@pytest.mark.not_on_mpi(ABORTED)
@pytest.mark.raises(bsplib.PartitionError, match=f"oblsync: {WHY.format('Over')}")
def test_an_interrupted_oblsync_ends_the_use_of_the_group(bsp):
    if bsp.pid == 0:
        with interruption("exchange_oblivious"):
            bsp.oblsync(0)
        bsp.oblsync(0)
    bsp.oblsync(0)


REFUSED = {
    "allreduce": lambda bsp: bsp.allreduce(1, op="no such"),
    "allgather": lambda bsp: bsp.allgather(lambda: 0),
    "alltoall": lambda bsp: bsp.alltoall([1] * (bsp.nprocs - 1) + [lambda: 0]),
    "scatter": lambda bsp: bsp.scatter([1] * (bsp.nprocs - 1) + [lambda: 0], root=bsp.pid),
    "broadcast": lambda bsp: bsp.broadcast(1, root=-1),
    "gather": lambda bsp: bsp.gather(lambda: 0),
    "split": lambda bsp: bsp.split([]),
    "oblsync": lambda bsp: bsp.oblsync(-1),
    "put": lambda bsp: bsp.put(0, 1, np.zeros(1)),
}


@pytest.mark.procs(1, 3)
@pytest.mark.parametrize("name", REFUSED)
def test_a_call_that_is_refused_for_its_arguments_changes_nothing(run, nprocs, name):
    def main(bsp):
        bsp.send(0, bsp.pid)
        bsp.sync()
        bsp.send(0, 10 + bsp.pid)
        with pytest.raises(bsplib.BspError):
            REFUSED[name](bsp)
        first = [payload for _, _, payload in bsp.messages()]
        total = bsp.allreduce(1)
        return first, total, [payload for _, _, payload in bsp.messages()]

    pids = range(nprocs)
    expected = [(list(pids), nprocs, [10 + pid for pid in pids])] + [([], nprocs, [])] * (
        nprocs - 1
    )
    assert run(main) == expected


@pytest.mark.parametrize("nbytes", [1 << 20])
def test_memory_of_a_sub_group_that_was_left_by_an_exception_is_not_used_again(nbytes):
    """Another process may still write there: it does not know yet."""
    (left, tell_left), (written, tell_written) = os.pipe(), os.pipe()

    def main(bsp):
        with suppress(KeyError), bsp.partition([2]) as sub:
            x = sub.zeros(nbytes // 8)
            sub.sync()
            sub.sync()
            if bsp.pid == 1:
                os.read(left, 1)
                sub.hpput(0, np.ones(nbytes // 8), x)
                os.write(tell_written, b"1")
            raise KeyError
        y = bsp.zeros(nbytes // 8)
        if bsp.pid == 0:
            os.write(tell_left, b"1")
            os.read(written, 1)
        bsp.sync()
        return y.any()

    assert bsplib.run(main, nprocs=2, backend="shm", start_method="fork") == [False, False]
