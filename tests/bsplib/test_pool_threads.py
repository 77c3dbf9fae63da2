"""Pools that several threads use, and pools whose start or end goes wrong."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

import bsplib
from bsplib.backends.shm import launch
from bsplib.backends.shm.child import run_process

from .phases import DEADLINE_S

pytestmark = [pytest.mark.timeout(DEADLINE_S), pytest.mark.real_processes]


def in_threads(*calls):
    """Return what each call returned or raised, all called at once."""
    results = [None] * len(calls)

    def target(number):
        try:
            results[number] = calls[number]()
        except BaseException as error:  # noqa: BLE001  # compared by the test
            results[number] = error

    threads = [threading.Thread(target=target, args=(number,)) for number in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def program(bsp, number):
    bsp.sync()
    time.sleep(0.01)
    return number, bsp.allreduce(bsp.pid)


def test_runs_of_several_threads_are_done_one_after_the_other():
    with bsplib.Pool(2, start_method="fork") as pool:
        calls = [lambda number=number: pool.run(program, number) for number in range(6)]
        assert in_threads(*calls) == [[(number, 1)] * 2 for number in range(6)]


def test_a_run_that_fails_leaves_the_pool_to_the_next_thread():
    def fails(bsp):
        raise KeyError("of one thread")

    with bsplib.Pool(2, start_method="fork") as pool:
        failed, *others = in_threads(
            lambda: pool.run(fails), lambda: pool.run(program, 1), lambda: pool.run(program, 2)
        )
    assert isinstance(failed, KeyError)
    assert others == [[(1, 1)] * 2, [(2, 1)] * 2]


def test_a_pool_is_closed_after_the_run_that_another_thread_is_in():
    entered = threading.Event()
    pool = bsplib.Pool(2, start_method="fork")
    pool.run(program, 0)

    def run():
        entered.set()
        return pool.run(program, 1)

    def close():
        entered.wait()
        pool.close()

    result, _ = in_threads(run, close)
    assert result == [(1, 1)] * 2 or isinstance(result, bsplib.UsageError)
    with pytest.raises(bsplib.UsageError, match=r"^this pool is closed; make another one"):
        pool.run(program, 2)


@pytest.mark.parametrize("operation", ["run", "close"])
def test_a_signal_handler_that_uses_the_pool_it_interrupts_is_told_so(operation):
    def main(bsp):
        bsp.sync()
        if bsp.pid == 0:
            os.kill(os.getppid(), signal.SIGUSR1)
        time.sleep(DEADLINE_S)

    with bsplib.Pool(2, start_method="fork") as pool:
        pool.run(program, 0)

        def handle(*_):
            pool.run(program, 1) if operation == "run" else pool.close()

        before = signal.signal(signal.SIGUSR1, handle)
        try:
            with pytest.raises(
                bsplib.UsageError, match=rf"^Pool.{operation}: this thread is in a run of the pool"
            ):
                pool.run(main)
        finally:
            signal.signal(signal.SIGUSR1, before)
        assert pool.run(program, 2) == [(2, 1)] * 2


class DiesOnce:
    """What a process does: die, where none has yet."""

    def __init__(self, path):
        self.path = path

    def __call__(self, *args):
        try:
            self.path.touch(exist_ok=False)
        except FileExistsError:
            run_process(*args)
        else:
            os.kill(os.getpid(), signal.SIGKILL)


def test_a_pool_whose_start_died_starts_afresh_at_the_next_run(monkeypatch, tmp_path):
    monkeypatch.setattr(launch, "run_process", DiesOnce(tmp_path / "died"))
    pool = bsplib.Pool(2, start_method="fork")
    with pytest.raises(bsplib.ProcessDiedError, match=r"^process \d was killed by SIGKILL"):
        pool.run(program, 1)
    assert pool.run(program, 2) == [(2, 1)] * 2
    pool.close()
