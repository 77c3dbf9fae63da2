"""The lines that processes execute, as samples in the trace of a run."""

from __future__ import annotations

import hashlib
import mmap
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import bsplib
from bsplib.call_site import END
from bsplib.core import BUILD, sampling
from bsplib.core.sampling import Sampler, why_not
from bsplib.machine.parameters import load_machine
from bsplib.profiler.lines import lines_of
from bsplib.profiler.loss_lines import stretch_of
from bsplib.profiler.report import print_report
from bsplib.recording.records import Frame
from bsplib.recording.trace import read_trace
from tests.recordings import record_run

pytestmark = pytest.mark.real_processes

needs_sampler = pytest.mark.skipif(bool(why_not()), reason=why_not() or "it samples")
LIBRARY = Path(bsplib.__file__).parent / "machine/library"
BLOCK = bytes(2_000_000)


@pytest.fixture
def sampled(tmp_path):
    def run(main, *args, nprocs=2):
        path = tmp_path / "trace.bsp"
        results = bsplib.run(main, *args, nprocs=nprocs, profile=path)
        return results, read_trace(path).runs[-1]

    return run


def functions(run, *, inner=False):
    """Return how many samples the functions of a run have: of whole stacks, or of their ends."""
    found = Counter()
    for sample in run.samples:
        stack = run.stacks[sample["stack"]]
        names = {frame.function for frame in (stack[-1:] if inner else stack)}
        found.update(dict.fromkeys(names, 1))
    return found


def spend(seconds):
    """Use CPU time of this thread."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def computes(bsp):
    for _ in range(3):
        spend(0.05)
        bsp.sync()
    return bsp.pid


def counts(bsp):
    total = 0
    for number in range(1_000_000):
        total += number
    bsp.sync()
    return total


def sleeps(bsp):
    time.sleep(0.1)
    bsp.sync()


def calls_numpy(bsp):
    values = np.arange(2_000_000)
    end = time.perf_counter() + 0.15
    while time.perf_counter() < end:
        np.sort(values[::-1])
    bsp.sync()


def hashes_by_an_operator(bsp):
    class Hasher:
        def __matmul__(self, other):
            return hashlib.sha256(other).digest()

    hasher = Hasher()
    for _ in range(20):
        hasher @ BLOCK
        Hasher()
    bsp.sync()


def has_a_thread(bsp):
    other = threading.Thread(target=spend, args=(0.1,))
    other.start()
    spend(0.05)
    other.join()
    bsp.sync()


def waits_for_a_thread(bsp):
    other = threading.Lock()
    other.acquire()
    threading.Thread(target=lambda: (spend(0.1), other.release())).start()
    other.acquire()
    bsp.sync()


def has_a_timer(bsp):
    alarms = []
    signal.signal(signal.SIGALRM, lambda *_: alarms.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
    while len(alarms) < 5:
        time.sleep(0.005)
    signal.setitimer(signal.ITIMER_REAL, 0)
    bsp.sync()
    return len(alarms)


def raises_from_a_handler(bsp):
    def handle(*_):
        raise TimeoutError

    signal.signal(signal.SIGALRM, handle)
    caught = 0
    for _ in range(10):
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.003)
            spend(1)
        except TimeoutError:
            caught += 1
    bsp.sync()
    return caught


def forks(bsp):
    codes = []
    for _ in range(5):
        child = os.fork()
        if not child:
            spend(0.01)
            os._exit(3)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    said = subprocess.run([sys.executable, "-c", "print(1)"], capture_output=True, check=True)
    bsp.sync()
    return codes, said.stdout


def multiplies(matrix):
    return matrix @ matrix


def calls_helper(bsp):
    matrix = np.arange(160_000.0).reshape(400, 400)
    for _ in range(30):
        multiplies(matrix)
    bsp.sync()


def computes_and_sleeps(bsp):
    for _ in range(15):
        spend(0.005)
        time.sleep(0.005)
    bsp.sync()


def waits_in_every_way(bsp):
    seen = Counter()
    for number in (signal.SIGPROF, signal.SIGVTALRM):
        signal.signal(number, lambda number, _: seen.update([number]))
    signal.setitimer(signal.ITIMER_PROF, 0.005, 0.005)
    signal.setitimer(signal.ITIMER_VIRTUAL, 0.005, 0.005)
    while len(seen) < 2:
        spend(0.01)
    lock, (reader, writer) = threading.Lock(), os.pipe()
    threading.Timer(0.02, os.write, (writer, b"x")).start()
    waited = [lock.acquire(timeout=0.02), lock.acquire(timeout=0.02), os.read(reader, 1)]
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    bsp.sync()
    return waited


def makes_large_arrays(bsp):
    for _ in range(15):
        np.frombuffer(mmap.mmap(-1, 48_000_000))[:] = 1.0  # the heap may have memory from before
        bsp.sync()


def reads_machines(bsp, file):
    for _ in range(50):
        load_machine(file)
    bsp.sync()


def recurses(bsp, depth):
    if depth:
        return recurses(bsp, depth - 1)
    spend(0.05)
    bsp.sync()
    return None


@pytest.mark.lengthy
@needs_sampler
def test_the_function_that_computes_has_the_samples(sampled):
    results, run = sampled(computes)
    assert results == [0, 1]
    assert functions(run)["spend"] > 20
    seen = {frame.file for number in run.samples["stack"] for frame in run.stacks[number]}
    assert seen <= {__file__, ""}
    assert set(run.samples["pid"]) == {0, 1}


@needs_sampler
def test_a_sleep_is_blocked_on_its_line(sampled):
    _, run = sampled(sleeps)
    (line, *_) = [line for line in lines_of(run) if line.function == "sleeps"]
    assert line.line == sleeps.__code__.co_firstlineno + 1
    assert line.own.blocked > line.own.computing


@pytest.mark.lengthy
@needs_sampler
def test_processes_that_share_cores_are_without_one_and_not_blocked(sampled):
    _, run = sampled(counts, nprocs=3 * len(os.sched_getaffinity(0)))
    lines = [line.own for line in lines_of(run) if line.function == "counts"]
    assert sum(each.no_core for each in lines) > 5 * sum(each.blocked for each in lines)


@pytest.mark.lengthy
@needs_sampler
def test_time_inside_numpy_counts_for_the_line_that_calls_it(sampled):
    _, run = sampled(calls_numpy)
    line = max(lines_of(run), key=lambda line: line.own.computing + line.own.no_core)
    assert (line.function, line.line) == (
        "calls_numpy",
        calls_numpy.__code__.co_firstlineno + 4,
    )


@needs_sampler
def test_time_inside_an_operator_is_not_booked_to_the_line_after_it(sampled):
    _, run = sampled(hashes_by_an_operator)
    first = hashes_by_an_operator.__code__.co_firstlineno
    whole = {line.line - first: line.whole.total for line in lines_of(run)}
    assert whole.get(8, 0) < whole[7]


@pytest.mark.lengthy
@needs_sampler
def test_what_bsplib_calls_of_the_standard_library_is_no_function_of_the_program(sampled, tmp_path):
    file = shutil.copy(LIBRARY / "cray-t3e-mpi.toml", tmp_path)
    _, run = sampled(reads_machines, file)
    assert set(functions(run, inner=True)) <= {"reads_machines", END}


@pytest.mark.lengthy
@needs_sampler
def test_a_function_of_the_standard_library_that_map_calls_is_one_of_the_program(tmp_path):
    path = tmp_path / "trace.bsp"
    bsplib.map(textwrap.fill, ["a few words " * 2000] * 8, nprocs=2, profile=path)
    assert functions(read_trace(path).runs[-1])["fill"] > 0


@pytest.mark.lengthy
@needs_sampler
def test_other_threads_are_no_part_of_the_samples(sampled):
    _, run = sampled(has_a_thread)
    assert "Thread.run" not in functions(run)
    assert functions(run)["has_a_thread"] > 0


@pytest.mark.lengthy
@needs_sampler
def test_a_line_that_waits_for_its_own_threads_computes(sampled):
    _, run = sampled(waits_for_a_thread)
    own = {line.line: line.own for line in lines_of(run)}
    assert own[waits_for_a_thread.__code__.co_firstlineno + 4].computing > 0


@needs_sampler
def test_a_timer_of_the_program_keeps_its_signals(sampled):
    results, run = sampled(has_a_timer)
    assert min(results) >= 5
    assert len(run.samples)


@needs_sampler
def test_what_a_handler_of_the_program_raises_reaches_the_program(sampled):
    results, _ = sampled(raises_from_a_handler)
    assert results == [10, 10]


@pytest.mark.lengthy
@needs_sampler
def test_forked_processes_run_without_samples(sampled):
    results, run = sampled(forks)
    assert results == [([3] * 5, b"1\n")] * 2
    assert len(run.samples)


@needs_sampler
def test_a_deep_stack_keeps_its_innermost_calls(sampled):
    _, run = sampled(recurses, 300)
    assert functions(run, inner=True)["spend"] > 0


@pytest.mark.lengthy
@needs_sampler
def test_a_function_that_has_returned_before_it_was_seen_has_its_line(sampled):
    _, run = sampled(calls_helper)
    line = max(lines_of(run), key=lambda line: line.own.computing + line.own.no_core)
    assert (line.function, line.line) == ("multiplies", multiplies.__code__.co_firstlineno + 1)


@pytest.mark.lengthy
@needs_sampler
def test_a_line_that_sleeps_for_short_times_is_blocked_and_the_one_before_it_computes(sampled):
    _, run = sampled(computes_and_sleeps)
    first = computes_and_sleeps.__code__.co_firstlineno
    whole = {line.line - first: line.whole for line in lines_of(run)}
    assert whole[3].blocked > whole[3].computing
    assert whole[2].blocked < whole[2].total / 4


@pytest.mark.lengthy
@needs_sampler
def test_timers_locks_and_waits_of_the_program_are_as_without_samples(sampled):
    results, run = sampled(waits_in_every_way)
    assert results == [[True, False, b"x"]] * 2
    assert len(run.samples)


@needs_sampler
def test_ticks_become_rarer_as_a_run_gets_longer(monkeypatch):
    monkeypatch.setattr(sampling, "OF_RUN", 1)
    sampler = Sampler()
    assert sampler.start() == ""
    spend(0.1)
    _, ticks = sampler.stop()
    assert 0 < len(ticks) < 0.1e9 / sampling.INTERVAL_NS / 2


@pytest.mark.lengthy
@needs_sampler
def test_all_samples_together_are_the_time_until_the_last_one(sampled):
    _, run = sampled(computes)
    total = sum(line.own.total for line in lines_of(run))
    last = [run.samples["time"][run.samples["pid"] == pid].max() for pid in range(2)]
    # Some are at the ends of main, and after the last one a thread may have been without a core.
    assert 0.75 < total * 1e9 / sum(last) < 1.1


@pytest.mark.lengthy
@needs_sampler
def test_page_faults_of_memory_that_is_new_each_time_have_a_sentence(sampled, tmp_path):
    sampled(makes_large_arrays)
    (told,) = [
        each
        for each in bsplib.load(tmp_path / "trace.bsp").runs[-1].verdict().sentences
        if each.kind == "time in the system"
    ]
    line = makes_large_arrays.__code__.co_firstlineno + 2
    assert re.search(rf"computed at line {line}( in .*supersteps)? \(for ", told.text)
    assert "page faults: memory that is new each time)" in told.text


@pytest.mark.lengthy
@needs_sampler
def test_pools_sample_each_run(tmp_path):
    path = tmp_path / "trace.bsp"
    with bsplib.Pool(nprocs=2, profile=path) as pool:
        pool.run(computes)
        pool.run(computes)
    assert all(functions(run)["spend"] > 10 for run in read_trace(path).runs)


def reason(path, **options):
    run = record_run(path, computes, nprocs=1, **options)
    assert run.samples is None
    return run.measured["lines"]


@pytest.mark.lengthy
def test_the_report_says_why_no_line_was_sampled(tmp_path, capsys):
    reason(tmp_path / "trace.bsp", lines=False)
    print_report(bsplib.load(tmp_path / "trace.bsp").runs)
    assert "no line was sampled: this was switched off" in " ".join(capsys.readouterr().out.split())


def test_virtual_time_has_no_lines(tmp_path):
    assert "virtual time" in reason(tmp_path / "trace.bsp", backend="sim")


@pytest.mark.skipif(BUILD == "compiled", reason="this is the compiled core")
def test_the_interpreted_core_says_that_lines_need_the_compiled_one(tmp_path):
    assert "by the compiled core" in reason(tmp_path / "trace.bsp")


def frame(function, line, first=1):
    return Frame("a.py", function, first, line)


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (None, (frame("main", 7),), "from the beginning to line 7 of main (a.py)"),
        ((frame("main", 7),), (frame("main", 14),), "between line 7 and line 14 of main (a.py)"),
        (
            (frame("main", 7),),
            (frame("main", 7),),
            "between line 7 and the next time it is reached, in",
        ),
        (
            (frame("main", 14),),
            (frame("main", 7),),
            "between line 14 and line 7 of the next iteration, in main (a.py)",
        ),
        (
            (frame("main", 7), frame("f", 30, 29)),
            (frame("main", 14), frame("g", 50, 49)),
            "between line 7 and line 14 of main (a.py)",
        ),
        (
            (frame("main", 7), frame("f", 30, 29)),
            (frame("main", 7), frame("f", 33, 29)),
            "between line 30 and line 33 of f (a.py)",
        ),
    ],
)
def test_a_superstep_is_the_stretch_between_the_calls_at_its_ends(before, after, text):
    assert stretch_of(before, after).text.startswith(text)
