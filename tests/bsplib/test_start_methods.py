"""Programs whose processes are not forked: functions and classes are sent to them."""

from __future__ import annotations

import gc
import os
import signal
import threading

import numpy as np
import pytest

import bsplib
from bsplib.backends.blas import _Blocks, one_thread, one_thread_where_loaded, set_by_user
from bsplib.backends.shm import launch

pytestmark = [pytest.mark.real_processes, pytest.mark.fresh]


@pytest.fixture
def run_in_thread(run):
    """Run from a thread that is not the main one, where a fork would be unsafe."""

    def run_it(main, *args):
        outcome = []

        def target():
            try:
                outcome.append(run(main, *args))
            except BaseException as error:  # noqa: BLE001  # raised below
                outcome.append(error)

        thread = threading.Thread(target=target)
        thread.start()
        thread.join()
        if isinstance(outcome[0], BaseException):
            raise outcome[0]
        return outcome[0]

    return run_it


@pytest.mark.procs(1, 2, 4)
def test_a_run_may_begin_in_any_thread(run_in_thread, nprocs):
    offset = 10  # closures travel

    def main(bsp, factor, *, more=0):
        x = bsp.zeros(300, int)
        bsp.put((bsp.pid + 1) % bsp.nprocs, np.full(300, bsp.pid), x)
        bsp.sync()
        return offset + factor * int(x[-1]) + more

    assert run_in_thread(main, 2) == [10 + 2 * ((pid - 1) % nprocs) for pid in range(nprocs)]


@pytest.mark.procs(2)
def test_two_runs_may_go_on_at_once_in_two_threads(run, nprocs):
    results = {}

    def main(bsp, number):
        for _ in range(20):
            bsp.send(1 - bsp.pid, number)
            bsp.sync()
            assert bsp.move() == number
        return number

    def target(number):
        results[number] = run(main, number)

    threads = [threading.Thread(target=target, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {0: [0, 0], 1: [1, 1]}


SCRIPT = """
import dataclasses, sys, threading
import bsplib

@dataclasses.dataclass
class Point:
    x: int

class OwnError(Exception):
    pass

LEVEL = 3

def helper(x):
    return x + LEVEL

def main(bsp, what, point):
    assert type(point) is Point
    if what == "error":
        raise OwnError("of the script's own type")
    if what == "result":
        return Point(helper(point.x))
    bsp.send(1 - bsp.pid, Point(helper(point.x)), tag=Point(bsp.pid))
    bsp.sync()
    (_, tag, got), = bsp.messages()
    assert type(got) is type(tag) is Point
    return got.x, tag.x

def start(what):
    try:
        print(bsplib.run(main, what, Point(1), nprocs=2))
    except OwnError as error:
        print("OwnError:", error)

if __name__ == "__main__":
    what, where = sys.argv[1:]
    if where == "main":
        start(what)
    else:
        thread = threading.Thread(target=start, args=(what,))
        thread.start()
        thread.join()
"""


TRAVELLING = [
    ("result", "[Point(x=4), Point(x=4)]"),
    ("message", "[(4, 1), (4, 0)]"),
    ("error", "OwnError: of the script's own type"),
]


@pytest.mark.parametrize(
    ("what", "printed", "where"),
    [
        *((*each, "thread") for each in TRAVELLING),
        (*TRAVELLING[0], "main"),
        *(pytest.param(*each, "main", marks=pytest.mark.slow) for each in TRAVELLING[1:]),
    ],
)
def test_classes_of_the_script_travel(execute, what, printed, where):
    done = execute(SCRIPT, what, where)
    assert (done.stdout.strip(), done.stderr) == (printed, "")


NOTEBOOK = """
import threading
threading.Thread(target=threading.Event().wait, daemon=True).start()  # as in a notebook
import bsplib

def main(bsp, factor):
    x = bsp.zeros(1, int)
    bsp.put(1 - bsp.pid, factor * bsp.pid, x)
    bsp.sync()
    return int(x[0])

print(bsplib.run(main, 5, nprocs=2))
print(bsplib.run(lambda bsp: bsp.pid, nprocs=3))
"""


def test_functions_typed_in_travel_from_a_session_with_threads(execute):
    """There is no file that another process could import them from."""
    done = execute(NOTEBOOK, typed_in=True)
    assert (done.stdout, done.stderr) == ("[5, 0]\n[0, 1, 2]\n", "")


def test_the_caller_gets_its_blas_threads_back_after_runs_that_overlap(monkeypatch):
    from threadpoolctl import threadpool_info, threadpool_limits  # noqa: PLC0415

    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    with threadpool_limits(2):
        before = threadpool_info()
        first, second = one_thread(), one_thread()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert {pool["num_threads"] for pool in threadpool_info()} == {1}
        second.__exit__(None, None, None)
        assert threadpool_info() == before


def test_processes_that_start_while_others_do_load_blas_with_one_thread_too(monkeypatch):
    """Another run, whose end comes first, must not look like a user who has set variables."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    for name in names:
        monkeypatch.delenv(name, raising=False)
    first, second = one_thread_where_loaded(), one_thread_where_loaded()
    first.__enter__()
    assert set_by_user() == {}
    second.__enter__()
    first.__exit__(None, None, None)
    assert {os.environ.get(name) for name in names} == {"1"}
    second.__exit__(None, None, None)
    assert {os.environ.get(name) for name in names} == {None}


def test_where_threads_cannot_be_limited_once_they_are_the_next_time():
    tries = []

    def set_up():
        tries.append(1)
        if len(tries) == 1:
            raise OSError("not now")
        return lambda: tries.append(-1)

    blocks = _Blocks(set_up)
    with pytest.raises(OSError, match="not now"), blocks.block():
        pass
    with blocks.block(), blocks.block():
        assert tries == [1, 1]
    assert tries == [1, 1, -1]


@pytest.mark.procs(2)
def test_more_blas_threads_can_be_asked_for(run, monkeypatch):
    from threadpoolctl import threadpool_info, threadpool_limits  # noqa: PLC0415

    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    with threadpool_limits(2):
        results = run(lambda bsp: {pool["num_threads"] for pool in threadpool_info()})
    assert results == [{2}, {2}]


LOADS_BLAS = """
    import os, sys
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.pop(name, None)
    from threadpoolctl import threadpool_info
    import bsplib

    def threads(bsp):
        import scipy.linalg
        return {pool["num_threads"] for pool in threadpool_info()}

    if __name__ == "__main__":
        before = len(threadpool_info())
        print(bsplib.run(threads, nprocs=2, backend=sys.argv[1]))
        import scipy.linalg
        after = threadpool_info()
        assert len(after) > before
        assert {pool["num_threads"] for pool in after} == {len(os.sched_getaffinity(0))}
        assert "OMP_NUM_THREADS" not in os.environ
"""


@pytest.mark.lengthy
@pytest.mark.parametrize("where", ["shm", "sim"])
def test_a_blas_that_main_loads_computes_with_one_thread_there(execute, where):
    """What the caller loads, and what is left in it after the run, has a thread for each core."""
    pytest.importorskip("scipy")
    done = execute(LOADS_BLAS, where)
    assert (done.stdout, done.stderr) == ("[{1}, {1}]\n", "")


BLAS = """
    import os
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.pop(name, None)
    import numpy as np
    from threadpoolctl import threadpool_info, threadpool_limits
    import bsplib

    def threads(bsp):
        return {pool["num_threads"] for pool in threadpool_info()}

    if __name__ == "__main__":
        with threadpool_limits(2):
            square = np.arange(90_000.0).reshape(300, 300) % 7
            expected, before = square @ square, threadpool_info()
            print(bsplib.run(threads, nprocs=2, start_method="fork"))
            with bsplib.Pool(2, start_method="fork") as pool:
                print(pool.run(threads))
                assert (square @ square == expected).all()
            assert threadpool_info() == before
            assert (square @ square == expected).all()
"""


def test_the_caller_computes_with_its_threads_again_while_processes_have_one(execute):
    done = execute(BLAS)
    assert (done.stdout, done.stderr) == ("[{1}, {1}]\n" * 2, "")


def test_where_the_system_has_no_pidfd_processes_are_forked_one_by_one(monkeypatch):
    def dies(bsp):
        if bsp.pid == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        bsp.sync()

    monkeypatch.setattr(launch, "CAN_FORK", False)
    assert bsplib.run(lambda bsp: bsp.pid, nprocs=3, start_method="fork") == [0, 1, 2]
    with pytest.raises(bsplib.ProcessDiedError, match=r"^process 1 was killed by SIGKILL"):
        bsplib.run(dies, nprocs=3, start_method="fork")


@pytest.mark.lengthy
def test_the_collector_of_garbage_works_in_a_process_if_it_does_in_its_caller():
    def main(bsp):
        return gc.isenabled(), gc.get_freeze_count() > 0

    assert bsplib.run(main, nprocs=2, start_method="fork") == [(True, True)] * 2
    gc.disable()
    try:
        assert bsplib.run(main, nprocs=2, start_method="fork") == [(False, True)] * 2
        assert not gc.isenabled()
    finally:
        gc.enable()
