"""The random programs enter every situation in which memory may be used again too early."""

from __future__ import annotations

import pytest

import bsplib

from .random_programs.cells import CELLS, Cell
from .random_programs.checks import check_in_pool, fail_in_pool
from .random_programs.early import Early
from .random_programs.faults import Breaker
from .random_programs.found import CELL_SEEDS
from .random_programs.interpreter import Interpreter
from .random_programs.seeded import program_of
from .random_programs.steps import Program

FAILING = range(4)
"""Seeds of programs that fail; a right one follows each in the same pool."""


EARLY = 30
"""Programs whose hpputs are tried in other orders."""


class _Pools:
    """A pool for each number of processes."""

    def __init__(self) -> None:
        self._made: dict[int, bsplib.Pool] = {}

    def of(self, program: Program) -> bsplib.Pool:
        if program.nprocs not in self._made:
            self._made[program.nprocs] = bsplib.Pool(program.nprocs)
        return self._made[program.nprocs]

    def close(self) -> None:
        for pool in self._made.values():
            pool.close()


@pytest.fixture
def pools():
    made = _Pools()
    yield made
    made.close()


def described(cells: set[Cell]) -> str:
    return "\n".join(" ".join(cell) for cell in sorted(cells))


def enter_cells(pools: _Pools) -> set[Cell]:
    """Run some programs; return the cells that they enter."""
    programs = map(program_of, CELL_SEEDS)
    return set[Cell]().union(*(check_in_pool(pools.of(program), program) for program in programs))


def test_the_table_has_all_ways_duties_events_and_kinds_that_can_be():
    assert len(CELLS) == 96
    assert ("plain", "serves", "leave", "sync") in CELLS
    assert ("described", "message", "next run", "oblsync") in CELLS


@pytest.mark.lengthy
@pytest.mark.core
def test_random_programs_enter_every_cell_of_the_table(pools):
    missing = set(CELLS) - enter_cells(pools)
    assert not missing, f"no program enters\n{described(missing)}"


@pytest.mark.lengthy
@pytest.mark.parametrize("seed", FAILING)
def test_a_run_of_a_pool_after_one_that_failed_does_what_the_contract_says(pools, seed):
    faulty = program_of(seed, Breaker)
    pool = pools.of(faulty)
    follows = (
        program
        for program in map(program_of, range(100 * seed, 100 * seed + 100))
        if program.nprocs == faulty.nprocs
    )
    first, second = next(follows), next(follows)
    check_in_pool(pool, first)
    fail_in_pool(pool, faulty)
    check_in_pool(pool, second)


@pytest.mark.lengthy
def test_no_program_can_see_when_an_hpput_takes_effect():
    hpputs = 0
    for seed in range(EARLY):
        program = program_of(seed)
        expected = Interpreter(program.nprocs).run(program)
        hpputs += "hp=True" in repr(program)
        for order in range(2):
            assert Early(program.nprocs, order).run(program) == expected, f"seed {seed}"
    assert hpputs > EARLY // 4
