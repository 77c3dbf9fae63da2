"""A whole program as a program of bsplib, with its time."""

from __future__ import annotations

from functools import partial

import bsplib
from benchmarks.whole.versions import Fields, keep, main_of, prepare, problem_of, timed


def whole_program(
    bsp: bsplib.Group, name: str, fields: Fields, folder: str | None, runs: int = 1
) -> float:
    """Run a program; return its seconds, and write the pieces of its result into a folder."""
    problem = problem_of(name, fields)
    prepare(name, problem, bsp.pid, bsp.nprocs)
    with bsp.scope():
        main = partial(main_of(name, "bsplib"), bsp, problem)
        seconds, piece = timed(main, bsp.sync, runs)
        keep(piece, folder, bsp.pid)
        return seconds
