"""``breakpoint()`` in a run."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import subprocess
import sys
import termios
import time

import pytest

import bsplib
from tests.processes import run_python

PROGRAM = """
import bsplib

def main(bsp):
    x = 10 * bsp.pid
    breakpoint()
    bsp.sync()
    return x

if __name__ == "__main__":
    print(bsplib.run(main, nprocs=3), flush=True)
"""


@pytest.fixture
def in_terminal(script):
    """Run a command in a terminal of its own; return what it shows and its status."""

    def run(*line, keys):
        ours, theirs = pty.openpty()

        def own_terminal():
            os.setsid()
            fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)

        environment = {name: value for name, value in os.environ.items() if name[:3] != "BSP"}
        process = subprocess.Popen(
            [sys.executable, "-m", "bsplib", "run", *line, script(PROGRAM)],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            preexec_fn=own_terminal,  # noqa: PLW1509  # this process has one thread
            env=environment,
        )
        os.close(theirs)
        shown, end = "", time.monotonic() + 60
        try:
            while time.monotonic() < end and select.select([ours], [], [], 60)[0]:
                try:
                    shown += os.read(ours, 4096).decode()
                except OSError:  # the other end is closed
                    break
                if keys and shown.endswith("(Pdb) "):
                    key, *keys = keys
                    os.write(ours, f"{key}\n".encode())
            return shown, process.wait(10)
        finally:
            process.kill()
            process.wait()
            os.close(ours)

    return run


@pytest.mark.slow
@pytest.mark.parametrize("pid", [0, 2])
def test_the_debugged_process_stops_in_the_terminal_and_others_do_not(in_terminal, pid):
    shown, status = in_terminal("--debug", str(pid), keys=["p x + 1", "p bsp", "c"])
    assert status == 0, shown
    assert shown.count("(Pdb) ") == 3
    assert f"{10 * pid + 1}\r\n" in shown
    assert f"<Group {pid} of 3, superstep 0>" in shown
    assert "-> bsp.sync()" in shown or "-> breakpoint()" in shown
    assert "[0, 10, 20]" in shown


@pytest.mark.slow
def test_a_process_that_is_not_there_cannot_be_debugged(in_terminal):
    shown, status = in_terminal("--debug", "3", keys=[])
    assert status == 1
    assert "debug: there is no process 3 among 3" in shown


@pytest.mark.procs(1, 3)
@pytest.mark.real_processes
def test_without_a_terminal_the_error_names_the_way_out(run, monkeypatch):
    monkeypatch.setattr(sys, "breakpointhook", sys.__breakpointhook__)
    with pytest.raises(bsplib.UsageError, match=r"breakpoint: process 0 .*bsp run --debug 0"):
        run(lambda bsp: breakpoint())


def test_a_hook_of_the_program_stays_in_force(run, monkeypatch):
    def main(bsp):
        seen = []
        before, sys.breakpointhook = sys.breakpointhook, seen.append
        try:
            breakpoint(bsp.pid)
        finally:
            sys.breakpointhook = before
        return seen

    assert all(result == [pid] for pid, result in enumerate(run(main)))


def test_virtual_processors_stop_as_any_program_does(execute):
    done = run_python(
        "-c", PROGRAM.replace("nprocs=3", "nprocs=2, backend='sim'"), input="p x\nc\np x\nc\n"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("(Pdb) ") == 4
    assert "[0, 10]" in done.stdout
