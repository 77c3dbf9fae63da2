"""The cost of recording: programs with and without ``profile=``, and of reading long recordings."""

from __future__ import annotations

import os
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


def sorts(bsp: bsplib.Group, size: int) -> float:
    """Return the seconds of a sample sort of random integers."""
    from benchmarks.cases.sorts import sorts as sort  # noqa: PLC0415  # needs pyarrow

    return sort(bsp, size)


class _Command:
    """Samples of a command about a long trace, each in a new process."""

    def __init__(self, *words: str | Path) -> None:
        self._words = [sys.executable, "-m", "bsplib", *map(str, words)]
        self._peak_bytes = 0

    def _run(self) -> None:
        process = subprocess.Popen(self._words, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        if status:
            raise RuntimeError(f"{' '.join(self._words)} ended with the status {status}")
        self._peak_bytes = max(self._peak_bytes, used.ru_maxrss * 1024)

    def case(self, name: str) -> Case:
        """Return the case of this command."""
        sample = partial(seconds_of, self._run)
        return Case(name, sample, peak_bytes=lambda: self._peak_bytes)


def _read(count: int, stack: ExitStack) -> Sequence[Case]:
    """Record empty supersteps of two processes, and read the trace by the commands."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    path = folder / "trace.bsp"
    bsplib.run(programs.supersteps, count, nprocs=2, profile=path)
    page = "--html", folder / "page.html", "--force"
    return [
        _Command("report", path).case("bsp report"),
        _Command("view", *page, path).case("bsp view --html"),
    ]


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
