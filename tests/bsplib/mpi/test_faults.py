"""A process that fails, does not come back, or is lost: what is printed, and how the job ends."""

from __future__ import annotations

import signal
import sys
import textwrap
import time

import pytest

from tests.processes import run_python

from .conftest import DEADLINE_S

pytestmark = [pytest.mark.lengthy, pytest.mark.timeout(3 * DEADLINE_S)]

SIZE = 3
BEGINNING = """
import ctypes, os, signal, sys, time
import bsplib

def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())

def who(bsp):
    bsp.sync()
    return bsp.pid
"""


@pytest.fixture
def start(program, exchange):
    """Start a program by ``bsp run``, in ranks that exchange in both ways."""

    def begin(text, *options):
        command = (sys.executable, "-m", "bsplib", "run", "--backend", "mpi", "-n", str(SIZE))
        return program(BEGINNING + textwrap.dedent(text), *command, *options)

    return begin


@pytest.fixture
def outcome(start, nothing_left):
    """Run a program to its end; return status, output and errors."""

    def run(text, *options):
        started = start(text, *options)
        out, err = started.communicate(timeout=DEADLINE_S)
        nothing_left(3)
        return started.returncode, out, err

    return run


@pytest.fixture
def impatient(mpi, monkeypatch):
    """Let ranks wait for others after an error as they do for users."""
    monkeypatch.delenv("BSP_MPI_TOGETHER_S")


FAILS = {
    "raise": ("raise KeyError('ill')", "KeyError 'ill' | [process 1, superstep 1, program.py:"),
    "exit": ("sys.exit(3)", "ProcessDiedError process 1 ended by sys.exit(3) in superstep 1"),
    "abort": ("bsp.abort('stop')", "AbortError stop [process 1, superstep 1, program.py:"),
    "return": ("return", "SyncMismatchError the processes end this superstep differently: "),
}


@pytest.mark.parametrize(
    "how",
    ["raise", *(pytest.param(how, marks=pytest.mark.slow) for how in ("exit", "abort", "return"))],
)
def test_an_error_after_which_all_come_back_is_raised_in_all_ranks_and_the_next_run_works(
    outcome, how
):
    action, words = FAILS[how]
    text = f"""
    def main(bsp):
        bsp.sync()
        if bsp.pid == 1:
            {action}
        bsp.sync()
        bsp.sync()

    for _ in range(2):
        try:
            bsplib.run(main)
        except Exception as error:
            say(type(error).__name__, error, "|", *getattr(error, "__notes__", ()))
    say(bsplib.run(who))
    """
    status, out, err = outcome(text)
    lines = sorted(out.splitlines())
    assert (status, err) == (0, "")
    assert lines[-SIZE:] == ["[0, 1, 2]"] * SIZE or lines[:SIZE] == ["[0, 1, 2]"] * SIZE
    raised = [line for line in lines if line != "[0, 1, 2]"]
    assert len(raised) == 2 * SIZE
    assert all(line.startswith(words) for line in raised), raised


def test_of_several_errors_all_ranks_raise_the_first(outcome):
    text = """
    def main(bsp):
        bsp.sync()
        if bsp.pid:
            raise KeyError(bsp.pid)
        bsp.sync()

    try:
        bsplib.run(main)
    except KeyError as error:
        say(error, *error.__notes__)
    """
    status, out, _ = outcome(text)
    assert status == 0
    assert len(out.splitlines()) == SIZE
    assert all(line.startswith("1 [process 1, superstep 1,") for line in out.splitlines())


LONELY = """
def main(bsp):
    bsp.sync()
    if bsp.pid == 1:
        print("last words")
        raise KeyError("ill")
    {meanwhile}

bsplib.run(main)
"""


@pytest.mark.parametrize(
    "meanwhile", ["time.sleep(60)", pytest.param("while True: pass", marks=pytest.mark.slow)]
)
@pytest.mark.usefixtures("impatient")
def test_an_error_after_which_others_do_not_come_is_printed_and_ends_the_job(outcome, meanwhile):
    began = time.monotonic()
    status, out, err = outcome(LONELY.format(meanwhile=meanwhile))
    assert (status, out.splitlines()) == (1, ["[1] last words"])
    assert err.count("[process 1, superstep 1, program.py:") == 1
    assert "KeyError: 'ill'" in err
    assert time.monotonic() - began < DEADLINE_S / 2


def test_at_the_deadline_each_rank_says_where_it_is_and_the_status_is_124(outcome):
    text = """
    def main(bsp):
        bsp.sync()
        if bsp.pid == 1:
            time.sleep(60)
        while bsp.pid == 2:
            pass
        bsp.sync()

    bsplib.run(main)
    """
    status, _, err = outcome(text, "--timeout", "1")
    begins = "bsplib: run: the program took longer than timeout=1 seconds; process"
    lines = sorted(line for line in err.splitlines() if line.startswith(begins))
    assert status == 124
    assert len(lines) == SIZE
    assert lines[0].startswith(f"{begins} 0 is in superstep 1 at program.py:")
    assert "waiting in " in lines[0]
    assert "computing in main" in lines[1]
    assert "computing in main" in lines[2]


@pytest.mark.slow
def test_a_rank_in_c_code_that_keeps_the_lock_is_found_at_the_deadline_too(outcome):
    text = """
    def main(bsp):
        bsp.sync()
        if bsp.pid == 1:
            ctypes.PyDLL(None).sleep(60)
        bsp.sync()

    bsplib.run(main, timeout=1)
    """
    status, _, err = outcome(text)
    assert status == 124
    assert err.count("is in superstep 1 at program.py:") == SIZE - 1
    assert err.count("Timeout (0:00:01.25") == 1  # of the fault handler of Python


@pytest.mark.parametrize("name", ["SIGKILL", pytest.param("SIGSEGV", marks=pytest.mark.slow)])
def test_a_rank_that_is_killed_ends_the_job_and_the_launcher_says_so(outcome, name):
    text = f"""
    def main(bsp):
        bsp.sync()
        if bsp.pid == 1:
            os.kill(os.getpid(), signal.{name})
        bsp.sync()

    bsplib.run(main)
    """
    number = int(getattr(signal, name))
    status, out, err = outcome(text)
    assert status in (number, 128 + number)
    assert f"signal {number}" in out + err


@pytest.mark.slow
def test_an_error_inside_the_port_ends_the_job(program, over_mpi, nothing_left):
    text = """
import signal, time
import bsplib

def main(bsp):
    def interrupt(*_):
        raise InterruptedError("a signal handler of the program")

    bsp.sync()
    signal.signal(signal.SIGALRM, interrupt)
    if bsp.pid == 0:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        bsp.sync()
    while bsp.pid and bsp.time() < 0.5:
        time.sleep(0.01)
    bsp.sync()

try:
    bsplib.run(main)
except InterruptedError:
    print("not here")
"""
    command = (sys.executable, "-m", "bsplib", "run", "--backend", "mpi", "-n", "2")
    started = program(text, *command)
    out, err = started.communicate(timeout=DEADLINE_S)
    nothing_left(3)
    assert (started.returncode, out) == (1, "")
    assert "InterruptedError: a signal handler of the program" in err


@pytest.mark.slow
def test_ctrl_c_at_the_launcher_ends_all_ranks(program, nothing_left):
    text = """
import bsplib

def endless(bsp):
    bsp.sync()
    if bsp.pid == 0:
        print("runs", flush=True)
    while True:
        bsp.sync()

bsplib.run(endless)
"""
    command = (sys.executable, "-m", "bsplib", "run", "--backend", "mpi", "-n", "3")
    started = program(text, *command)
    assert started.stdout.readline().endswith("runs\n")
    started.send_signal(signal.SIGINT)  # as a terminal does
    started.communicate(timeout=DEADLINE_S)
    nothing_left(5)
    assert started.returncode != 0


@pytest.mark.slow
@pytest.mark.usefixtures("impatient")
def test_the_supersteps_of_a_run_that_was_ended_can_be_recovered(outcome, tmp_path):
    from pathlib import Path  # noqa: PLC0415

    from bsplib.recording.trace import read_trace  # noqa: PLC0415

    trace = tmp_path / "lonely.bsp"
    status, _, err = outcome(LONELY.format(meanwhile="time.sleep(60)"), "--profile", str(trace))
    assert status == 1
    (folder,) = tmp_path.glob(".bsp-records-*")
    assert f"bsp recover {folder}" in err
    run_python("-m", "bsplib", "recover", folder, check=True, timeout=DEADLINE_S)
    (run,) = read_trace(trace).runs
    assert not run.complete
    assert Path(trace).exists()
    assert run.records["superstep"].max() >= 0
