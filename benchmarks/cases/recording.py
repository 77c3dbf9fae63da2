"""The cost of recording: programs with and without ``profile=``, and of reading long recordings."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import bsplib
from benchmarks import programs
from benchmarks.cases.large_runs import losses_cases
from benchmarks.cases.sorts import sorts
from benchmarks.measure import Case, Section
from benchmarks.timing import seconds_of

_OFF, _ON = {"recorded": False}, {"recorded": True}

Ways = dict[str, dict[str, bool]]


def _sample(
    folder: Path,
    program: Callable[..., float],
    args: tuple[int, ...],
    *,
    recorded: bool,
    **how: bool,
) -> float:
    """Run a program, recorded or not; return the seconds that it tells."""
    path = folder / "trace.bsp"
    options: dict[str, Any] = {**how, "profile": path} if recorded else {}
    seconds: float = bsplib.run(program, *args, nprocs=2, **options)[0]
    path.unlink(missing_ok=True)  # otherwise the next run would be added to it
    return seconds


def _compared(
    program: Callable[..., float], args: tuple[int, ...], ways: Ways, stack: ExitStack
) -> Sequence[Case]:
    """Compare a program with and without recording."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    return [
        Case(name, partial(_sample, folder, program, args, **how)) for name, how in ways.items()
    ]


def _working(superstep_s: float, ways: Ways, stack: ExitStack) -> Sequence[Case]:
    """Compare a program that computes for about so long in each of 100 supersteps."""
    trial = 100
    seconds = bsplib.run(programs.work, 100, trial, nprocs=2)[0]
    rounds = max(round(trial * superstep_s / seconds), 1)
    return _compared(programs.work, (100, rounds), ways, stack)


def _section(title: str, unit: str, program: Callable[..., float], *args: int) -> Section:
    return Section(title, unit, partial(_compared, program, args, {"off": _OFF, "on": _ON}))


_WITH_PEAK = """
import atexit, runpy, sys
from benchmarks.timing import peak_bytes
atexit.register(lambda: print(peak_bytes(), file=sys.stderr))
runpy.run_module("bsplib", run_name="__main__")
"""
"""Runs a command, which tells its memory when it ends."""


def _case(name: str, *words: str | Path) -> Case:
    """Return the case of a command about a long trace: each sample is a new process."""

    def run(*how: str) -> str:
        command = [sys.executable, *how, *map(str, words)]
        quiet, pipe = subprocess.DEVNULL, subprocess.PIPE
        return subprocess.run(command, stdout=quiet, stderr=pipe, text=True, check=True).stderr

    return Case(
        name,
        partial(seconds_of, partial(run, "-m", "bsplib")),
        peak_bytes=lambda: int(run("-c", _WITH_PEAK).split()[-1]),
    )


def _read(count: int, stack: ExitStack) -> Sequence[Case]:
    """Record empty supersteps of two processes, and read the trace by a command."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    path = folder / "trace.bsp"
    bsplib.run(programs.supersteps, count, nprocs=2, profile=path)
    return [_case("bsp report", "report", path)]


SECTIONS = (
    _section("Recording of empty supersteps, p = 2", "superstep", programs.supersteps, 100_000),
    Section(
        "Recording of supersteps of 1 ms, p = 2",
        "superstep",
        partial(_working, 1e-3, {"off": _OFF, "on": _ON}),
    ),
    Section(
        "Sampling of lines, p = 2",
        "superstep",
        partial(_working, 1e-2, {"off": _ON | {"lines": False}, "lines": _ON | {"lines": True}}),
    ),
    _section("Recording of the sample sort of 2 x 10^7 int64, p = 2", "sort", sorts, 20_000_000),
    Section(
        "A recording of 1e+06 supersteps, p = 2", "command", partial(_read, 10**6), 3, warm_up=0
    ),
    Section("A trace from the file to its losses", "trace", losses_cases, 3, warm_up=0),
)
