"""Thousands of random programs in pools, which run many more of them than ``soak.py`` does.

``python tests/bsplib/soak_pools.py`` runs programs from seeds in one pool for each number of
processes, and compares them with what the contract says. Some are followed by a program that
fails, after which the pool goes on. The outcome is added to soak_pools.json, with the commit, the
build of the core, the cells of the table in ``random_programs/cells.py`` that the programs have
entered, and seeds that enter all of them. ``BSP_POISON=tests.bsplib.poison`` and ``BSPLIB_CORE``
apply.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from random_programs.cells import CELLS, Cell
from random_programs.checks import check_in_pool, fail_in_pool
from random_programs.faults import Breaker
from random_programs.seeded import program_of
from soak import BACKENDS, ROOT, chosen

import bsplib
from bsplib.core import BUILD

RESULTS = Path(__file__).with_suffix(".json")
PROGRAMS_PER_FAULT = 50
"""One of this number of programs is followed by a program that fails."""


class Soak:
    """Programs on one backend.

    Args:
        backend: one of ``BACKENDS``.
        inside: ranks of an MPI share memory where they can.
    """

    def __init__(self, backend: str, *, inside: bool) -> None:
        self._backend = chosen(backend)
        if inside:
            os.environ.pop("BSP_MPI_INSIDE", None)
        self._pools: dict[int, bsplib.Pool] = {}
        self.different: list[str] = []
        self.by_nprocs: Counter[int] = Counter()
        self.entered: dict[Cell, list[int]] = {}

    def run(self, seed: int) -> None:
        """Run a program, and sometimes one that fails after it."""
        program = program_of(seed)
        self.by_nprocs[program.nprocs] += 1
        try:
            for cell in check_in_pool(self._pool(program.nprocs), program):
                self.entered.setdefault(cell, []).append(seed)
            if seed % PROGRAMS_PER_FAULT == 0:
                faulty = program_of(seed, Breaker)
                fail_in_pool(self._pool(faulty.nprocs), faulty)
        except Exception as error:  # noqa: BLE001  # whatever it is, it counts
            self.different.append(f"seed {seed}: {error!r:.2000}")
            click.echo(self.different[-1])
            self.close()

    def _pool(self, nprocs: int) -> bsplib.Pool:
        if nprocs not in self._pools:
            self._pools[nprocs] = bsplib.Pool(nprocs, backend=self._backend)
        return self._pools[nprocs]

    def close(self) -> None:
        for pool in self._pools.values():
            with contextlib.suppress(Exception):  # it may be what went wrong
                pool.close()
        self._pools.clear()

    def cover(self) -> list[int]:
        """Return few seeds whose programs enter all cells."""
        left, seeds = set(CELLS) & self.entered.keys(), []
        while left:
            count = Counter(seed for cell in left for seed in self.entered[cell])
            seeds.append(count.most_common(1)[0][0])
            left = {cell for cell in left if seeds[-1] not in self.entered[cell]}
        return sorted(seeds)


@click.command()
@click.option("--backend", default="shm", type=click.Choice(BACKENDS), show_default=True)
@click.option("--inside/--by-mpi", default=True, help="Ranks of an MPI share memory.")
@click.option("--first", default=0, show_default=True, help="Seed of the first program.")
@click.option("--count", default=1000, show_default=True, help="Number of programs.")
@click.option("--seconds", default=3600.0, show_default=True, help="Stop after so long.")
@click.option("--out", default=str(RESULTS), show_default=True, help="File that it is added to.")
def command(backend: str, inside: bool, first: int, count: int, seconds: float, out: str) -> None:
    """Run programs, and add what came out to a file."""
    sys.path.insert(0, str(ROOT))
    from benchmarks import provenance  # noqa: PLC0415  # found by the line above

    began, soak = time.monotonic(), Soak(backend, inside=inside)
    for seed in range(first, first + count):
        if time.monotonic() - began > seconds:
            break
        soak.run(seed)
    soak.close()
    outcome: dict[str, Any] = {
        "measured": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": provenance.commit(),
        "versions": provenance.versions(),
        "machine": provenance.machine(),
        "backend": backend,
        "shares_memory": backend == "shm" or (inside and backend.startswith("mpi")),
        "core": BUILD,
        "poisoned": bool(os.environ.get("BSP_POISON")),
        "first_seed": first,
        "programs": soak.by_nprocs.total(),
        "by_nprocs": dict(sorted(soak.by_nprocs.items())),
        "different": soak.different,
        "seconds": round(time.monotonic() - began),
        "cells_not_entered": [" ".join(cell) for cell in CELLS if cell not in soak.entered],
        "cells": {" ".join(cell): len(soak.entered.get(cell, ())) for cell in CELLS},
        "seeds_for_all_cells": soak.cover(),
    }
    path = Path(out)
    before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    path.write_text(json.dumps([*before, outcome], indent=2) + "\n", encoding="utf-8")
    click.echo(f"{len(soak.different)} of {outcome['programs']} programs were different")
    sys.exit(bool(soak.different))


if __name__ == "__main__":
    command()
