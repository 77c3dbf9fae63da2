"""Sorting by regular sampling: its steps in a profile, its cost, and its bound of 2 n/p."""

from __future__ import annotations

import numpy as np
import pytest

import bsplib
from bsplib.apps.sorting import psrs
from bsplib.apps.sorting.keycheck import balance
from bsplib.apps.sorting.keys import DISTRIBUTIONS
from bsplib.apps.sorting.oversampling import regular_distance
from bsplib.profiler.costs import h_relation
from bsplib.recording.trace import read_trace


def run_sort(values, nprocs, backend="sim", **how):
    return bsplib.run(psrs.main, values, nprocs=nprocs, backend=backend, **how)


def record(path, values, nprocs, backend="sim", **how):
    run_sort(values, nprocs, backend, profile=path, **how)
    (run,) = read_trace(path).runs
    return run


def greatest_h(run):
    """Return the greatest h of each superstep that ends with a sync."""
    h, records = np.maximum(*h_relation(run)), run.records
    steps = np.unique(records["superstep"][records["kind"] == 0])
    return [int(h[records["superstep"] == step].max()) for step in steps]


@pytest.mark.parametrize("nprocs", [3, 16])
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_no_process_gets_more_than_twice_its_share(nprocs, distribution):
    for size in (nprocs**3, 20 * nprocs**2, 50_001):
        blocks = run_sort(size, nprocs, distribution=distribution)
        assert max(map(len, blocks)) <= 2 * -(-size // nprocs)


@pytest.mark.parametrize("nprocs", [4, 16])
def test_there_are_keys_that_come_close_to_the_bound(nprocs):
    size = 16 * nprocs**3
    blocks = run_sort(size, nprocs, distribution="adversarial")
    assert balance(blocks) > 2 - 2 / nprocs


def sort_given(bsp, blocks):
    return psrs.sort_blocks(bsp, blocks[bsp.pid])


@pytest.mark.parametrize("seed", range(5))
def test_unequal_blocks_exceed_the_bound_by_one_sample_at_most(seed):
    random = np.random.default_rng(seed)
    p = int(random.integers(2, 8))
    blocks = [random.integers(0, 50, random.integers(0, 4000)) for _ in range(p)]
    total = sum(map(len, blocks))
    got = bsplib.run(sort_given, blocks, nprocs=p, backend="sim")
    assert max(map(len, got)) <= 2 * total / p + regular_distance([len(b) for b in blocks])


@pytest.mark.lengthy(values="all")
@pytest.mark.parametrize("backend", ["shm", "sim"])
def test_there_are_four_supersteps_and_h_is_what_the_cost_table_says(tmp_path, backend):
    p, m, c, d = 4, 1600, 4, 4
    run = record(tmp_path / "trace.bsp", p * m, p, backend, dtype="int32")
    _, samples, pivots, parts = greatest_h(run)
    assert samples == p * (p - 1) * (d + 8)
    assert pivots == (p - 1) ** 2 * (d + 8)
    assert parts <= 2 * m * c
