"""Programs that fork, or start processes of their own, and then die.

Their children live on and hold open what they inherited. The run ends all the same.
"""

from __future__ import annotations

import contextlib
import os
import signal
import struct
import sys
import time
from concurrent.futures import ProcessPoolExecutor

import pytest

import bsplib
from bsplib.running.task import TaskWork

from .phases import DEADLINE_S

pytestmark = [pytest.mark.timeout(DEADLINE_S), pytest.mark.real_processes, pytest.mark.fresh]

METHODS = ("fork", "forkserver")
SPAWN = pytest.param("spawn", marks=pytest.mark.slow)
"""Its processes import this file, which takes seconds."""
VICTIM = 1


@pytest.fixture
def family(tmp_path):
    """A folder in which grandchildren leave their pids; they are ended after the test."""
    yield tmp_path
    for path in tmp_path.iterdir():
        if path.name.isdigit():
            with contextlib.suppress(ProcessLookupError):  # a worker may end with its executor
                os.kill(int(path.name), signal.SIGKILL)


def forks(family):
    """Leave a child behind that outlives the test."""
    os_pid = os.fork()
    if os_pid == 0:
        time.sleep(2 * DEADLINE_S)
        os._exit(0)
    (family / str(os_pid)).touch()


def blocks_signals_and_forks(family):
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    forks(family)


def uses_an_executor(family):
    executor = ProcessPoolExecutor(1)
    (family / str(executor.submit(os.getpid).result(DEADLINE_S))).touch()


STARTS = [forks, blocks_signals_and_forks, uses_an_executor]


@pytest.mark.procs(3)
@pytest.mark.parametrize("method", [*METHODS, SPAWN])
@pytest.mark.parametrize("starts", STARTS, ids=lambda starts: starts.__name__)
def test_a_process_that_has_forked_and_is_killed_ends_the_run(run, family, starts, method):
    def main(bsp):
        bsp.sync()
        if bsp.pid == VICTIM:
            starts(family)
            os.kill(os.getpid(), signal.SIGKILL)
        bsp.sync()

    with pytest.raises(
        bsplib.ProcessDiedError, match=r"^process 1 was killed by SIGKILL in superstep 1"
    ):
        run(main, start_method=method)


@pytest.mark.procs(3)
@pytest.mark.parametrize("method", [*METHODS, "spawn"])
def test_a_process_that_has_forked_and_returns_ends_the_run(run, family, method):
    def main(bsp):
        forks(family)
        bsp.sync()
        return bsp.pid

    assert run(main, start_method=method) == [0, 1, 2]


@pytest.mark.procs(2)
def test_a_process_of_a_pool_that_has_forked_and_is_killed_ends_the_run(nprocs, family):
    def main(bsp):
        if bsp.pid == VICTIM:
            forks(family)
            os.kill(os.getpid(), signal.SIGKILL)
        bsp.sync()

    with bsplib.Pool(nprocs) as pool:
        with pytest.raises(bsplib.ProcessDiedError, match=r"^process 1 was killed by SIGKILL"):
            pool.run(main)
        assert pool.run(lambda bsp: bsp.pid) == [0, 1]


@pytest.mark.procs(2)
@pytest.mark.forked
def test_a_result_that_is_cut_short_is_a_death_although_a_grandchild_lives(
    run, family, monkeypatch
):
    alone = TaskWork.alone

    def dies_while_it_sends(work, pid, open_port, tell):
        if pid == VICTIM:
            pipe = sys._getframe(1).f_locals["pipe"]
            os.write(pipe.fileno(), struct.pack("!Q", 1000) + b"the first bytes of a thousand")
            forks(family)
            os.kill(os.getpid(), signal.SIGKILL)
        return alone(work, pid, open_port, tell)

    monkeypatch.setattr(TaskWork, "alone", dies_while_it_sends)
    with pytest.raises(bsplib.ProcessDiedError, match=r"^process 1 was killed by SIGKILL"):
        run(lambda bsp: None, start_method="fork")
