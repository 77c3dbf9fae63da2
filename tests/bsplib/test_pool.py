"""Processes that are kept between runs."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import signal
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import bsplib
from bsplib import core
from bsplib.machine import load_machine
from bsplib.recording.trace import read_trace
from bsplib.running.options import overriding
from tests.processes import run_python

from .leftovers import children
from .phases import DEADLINE_S, eventually
from .pipes_backend import PIPES

pytestmark = pytest.mark.real_processes

METHODS = multiprocessing.get_all_start_methods()

# Functions that a pool is given stand inside the tests: they travel by value then, and
# processes that are not forked could not import this file.


@pytest.fixture(scope="module")
def pool():
    """The pool of all tests that leave it open; it starts afresh where processes have ended."""
    with bsplib.Pool(nprocs=3) as made:
        yield made


def descriptors():
    """Open descriptors of this process, and what they are of."""
    found = {}
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found[int(name)] = os.readlink(f"/proc/self/fd/{name}")
    return {number for number, target in found.items() if not target.endswith("/fd")}


def os_pids(bsp):
    bsp.sync()
    return os.getpid()


# -- run after run ----------------------------------------------------------------------------


def test_runs_of_a_pool_have_the_same_processes(pool):
    first = pool.run(lambda bsp: os.getpid())
    assert len(set(first)) == 3
    assert os.getpid() not in first
    for _ in range(5):
        assert pool.run(os_pids) == first


def test_a_pool_of_one_process_is_a_process_of_its_own():
    with bsplib.Pool(1) as pool:
        (first,) = pool.run(lambda bsp: os.getpid())
        assert pool.run(lambda bsp: os.getpid()) == [first] != [os.getpid()]


def test_a_pool_has_as_many_processes_as_there_are_cores_if_it_is_not_told():
    pool = bsplib.Pool()
    try:
        assert pool.nprocs == len(os.sched_getaffinity(0))
    finally:
        pool.close()


def test_arguments_of_a_run_reach_every_process(pool):
    def main(bsp, values, *more, scale=1, **others):
        values += bsp.pid  # its own copy
        return values.tolist(), more, scale, others

    values = np.arange(2)
    results = pool.run(main, values, "a", None, scale=4, other=b"x")
    assert results == [([pid, pid + 1], ("a", None), 4, {"other": b"x"}) for pid in range(3)]
    assert values.tolist() == [0, 1]


def test_lambdas_closures_and_changed_closures_travel_to_a_pool(pool):
    offset = 10

    def main(bsp):
        return offset + bsp.pid

    assert pool.run(main) == [10, 11, 12]
    offset = 20
    assert pool.run(main) == [20, 21, 22]
    assert pool.run(lambda bsp: -offset) == [-20] * 3


def test_globals_of_modules_stay_between_runs():
    def count(bsp):
        import colorsys  # noqa: PLC0415  # any module of the process

        number = getattr(colorsys, "runs_of_a_test", 0) + 1
        colorsys.runs_of_a_test = number
        return number

    with bsplib.Pool(3) as pool:
        assert [pool.run(count) for _ in range(3)] == [[1] * 3, [2] * 3, [3] * 3]


@pytest.mark.lengthy
def test_more_than_a_hundred_runs_in_a_row_do_not_grow():
    def main(bsp, number):
        x = bsp.zeros(1000, int)
        bsp.put((bsp.pid + 1) % bsp.nprocs, np.full(1000, number), x)
        with bsp.partition([bsp.nprocs]) as sub:
            sub.sync()
        bsp.sync()
        return int(x.sum())

    def blocks(bsp):
        bsp.sync()
        return os.fstat(bsp._port._segment.descriptor).st_blocks

    with bsplib.Pool(2) as pool:
        pool.run(main, 0)
        before = descriptors()
        reserved = pool.run(blocks)
        for number in range(150):
            assert pool.run(main, number) == [1000 * number] * 2
        assert descriptors() == before
        assert pool.run(blocks) == reserved


def test_a_pool_may_check(pool):
    def main(bsp):
        x = bsp.zeros(1)
        bsp.put(0, 1, x)
        bsp.sync()

    pool.run(main)
    with (
        bsplib.Pool(3, check=True) as checks,
        pytest.raises(bsplib.OverlapError, match="overlap in"),
    ):
        checks.run(main)


def test_a_pool_has_a_machine(pool):
    assert pool.run(lambda bsp: bsp.machine.name) == ["shared memory"] * 3
    with bsplib.Pool(1, machine="ibm-sp2-pvm") as other:
        assert other.run(lambda bsp: bsp.machine.name) == ["IBM SP2, PVM"]


def test_what_the_command_line_says_of_records_applies_to_a_pool(pool, tmp_path):
    path = tmp_path / "recorded.bsp"
    with overriding(profile=str(path)):
        assert pool.run(lambda bsp: bsp.sync()) == [None] * 3
        assert pool.run(lambda bsp: bsp.sync()) == [None] * 3
    assert [run.nprocs for run in read_trace(path).runs] == [3, 3]


def test_the_options_of_the_command_line_replace_those_of_a_pool():
    named = overriding(nprocs=2, backend="sim", machine=load_machine("ibm-sp2-pvm"))
    with named, bsplib.Pool(3) as pool:
        assert pool.run(lambda bsp: (bsp.nprocs, bsp.machine.name)) == [(2, "IBM SP2, PVM")] * 2
        assert pool.nprocs == 2


def test_a_pool_reports_virtual_times_under_the_command_line():
    told = []
    with overriding(report_times=told.append), bsplib.Pool(2, backend="sim") as pool:
        pool.run(lambda bsp: bsp.charge(1.0))
    assert [times.computation_s for times in told] == [2.0]


def test_the_timeout_of_the_command_line_ends_a_run_of_a_pool():
    ends = pytest.raises(bsplib.RunTimeoutError, match=r"timeout=0\.2")
    with overriding(timeout=0.2), bsplib.Pool(2) as pool, ends:
        pool.run(lambda bsp: time.sleep(DEADLINE_S))


def test_the_file_of_the_records_of_a_pool_may_change_between_runs(pool, tmp_path):
    pool.profile = tmp_path / "first.bsp"
    pool.run(lambda bsp: bsp.sync())
    pool.profile = None
    pool.run(lambda bsp: bsp.sync())
    assert [path.name for path in tmp_path.iterdir()] == ["first.bsp"]
    with pytest.raises(bsplib.UsageError, match=r"profile: .* is a folder"):
        pool.profile = tmp_path


def test_a_program_of_a_pool_may_have_an_argument_called_profile(pool, tmp_path):
    path = tmp_path / "recorded.bsp"
    assert pool.run(lambda bsp, profile: str(profile), profile=path) == [str(path)] * 3
    assert not path.exists()


# -- errors and deaths ------------------------------------------------------------------------


def test_a_run_after_a_killed_process_is_as_good_as_new(pool):
    def dies(bsp):
        bsp.sync()
        if bsp.pid == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        bsp.sync()

    first = pool.run(os_pids)
    with pytest.raises(bsplib.ProcessDiedError, match="process 2 was killed by SIGKILL"):
        pool.run(dies)
    second = pool.run(os_pids)
    assert not set(first) & set(second)


def test_a_process_killed_between_two_runs_is_found_by_the_next(pool):
    victim = pool.run(os_pids)[1]
    os.kill(victim, signal.SIGKILL)
    with pytest.raises(bsplib.ProcessDiedError, match="process 1 was killed by SIGKILL"):
        pool.run(os_pids)
    assert len(set(pool.run(os_pids))) == 3


def test_an_exit_ends_a_run_and_not_the_pool(pool):
    with pytest.raises(bsplib.ProcessDiedError, match=r"sys.exit\(4\)"):
        pool.run(lambda bsp: sys.exit(4))
    assert pool.run(lambda bsp: bsp.pid) == [0, 1, 2]


def test_what_cannot_be_pickled_is_said_and_the_pool_goes_on(pool):
    with pytest.raises(bsplib.MessageError, match="what main returned on process 0 cannot be"):
        pool.run(lambda bsp: threading.Lock())
    assert pool.run(lambda bsp: bsp.pid) == [0, 1, 2]
    with pytest.raises(TypeError, match="pickle"):
        pool.run(lambda bsp, lock: None, threading.Lock())
    assert pool.run(lambda bsp: bsp.pid) == [0, 1, 2]


def test_a_closed_pool_runs_nothing():
    pool = bsplib.Pool(2)
    pool.run(os_pids)
    pool.close()
    with pytest.raises(bsplib.UsageError, match="this pool is closed"):
        pool.run(os_pids)
    pool.close()  # once more does nothing


def test_a_pool_is_closed_at_the_end_of_its_block_and_errors_pass():
    pool = bsplib.Pool(2)
    with pytest.raises(KeyError), pool:
        raise KeyError
    with pytest.raises(bsplib.UsageError, match="closed"):
        pool.run(os_pids)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"nprocs": 0}, bsplib.ProcessRangeError, "nprocs is 0; it may be 1 to 256 on shm"),
        ({"nprocs": 257}, bsplib.ProcessRangeError, "nprocs is 257"),
        ({"wait": "sleep"}, bsplib.UsageError, "no wait 'sleep'; choose one of auto, spin, block"),
        ({"start_method": "thread"}, bsplib.UsageError, "no start_method 'thread'"),
        ({"machine": "abacus"}, bsplib.UsageError, "there is no Machine 'abacus'"),
        ({"n": 2}, bsplib.ArgumentError, "^Pool: there is no option n=; write nprocs=$"),
        ({"timeout": 3}, bsplib.ArgumentError, "^Pool: there is no option timeout=; there are np"),
    ],
)
def test_a_pool_that_cannot_be_is_refused(arguments, error, words):
    with pytest.raises(error, match=words):
        bsplib.Pool(**arguments)


# -- start methods, and what is left ------------------------------------------------------------


@pytest.mark.lengthy
@pytest.mark.parametrize("method", METHODS)
def test_a_pool_works_with_every_start_method(method):
    offset = 5

    def main(bsp, factor):
        x = bsp.zeros(3000, int)
        bsp.put(1 - bsp.pid, np.full(3000, factor * bsp.pid + offset), x)
        bsp.send(1 - bsp.pid, bsp.pid)
        bsp.sync()
        return int(x[-1]), bsp.move(), os.getpid()

    def fails(bsp):
        raise KeyError(bsp.pid)

    with bsplib.Pool(2, start_method=method) as pool:
        first = pool.run(main, 2)
        second = pool.run(main, 3)
        with pytest.raises(KeyError, match="0"):
            pool.run(fails)
        third = pool.run(main, 4)
    assert [result[:2] for result in first] == [(7, 1), (5, 0)]
    assert [result[:2] for result in second] == [(8, 1), (5, 0)]
    assert [result[:2] for result in third] == [(9, 1), (5, 0)]
    assert [result[2] for result in first] == [result[2] for result in second]


@pytest.mark.parametrize("method", METHODS)
def test_a_pool_leaves_no_name_in_shared_memory_even_while_it_lives(method):
    before = set(os.listdir("/dev/shm"))
    with bsplib.Pool(2, start_method=method) as pool:
        pool.run(lambda bsp: bsp.pid)
        left = set(os.listdir("/dev/shm")) - before

        def gone():
            left.intersection_update(os.listdir("/dev/shm"))  # others' come and go
            return not [name for name in left if not name.startswith("sem.")]

        assert eventually(gone)


@pytest.mark.lengthy
def test_a_closed_pool_leaves_no_descriptor_and_no_child():
    def use(number):
        with bsplib.Pool(3, start_method="fork") as pool:
            assert pool.run(lambda bsp: number) == [number] * 3
            with contextlib.suppress(KeyError):
                pool.run(lambda bsp: {}[bsp.pid])
            pool.run(os_pids)

    use(0)  # whatever is made once is made now
    before, young = descriptors(), children(os.getpid())
    for number in range(5):
        use(number)
    assert descriptors() == before
    assert children(os.getpid()) == young


def test_a_closed_pool_gives_its_memory_back():
    stat = os.statvfs("/dev/shm")
    with bsplib.Pool(2) as pool:
        pool.run(lambda bsp: bool(bsp.zeros(100 << 20, np.uint8).any()))

    def returned():
        return (stat.f_bfree - os.statvfs("/dev/shm").f_bfree) * stat.f_frsize < 50 << 20

    assert eventually(returned)


def test_two_pools_live_side_by_side():
    with bsplib.Pool(2) as one, bsplib.Pool(3) as other:
        first, second = one.run(os_pids), other.run(os_pids)
        assert not set(first) & set(second)
        assert (one.run(os_pids), other.run(os_pids)) == (first, second)
        one.close()
        assert other.run(os_pids) == second


def test_a_pool_may_be_used_from_a_thread_that_is_not_the_main_one():
    results = []

    def work():
        with bsplib.Pool(2) as pool:
            results.extend(
                pool.run(lambda bsp, number: (bsp.pid, number), number) for number in (1, 2)
            )

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert results == [[(0, 1), (1, 1)], [(0, 2), (1, 2)]]


@pytest.mark.lengthy
def test_processes_of_a_pool_that_nobody_closed_end_with_the_program(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent("""
            import os
            import bsplib

            if __name__ == "__main__":
                pool = bsplib.Pool(2)
                print(*pool.run(lambda bsp: os.getpid()))
        """)
    )
    done = run_python(script)
    assert (done.returncode, done.stderr) == (0, "")
    pids = [int(word) for word in done.stdout.split()]
    assert len(pids) == 2
    assert eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))


def test_processes_of_a_pool_that_nobody_has_any_more_end():
    pool = bsplib.Pool(2)
    pids = pool.run(os_pids)
    del pool
    gc.collect()
    assert eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))


# -- what a pool is told, as a run is ------------------------------------------------------------


def sums(bsp, n):
    x = bsp.zeros(bsp.nprocs, int)
    bsp.put(0, n, x, offset=bsp.pid)
    bsp.sync()
    return int(x.sum())


@pytest.mark.lengthy
@pytest.mark.parametrize("kind", ["shm", "sim"])
def test_the_runs_of_a_pool_are_recorded_in_one_trace(tmp_path, kind):
    path = tmp_path / "pool.bsp"
    with bsplib.Pool(2, backend=kind, profile=path, machine="ideal") as pool:
        assert [pool.run(sums, n) for n in (1, 2, 3)] == [[2, 0], [4, 0], [6, 0]]
        with pytest.raises(ZeroDivisionError):
            pool.run(lambda bsp: 1 / 0)
        assert pool.run(sums, 4) == [8, 0]
    runs = read_trace(path).runs
    assert [run.meta["main"] for run in runs[:3]] == ["sums"] * 3
    assert [run.nprocs for run in runs] == [2] * 5
    assert runs[0].meta["machine"]["name"] == "ideal"
    assert "ZeroDivisionError" in runs[3].meta["error"]
    assert [len(run.records) for run in (runs[0], runs[4])] == [4, 4]


def test_a_trace_that_cannot_be_written_is_an_error_when_the_pool_is_made(tmp_path):
    with pytest.raises(bsplib.UsageError, match=r"^profile: .*nowhere"):
        bsplib.Pool(2, profile=tmp_path / "nowhere" / "pool.bsp")


def test_a_pool_of_virtual_processors_runs_in_the_order_of_its_seed():
    def main(bsp, order):
        order.append(bsp.pid)
        seen.append(bsp.pid)

    orders = set()
    for seed in range(8):
        with bsplib.Pool(20, backend="sim", sim_seed=seed) as pool:
            both = []
            for _ in range(2):
                seen: list[int] = []
                pool.run(main, [])
                both.append(tuple(seen))
            assert both[0] == both[1]
            orders.add(both[0])
    assert len(orders) > 1


def test_a_pool_of_virtual_processors_has_a_timeout_and_closes():
    def main(bsp):
        while True:
            pass

    pool = bsplib.Pool(3, backend="sim")
    with pytest.raises(bsplib.RunTimeoutError):
        pool.run(main, timeout=0.2)
    assert pool.run(sums, 1) == [3, 0, 0]
    pool.close()
    with pytest.raises(bsplib.UsageError, match="this pool is closed"):
        pool.run(sums, 1)


def test_a_pool_of_a_backend_that_keeps_nothing_starts_its_processes_for_each_run():
    with bsplib.Pool(2, backend=PIPES.name) as pool:
        pids = [pool.run(lambda _: os.getpid()) for _ in range(2)]
    assert len({*pids[0], *pids[1]}) == 4


# -- the log ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["shm", "sim"])
def test_start_and_end_of_each_run_are_logged(caplog, kind):
    caplog.set_level("INFO", "bsplib")
    bsplib.run(sums, 1, nprocs=2, backend=kind)
    with bsplib.Pool(2, backend=kind) as pool:
        pool.run(sums, 1)
        with pytest.raises(ZeroDivisionError):
            pool.run(lambda bsp: 1 / 0)
    texts = [text for text in caplog.messages if not text.startswith("fallback")]
    start = f"run of sums starts: 2 processes, backend {kind}, core {core.BUILD}"
    assert texts[:3:2] == [start] * 2
    assert [text.rsplit(" after")[0] for text in texts[1:4:2]] == ["run of sums ended"] * 2
    assert "<lambda> ended by ZeroDivisionError after" in texts[5]
    assert len(texts) == 6


def test_a_fallback_is_logged(caplog):
    caplog.set_level("INFO", "bsplib")
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        bsplib.run(lambda bsp: bsp.pid, nprocs=2)
    finally:
        stop.set()
        thread.join()
    assert any(
        "started by a fork server, since this process has 2 threads" in text
        for text in caplog.messages
    )
