"""The time until a run ends after a process died or Ctrl-C; the goal is one second.

``python -m benchmarks.bench_faults`` writes ``benchmarks/results/faults.json``.
"""

from __future__ import annotations

import mmap
import os
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial

import bsplib
from benchmarks import caller, full, programs
from benchmarks.command import Benchmark, run
from benchmarks.goals import Goal
from benchmarks.harness import Case, Section
from benchmarks.timing import seconds_of

NPROCS = 4
METHODS = ("fork", "forkserver", "spawn")
_HEAD_START_S = 0.05
"""Seconds after the sync, by which time the others certainly wait or compute."""
_LONG_S = 20.0
"""Seconds that the others would compute."""

_failed_at = memoryview(mmap.mmap(-1, 8)).cast("q")
"""Nanoseconds of the system's monotonic clock, shared with forked processes."""
_left = memoryview(mmap.mmap(-1, 8)).cast("q")
"""System's pid of a child that process 1 has left behind; 0 if there is none."""

# -- how process 1 fails ----------------------------------------------------------------------


def raises() -> None:
    """Raise an exception."""
    raise ValueError("the failure that is measured")


def exits() -> None:
    """End the interpreter."""
    sys.exit(3)


def exits_at_once() -> None:
    """End the process without any clean-up."""
    os._exit(3)


def is_killed() -> None:
    """Be killed, as by the system when memory runs out."""
    os.kill(os.getpid(), signal.SIGKILL)


def forks_and_is_killed() -> None:
    """Be killed after a fork: the child keeps all files of this process open."""
    child = os.fork()
    if child == 0:
        time.sleep(_LONG_S)
        os._exit(0)
    _left[0] = child
    is_killed()


# -- what the other processes do -------------------------------------------------------------


def wait(bsp: bsplib.Group) -> None:
    """Wait at the next sync."""
    bsp.sync()


def compute(_: bsplib.Group) -> None:
    """Compute in Python."""
    end = time.monotonic() + _LONG_S
    while time.monotonic() < end:
        pass


def compute_in_one_call(_: bsplib.Group) -> None:
    """Compute in a call that does not return to the interpreter for many seconds."""
    sum(range(2_000_000_000))


# -- the time until the run ends --------------------------------------------------------------


def program(
    bsp: bsplib.Group, fail: Callable[[], None], meanwhile: Callable[[bsplib.Group], None]
) -> None:
    """Fail on process 1 and do something else on the others."""
    bsp.sync()
    if bsp.pid == 1:
        time.sleep(_HEAD_START_S)
        _failed_at[0] = time.monotonic_ns()
        fail()
    meanwhile(bsp)


def seconds_to_notice(fail: Callable[[], None], meanwhile: Callable[[bsplib.Group], None]) -> float:
    """Return the seconds from the failure until all processes have ended and ``run`` raises."""
    try:
        bsplib.run(program, fail, meanwhile, nprocs=NPROCS, start_method="fork")
    except (ValueError, bsplib.ProcessDiedError):
        return (time.monotonic_ns() - _failed_at[0]) * 1e-9
    finally:
        if _left[0]:
            os.kill(_left[0], signal.SIGKILL)
            _left[0] = 0
    raise RuntimeError("the run did not fail")


def ways_to_fail(meanwhile: Callable[[bsplib.Group], None], _: ExitStack) -> Sequence[Case]:
    """Measure every way to fail while the others do one thing."""
    return [
        Case(name, partial(seconds_to_notice, fail, meanwhile), goals=(Goal.seconds(1.0),))
        for name, fail in (
            ("raises", raises),
            ("sys.exit", exits),
            ("os._exit", exits_at_once),
            ("SIGKILL", is_killed),
            ("forks, SIGKILL", forks_and_is_killed),
        )
    ]


# -- the caller is killed ---------------------------------------------------------------------


def seconds_to_end(method: str, habit: str) -> float:
    """Return the seconds from the death of a caller until all its processes have ended."""
    command = [sys.executable, "-m", "benchmarks.caller", method, habit]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as popen:
        assert popen.stdout is not None
        pids = [int(popen.stdout.readline()) for _ in range(caller.NPROCS)]
        ends = [os.pidfd_open(pid) for pid in pids]
        killed_at = time.monotonic()
        popen.kill()
        for end in ends:
            select.select([end], [], [])
            os.close(end)
        seconds = time.monotonic() - killed_at
        os.killpg(popen.pid, signal.SIGKILL)  # processes that they have forked
    return seconds


def callers_killed(habit: str, _: ExitStack) -> Sequence[Case]:
    """Measure every start method with programs that do one thing."""
    return [
        Case(method, partial(seconds_to_end, method, habit), goals=(Goal.seconds(1.0),))
        for method in METHODS
    ]


# -- /dev/shm is full -------------------------------------------------------------------------


def seconds_to_say_full(method: str) -> float:
    """Return the seconds from an allocation that does not fit until ``run`` raises."""
    command = [sys.executable, "-m", "benchmarks.full", method]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    asked, raised = map(int, done.stdout.split())
    return (raised - asked) * 1e-9


def too_much_allocated(_: ExitStack) -> Sequence[Case]:
    """Measure every start method."""
    return [
        Case(method, partial(seconds_to_say_full, method), goals=(Goal.seconds(1.0),))
        for method in METHODS
    ]


# -- Ctrl-C while the processes start ---------------------------------------------------------

_chance = random.Random(1)


def seconds_to_be_interrupted(method: str, start_s: float) -> float:
    """Return the seconds from a Ctrl-C during the start until ``run`` raises."""
    after = _chance.uniform(0, start_s)
    sender = os.fork()
    if sender == 0:
        time.sleep(after)
        _failed_at[0] = time.monotonic_ns()
        os.kill(os.getppid(), signal.SIGINT)
        os._exit(0)
    try:
        bsplib.run(_for_long, nprocs=NPROCS, start_method=method)
    except KeyboardInterrupt:
        return (time.monotonic_ns() - _failed_at[0]) * 1e-9
    finally:
        os.waitpid(sender, 0)
    raise RuntimeError("the run was not interrupted")


def _for_long(_: bsplib.Group) -> None:
    time.sleep(_LONG_S)


def starts_interrupted(_: ExitStack) -> Sequence[Case]:
    """Measure every start method, each at random moments of its own start."""
    cases = []
    for method in METHODS:
        run_nothing = partial(bsplib.run, programs.nothing, nprocs=NPROCS, start_method=method)
        run_nothing()  # so that the helper processes of multiprocessing are running
        sample = partial(seconds_to_be_interrupted, method, seconds_of(run_nothing))
        cases.append(Case(method, sample, goals=(Goal.seconds(1.0),)))
    return cases


SECTIONS = tuple(
    Section(f"A process fails while {what}, p = {NPROCS}", "failure", partial(ways_to_fail, how), 7)
    for what, how in (
        ("the others wait in a sync", wait),
        ("the others compute in Python", compute),
        ("the others are in one long call", compute_in_one_call),
    )
)
SECTIONS += tuple(
    Section(
        f"The caller is killed, whose processes {habit}, p = {caller.NPROCS}",
        "death",
        partial(callers_killed, habit),
        7,
    )
    for habit in caller.HABITS
)
SECTIONS += (
    Section(f"Shared memory is full, p = {full.NPROCS}", "failure", too_much_allocated, 7),
    Section(f"Ctrl-C while processes start, p = {NPROCS}", "interrupt", starts_interrupted, 21),
)


BENCHMARK = Benchmark("faults", SECTIONS)

if __name__ == "__main__":
    run([BENCHMARK])
