"""Processes that are killed, parents that are killed, and what is left behind: nothing.

These are faults of real processes, hence of one backend.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import bsplib

DEADLINE_S = 30


@pytest.fixture
def run(nprocs):
    """Run in processes that can be killed."""
    return functools.partial(bsplib.run, nprocs=nprocs, backend="shm")


def eventually(condition):
    """Poll until a condition holds; False if it does not come to hold at all."""
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def shared_memory():
    """Names in /dev/shm; other programs of this machine come and go there."""
    return set(os.listdir("/dev/shm"))


def nothing_stays_in_shared_memory(before):
    """Names that were not there before may be others', but then not all the time."""
    left = shared_memory() - before

    def gone():
        left.intersection_update(shared_memory())
        return not left

    return eventually(gone)


def processes_where(field, value, *, zombies=True):
    """Pids of the processes of which a field of /proc/PID/stat has a value."""
    found = set()
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit():
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if fields[field] == str(value) and (zombies or fields[0] != "Z"):
                    found.add(int(entry.name))
    return found


children = functools.partial(processes_where, 1)
in_session = functools.partial(processes_where, 3, zombies=False)
"""Orphans that have ended are whoever's that adopted them."""


# -- one process dies -------------------------------------------------------------------------


def die(how):
    if isinstance(how, signal.Signals):
        os.kill(os.getpid(), how)
    else:
        os._exit(how)


WAYS = {
    "SIGKILL": (signal.SIGKILL, "was killed by SIGKILL"),
    "SIGTERM": (signal.SIGTERM, "was killed by SIGTERM"),
    "SIGSEGV": (signal.SIGSEGV, "was killed by SIGSEGV"),
    "status 0": (0, "exited with status 0"),
    "status 5": (5, "exited with status 5"),
}


@pytest.mark.procs(1, 3)
@pytest.mark.parametrize(("how", "words"), WAYS.values(), ids=WAYS)
def test_the_death_of_a_process_names_pid_way_and_superstep(run, nprocs, how, words):
    def main(bsp):
        for _ in range(4):
            bsp.sync()
        if bsp.pid == bsp.nprocs - 1:
            die(how)
        bsp.sync()

    with pytest.raises(
        bsplib.ProcessDiedError, match=rf"process {nprocs - 1} {words} in superstep 4"
    ) as raised:
        run(main)
    assert (raised.value.pid, raised.value.superstep) == (nprocs - 1, 4)


def before_anything(bsp, fatal):
    fatal()
    bsp.sync()


def after_a_put(bsp, fatal):
    x = bsp.zeros(2000)
    bsp.put((bsp.pid + 1) % bsp.nprocs, np.ones(2000), x)
    fatal()
    bsp.sync()


def after_a_sync(bsp, fatal):
    after_a_put(bsp, lambda: None)
    fatal()
    bsp.sync()


def in_a_sub_group(bsp, fatal):
    with bsp.partition([bsp.nprocs]) as sub:
        sub.sync()
        fatal()
        sub.sync()


def after_a_sub_group(bsp, fatal):
    with bsp.partition([bsp.nprocs]) as sub:
        sub.sync()
    fatal()


def in_an_oblivious_superstep(bsp, fatal):
    bsp.oblsync(0)
    fatal()
    bsp.send((bsp.pid + 1) % bsp.nprocs, 1)
    bsp.oblsync(1)


def at_the_end(bsp, fatal):
    bsp.sync()
    fatal()


def while_others_compute(bsp, fatal):
    fatal()
    while True:
        np.sort(np.random.default_rng(1).random(1000))


PHASES = [
    before_anything,
    after_a_put,
    after_a_sync,
    in_a_sub_group,
    after_a_sub_group,
    in_an_oblivious_superstep,
    at_the_end,
    while_others_compute,
]


@pytest.mark.procs(2, 4)
@pytest.mark.parametrize("phase", PHASES, ids=lambda phase: phase.__name__)
@pytest.mark.parametrize("how", [signal.SIGKILL, 3], ids=["killed", "exits"])
def test_a_process_may_die_in_any_phase_and_all_stop(run, phase, how):
    def main(bsp):
        phase(bsp, lambda: die(how) if bsp.pid == 1 else None)

    before, young = shared_memory(), children(os.getpid())
    with pytest.raises(bsplib.ProcessDiedError, match=r"^process 1 (was killed by|exited with)"):
        run(main)
    assert nothing_stays_in_shared_memory(before)
    assert len(children(os.getpid()) - young) <= 1  # a helper of multiprocessing, once


@pytest.mark.procs(2)
def test_a_process_killed_while_it_hands_over_its_result_is_a_death(run):
    class Fatal:
        def __reduce__(self):
            os.kill(os.getpid(), signal.SIGKILL)

    def main(bsp):
        return Fatal() if bsp.pid else None

    with pytest.raises(bsplib.ProcessDiedError, match=r"^process 1 was killed by SIGKILL"):
        run(main)


@pytest.mark.procs(4)
def test_all_processes_may_die_at_once(run):
    with pytest.raises(bsplib.ProcessDiedError, match=r"^process 0 was killed by SIGKILL"):
        run(lambda bsp: os.kill(os.getpid(), signal.SIGKILL))


@pytest.mark.procs(2)
def test_a_thread_that_the_program_leaves_behind_does_not_hold_the_run(run):
    def main(bsp):
        import threading  # noqa: PLC0415  # what a program may do

        threading.Thread(target=threading.Event().wait, daemon=True).start()
        return bsp.pid

    assert run(main) == [0, 1]


# -- nothing is left ---------------------------------------------------------------------------


@pytest.mark.procs(2)
def test_a_thousand_runs_leave_no_descriptor_no_child_and_no_name(run, nprocs):
    def main(bsp):
        x = bsp.zeros(100)
        bsp.put(0, 1, x)
        bsp.sync()
        return x

    run(main)  # starts the helpers of multiprocessing
    names = shared_memory()
    before = (os.listdir("/proc/self/fd"), children(os.getpid()))
    kept = [run(main) for _ in range(1000)]
    assert (os.listdir("/proc/self/fd"), children(os.getpid())) == before
    assert nothing_stays_in_shared_memory(names)
    assert len(kept) == 1000


@pytest.mark.procs(3)
def test_runs_that_fail_leave_no_descriptor_no_child_and_no_name(run):
    def main(bsp, phase, fatal):
        phase(bsp, fatal if bsp.pid == 1 else lambda: None)

    def raises():
        raise KeyError

    def fail():
        for phase in (before_anything, after_a_put, in_a_sub_group):
            for fatal in (raises, lambda: die(1), lambda: sys.exit(1)):
                with pytest.raises((KeyError, bsplib.ProcessDiedError)):
                    run(main, phase, fatal)

    fail()
    names = shared_memory()
    before = (os.listdir("/proc/self/fd"), children(os.getpid()))
    fail()
    assert (os.listdir("/proc/self/fd"), children(os.getpid())) == before
    assert nothing_stays_in_shared_memory(names)


@pytest.mark.procs(2)
def test_mapped_memory_is_given_back(run):
    def mapped():
        return len(Path("/proc/self/maps").read_text().splitlines())

    def main(bsp):
        return bsp.zeros(1000)

    for _ in range(5):
        run(main)
    before = mapped()
    for _ in range(20):
        run(main)
    assert mapped() < before + 10


# -- the parent dies ------------------------------------------------------------------------------

SCRIPT = """
import os, signal, sys, threading
import bsplib

def main(bsp, busy):
    x = bsp.zeros(100_000)
    bsp.sync()
    os.write(1, f"{os.getpid()}\\n".encode())
    while True:
        if busy == "sync":
            bsp.put(0, x, x)
            bsp.sync()
        elif busy == "waits" and bsp.pid:
            bsp.sync()
        else:
            signal.pause()

def start():
    bsplib.run(main, sys.argv[1], nprocs=3)

if __name__ == "__main__":
    if sys.argv[2] == "main thread":
        start()
    else:
        threading.Thread(target=start).start()
"""


@pytest.fixture
def parent(script):
    """Start a script in a session of its own, wait until its processes run."""
    started = []

    def start(*args):
        popen = subprocess.Popen(
            [sys.executable, script(SCRIPT), *args],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(popen)
        pids = {int(popen.stdout.readline()) for _ in range(3)}
        assert pids <= in_session(popen.pid)
        return popen

    yield start
    for popen in started:
        for pid in in_session(popen.pid):
            os.kill(pid, signal.SIGKILL)
        popen.communicate()


BUSY = ["sync", "waits", "computes"]


@pytest.mark.parametrize("death", [signal.SIGTERM, signal.SIGKILL], ids=lambda s: s.name)
@pytest.mark.parametrize(
    ("busy", "start"), [*((busy, "main thread") for busy in BUSY), ("sync", "other thread")]
)
def test_the_processes_end_with_their_parent(parent, busy, death, start):
    before = shared_memory()
    popen = parent(busy, start)
    os.kill(popen.pid, death)
    popen.wait(DEADLINE_S)
    assert popen.returncode == -death
    assert eventually(lambda: not in_session(popen.pid))
    assert nothing_stays_in_shared_memory(before)


@pytest.mark.parametrize(
    ("busy", "to"), [("waits", "the parent"), *((busy, "all, as a terminal does") for busy in BUSY)]
)
def test_ctrl_c_ends_the_run_with_one_traceback(parent, busy, to):
    before = shared_memory()
    popen = parent(busy, "main thread")
    if to == "the parent":
        os.kill(popen.pid, signal.SIGINT)
    else:
        os.killpg(popen.pid, signal.SIGINT)
    _, errors = popen.communicate(timeout=DEADLINE_S)
    assert popen.returncode == -signal.SIGINT
    assert errors.count("Traceback") == 1
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert eventually(lambda: not in_session(popen.pid))
    assert nothing_stays_in_shared_memory(before)


def test_a_program_may_go_on_after_ctrl_c(execute):
    """The interrupt comes from a process of the run, once all are there."""
    done = execute("""
        import os, signal
        import bsplib

        def main(bsp):
            bsp.sync()
            if bsp.pid == 0:
                os.kill(os.getppid(), signal.SIGINT)
            while True:
                bsp.sync()

        try:
            bsplib.run(main, nprocs=3)
        except KeyboardInterrupt:
            print(bsplib.run(lambda bsp: bsp.pid, nprocs=3))
    """)
    assert (done.stdout, done.stderr) == ("[0, 1, 2]\n", "")
