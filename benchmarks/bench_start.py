"""The time to start and end processes, and to run a program on processes that run already.

``python -m benchmarks.bench_start`` writes ``benchmarks/results/start.json``.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial

import bsplib
from benchmarks import peers, programs
from benchmarks.command import Benchmark, run
from benchmarks.goals import Goal
from benchmarks.harness import Case, Section
from benchmarks.timing import seconds_each, seconds_of

NPROCS = 4


def _pool_of_ours() -> None:
    with bsplib.Pool(NPROCS) as pool:
        pool.run(programs.nothing)


def _starts(_: ExitStack) -> Sequence[Case]:
    """Compare the start of processes, an empty program and their end."""
    library = "multiprocessing.Pool, map, join"
    goals = (Goal.times(1, library),)
    whole = partial(bsplib.run, programs.nothing, nprocs=NPROCS)
    return [
        Case(library, partial(seconds_of, partial(peers.library_pool, NPROCS))),
        Case("bsplib.run", partial(seconds_of, whole), goals=goals),
        Case("bsplib.Pool, run, close", partial(seconds_of, _pool_of_ours), goals=goals),
    ]


def _runs(stack: ExitStack) -> Sequence[Case]:
    """Compare an empty program on processes that run already."""
    # First, because it forks: the other pool starts threads.
    ours = stack.enter_context(bsplib.Pool(NPROCS))
    theirs = stack.enter_context(peers.FORK.Pool(NPROCS))
    library = "multiprocessing.Pool.map"
    theirs_once = partial(theirs.map, peers.empty, range(NPROCS), chunksize=1)
    ours_once = partial(ours.run, programs.nothing)
    return [
        Case(library, partial(seconds_each, 100, theirs_once)),
        Case(
            "bsplib.Pool.run",
            partial(seconds_each, 100, ours_once),
            against=(library,),
            goals=(Goal.seconds(110e-6),),
        ),
    ]


SECTIONS = (
    Section(f"Start, empty program and end of a machine, p = {NPROCS}", "run", _starts, 15),
    Section(f"Empty program in a pool, p = {NPROCS}", "run", _runs),
)

BENCHMARK = Benchmark("start", SECTIONS)

if __name__ == "__main__":
    run([BENCHMARK])
