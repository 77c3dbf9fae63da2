"""A whole program on the ranks of an MPI, with its time."""

from __future__ import annotations

from functools import partial

from mpi4py import MPI

from benchmarks.whole.versions import Fields, keep, main_of, prepare, problem_of, timed


def whole_program(
    ranks: MPI.Intracomm, name: str, fields: Fields, folder: str | None, runs: int = 1
) -> float:
    """Run a program; return its seconds, and write the pieces of its result into a folder."""
    problem = problem_of(name, fields)
    prepare(name, problem, ranks.rank, ranks.size)
    seconds, piece = timed(partial(main_of(name, "mpi4py"), ranks, problem), ranks.Barrier, runs)
    keep(piece, folder, ranks.rank)
    return seconds
