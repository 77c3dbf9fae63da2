"""Whole programs, drawn at random, do on every backend what the contract says."""

from __future__ import annotations

import faulthandler
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st

import bsplib
from tests import drawn

from .random_programs.checks import (
    check,
    check_fault,
    check_in_pool,
    fail_in_pool,
    record,
    run,
)
from .random_programs.faults import Breaker, wrong_programs
from .random_programs.found import FOUND, POOL_SEEDS, SEEDS
from .random_programs.generator import Narrow, programs
from .random_programs.program import charging_main
from .random_programs.seeded import program_of
from .random_programs.steps import (
    Allocate,
    Blob,
    Get,
    Handle,
    Literal,
    Oblsync,
    Partition,
    Program,
    Push,
    Put,
    Ref,
    Send,
    Sync,
)

pytestmark = pytest.mark.timeout(120 + 600 * drawn.TIMES)


@pytest.fixture(autouse=True)
def no_dump() -> None:
    """Let no traceback be dumped after a while: that crashes where greenlets are switched."""
    faulthandler.cancel_dump_traceback_later()


def examples(count: int) -> Callable[[Any], Any]:
    return drawn.examples(count, print_blob=True, suppress_health_check=list(HealthCheck))


COLUMN_OVER_ARRAY = Program(
    1,
    [
        Allocate("x", "zeros", "f8", ((4, 4),), 0),
        Sync(),
        Push("column", (Ref("x", (slice(None), 1)),)),
        Sync(),
        Put(0, 0, Literal((), "f8", 5), Ref("x", (slice(1, 2), slice(0, 1)))),
        Sync(),
    ],
)
BAD_INDEX_IN_NEW_ARRAY = Program(
    2,
    [
        Allocate("x", "zeros", "f8", ((4, 3), (4, 3)), 0),
        Get(1, 0, Handle("x"), Literal((1, 3), "f8", 0), at=(slice(3, 4), -9)),
        Sync(),
    ],
    "BoundsError",
    (0, 1),
)
ONE_TOO_MANY_IN_SUB_GROUP = Program(
    2,
    [Partition((2,), ([Send(1, 0, Blob(0, 1)), Oblsync((0, 0))],)), Sync(), Sync()],
    "SyncMismatchError",
)


@examples(120)
@example(program=COLUMN_OVER_ARRAY, seed=0)
@given(program=programs(), seed=st.integers(0, 1 << 16))
def test_any_program_does_on_virtual_processors_what_the_contract_says(program, seed):
    check(program, "sim", seed)


@examples(15)
@given(program=programs())
def test_any_program_does_on_real_processes_what_the_contract_says(program):
    check(program, "shm", 0)


@pytest.mark.parametrize("name", FOUND)
def test_a_program_that_once_went_wrong_does_what_the_contract_says(name, backend):
    check(FOUND[name], backend, 0)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_seed_that_once_went_wrong_does_what_the_contract_says(seed, backend):
    check(program_of(seed, Narrow), backend, 0)


@pytest.mark.lengthy
def test_programs_that_follow_each_other_in_pools_do_what_the_contract_says():
    with ExitStack() as stack:
        pools: dict[int, bsplib.Pool] = {}
        for program in map(program_of, POOL_SEEDS):
            if program.nprocs not in pools:
                pools[program.nprocs] = stack.enter_context(bsplib.Pool(program.nprocs))
            check_in_pool(pools[program.nprocs], program)


@pytest.mark.lengthy
@pytest.mark.parametrize("seed", range(4))
def test_a_run_of_a_pool_after_one_that_failed_does_what_the_contract_says(seed):
    faulty = program_of(seed, Breaker)
    drawn_next = map(program_of, range(100 * seed, 100 * seed + 100))
    follows = (program for program in drawn_next if program.nprocs == faulty.nprocs)
    with bsplib.Pool(faulty.nprocs) as pool:
        check_in_pool(pool, next(follows))
        fail_in_pool(pool, faulty)
        check_in_pool(pool, next(follows))


@examples(30)
@example(program=BAD_INDEX_IN_NEW_ARRAY, seed=0)
@example(program=ONE_TOO_MANY_IN_SUB_GROUP, seed=0)
@example(program=ONE_TOO_MANY_IN_SUB_GROUP, seed=1)
@example(program=ONE_TOO_MANY_IN_SUB_GROUP, seed=2)
@given(program=wrong_programs(), seed=st.integers(0, 1 << 16))
def test_any_fault_raises_its_error_on_virtual_processors(program, seed):
    check_fault(program, "sim", seed)


@examples(8)
@example(program=BAD_INDEX_IN_NEW_ARRAY)
@example(program=ONE_TOO_MANY_IN_SUB_GROUP)
@given(program=wrong_programs())
def test_any_fault_raises_its_error_on_real_processes(program):
    check_fault(program, "shm", 0)


@examples(5)
@given(program=programs(), seed=st.integers(0, 1 << 16))
def test_the_same_seed_gives_the_same_trace(program, seed):
    def trace() -> list[Any]:
        _, recorded = record(program, "sim", charging_main, sim_seed=seed)
        meta = {key: value for key, value in recorded.meta.items() if key != "started"}
        arrays = [array.tobytes() for array in (recorded.records, recorded.traffic)]
        return [*arrays, recorded.groups, recorded.stacks, meta]

    assert trace() == trace()


@examples(5)
@given(program=programs(), seed=st.integers(0, 1 << 16))
def test_another_seed_gives_another_order_and_the_same_results(program, seed):
    first = [run(program, "sim", sim_seed=seed + more) for more in range(3)]
    assert first[0] == first[1] == first[2]
