"""The collectives of numbers and arrays, beside those of mpi4py, into new and given arrays.

``python -m benchmarks.bench_collectives`` writes ``benchmarks/results/collectives.json``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial

import bsplib
from benchmarks import compiled, programs
from benchmarks.collective_calls import NAMES
from benchmarks.command import Benchmark, run
from benchmarks.goals import Goal
from benchmarks.harness import Case, Section
from benchmarks.mpi import MpiError, Ranks
from tests.mpi_installations import ALL, OPEN_MPI, Mpi

_WORD = 8
_GOALS = {
    (2, 8): {"allreduce": 2.0, **dict.fromkeys(NAMES[1:], 2.5)},
    (2, 2**16): dict.fromkeys(("allreduce", "broadcast", "alltoall"), 1.2),
    (2, 2**23): dict.fromkeys(("allreduce", "broadcast", "alltoall", "scan"), 1.1),
    (4, 2**23): {"allgather": 1.1},
    **{(p, 8): {"allreduce": 2.0} for p in (8, 16, 32)},
}
"""How many times as long as Open MPI a collective may take, by processes and bytes of a value."""
_SECONDS = 0.02
"""About so long is a sample."""
_LARGE = 2**16
"""From so many bytes on, processes are compared with the least that they can do, too."""
_GROWING = (8, 16, 32, 64, 128)
"""Numbers of processes over which the time of allreduce is to grow as p log p."""


def _cases(nprocs: int, nbytes: int, given: bool, stack: ExitStack) -> Sequence[Case]:
    goals, size = _GOALS[nprocs, nbytes], nbytes // _WORD
    pool = stack.enter_context(bsplib.Pool(nprocs))
    count = _count(nprocs, nbytes)
    started = {}
    for mpi in filter(Mpi.is_here, ALL):
        try:
            started[mpi] = stack.enter_context(Ranks(mpi, nprocs))
        except MpiError as error:
            print(f"without {mpi.name}: {error}")

    has_least = nbytes >= _LARGE and _has_compiler()

    def ours(name: str) -> float:
        return pool.run(programs.collectives, count, name, size, given=given)[0]

    cases = []
    for name, most in goals.items():
        against = [f"{mpi.title}, {name}" for mpi in started]
        for title, ranks in zip(against, started.values(), strict=True):
            arguments = {"count": count, "name": name, "size": size, "given": given}
            sample = partial(ranks.sample, "collectives", **arguments)
            cases.append(Case(title, sample))
        if has_least:
            numbers = nbytes, 10 * count, int(given), nprocs
            against.append(f"C, {name}")
            cases.append(
                Case(against[-1], partial(compiled.sample, "least_collectives", name, *numbers))
            )
        goal = Goal.times(most, f"{OPEN_MPI.title}, {name}")
        cases.append(Case(name, partial(ours, name), tuple(against), (goal,)))
    return cases


def _count(nprocs: int, nbytes: int) -> int:
    """Return how many collectives are a sample.

    A superstep of many processes takes at least some microseconds for each of them.
    """
    return round(max(3, min(2000, _SECONDS / (5e-6 * nprocs + nbytes * 1e-9))))


def _growth(_: ExitStack) -> Sequence[Case]:
    """Compare allreduce of many processes, started for each sample, with that of fewer."""
    least = _GROWING[0]

    def sample(nprocs: int) -> float:
        arguments = (_count(nprocs, _WORD), "allreduce", 1)
        seconds: float = bsplib.run(programs.collectives, *arguments, nprocs=nprocs)[0]
        return seconds

    def goals(nprocs: int) -> tuple[Goal, ...]:
        times = nprocs * math.log2(nprocs) / (least * math.log2(least))
        return () if nprocs == least else (Goal.times(times, f"p = {least}"),)

    return [Case(f"p = {p}", partial(sample, p), goals=goals(p)) for p in _GROWING]


def _has_compiler() -> bool:
    """Tell whether programs in C can be compiled; say so if they cannot."""
    if compiled.compiler() is None:
        print("without the program in C: there is no compiler")
        return False
    return True


def _section(nprocs: int, nbytes: int, *, given: bool = False) -> Section:
    size = f"{nbytes} B" if nbytes < 2**10 else f"{nbytes // 2**10} KiB"
    title = f"p = {nprocs}, {size}" + ", into given arrays" * given
    return Section(title, "collective", partial(_cases, nprocs, nbytes, given), 9)


SECTIONS = (
    *(_section(*key) for key in _GOALS),
    *(_section(2, nbytes, given=True) for nbytes in (2**16, 2**23)),
    Section("Allreduce of 8 B by more and more processes", "collective", _growth, 9),
)

BENCHMARK = Benchmark("collectives", SECTIONS)

if __name__ == "__main__":
    run([BENCHMARK])
