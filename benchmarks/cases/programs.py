"""Whole programs against what a user would take instead; see :mod:`benchmarks.whole`.

All versions have the same sequential kernels and the same input, which each process has in its
memory before the time begins. The result stays where it is. The start of processes is not part
of the time; it is a section of its own. A first run of each version is compared with the result
of a sequential program.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial

import numpy as np

import bsplib
from benchmarks.measure import Case, Section
from benchmarks.mpi import Ranks
from benchmarks.whole.on_bsplib import whole_program
from benchmarks.whole.versions import PROGRAMS, Fields, check, forget, prepare, problem_of
from tests.mpi_installations import OPEN_MPI

NPROCS = 2
_SMALL: dict[str, tuple[Fields, int]] = {
    "conjugate_gradients": ({"width": 60}, 5),
    "sample_sort": ({"records": 20_000}, 25),
}
"""Problems so small that a program waits for its processes more than it computes, and how many runs
are a sample."""


def _cases(program: str, fields: Fields, runs: int, stack: ExitStack) -> Sequence[Case]:
    """Compare the versions of a program, each of which is checked before it is measured."""
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    pool = stack.enter_context(bsplib.Pool(NPROCS))  # first: it forks
    problem = problem_of(program, fields)
    prepare(program, problem, 0, 1)
    stack.callback(forget, program)
    expected = problem.reference()

    def checked(run: Callable[[str], float]) -> None:
        run(folder)
        check(problem, expected, folder)

    def ours(folder: str | None = None) -> float:
        seconds: float = pool.run(whole_program, program, fields, folder, runs)[0]
        return seconds

    cases = []
    if OPEN_MPI.is_here():
        ranks = stack.enter_context(Ranks(OPEN_MPI, NPROCS))

        def theirs(folder: str | None = None) -> float:
            what = {"name": program, "fields": fields, "folder": folder, "runs": runs}
            return ranks.sample("whole_program", **what)

        checked(theirs)
        cases.append(Case(OPEN_MPI.title, theirs))
    checked(ours)
    return [*cases, Case("bsplib", ours)]


def _section(program: str, fields: Fields, runs: int, turns: int) -> Section:
    title = f"{problem_of(program, fields)}, p = {NPROCS}"
    return Section(title, "run", partial(_cases, program, fields, runs), turns, warm_up=0)


# -- memory that a run keeps ----------------------------------------------------------------


def relaxation() -> float:
    """Return the seconds of a relaxation of 400,000 values, the least of several passes.

    Each operation of numpy has a new array for its result. A process of a run keeps the memory of
    those before.
    """
    x = np.linspace(0.0, 1.0, 400_000)
    passes = []
    for _ in range(3):
        began = time.perf_counter()
        for _ in range(30):
            x[1:-1] = 0.5 * x[1:-1] + 0.25 * (x[:-2] + x[2:])
        passes.append(time.perf_counter() - began)
    return min(passes) / 30


def _relaxations(_: ExitStack) -> Sequence[Case]:
    """Compare a loop over arrays in a process of bsplib and in a process of Python alone."""
    program = "from benchmarks.cases.programs import relaxation; print(relaxation())"
    command = [sys.executable, "-c", program]

    def alone() -> float:
        return float(subprocess.run(command, capture_output=True, check=True).stdout)

    def ours() -> float:
        seconds: float = bsplib.run(lambda _: relaxation(), nprocs=1)[0]
        return seconds

    return [Case("Python", alone), Case("bsplib", ours)]


SECTIONS = (
    *(_section(program, {}, 1, 5) for program in PROGRAMS),
    *(_section(program, fields, runs, 9) for program, (fields, runs) in _SMALL.items()),
    Section("Relaxation of 400000 values of 8 B, p = 1", "pass", _relaxations),
)
