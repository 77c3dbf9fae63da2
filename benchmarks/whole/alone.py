"""A whole program of a library that starts its own processes, in an interpreter of its own.

``python -m benchmarks.whole.alone PROGRAM VERSION NPROCS FIELDS FOLDER`` starts the processes,
lets them make their input, runs the program, writes its result into a folder and prints its
seconds. Threads of these libraries are never in the process from which bsplib forks, and
nothing of them runs while others are measured.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.whole.versions import Fields, keep, main_of, prepare, problem_of, timed


def seconds_alone(program: str, version: str, nprocs: int, fields: Fields, folder: str) -> float:
    """Run a program in an interpreter of its own; return its seconds.

    Raises:
        RuntimeError: it fails.
    """
    arguments = (program, version, str(nprocs), json.dumps(fields), folder)
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.whole.alone", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},  # BLAS threads of each process
    )
    if done.returncode:
        raise RuntimeError(f"{program} with {version} failed: {done.stderr}")
    return float(done.stdout.split()[-1])


def prepare_all(program: str, problem: Any, nprocs: int) -> None:
    """Make the inputs of all processes, since any call may come to any process."""
    for pid in range(nprocs):
        prepare(program, problem, pid, nprocs)


def _with_dask(program: str, problem: Any, nprocs: int, folder: str) -> float:
    from dask.distributed import Client, Future  # noqa: PLC0415  # may not be installed

    main = main_of(program, "dask")
    with Client(n_workers=nprocs, threads_per_worker=1, dashboard_address=None) as client:
        client.run(prepare_all, program, problem, nprocs)
        seconds, result = timed(partial(main, client, problem), _nothing)
        distributed = isinstance(result, list) and isinstance(result[0], Future)
        for pid, piece in enumerate(client.gather(result) if distributed else [result]):
            keep(piece, folder, pid)
    return seconds


def _with_joblib(program: str, problem: Any, nprocs: int, folder: str) -> float:
    from joblib import Parallel, delayed  # noqa: PLC0415  # may not be installed

    main = main_of(program, "joblib")
    with Parallel(n_jobs=nprocs) as parallel:
        for _ in range(2):  # the second time the processes have been started
            parallel(delayed(prepare_all)(program, problem, nprocs) for _ in range(nprocs))
        seconds, result = timed(partial(main, parallel, problem), _nothing)
    keep(result, folder, 0)
    return seconds


def _with_multiprocessing(program: str, problem: Any, nprocs: int, folder: str) -> float:
    from multiprocessing import Pool  # noqa: PLC0415  # beside the others

    main = main_of(program, "multiprocessing")
    prepare_all(program, problem, nprocs)  # before the fork, so that each process has it
    with Pool(nprocs) as pool:
        seconds, result = timed(partial(main, pool, nprocs, problem), _nothing)
    keep(result, folder, 0)
    return seconds


def _nothing() -> None:
    """Wait for no one: the program waits for its processes."""


_WITH: dict[str, Callable[[str, Any, int, str], float]] = {
    "dask": _with_dask,
    "joblib": _with_joblib,
    "multiprocessing": _with_multiprocessing,
}


def main(program: str, version: str, nprocs: str, fields: str, folder: str) -> None:
    """Run a program, and print its seconds."""
    problem = problem_of(program, json.loads(fields))
    print(_WITH[version](program, problem, int(nprocs), folder))


if __name__ == "__main__":
    main(*sys.argv[1:])
