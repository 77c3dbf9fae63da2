"""The time to start and end processes, and to run a program on processes that run already.

``python -m benchmarks.bench_start`` writes ``benchmarks/results/start.json``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import bsplib
from benchmarks import compiled, peers, programs
from benchmarks.command import Benchmark, run
from benchmarks.goals import Goal
from benchmarks.harness import Case, Section
from benchmarks.timing import seconds_each, seconds_of

NPROCS = 4

_POOL_MAP = "multiprocessing.Pool.map"
_LEAST_RUN = "C, a pipe to each process and two meetings"

_BEFORE = "from time import perf_counter as now\nbegan = now()"
_AFTER = "print(now() - began, open('/proc/self/status').read().split('VmHWM:')[1].split()[0])"
"""Prints the seconds since then, and the greatest memory in KiB. (That of ``getrusage`` is at least
the memory of the process that has started the program.)"""
_NUMPY = "import numpy"
_RUN = f"{_NUMPY}\nimport bsplib\nbsplib.run, bsplib.Group"
_FIRST_RUN = f"{_RUN}\nbsplib.run(lambda bsp: None, nprocs=2)"


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


def _runs(nprocs: int, goals: tuple[Goal, ...], stack: ExitStack) -> Sequence[Case]:
    """Compare an empty program on processes that run already."""
    # First, because it forks: the other pool starts threads.
    ours = stack.enter_context(bsplib.Pool(nprocs))
    theirs = stack.enter_context(peers.FORK.Pool(nprocs))
    theirs_once = partial(theirs.map, peers.empty, range(nprocs), chunksize=1)
    ours_once = partial(ours.run, programs.nothing)
    least = partial(compiled.sample, "least_run", nprocs, 1000)
    cases = [Case(_LEAST_RUN, least)] if compiled.compiler() else []
    return [
        Case(_POOL_MAP, partial(seconds_each, 100, theirs_once)),
        *cases,
        Case(
            "bsplib.Pool.run",
            partial(seconds_each, 100, ours_once),
            against=(_POOL_MAP, *(case.name for case in cases)),
            goals=goals,
        ),
    ]


class _Imports:
    """Interpreters that import something, in turns.

    They keep compiled bytecode from one start to the next, as installed packages have it, even
    where the environment tells this program to write none.

    Args:
        folder: for the bytecode.
    """

    def __init__(self, folder: str) -> None:
        self._environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder}
        self._environment.pop("PYTHONDONTWRITEBYTECODE", None)
        self._peaks: dict[str, int] = {}
        self._differences = [0]

    def sample(self, statement: str) -> float:
        """Return the seconds that a statement takes at the start of a program."""
        code = f"{_BEFORE}\n{statement}\n{_AFTER}"
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env=self._environment,
        )
        seconds, kib = done.stdout.split()
        self._peaks[statement] = int(kib) * 1024
        if statement == _RUN:
            self._differences.append(self._peaks[_RUN] - self._peaks[_NUMPY])
        return float(seconds)

    def more_bytes(self) -> int:
        """Return by how much the memory of bsplib and numpy exceeds that of numpy alone."""
        return max(self._differences)


def _empty_modules(folder: str) -> str:
    """Make as many empty modules as bsplib has; return what imports them, and its other modules."""
    names_of = "before = set(sys.modules)", _RUN, "print(*sys.modules.keys() - before)"
    code = "\n".join([_NUMPY, "import sys", *names_of])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names = [name for name in done.stdout.split() if "cython" not in name]  # made by compiled ones
    others = [name for name in names if name.partition(".")[0] != bsplib.__name__]
    empty = [f"empty_{place}" for place in range(len(names) - len(others))]
    for name in empty:
        Path(folder, f"{name}.py").touch()
    path = f"import sys\nsys.path.insert(0, {folder!r})"
    return f"{_NUMPY}\n{path}\nimport {', '.join([*others, *empty])}"


def _imports(stack: ExitStack) -> Sequence[Case]:
    """Compare the import of bsplib, and its first run, with the import of numpy."""
    numpy, empty = "import numpy", "and as many empty modules, and what bsplib imports besides"
    ours = _Imports(stack.enter_context(tempfile.TemporaryDirectory()))
    least = _empty_modules(stack.enter_context(tempfile.TemporaryDirectory()))
    for statement in (_FIRST_RUN, least):  # writes the bytecode
        ours.sample(statement)
    goals = (Goal.more_than(numpy, by_s=0.030), Goal.peak(6 * 2**20))
    return [
        Case(numpy, partial(ours.sample, _NUMPY)),
        Case(empty, partial(ours.sample, least), (numpy,)),
        Case("and bsplib.run", partial(ours.sample, _RUN), (numpy, empty), goals, ours.more_bytes),
        Case("and bsplib.run of nothing, p = 2", partial(ours.sample, _FIRST_RUN)),
    ]


SECTIONS = (
    Section("Import", "import", _imports, 15),
    Section(f"Start, empty program and end of a machine, p = {NPROCS}", "run", _starts, 15),
    *(
        Section(f"Empty program in a pool, p = {p}", "run", partial(_runs, p, goals))
        for p, goals in (
            (2, (Goal.times(0.8, _POOL_MAP),)),
            (NPROCS, (Goal.seconds(110e-6),)),
            (16, (Goal.times(0.8, _POOL_MAP),)),
        )
    ),
)

BENCHMARK = Benchmark("start", SECTIONS)

if __name__ == "__main__":
    run([BENCHMARK])
