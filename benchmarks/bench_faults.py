"""How long after a process fails ``bsplib.run`` raises; it is to be within a second.

``python -m benchmarks.bench_faults`` writes ``benchmarks/results/faults.json``.
"""

from __future__ import annotations

import mmap
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial

import bsplib
from benchmarks.command import Benchmark, run
from benchmarks.goals import Goal
from benchmarks.harness import Case, Section

NPROCS = 4
_HEAD_START_S = 0.05
"""From the sync on, until the others certainly wait or compute."""
_LONG_S = 20.0
"""For how long the others would compute."""

_failed_at = memoryview(mmap.mmap(-1, 8)).cast("q")
"""Nanoseconds of the system's monotonic clock, shared with the processes that are forked."""

# -- how process 1 fails ----------------------------------------------------------------------


def raises() -> None:
    """Raise an exception."""
    raise ValueError("as it is to be")


def exits() -> None:
    """End the interpreter."""
    sys.exit(3)


def exits_at_once() -> None:
    """End the process without a word."""
    os._exit(3)


def is_killed() -> None:
    """Be killed, as by the system when memory runs out."""
    os.kill(os.getpid(), signal.SIGKILL)


# -- what the others do meanwhile -------------------------------------------------------------


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


# -- how long it takes ------------------------------------------------------------------------


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
    """Return the seconds from the failure until ``run`` raises, all processes ended."""
    try:
        bsplib.run(program, fail, meanwhile, nprocs=NPROCS, start_method="fork")
    except (ValueError, bsplib.ProcessDiedError):
        return (time.monotonic_ns() - _failed_at[0]) * 1e-9
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
        )
    ]


SECTIONS = tuple(
    Section(f"A process fails while {what}, p = {NPROCS}", "failure", partial(ways_to_fail, how), 7)
    for what, how in (
        ("the others wait in a sync", wait),
        ("the others compute in Python", compute),
        ("the others are in one long call", compute_in_one_call),
    )
)


BENCHMARK = Benchmark("faults", SECTIONS)

if __name__ == "__main__":
    run([BENCHMARK])
