"""The cost of recording: programs with and without ``profile=``, and of reading long recordings.

``python -m benchmarks.bench_recording`` writes ``benchmarks/results/recording.json``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import bsplib
from benchmarks import programs
from benchmarks.command import Benchmark, run
from benchmarks.goals import Goal
from benchmarks.harness import Case, Section

_OFF = "off"
_MILLISECOND = 1e-3
_SHORT = 0.2e-3
"""Supersteps of this length or longer may take 4% longer where they are recorded."""


def _on_and_off(
    nprocs: int,
    program: Callable[..., float],
    args: tuple[int, ...],
    goal: Goal,
    stack: ExitStack,
) -> Sequence[Case]:
    """Compare a program with and without recording."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))

    def sample(**options: Any) -> float:
        seconds: float = bsplib.run(program, *args, nprocs=nprocs, **options)[0]
        return seconds

    def recorded() -> float:
        path = folder / "trace.bsp"
        try:
            return sample(profile=path)
        finally:
            path.unlink()  # otherwise the next run would be added to it

    return [Case(_OFF, sample), Case("on", recorded, goals=(goal,))]


def _working(
    nprocs: int, count: int, superstep_s: float, most: float, stack: ExitStack
) -> Sequence[Case]:
    """Compare a program that computes for about ``superstep_s`` seconds in every superstep."""
    trial = 100
    seconds = bsplib.run(programs.work, count, trial, nprocs=nprocs)[0]
    rounds = max(round(trial * superstep_s / seconds), 1)
    return _on_and_off(nprocs, programs.work, (count, rounds), Goal.times(most, _OFF), stack)


def _with_lines(nprocs: int, stack: ExitStack) -> Sequence[Case]:
    """Compare recording with and without samples of the lines, in supersteps of some 10 ms."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))

    def sample(*, lines: bool) -> float:
        path = folder / "trace.bsp"
        try:
            options = {"profile": path, "lines": lines}
            seconds: float = bsplib.run(programs.work, 100, 1000, nprocs=nprocs, **options)[0]
            return seconds
        finally:
            path.unlink()  # otherwise the next run would be added to it

    on = Case("lines", partial(sample, lines=True), goals=(Goal.times(1.02, _OFF),))
    return [Case(_OFF, partial(sample, lines=False)), on]


class _Commands:
    """Samples of a command about a long trace, each in a new process."""

    def __init__(self, *words: str | Path) -> None:
        self._words = [sys.executable, "-m", "bsplib", *map(str, words)]
        self._peak_bytes = 0

    def sample(self) -> float:
        """Return the seconds from the start of the command to its end."""
        began = perf_counter()
        process = subprocess.Popen(self._words, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        seconds = perf_counter() - began
        if status:
            raise RuntimeError(f"{' '.join(self._words)} ended with the status {status}")
        self._peak_bytes = max(self._peak_bytes, used.ru_maxrss * 1024)
        return seconds

    def peak_bytes(self) -> int:
        """Return the greatest memory of all samples."""
        return self._peak_bytes

    def case(self, name: str, *goals: Goal) -> Case:
        """Return the case of this command."""
        return Case(name, self.sample, goals=goals, peak_bytes=self.peak_bytes)


_MIB = 2**20


def _read(count: int, goals: Mapping[str, Sequence[Goal]], stack: ExitStack) -> Sequence[Case]:
    """Record ``count`` empty supersteps of two processes, and read the trace by the commands."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    path = folder / "trace.bsp"
    bsplib.run(programs.supersteps, count, nprocs=2, profile=path)
    commands = {
        "bsp report": _Commands("report", path),
        "bsp view --html": _Commands("view", "--html", folder / "page.html", "--force", path),
    }
    cases = [commands[name].case(name, *each) for name, each in goals.items()]
    file_bytes = path.stat().st_size  # now: the folder is gone when the figures are written
    cases[0] = replace(cases[0], facts=lambda: {"file_bytes": file_bytes})
    return cases


_LONG: dict[str, Sequence[Goal]] = {
    "bsp report": (Goal.seconds(2.0), Goal.peak(150 * _MIB)),
    "bsp view --html": (Goal.seconds(4.0), Goal.peak(250 * _MIB)),
}
_LONGER: dict[str, Sequence[Goal]] = {"bsp report": (Goal.peak(150 * _MIB),)}
"""Ten times as many supersteps, with the same memory."""

_SUPERSTEP_S, _CALL_S = 0.5e-6, 0.1e-6
_A_SUPERSTEP = Goal.more_than(_OFF, by_s=_SUPERSTEP_S)
_A_CALL = Goal.more_than(_OFF, by_s=_CALL_S)
_A_SUPERSTEP_WITH_A_CALL = Goal.more_than(_OFF, by_s=_SUPERSTEP_S + _CALL_S)

SECTIONS = (
    *(
        Section(
            f"Recording of empty supersteps, p = {p}",
            "superstep",
            partial(_on_and_off, p, programs.supersteps, (count,), _A_SUPERSTEP),
        )
        for p, count in ((1, 100_000), (2, 100_000))  # several chunks
    ),
    Section(
        "Recording of supersteps with a put of 8 B, p = 2",
        "superstep",
        partial(_on_and_off, 2, programs.puts, (20_000, 8), _A_SUPERSTEP_WITH_A_CALL),
    ),
    *(
        Section(
            f"Recording of 1000 {what} of 8 B from process 0 to 1",
            f"{what[:-1]}",
            partial(_on_and_off, 2, program, (20, 1000), _A_CALL),
        )
        for what, program in (
            ("puts", programs.small_puts),
            ("gets", programs.small_gets),
            ("sends", programs.small_messages),
        )
    ),
    Section("Sampling of lines, p = 1", "superstep", partial(_with_lines, 1)),
    Section("Sampling of lines, p = 2", "superstep", partial(_with_lines, 2)),
    Section(
        "Recording of supersteps of 200 us, p = 2",
        "superstep",
        partial(_working, 2, 500, _SHORT, 1.04),
    ),
    Section(
        "Recording of supersteps of 1 ms, p = 2",
        "superstep",
        partial(_working, 2, 100, _MILLISECOND, 1.01),
    ),
    *(
        Section(
            f"A recording of {count:.0e} supersteps, p = 2",
            "command",
            partial(_read, count, goals),
            repeats=3,
            warm_up=0,
        )
        for count, goals in ((10**6, _LONG), (10**7, _LONGER))
    ),
)

BENCHMARK = Benchmark("recording", SECTIONS)

if __name__ == "__main__":
    run([BENCHMARK])
