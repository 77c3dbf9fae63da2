"""A script that ``bsp run --backend mpi`` runs inside processes of a launcher."""

from __future__ import annotations

import os
import re
import signal
import sys
import textwrap

import pytest

from bsplib.backends.mpi.installations import WHEELS

from .conftest import DEADLINE_S

pytestmark = [pytest.mark.slow, pytest.mark.timeout(2 * DEADLINE_S)]

BEGINNING = """
import os, sys
import bsplib

def who(bsp):
    bsp.sync()
    return bsp.pid

def fail(bsp, how):
    bsp.sync()
    if bsp.pid == 1 and how == "raise":
        raise KeyError("ill")
    if bsp.pid == 1 and how == "kill":
        os.kill(os.getpid(), 9)
    while bsp.pid == 0 and how == "compute":
        pass
    bsp.sync()
    bsp.sync()

def attempt(*arguments, **options):
    try:
        print(bsplib.run(*arguments, **options), flush=True)
    except Exception as error:
        print(type(error).__name__, error, flush=True)
"""


@pytest.fixture
def start_inside(program, mpi):
    """Start a script inside the processes of a launcher."""

    def start(text, *options, launcher=mpi, size=3):
        command = launcher.command()
        variables = [
            f"{name}={value}"
            for name, value in launcher.variables(crowded=True).items()
            if name != "MPI4PY_LIBMPI"
        ]
        begin = (
            "env",
            *variables,
            *command,
            "-n",
            str(size),
            sys.executable,
            "-m",
            "bsplib",
            "run",
        )
        return program(BEGINNING + textwrap.dedent(text), *begin, *options)

    return start


@pytest.fixture
def inside(start_inside, nothing_left):
    """Run a script inside the processes of a launcher; return its status, output and errors."""

    def run(*arguments, **options):
        started = start_inside(*arguments, **options)
        out, err = started.communicate(timeout=DEADLINE_S)
        nothing_left(2)
        return started.returncode, out, err

    return run


def test_the_script_runs_once_and_its_runs_have_all_processes(inside):
    text = """
    print("begins")
    attempt(who)
    attempt(who, nprocs=2)
    attempt(who, nprocs=4)
    with bsplib.Pool(3, backend="mpi") as pool:
        print(pool.run(who))
    """
    status, out, _ = inside(text, "--backend", "mpi")
    assert (status, out.splitlines()) == (
        0,
        [
            "begins",
            "[0, 1, 2]",
            "[0, 1]",
            "ProcessRangeError nprocs is 4; mpiexec has started 3 processes: ask for fewer, "
            "or start more",
            "[0, 1, 2]",
        ],
    )


def test_what_processes_print_has_their_pids(inside):
    text = """
    def talk(bsp):
        print("hello")

    bsplib.run(talk)
    """
    status, out, _ = inside(text, "--backend", "mpi", "-n", "2")
    assert (status, sorted(out.splitlines())) == (0, ["[0] hello", "[1] hello"])


def test_a_run_after_an_error_or_a_timeout_works(inside):
    text = """
    attempt(fail, "raise")
    attempt(who)
    attempt(fail, "compute", timeout=1)
    attempt(who)
    """
    status, out, _ = inside(text, "--backend", "mpi")
    lines = out.splitlines()
    assert status == 0
    assert lines[:2] == ["KeyError 'ill'", "[0, 1, 2]"]
    assert lines[2].startswith("RunTimeoutError run: the program took longer than timeout=1 sec")
    assert re.fullmatch(r"0 +1 +program\.py:\d+ +computing in fail", lines[4])
    assert lines[-1] == "[0, 1, 2]"


def test_a_process_that_is_killed_is_named_and_ends_the_job(inside):
    text = """
    attempt(fail, "kill")
    attempt(who)
    """
    status, out, _ = inside(text, "--backend", "mpi")
    assert status != 0
    assert out.splitlines()[:2] == [
        "ProcessDiedError process 1 was killed by SIGKILL in superstep 1",
        "StartError run: process 1 of this job has died, and only mpiexec can start it again",
    ]


def test_the_script_runs_once_where_no_backend_is_named_and_others_are_refused(inside):
    status, out, _ = inside("print('once')\nattempt(who)", size=2)
    assert (status, out.splitlines()) == (0, ["once", "[0, 1]"])
    status, out, err = inside("print('no')", "--backend", "shm", size=2)
    assert (status != 0, "no" in out.split()) == (True, False)
    assert "mpiexec, or srun, has started 2 processes of this program, which run it toge" in err


def test_the_library_of_one_mpi_in_the_processes_of_the_other_is_refused(inside, mpi):
    others = [each for each in WHEELS if each is not mpi and each.is_here()]
    if not others:
        pytest.skip("one MPI is installed only")
    status, out, err = inside("print('no')", "--backend", "mpi", launcher=others[0])
    assert status != 0
    assert "no" not in out.split()
    assert err.count("the MPI library that mpi4py loads (") == 1


def test_ctrl_c_at_the_launcher_ends_all_processes(start_inside, nothing_left):
    text = """
    def endless(bsp):
        bsp.sync()
        if bsp.pid == 0:
            print("runs", flush=True)
        while True:
            bsp.sync()

    bsplib.run(endless)
    """
    started = start_inside(text, "--backend", "mpi")
    assert started.stdout.readline().endswith("runs\n")
    os.killpg(started.pid, signal.SIGINT)  # as a terminal does
    _, err = started.communicate(timeout=DEADLINE_S)
    print("STATUS", started.returncode, err)
    nothing_left(2)
    assert started.returncode != 0
