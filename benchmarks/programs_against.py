"""Whole programs against what a user would take instead; see :mod:`benchmarks.whole`.

All versions have the same sequential kernels and the same input, which each process has in its
memory before the time begins. The result stays where it is. The start of processes is not part
of the time; it is a section of its own. A first run of each version is compared with the result
of a sequential program; those of Dask, joblib and multiprocessing, which have an interpreter of
their own each time, always are.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import bsplib
from benchmarks.goals import Goal
from benchmarks.harness import Case, Section
from benchmarks.mpi import Ranks
from benchmarks.timing import seconds_of
from benchmarks.whole.alone import seconds_alone
from benchmarks.whole.lines import lines_of_version
from benchmarks.whole.on_bsplib import whole_program
from benchmarks.whole.versions import PROGRAMS, Fields, check, forget, prepare, problem_of
from tests.mpi_installations import OPEN_MPI

NPROCS = 2
OURS = "bsplib"
NUMPY = "one process"
DASK = "Dask, processes"
_TURNS = 5
"""Turns of ours and of mpi4py; the run that is checked warms up."""
_SMALL_TURNS = 9
"""The same for small problems."""
_SLOW_TURNS = 2
"""Turns in which the others are measured, whose programs take longer."""
_ALONE = {"dask": DASK, "joblib": "joblib", "multiprocessing": "multiprocessing.Pool"}
"""Versions that start their own processes, with the titles of their cases."""


class _Size(NamedTuple):
    """A size of a program's problem."""

    fields: Fields
    """Where they differ from the usual size, with which Dask and its like are measured, too."""
    runs: int = 1
    """How many runs are a sample."""


_USUAL = _Size({})
_SMALL = {
    "conjugate_gradients": _Size({"width": 60}, 5),
    "sample_sort": _Size({"records": 20_000}, 25),
    "kmeans": _Size({"points": 2000}, 3),
}
"""Problems so small that a program waits for its processes more than it computes."""


class _Comparison:
    """The versions of one program, each of which is checked before it is measured."""

    def __init__(self, program: str, stack: ExitStack, size: _Size) -> None:
        self._program = program
        self._size = size
        self._folder = stack.enter_context(tempfile.TemporaryDirectory())
        self._pool = stack.enter_context(bsplib.Pool(NPROCS))  # first: it forks
        self._problem = problem_of(program, size.fields)
        prepare(program, self._problem, 0, 1)
        stack.callback(forget, program)
        self._expected = self._problem.reference()
        self._ranks = stack.enter_context(Ranks(OPEN_MPI, NPROCS)) if OPEN_MPI.is_here() else None

    def cases(self) -> list[Case]:
        """Return the cases; ours comes last."""
        alone = () if self._size.fields else filter(self._is_there, _ALONE)
        others = [
            self._case(NUMPY, partial(seconds_of, self._problem.reference), slow=True),
            *self._mpi4py(),
            *map(self._alone, alone),
        ]
        self._checked(self._ours)
        return [*others, self._case(OURS, self._ours, "bsplib", others=others)]

    def _case(
        self,
        name: str,
        sample: Callable[[], float],
        version: str | None = None,
        *,
        others: Sequence[Case] = (),
        slow: bool = False,
    ) -> Case:
        counted = None if self._size.fields else version
        lines = None if counted is None else lines_of_version(self._program, counted)
        return Case(
            name,
            sample,
            against=tuple(case.name for case in others),
            goals=_goals(others),
            lines=lines,
            repeats=_SLOW_TURNS if slow else None,
        )

    def _ours(self, folder: str | None = None) -> float:
        arguments = (self._program, self._size.fields, folder, self._size.runs)
        seconds: float = self._pool.run(whole_program, *arguments)[0]
        return seconds

    def _mpi4py(self) -> list[Case]:
        ranks = self._ranks
        if ranks is None:
            return []

        def sample(folder: str | None = None) -> float:
            return ranks.sample(
                "whole_program",
                name=self._program,
                fields=self._size.fields,
                folder=folder,
                runs=self._size.runs,
            )

        self._checked(sample)
        return [self._case(OPEN_MPI.title, sample, "mpi4py")]

    def _alone(self, version: str) -> Case:
        run = partial(seconds_alone, self._program, version, NPROCS, self._size.fields)
        return self._case(_ALONE[version], lambda: self._checked(run), version, slow=True)

    def _is_there(self, version: str) -> bool:
        """Tell whether a program has a version, and its library is installed."""
        if find_spec(f"benchmarks.whole.{self._program}.with_{version}") is None:
            return False
        if find_spec(version) is None:
            print(f"without {version}: pip install -e '.[bench]'")
            return False
        return True

    def _checked(self, run: Callable[[str], float]) -> float:
        seconds = run(self._folder)
        check(self._problem, self._expected, self._folder)
        return seconds


def _goals(others: Sequence[Case]) -> tuple[Goal, ...]:
    """Return our goals: about as fast as by hand, faster than Dask, shorter than both."""
    found = []
    for name, times in ((OPEN_MPI.title, 1.1), (DASK, 1 / 5)):
        for case in others:
            if case.name == name:
                found.append(Goal.times(times, name))
                if case.lines is not None:
                    found.append(Goal.fewer_lines(case.lines, name))
    return tuple(found)


def _cases(program: str, size: _Size, stack: ExitStack) -> Sequence[Case]:
    return _Comparison(program, stack, size).cases()


def _section(program: str, size: _Size, turns: int) -> Section:
    return Section(
        f"{problem_of(program, size.fields)}, p = {NPROCS}",
        "run",
        partial(_cases, program, size),
        repeats=turns,
        warm_up=0,
    )


# -- the start ------------------------------------------------------------------------------

_EMPTY = {
    OURS: f"""
import bsplib
bsplib.run(lambda bsp: None, nprocs={NPROCS})
""",
    _ALONE["dask"]: f"""
from dask.distributed import Client
if __name__ == "__main__":
    with Client(n_workers={NPROCS}, threads_per_worker=1, dashboard_address=None) as client:
        client.run(abs, 1)
""",
    _ALONE["joblib"]: f"""
from joblib import Parallel, delayed
Parallel(n_jobs={NPROCS})(delayed(abs)(place) for place in range({NPROCS}))
""",
    _ALONE["multiprocessing"]: f"""
import multiprocessing, numpy
with multiprocessing.Pool({NPROCS}) as pool:
    pool.map(abs, range({NPROCS}))
""",
}
"""Programs that start processes, and do nothing in them."""
_EMPTY_RANK = "import numpy; from mpi4py import MPI"


def _starts(_: ExitStack) -> Sequence[Case]:
    """Measure an empty program from the shell's point of view."""
    commands: dict[str, tuple[list[str], Any]] = {
        title: ([sys.executable, "-c", text], None)
        for title, text in _EMPTY.items()
        if title == OURS or _library(title)
    }
    if OPEN_MPI.is_here():
        rank = (sys.executable, "-c", _EMPTY_RANK)
        commands[OPEN_MPI.title] = OPEN_MPI.start(NPROCS, *rank), OPEN_MPI.whole_environment(NPROCS)
    others = tuple(title for title in commands if title != OURS)
    return [
        Case(
            title,
            partial(seconds_of, partial(_execute, command, variables)),
            others if title == OURS else (),
        )
        for title, (command, variables) in commands.items()
    ]


def _library(title: str) -> bool:
    return any(find_spec(name) for name, its_title in _ALONE.items() if its_title == title)


def _execute(command: list[str], variables: Any) -> None:
    subprocess.run(command, env=variables, check=True, capture_output=True)


def sections() -> list[Section]:
    """Return what is to be measured."""
    return [
        *(_section(program, _USUAL, _TURNS) for program in PROGRAMS),
        *(_section(program, size, _SMALL_TURNS) for program, size in _SMALL.items()),
        Section(f"Empty program, from the command line, p = {NPROCS}", "run", _starts, 3),
    ]
