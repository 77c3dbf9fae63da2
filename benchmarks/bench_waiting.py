"""How soon processes go on when the last of them comes to a meeting, after a wait.

``python -m benchmarks.bench_waiting`` writes ``benchmarks/results/waiting.json``. The last process
computes for a time before each sync, and the others wait for it. A case gives the median, or the
value that 90 % of the meetings do not exceed, of the time from its coming to the end of the
meeting in all processes. The peers are the barriers of both MPIs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial

import bsplib
from benchmarks import programs
from benchmarks.command import Benchmark, run
from benchmarks.goals import Goal
from benchmarks.harness import Case, Section
from benchmarks.mpi import MpiError, Ranks
from benchmarks.peers import FORK
from tests.mpi_installations import ALL, Mpi

_CORES = len(os.sched_getaffinity(0))
_WAITS_MS = (0.01, 0.05, 0.2, 1, 5, 20)
_SECONDS = 0.1
"""About so long is a sample."""
_LEAST, _MOST = 20, 200
"""Meetings of a sample."""
_GOAL_UP_TO_MS = 10
_QUANTILES = ((0.5, "median", 5e-6), (0.9, "90 %", 10e-6))


@contextmanager
def _neighbour() -> Iterator[None]:
    """Let another program compute meanwhile, on any core."""
    process = FORK.Process(target=_compute, daemon=True)
    process.start()
    try:
        yield
    finally:
        process.kill()
        process.join()


def _compute() -> None:
    while True:
        sum(range(1000))


def _cases(
    nprocs: int, wait_ms: float, stack: ExitStack, *, busy: bool, has_goals: bool
) -> Sequence[Case]:
    """Compare a sync to which the last process comes late with a barrier."""
    count = round(min(max(_SECONDS / (wait_ms / 1e3), _LEAST), _MOST))
    pools = {wait: stack.enter_context(bsplib.Pool(nprocs, wait=wait)) for wait in ("auto", "spin")}
    started = {}
    for mpi in filter(Mpi.is_here, ALL):
        try:
            started[mpi.title] = stack.enter_context(Ranks(mpi, nprocs))
        except MpiError as error:
            print(f"without {mpi.name}: {error}")
    around: Callable[[], AbstractContextManager[None]] = _neighbour if busy else nullcontext

    def ours(wait: str, quantile: float) -> float:
        with around():
            return pools[wait].run(programs.late_syncs, count, wait_ms / 1e3, quantile)[0]

    def theirs(title: str, quantile: float) -> float:
        with around():
            return started[title].sample(
                "late_barriers", count=count, late_s=wait_ms / 1e3, quantile=quantile
            )

    cases = []
    for quantile, name, goal_s in _QUANTILES:
        against = [f"{title}, Barrier, {name}" for title in started]
        for title, of_peer in zip(started, against, strict=True):
            cases.append(Case(of_peer, partial(theirs, title, quantile)))
        spinning = f"sync with wait='spin', {name}"
        cases.append(Case(spinning, partial(ours, "spin", quantile)))
        goals = (Goal.seconds(goal_s),) if has_goals else ()
        sync = partial(ours, "auto", quantile)
        cases.append(Case(f"sync, {name}", sync, (*against, spinning), goals))
    return cases


def _section(nprocs: int, wait_ms: float, *, busy: bool = False) -> Section:
    has_goals = not busy and nprocs <= _CORES and wait_ms <= _GOAL_UP_TO_MS
    cores = f"{_CORES} cores, of which a program keeps one busy" if busy else f"{_CORES} cores"
    title = f"On {cores}: the last of {nprocs} processes {wait_ms:g} ms late"
    prepare = partial(_cases, nprocs, wait_ms, busy=busy, has_goals=has_goals)
    return Section(title, "end of a sync", prepare, 9)


SECTIONS = (
    *(_section(_CORES, wait_ms) for wait_ms in _WAITS_MS),
    *(_section(_CORES + 1, wait_ms) for wait_ms in _WAITS_MS),
    *(_section(_CORES, wait_ms, busy=True) for wait_ms in _WAITS_MS),
)

BENCHMARK = Benchmark("waiting", SECTIONS)

if __name__ == "__main__":
    run([BENCHMARK])
