"""Ctrl-C at any moment of a run's start: the run ends with it, and nothing is left."""

from __future__ import annotations

import pytest

from tests.processes import run_python

pytestmark = pytest.mark.timeout(120)

SCRIPT = """
import multiprocessing, os, random, signal, sys, time
from pathlib import Path
import bsplib

def main(bsp):
    bsp.sync()
    time.sleep(60)

def nothing(bsp):
    pass

def left():
    tasks = Path("/proc/self/task").iterdir()
    children = sorted(pid for task in tasks for pid in (task / "children").read_text().split())
    return children, sorted(os.listdir("/proc/self/fd"))

def eventually_left(expected):
    deadline = time.monotonic() + 10
    while left() != expected and time.monotonic() < deadline:
        time.sleep(0.001)
    return left()

def interrupt(after, times, gap):
    # Returns the pid of a process that sends Ctrl-C to all of this program, and the end of a
    # pipe: the time until it does so begins when this end is closed. Python would lose a Ctrl-C
    # that comes before fork has returned, since logging has functions that are called there.
    waits, goes = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.close(goes)
        os.read(waits, 1)
        time.sleep(after)
        for _ in range(times):
            os.killpg(0, signal.SIGINT)
            time.sleep(gap)
        os._exit(0)
    os.close(waits)
    return pid, goes

def run(main, method, pool):
    if pool:
        with bsplib.Pool(2, start_method=method) as processes:
            processes.run(main)
    else:
        bsplib.run(main, nprocs=2, start_method=method)

def end_of(main, method, pool, sender, goes):
    # Returns how a run ended, also where the second Ctrl-C comes after it.
    how = "no interrupt"
    try:
        try:
            os.close(goes)
            run(main, method, pool)
        except KeyboardInterrupt:
            how = "KeyboardInterrupt"
        except BaseException as error:
            how = repr(error)
        os.waitpid(sender, 0)
    except KeyboardInterrupt:
        if how == "no interrupt":
            how = "KeyboardInterrupt"
        try:
            os.waitpid(sender, 0)
        except ChildProcessError:
            pass
    return how

if __name__ == "__main__":
    method, moments, times, seed = sys.argv[1], *map(int, sys.argv[2:])
    multiprocessing.set_forkserver_preload(["bsplib"])  # the start is short, and measured here
    for _ in range(2):
        began = time.perf_counter()
        run(nothing, method, False)
    start = time.perf_counter() - began
    before = left()
    chance = random.Random(seed)
    for moment in range(moments):
        pool = bool(moment % 2)
        sender = interrupt(chance.uniform(0, 1.2 * start), times, chance.uniform(0, 0.003))
        how = end_of(main, method, pool, *sender)
        if how != "KeyboardInterrupt" or eventually_left(before) != before:
            print(moment, how, before, left())
            before = left()
    print([name for name in os.listdir("/dev/shm") if name.startswith("bsp_")])
"""
"""Prints what is wrong, and the names in shared memory that runs have made and left."""


@pytest.mark.parametrize("times", [1, 2], ids=["once", "twice"])
@pytest.mark.parametrize(
    ("method", "moments"),
    [
        ("fork", 5),
        ("forkserver", 5),
        ("spawn", 2),
        *(
            pytest.param(method, 50, marks=pytest.mark.slow)
            for method in ("fork", "forkserver", "spawn")
        ),
    ],
)
def test_ctrl_c_at_any_moment_of_the_start_ends_the_run_and_leaves_nothing(
    script, method, moments, times
):
    words = script(SCRIPT), method, moments, times, 1
    done = run_python(*words, start_new_session=True)  # the signal goes to its whole group
    assert done.stdout == "[]\n", done.stderr
    if method != "forkserver":  # its processes take signals before they are the run's
        assert done.stderr == ""
