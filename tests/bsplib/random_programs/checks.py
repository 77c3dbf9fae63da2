"""Runs a program on a backend and compares it with what the contract says."""

from __future__ import annotations

import contextlib
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import bsplib
from bsplib.profiler.costs import h_relation
from bsplib.recording.records import Run
from bsplib.recording.trace import read_trace
from bsplib.sync_kinds import Kind

from .interpreter import Interpreter
from .program import main
from .steps import Program

LIMIT_S = 30
START_S = 60
"""Ranks of an MPI take half a minute to start where the computer is busy; see job.START_S."""


class HangError(Exception):
    """A program does not end; the text says where its processes were, if that is known."""


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """End a hang, so that a program that does is made as short as may be, like any other."""

    def stop(*_: object) -> None:
        raise HangError

    handler = signal.signal(signal.SIGALRM, stop)
    left, _ = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, left)
        signal.signal(signal.SIGALRM, handler)


def run(program: Program, backend: str, body: Any = main, **more: Any) -> list[Any]:
    if backend != "mpi":
        with within(LIMIT_S):
            return bsplib.run(body, program, nprocs=program.nprocs, backend=backend, **more)
    limited = {"timeout": LIMIT_S, **more}
    with within(START_S + 2 * LIMIT_S):
        try:
            return bsplib.run(body, program, nprocs=program.nprocs, backend=backend, **limited)
        except bsplib.RunTimeoutError as error:
            raise HangError(str(error)) from None


def record(program: Program, backend: str, body: Any = main, **more: Any) -> tuple[list[Any], Run]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "recorded.bsp"
        results = run(program, backend, body, profile=path, **more)
        (recorded,) = read_trace(path).runs
    return results, recorded


def check(program: Program, backend: str, seed: int) -> None:
    """Compare a run, and one that is recorded, to what the interpreter says."""
    interpreter = Interpreter(program.nprocs)
    expected = interpreter.run(program)
    assert run(program, backend, sim_seed=seed) == expected
    results, recorded = record(program, backend, sim_seed=seed + 1)
    assert results == expected
    h_out, h_in = h_relation(recorded)
    paths: list[tuple[tuple[int, int], ...]] = []
    for info in recorded.groups:
        parent = paths[info.parent] if info.parent >= 0 else None
        paths.append(() if parent is None else (*parent, (info.ordinal, info.index)))
    found = {
        (paths[row["group"]], int(row["superstep"]), int(row["pid"])): (
            Kind(row["kind"]).name,
            int(out),
            int(come),
            int(row["self_bytes"]),
        )
        for row, out, come in zip(recorded.records, h_out, h_in, strict=True)
    }
    assert found == {
        key: (cost.kind, cost.out, cost.come, cost.own) for key, cost in interpreter.costs.items()
    }


def check_in_pool(pool: bsplib.Pool, program: Program) -> None:
    """Compare a run of a pool to what the interpreter says."""
    expected = Interpreter(program.nprocs).run(program)
    with within(START_S + LIMIT_S):
        assert pool.run(main, program) == expected


def fail_in_pool(pool: bsplib.Pool, program: Program) -> None:
    """Run a wrong program to its error; the pool begins the next run afresh."""
    with within(START_S + LIMIT_S):
        error_of(program, lambda: pool.run(main, program))


def check_fault(program: Program, backend: str, seed: int) -> None:
    """Run a wrong program to its error."""
    caught = error_of(program, lambda: run(program, backend, sim_seed=seed))
    if program.where is not None and isinstance(caught, bsplib.BspError):
        assert (caught.superstep, caught.pid) == program.where


def error_of(program: Program, start: Callable[[], Any]) -> Exception | None:
    """Return the error of a wrong program, which is the one that it has to raise."""
    caught: Exception | None = None
    try:
        start()
    except HangError:
        raise
    except Exception as error:  # noqa: BLE001  # any error is what is looked for
        caught = error
    assert type(caught).__name__ == program.fault
    return caught
