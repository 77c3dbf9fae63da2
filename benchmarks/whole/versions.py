"""What the versions of the programs have in common: how they are found, timed and checked.

Every version is a function ``main`` whose first arguments say where it runs. The input of each
process is there before the time begins, in the memory of the process, and the result stays
there. Then each process writes its piece into a file, and the caller compares the whole with
the result of a sequential program.
"""

from __future__ import annotations

import pickle
import statistics
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

PROGRAMS = ("heat", "kmeans", "conjugate_gradients", "pagerank", "sample_sort")
"""The folders of the programs."""

Fields = dict[str, Any]
"""The sizes of a problem, where they are not the usual ones."""


def problem_of(program: str, fields: Fields) -> Any:
    """Return the problem of a program."""
    return import_module(f"benchmarks.whole.{program}.problem").Problem(**fields)


def main_of(program: str, version: str) -> Callable[..., Any]:
    """Return the main function of a version, such as ``bsplib`` or ``mpi4py``."""
    main: Callable[..., Any] = import_module(f"benchmarks.whole.{program}.with_{version}").main
    return main


def prepare(program: str, problem: Any, pid: int, nprocs: int) -> None:
    """Make the input of a process, which keeps it."""
    import_module(f"benchmarks.whole.{program}.problem").part(problem, pid, nprocs)


def forget(program: str) -> None:
    """Free the input that this process has made: all that the module keeps."""
    for kept in vars(import_module(f"benchmarks.whole.{program}.problem")).values():
        if hasattr(kept, "cache_clear"):
            kept.cache_clear()


def timed(
    main: Callable[[], Any], barrier: Callable[[], object], runs: int = 1
) -> tuple[float, Any]:
    """Run a process's part of a program.

    Args:
        main: the program.
        barrier: waits for all processes.
        runs: how often; more than once where the program is short.

    Returns:
        The seconds from barrier to barrier, their median where there are several runs, and what
        the program returns.
    """
    taken = []
    for _ in range(runs):
        barrier()
        began = time.perf_counter()
        piece = main()
        barrier()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken), piece


def keep(piece: Any, folder: str | None, pid: int) -> None:
    """Write a process's piece of a result into a folder, if there is one."""
    if folder is not None:
        Path(folder, str(pid)).write_bytes(pickle.dumps(piece, 5))


def check(problem: Any, expected: Any, folder: str) -> None:
    """Compare the pieces of a result in a folder with the reference, and delete them.

    Raises:
        RuntimeError: they differ.
    """
    files = sorted(Path(folder).iterdir(), key=lambda file: int(file.name))
    found = problem.join([pickle.loads(file.read_bytes()) for file in files])
    for file in files:
        file.unlink()
    if not problem.agrees(found, expected):
        raise RuntimeError(f"{problem}: the result differs from the reference")
