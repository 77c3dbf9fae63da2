"""The caller of a run is killed or interrupted: its processes end, and nothing is left."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading

import pytest

import bsplib

from .leftovers import in_session, nothing_stays_in_shared_memory, shared_memory
from .phases import DEADLINE_S, eventually, state_of

pytestmark = pytest.mark.timeout(DEADLINE_S)

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

    def start(*args, text=SCRIPT):
        popen = subprocess.Popen(
            [sys.executable, script(text), *args],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(popen)
        popen.processes = {int(popen.stdout.readline()) for _ in range(3)}
        assert popen.processes <= in_session(popen.pid)
        return popen

    yield start
    for popen in started:
        for pid in in_session(popen.pid):
            os.kill(pid, signal.SIGKILL)
        popen.communicate()


BUSY = ["sync", "waits", "computes"]


STARTS = [*((busy, "main thread") for busy in BUSY), ("sync", "other thread")]


@pytest.mark.parametrize(
    ("busy", "start", "death"),
    [
        *((*start, signal.SIGKILL) for start in STARTS),
        ("waits", "main thread", signal.SIGTERM),
        *(
            pytest.param(*start, signal.SIGTERM, marks=pytest.mark.slow)
            for start in STARTS
            if start[0] != "waits"
        ),
    ],
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
    assert "\nKeyboardInterrupt\nThe processes of the run were here:\n" in errors
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


# -- whatever the program has done --------------------------------------------------------------

STUBBORN = """
import os, signal, sys, threading, time
import bsplib

def main(bsp, what):
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}:
        if what == "handles signals":
            signal.signal(number, lambda *_: None)
    if what == "blocks signals":
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    if what == "has forked" and not os.fork():
        time.sleep(60)
    bsp.sync()
    os.write(1, f"{os.getpid()}\\n".encode())
    if bsp.pid == 0:
        bsp.sync()
    elif bsp.pid == 1:
        sum(range(10**11))  # no signal handler of Python runs meanwhile
    else:
        time.sleep(60)

def start():
    bsplib.run(main, sys.argv[1], nprocs=3, start_method=sys.argv[2])

if __name__ == "__main__":
    if sys.argv[3] == "main thread":
        start()
    else:
        thread = threading.Thread(target=start)
        thread.start()
        thread.join()  # Python 3.12 does not fork once the main thread has ended
"""


METHODS = ["fork", "forkserver", "spawn"]
HABITS = ["handles signals", "blocks signals", "has forked"]


USUAL = [
    ("handles signals", "fork", "main thread"),
    *(("blocks signals", method, "main thread") for method in METHODS),
    ("has forked", "forkserver", "main thread"),
    ("blocks signals", "fork", "other thread"),
]
FURTHER = [
    *((what, method, "main thread") for what in HABITS for method in METHODS),
    *(("blocks signals", method, "other thread") for method in METHODS),
]


@pytest.mark.parametrize(
    ("what", "method", "thread"),
    [
        *USUAL,
        *(pytest.param(*case, marks=pytest.mark.slow) for case in FURTHER if case not in USUAL),
    ],
)
def test_processes_end_with_their_caller_whatever_the_program_does(parent, what, method, thread):
    popen = parent(what, method, thread, text=STUBBORN)
    popen.kill()
    popen.wait(DEADLINE_S)
    assert eventually(lambda: all(state_of(pid) in ("", "Z") for pid in popen.processes))


def test_processes_outlive_the_thread_that_forked_them():
    pools = []

    def start():
        pools.append(bsplib.Pool(2, start_method="fork"))
        pools[0].run(lambda bsp: None)

    maker = threading.Thread(target=start)
    maker.start()
    maker.join()
    (pool,) = pools
    with pool:
        assert pool.run(lambda bsp: os.getpid()) == pool.run(lambda bsp: os.getpid())


# -- the helpers of multiprocessing are killed ------------------------------------------------

HELPERS = """
import os, signal, sys, time
from multiprocessing import forkserver, resource_tracker
import bsplib

def run(helper):
    def main(bsp, os_pid):
        print(os.getpid(), flush=True)
        bsp.sync()
        if bsp.pid == 1:
            os.kill(os_pid, signal.SIGKILL)
            if sys.argv[1] == "tracker":
                raise KeyError("of process 1")
        sum(range(10**11))

    bsplib.run(main, helper, nprocs=3, start_method="forkserver")

if __name__ == "__main__":
    bsplib.run(lambda bsp: None, nprocs=1, start_method="forkserver")
    server, tracker = forkserver._forkserver, resource_tracker._resource_tracker
    helper = server._forkserver_pid if sys.argv[1] == "server" else tracker._pid
    try:
        run(helper)
    except (bsplib.ProcessDiedError, KeyError) as error:
        print(error)
    # On a busy computer it dies some time after the signal. Until then multiprocessing takes it
    # for alive, and a run that needs it ends with an error that says to run again.
    os.waitid(os.P_PID, helper, os.WEXITED | os.WNOWAIT)
    print([name for name in os.listdir("/dev/shm") if name.startswith("bsp_")])
    print(bsplib.run(lambda bsp: bsp.pid, nprocs=3, start_method="forkserver"))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("helper", "said"),
    [
        (
            "server",
            r"process \d was lost \(the fork server, which watches it, has en.*",
        ),
        ("tracker", r"'of process 1'"),
    ],
)
def test_helpers_of_multiprocessing_may_be_killed_and_nothing_is_left(execute, helper, said):
    done = execute(HELPERS, helper)
    *pids, error, names, after = done.stdout.splitlines()
    assert re.fullmatch(said, error), done.stderr
    assert (names, after) == ("[]", "[0, 1, 2]")
    assert eventually(lambda: all(state_of(pid) in ("", "Z") for pid in pids))
