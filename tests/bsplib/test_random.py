"""Random numbers: processes do not draw the same, and seeds repeat them."""

from __future__ import annotations

import random

import numpy as np
import pytest

import bsplib
from bsplib import UsageError

pytestmark = pytest.mark.fresh

DRAWS = 4


def own(bsp, *seed):
    return bsp.rng(*seed).integers(1 << 62, size=DRAWS).tolist()


def inherited(bsp):
    return [random.random() for _ in range(DRAWS)], np.random.random(DRAWS).tolist()


def test_generators_of_processes_are_independent(run, nprocs):
    found = run(own, 7)
    assert len({tuple(draws) for draws in found}) == nprocs


def test_a_seed_gives_the_same_stream_twice(bsp):
    first, again, other, pair = own(bsp, 7), own(bsp, 7), own(bsp, 8), own(bsp, [7, 8])
    assert first == again
    assert first != other != pair != first


@pytest.mark.procs(3)
def test_a_seed_gives_the_same_stream_on_every_backend(run):
    assert run(own, 7) == bsplib.run(own, 7, nprocs=3, backend="sim")


@pytest.mark.procs(4)
def test_a_process_draws_the_same_in_a_sub_group(run):
    def main(bsp):
        with bsp.split(0, key=-bsp.pid) as sub:
            return own(sub, 7)

    assert run(main) == run(own, 7)


@pytest.mark.procs(2)
def test_without_a_seed_no_stream_comes_twice(run):
    def main(bsp):
        return own(bsp), own(bsp)

    found = [tuple(draws) for pair in run(main) for draws in pair]
    assert len(set(found)) == 4


@pytest.mark.procs(2)
@pytest.mark.parametrize("seed", [-1, 1.5, "seed"])
def test_what_is_no_seed_is_refused(run, seed):
    with pytest.raises(UsageError, match="rng: seed is"):
        run(own, seed)


@pytest.mark.procs(3)
@pytest.mark.real_processes
@pytest.mark.parametrize(
    "start_method", ["fork", "forkserver", pytest.param("spawn", marks=pytest.mark.slow)]
)
def test_processes_do_not_inherit_the_state_of_generators(run, start_method):
    np.random.seed(1)
    random.seed(1)
    found = run(inherited, start_method=start_method)
    assert len({draws[0] for draws, _ in found}) == 3
    assert len({draws[0] for _, draws in found}) == 3
    assert run(inherited, start_method=start_method) != found
    np.random.seed(1)
    random.seed(1)
    assert run(inherited, start_method=start_method) == found


def test_runs_of_a_pool_draw_anew_and_repeat_with_a_seed():
    with bsplib.Pool(2) as pool:
        found = []
        for _ in range(2):
            np.random.seed(1)
            random.seed(1)
            found.append((pool.run(inherited), pool.run(inherited)))
    assert found[0] == found[1]
    first, second = found[0]
    assert first[0] != first[1]
    assert first != second
