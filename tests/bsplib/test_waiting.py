"""The ways in which processes wait: equal results, no busy cores, no wait without end."""

from __future__ import annotations

import os
import signal
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

import bsplib
from bsplib.backends.shm import waiting
from bsplib.backends.shm.context import ProcessContext
from bsplib.backends.shm.control import ASLEEP, PAGE
from bsplib.backends.shm.segment import Segment
from bsplib.core import atomics
from bsplib.core.meeting import YIELDS

from .phases import eventually, standard_error, state_of

pytestmark = [pytest.mark.real_processes, pytest.mark.fresh]

WAITS = ("auto", "spin", "block")
COMPUTING_S = 1.0


def everything(bsp):
    """Use every kind of meeting; return what came of it."""
    x = bsp.zeros(bsp.nprocs, int)
    right = (bsp.pid + 1) % bsp.nprocs
    seen = []
    for number in range(20):
        for pid in range(bsp.nprocs):
            bsp.put(pid, number * bsp.pid, x, offset=bsp.pid)
        got = bsp.get(right, x)
        bsp.send(right, (bsp.pid, number))
        bsp.sync()
        seen.append((x.tolist(), got.tolist(), bsp.move()))
        bsp.send(right, number)
        bsp.oblsync(1)
        seen.append(bsp.move())
    with bsp.partition([1, bsp.nprocs]) as sub:
        seen.append(sub.allreduce(bsp.pid))
    return seen


def test_every_way_to_wait_gives_the_same_results(run):
    first, *others = [run(everything, wait=wait) for wait in WAITS]
    assert others == [first, first]


@pytest.mark.procs(2, 4)
@pytest.mark.parametrize("wait", WAITS)
def test_a_pool_waits_as_it_is_told(nprocs, wait):
    with bsplib.Pool(nprocs, wait=wait) as pool:
        once = pool.run(lambda bsp: bsp.allreduce(bsp.pid))
        assert (
            once
            == [nprocs * (nprocs - 1) // 2] * nprocs
            == pool.run(lambda bsp: bsp.allreduce(bsp.pid))
        )


@pytest.mark.procs(2)
@pytest.mark.parametrize("wait", WAITS)
def test_an_error_ends_the_others_however_they_wait(run, wait):
    def main(bsp):
        if bsp.pid == 1:
            time.sleep(0.05)  # the other one waits by now, however it does
            raise KeyError("of process 1")
        bsp.sync()

    with pytest.raises(KeyError, match="of process 1"):
        run(main, wait=wait)


@pytest.mark.procs(2)
@pytest.mark.parametrize("wait", WAITS)
def test_a_process_that_will_never_come_is_found_however_they_wait(run, wait):
    def main(bsp):
        sub = bsp.partition([bsp.nprocs])
        if bsp.pid == 0:
            sub.sync()
        sub.done()
        bsp.sync()

    with pytest.raises(
        bsplib.SyncMismatchError,
        # On an MPI, process 0 may learn first that process 1 is at the next sync.
        match=r"process 0 waits for process 1, which (has left|is at a sync outside) the sub-group",
    ):
        run(main, wait=wait)


# -- one process at a time ----------------------------------------------------------------------


class GivenWayError(Exception):
    """The process that waits lets others have its core."""


def sleep_while(address, seen, _nanoseconds):
    """Sleep at no futex whose process has not been woken."""
    if atomics.load(address) == seen:
        raise GivenWayError


@pytest.fixture
def take_contexts(monkeypatch):
    """ProcessContext both processes of a run here, where one waits and the other one is us."""
    monkeypatch.setattr(atomics, "sleep_while", sleep_while)
    segment = Segment(2)
    for pid in range(2):
        segment.reserve(segment.control_start(pid), PAGE)
    contexts = []

    def take(wait):
        contexts.extend(ProcessContext(segment, pid, wait) for pid in range(2))
        for each in contexts:
            each.begin()
        return contexts

    yield take
    for each in contexts:
        del each.control, each.waiting.control
    segment.close()


@pytest.mark.parametrize("moment", ["at its first look", "at its last look", "after its last look"])
@pytest.mark.parametrize("wait", ["auto", "block"])
def test_what_is_posted_just_before_a_process_goes_to_sleep_is_not_missed(
    take_contexts, wait, moment
):
    sleeper, poster = take_contexts(wait)
    posted = []

    def post(now):
        if now == moment and not posted:
            posted.append(now)
            poster.waiting.waiter.posted()

    def ready():
        there = bool(posted)
        post("at its first look")
        if sleeper.control[sleeper.start_of(0) + ASLEEP]:
            post("at its last look")
        return there

    sleeper.waiting.wait(ready, [1], lambda: post("after its last look"))
    assert posted == [moment]


MANY = 1000


@pytest.mark.parametrize(
    ("wait", "cores", "looks"),
    [
        ("auto", {0, 1}, MANY),
        ("auto", {0, 1, 2}, MANY),
        ("auto", {0}, YIELDS + 2),
        ("spin", {0}, MANY),
        ("block", {0, 1}, 2),
    ],
)
def test_a_process_looks_long_only_where_each_has_a_core_or_it_is_told_to(
    take_contexts, monkeypatch, wait, cores, looks
):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: cores)
    monkeypatch.setattr(waiting, "_sched_yield", lambda: None)
    monkeypatch.setattr(waiting, "time", SimpleNamespace(perf_counter_ns=lambda: 0))
    process, _ = take_contexts(wait)
    looked = []

    def ready():
        looked.append(1)
        if len(looked) == MANY:
            raise GivenWayError

    with pytest.raises(GivenWayError):
        process.waiting.wait(ready, [1], lambda: None)
    assert len(looked) == looks


# -- all of them --------------------------------------------------------------------------------


def by_sync(bsp):
    bsp.sync()


def by_oblsync(bsp):
    if bsp.pid == 0:
        for pid in range(1, bsp.nprocs):
            bsp.send(pid, 1)
    bsp.oblsync(0 if bsp.pid == 0 else 1)


def in_a_sub_group(bsp):
    with bsp.partition([bsp.nprocs]) as sub:
        sub.sync()


@pytest.mark.procs(2, 4)
@pytest.mark.parametrize(
    ("meet", "wait"), [(by_sync, "auto"), (by_oblsync, "block"), (in_a_sub_group, "auto")]
)
def test_a_process_that_waits_long_uses_next_to_no_processor(run, wait, meet):
    """Of the time that process 0 computes, the others use a small part to wait for it."""

    def main(bsp):
        bsp.sync()
        wall, used = time.perf_counter(), time.process_time()
        if bsp.pid == 0:
            while time.process_time() - used < COMPUTING_S / 4:
                np.sort(np.arange(1000)[::-1])
            time.sleep(3 * COMPUTING_S / 4)
        meet(bsp)
        return time.process_time() - used, time.perf_counter() - wall

    (_, wall), *waiting = run(main, wait=wait)
    assert wall > 0.9 * COMPUTING_S
    assert [used for used, _ in waiting if used > 0.2 * wall] == []


@pytest.mark.procs(4)
def test_the_caller_of_a_run_uses_next_to_no_processor(run):
    def used(program):
        before = time.process_time()
        run(program)
        return time.process_time() - before

    to_start = max(used(lambda bsp: None) for _ in range(2))  # much where the caller is large
    assert used(lambda bsp: time.sleep(COMPUTING_S)) - to_start < 0.2 * COMPUTING_S


@pytest.mark.procs(3)
@pytest.mark.not_on_mpi("see mpi/test_faults.py")
@pytest.mark.parametrize(
    ("meet", "wait"),
    [
        (by_sync, "auto"),
        pytest.param(by_oblsync, "block", marks=pytest.mark.slow),
        pytest.param(by_sync, "spin", marks=pytest.mark.slow),
    ],
)
def test_a_stopped_process_is_named_and_the_run_goes_on_when_it_does(run, tmp_path, wait, meet):
    def main(bsp):
        bsp.sync()
        if bsp.pid == 0:
            (tmp_path / "stopped").write_text(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGSTOP)
        meet(bsp)
        return bsp.pid

    def continue_it():
        path = tmp_path / "stopped"
        eventually(lambda: path.exists() and path.read_text())
        os_pid = int(path.read_text())
        eventually(lambda: state_of(os_pid) == "T")
        eventually(lambda: "or end the run" in said())
        os.kill(os_pid, signal.SIGCONT)

    with standard_error(tmp_path / "said") as said:
        helper = threading.Thread(target=continue_it)
        helper.start()
        results = run(main, wait=wait, start_method="fork")
        helper.join()
    assert results == [0, 1, 2]
    os_pid = (tmp_path / "stopped").read_text()
    named = (
        f"bsplib: the run waits for process 0, which is stopped; continue it "
        f"(kill -CONT {os_pid}) or end the run"
    )
    assert said().count(named) == 1
