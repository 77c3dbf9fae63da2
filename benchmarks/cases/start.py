"""The time to start and end processes, and to run a program on processes that run already."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial

import bsplib
from benchmarks import peers, programs
from benchmarks.measure import Case, Section
from benchmarks.timing import seconds_each, seconds_of

NPROCS = 4

_NUMPY = "import numpy"
_RUN = f"{_NUMPY}\nimport bsplib\nbsplib.run, bsplib.Group"


def _starts(_: ExitStack) -> Sequence[Case]:
    """Compare the start of processes, an empty program and their end."""
    whole = partial(bsplib.run, programs.nothing, nprocs=NPROCS)
    library = partial(peers.library_pool, NPROCS)
    return [
        Case("multiprocessing.Pool, map, join", partial(seconds_of, library)),
        Case("bsplib.run", partial(seconds_of, whole)),
    ]


def _runs(nprocs: int, stack: ExitStack) -> Sequence[Case]:
    """Compare an empty program on processes that run already."""
    # First, because it forks: the other pool starts threads.
    ours = stack.enter_context(bsplib.Pool(nprocs))
    theirs = stack.enter_context(peers.FORK.Pool(nprocs))
    theirs_once = partial(theirs.map, peers.empty, range(nprocs), chunksize=1)
    ours_once = partial(ours.run, programs.nothing)
    return [
        Case("multiprocessing.Pool.map", partial(seconds_each, 100, theirs_once)),
        Case("bsplib.Pool.run", partial(seconds_each, 100, ours_once)),
    ]


def _imports(stack: ExitStack) -> Sequence[Case]:
    """Compare the import of bsplib with the import of numpy.

    Interpreters keep compiled bytecode from one start to the next, as installed packages have it,
    even where the environment tells this program to write none.
    """
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def sample(statement: str) -> float:
        code = "from time import perf_counter as now", "began = now()", statement
        command = [sys.executable, "-c", "\n".join([*code, "print(now() - began)"])]
        done = subprocess.run(command, capture_output=True, check=True, env=environment)
        return float(done.stdout)

    sample(_RUN)  # writes the bytecode
    return [
        Case("import numpy", partial(sample, _NUMPY)),
        Case("and bsplib.run", partial(sample, _RUN)),
    ]


SECTIONS = (
    Section("Import", "import", _imports, 15),
    Section(f"Start, empty program and end of a machine, p = {NPROCS}", "run", _starts, 15),
    Section("Empty program in a pool, p = 16", "run", partial(_runs, 16)),
)
