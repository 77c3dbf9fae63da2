"""What virtual processors charge for rows, and that runs repeat exactly."""

from __future__ import annotations

import math

import numpy as np
import pytest

import bsplib
from bsplib.apps import work
from bsplib.apps.sorting import sample_sort
from bsplib.apps.sql import program
from bsplib.apps.sql.generate import Generator
from bsplib.apps.sql.plan import PLANS
from bsplib.profiler.callgraph import build
from tests.recordings import record_run


def recorded(path, main, *args, nprocs=4, **how):
    return record_run(path, main, *args, nprocs=nprocs, backend="sim", **how)


def computed(charge, *counts):
    """Return the virtual seconds that a process charges."""

    def main(bsp):
        bsp.charge(0)  # what was computed before does not count
        before = bsp.time()
        charge(bsp, *counts)
        return bsp.time() - before

    return bsplib.run(main, nprocs=1, backend="sim")[0]


@pytest.mark.parametrize(
    ("charge", "counts", "seconds"),
    [
        (work.charge_values, (10**6,), work.VALUE_S * 10**6),
        (work.charge_sums, (10**6,), work.SUM_S * 10**6),
        (work.charge_sort, (2**20,), work.COMPARISON_S * 20 * 2**20),
        (work.charge_sort, (2**20, 16), work.COMPARISON_S * 4 * 2**20),
        (work.charge_sort, (0,), 0),
        (work.charge_search, (1000, 2**16), work.COMPARISON_S * 16_000),
        (work.charge_search, (1000, 0), work.COMPARISON_S * 1000),
    ],
)
def test_work_is_charged_by_its_count(charge, counts, seconds):
    assert computed(charge, *counts) == pytest.approx(seconds, abs=1e-9)


@pytest.mark.parametrize("stage", PLANS)
def test_two_runs_of_the_queries_are_identical_to_the_nanosecond(tmp_path, stage):
    source = Generator(4000, skew=1.0)
    runs = [
        recorded(tmp_path / f"{turn}.bsp", program.main, source, stage=stage, keep=())
        for turn in range(2)
    ]
    np.testing.assert_array_equal(runs[0].records, runs[1].records)
    assert build(runs[0]).graph.nodes[build(runs[0]).root]["cost"]["comp"].minimum > 0


@pytest.mark.parametrize("how", [{}, {"sample_sort": "bitonic"}])
def test_two_runs_of_the_sample_sort_are_identical_to_the_nanosecond(tmp_path, how):
    runs = [
        recorded(tmp_path / f"{turn}.bsp", sample_sort.main, 40_000, **how) for turn in range(2)
    ]
    np.testing.assert_array_equal(runs[0].records, runs[1].records)


def test_the_sample_sort_charges_a_sort_of_its_block_and_a_merge_of_its_parts(tmp_path):
    run = recorded(tmp_path / "trace.bsp", sample_sort.main, 2**18, oversampling=1)
    computed = (run.records["arrive"] - run.records["start"]).reshape(4, -1).sum(axis=1) / 1e9
    merges = 2**16 * (math.log2(2**16) + 2) * work.COMPARISON_S
    assert computed.mean() == pytest.approx(merges, rel=0.1)


@pytest.mark.lengthy
def test_a_sort_that_is_not_charged_is_measured(tmp_path):
    run = recorded(tmp_path / "trace.bsp", sample_sort.main, 40_000, charged=False)
    again = recorded(tmp_path / "again.bsp", sample_sort.main, 40_000, charged=False)
    assert (run.records["arrive"] != again.records["arrive"]).any()
