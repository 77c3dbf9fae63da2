"""A run that takes longer than its timeout, or is interrupted, says where every process is."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

import bsplib
from tests.processes import run_python

from .neighbours import line_of

pytestmark = pytest.mark.fresh

TIMEOUT = 0.25
EARLY = (
    "before main",
    "answer",
    "computing in <module>",
    "computing in loops",
    "computing in sync",
    "computing in allreduce",
)
"""Words for a process that is not yet where it stays: a spawned one imports this file first,
and on a busy computer a process may not have reached the wait in a primitive."""
LONGEST = 30.0


def spin():
    while True:
        pass


def loops(bsp):
    bsp.sync()
    bsp.sync()
    if bsp.pid == 1:
        spin()
    bsp.allreduce(1)


def rows(text):
    """The lines of the table, each as (superstep, place, doing), by the words for processes."""
    lines = text[text.index("process  superstep") :].splitlines()[1:]
    cells = (re.split(r"\s{2,}", line) for line in lines)
    return {words: tuple(rest) for words, *rest in cells}


def overdue(run, main, **more):
    """Return the error of a run that never ends, once all its processes are where they stay."""
    timeout = TIMEOUT
    while True:
        with pytest.raises(bsplib.RunTimeoutError) as raised:
            run(main, timeout=timeout, **more)
        early = any(words in str(raised.value) for words in EARLY)
        if not early or timeout > LONGEST:
            return raised.value
        timeout *= 2  # this computer is busy


@pytest.mark.procs(2, 4)
def test_a_timeout_names_superstep_line_and_activity_of_every_process(run):
    error = overdue(run, loops)
    text = str(error)
    assert re.match(r"run: the program took longer than timeout=[\d.]+ seconds; its process", text)
    found = rows(text)
    assert found["1"] in [
        ("2", f"test_timeout.py:{line_of(spin, line)}", "computing in spin")
        for line in ("while", "pass")
    ]
    waiting = {row for words, row in found.items() if words != "1"}
    assert waiting <= {
        ("2", f"test_timeout.py:{line_of(loops, 'allreduce')}", "waiting in allreduce"),
        ("1", f"test_timeout.py:{line_of(loops, 'bsp.sync') + 1}", "waiting in sync"),
    }
    assert isinstance(error, TimeoutError)


@pytest.mark.procs(2)
@pytest.mark.real_processes
def test_a_loop_in_c_code_is_named_by_its_line(run):
    def main(bsp):
        if bsp.pid == 0:
            sum(iter(int, 1))  # never ends, and holds the interpreter

    assert rows(str(overdue(run, main)))["0"][1] == f"test_timeout.py:{line_of(main, 'iter')}"


@pytest.mark.procs(2)
@pytest.mark.real_processes
def test_a_process_that_is_stopped_is_named(run):
    def main(bsp):
        if bsp.pid == 1:
            os.kill(os.getpid(), signal.SIGSTOP)
        bsp.sync()

    text = str(overdue(run, main))
    assert re.search(r"^1 +0 +stopped by a signal$", text, re.MULTILINE)


@pytest.mark.slow
@pytest.mark.real_processes
@pytest.mark.procs(2)
@pytest.mark.parametrize("method", [pytest.param("spawn", marks=pytest.mark.slow), "forkserver"])
def test_a_timeout_is_kept_under_every_start_method(run, method):
    assert "computing in spin" in str(overdue(run, loops, start_method=method))


def test_a_pool_takes_a_timeout_for_each_run():
    with bsplib.Pool(2) as pool:
        assert pool.run(lambda bsp: bsp.pid, timeout=60) == [0, 1]
        assert "computing in spin" in str(overdue(pool.run, loops))
        assert pool.run(lambda bsp: bsp.pid) == [0, 1]


@pytest.mark.slow
@pytest.mark.procs(2)
def test_a_timeout_ends_a_run_of_a_thread_that_is_not_the_main_one(run):
    errors = []

    def call():
        errors.append(overdue(run, loops))

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    assert "computing in spin" in str(errors[0])


@pytest.mark.procs(3)
def test_all_endless_loops_are_ended(run):
    def main(bsp):
        bsp.sync()
        spin()

    assert "computing in spin" in str(overdue(run, main))


@pytest.mark.lengthy
def test_no_thread_is_left_after_a_run_in_the_simulator_so_that_a_next_one_can_be_forked():
    for _ in range(20):
        bsplib.run(lambda bsp: bsp.sync(), nprocs=2, backend="sim", timeout=60)
        assert "bsp-alarm" not in {thread.name for thread in threading.enumerate()}


SCRIPT = """
    import sys, time
    import bsplib

    def main(bsp):
        bsp.sync()
        print("here", flush=True)
        while bsp.pid == 1:
            pass
        bsp.sync()

    if __name__ == "__main__":
        bsplib.run(main, nprocs=2, backend=sys.argv[1])
"""


@pytest.mark.parametrize("command", [[], ["-m", "bsplib", "run"]])
def test_ctrl_c_shows_where_every_process_is(backend, command, script):
    path = script(SCRIPT)
    started = subprocess.Popen(
        [sys.executable, *command, str(path), backend],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert "here" in started.stdout.readline()
    time.sleep(0.3)
    started.send_signal(signal.SIGINT)
    _, error = started.communicate(timeout=30)
    assert "KeyboardInterrupt\nThe processes of the run were here:\n" in error
    text = textwrap.dedent(SCRIPT).splitlines()
    loop = 1 + text.index("    while bsp.pid == 1:")
    assert rows(error)["1"][1] in (f"script.py:{loop}", f"script.py:{loop + 1}")
    assert rows(error)["1"][2] == "computing in main"
    assert "0" in rows(error)


def test_the_command_takes_a_timeout(execute, script):
    path = script(SCRIPT)
    done = run_python("-m", "bsplib", "run", "--timeout", "0.5", path, "shm")
    assert done.returncode == 1
    assert "RunTimeoutError: run: the program took longer than timeout=0.5" in done.stderr
    assert "bsplib/" not in done.stderr  # no frame of the library
    assert "click" not in done.stderr
