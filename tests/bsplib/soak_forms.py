"""Random programs about forms of values and lives of groups.

``python -m tests.bsplib.soak_forms`` runs the programs of :mod:`.random_programs.forms` in the mode
of :mod:`.compared`.
"""

from __future__ import annotations

import sys
from typing import Any

import click

import bsplib

from .compared import comparing
from .random_programs.forms import main
from .random_programs.lives import in_child

COUNTS = (1, 2, 3, 2, 4)


def run(seed: int, backend: str) -> None:
    """Run the program of a seed; every fourth time in a pool, which another process may not use."""
    more: dict[str, Any] = {"sim_seed": seed} if backend == "sim" else {}
    nprocs = COUNTS[seed % len(COUNTS)]
    if seed % 4 != 3:
        bsplib.run(main, seed, nprocs=nprocs, backend=backend, **more)
        return
    with bsplib.Pool(nprocs, backend=backend) as pool:
        for number in range(2):
            pool.run(main, 1000 * number + seed)
            said = in_child(lambda: pool.run(main, seed))
            assert said.startswith("UsageError: this pool belongs to the process that made"), said


def run_all(first: int, programs: int, backend: str) -> int:
    """Run the programs of some seeds; return how many were wrong."""
    wrong = 0
    for seed in range(first, first + programs):
        try:
            run(seed, backend)
        except Exception as error:  # noqa: BLE001  # whatever it is, it counts
            wrong += 1
            click.echo(f"seed {seed}: {error!r:.500}")
    return wrong


@click.command()
@click.option("--programs", default=200, show_default=True, help="Number of programs.")
@click.option("--first", default=0, show_default=True, help="Seed of the first.")
@click.option("--backend", default="sim", show_default=True)
def command(programs: int, first: int, backend: str) -> None:
    """Run random programs, and say which were wrong."""
    with comparing():
        wrong = run_all(first, programs, backend)
    click.echo(f"{wrong} programs were wrong")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    command()
