"""Sample sort: its seven stages in a profile, what it costs, and how even it comes out."""

from __future__ import annotations

import math

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import bsplib
from bsplib.apps.sorting import sample_sort
from bsplib.apps.sorting.keycheck import balance
from bsplib.apps.sorting.keys import DISTRIBUTIONS, DTYPES
from bsplib.apps.sorting.oversampling import sample_sizes, theoretical_oversampling
from bsplib.profiler.costs import h_relation
from bsplib.recording.trace import read_trace
from tests.drawn import examples

STAGES = (
    "agree",
    "sort_locally",
    "collect_sample",
    "sort_sample",
    "broadcast_pivots",
    "partition",
    "exchange",
    "merge",
)
COMMUNICATING = ("agree", "collect_sample", "broadcast_pivots", "exchange")


def run_sort(values, nprocs, backend="sim", **how):
    return bsplib.run(sample_sort.main, values, nprocs=nprocs, backend=backend, **how)


def record(path, values, nprocs, backend="sim", **how):
    run_sort(values, nprocs, backend, profile=path, **how)
    (run,) = read_trace(path).runs
    return run


def stage_of(stack):
    """Return which stage of the sort a sync belongs to."""
    return next(frame.function for frame in stack if frame.function in STAGES)


def greatest_h(run):
    """Return the greatest h of each stage that ends with a sync, supersteps in order."""
    h, records = np.maximum(*h_relation(run)), run.records
    found = []
    for step in np.unique(records["superstep"][records["kind"] == 0]):
        here = records["superstep"] == step
        (stack,) = set(records["stack"][here].tolist())
        found.append((stage_of(run.stacks[stack]), int(h[here].max())))
    return found


class TestProfile:
    @pytest.mark.parametrize("backend", ["shm", "sim"])
    @pytest.mark.parametrize("nprocs", [1, 2, 7])
    def test_each_stage_that_communicates_ends_with_its_own_sync(self, tmp_path, backend, nprocs):
        run = record(tmp_path / "trace.bsp", 1000, nprocs, backend)
        assert tuple(stage for stage, _ in greatest_h(run)) == COMMUNICATING

    @pytest.mark.parametrize("nprocs", [1, 2, 3, 16])
    def test_the_network_sorts_the_sample_in_its_own_supersteps(self, tmp_path, nprocs):
        run = record(tmp_path / "trace.bsp", 1000, nprocs, sample_sort="bitonic")
        k = math.ceil(math.log2(nprocs))
        network = ["sort_sample"] * (k * (k + 1) // 2)
        expected = ["agree", *network, "broadcast_pivots", "exchange"]
        assert [stage for stage, _ in greatest_h(run)] == expected

    @pytest.mark.parametrize("backend", ["shm", "sim"])
    def test_h_is_what_the_cost_table_says(self, tmp_path, backend):
        p, s, c, d = 4, 10, 8, 8
        run = record(tmp_path / "trace.bsp", 4000, p, backend, oversampling=s)
        h = dict(greatest_h(run))
        assert h["collect_sample"] == s * p * (p - 1) * (d + 8)
        assert h["broadcast_pivots"] == (p - 1) ** 2 * (d + 8)
        assert h["exchange"] <= 1.5 * 1000 * c

    def test_h_of_the_network_is_one_sample_for_each_split(self, tmp_path):
        p, s, d = 8, 10, 8
        run = record(tmp_path / "trace.bsp", 8000, p, oversampling=s, sample_sort="bitonic")
        assert {h for stage, h in greatest_h(run) if stage == "sort_sample"} == {s * p * (d + 8)}

    def test_a_larger_sample_makes_stage_two_dearer_and_stage_six_more_even(self, tmp_path):
        h = [
            dict(greatest_h(record(tmp_path / f"{s}.bsp", 2**16, 16, oversampling=s)))
            for s in (1, 64)
        ]
        assert h[1]["collect_sample"] == 64 * h[0]["collect_sample"]
        assert h[1]["exchange"] < h[0]["exchange"]


class TestBalance:
    @pytest.mark.parametrize("how", [{}, {"sample_sort": "bitonic"}])
    @pytest.mark.parametrize("distribution", DISTRIBUTIONS)
    def test_the_theoretical_factor_keeps_every_process_within_a_tenth(self, distribution, how):
        size, nprocs = 2**17, 4
        factor = theoretical_oversampling(size, nprocs)
        assert factor * nprocs**2 < size / 5  # the sample is no more than that
        blocks = run_sort(size, nprocs, distribution=distribution, oversampling="theory", **how)
        assert balance(blocks) <= 1.1

    @pytest.mark.parametrize("backend", [pytest.param("shm", marks=pytest.mark.slow), "sim"])
    @pytest.mark.parametrize("distribution", ["equal", "few", "zipf", "adversarial"])
    def test_duplicates_are_divided_among_sixteen_processes(self, backend, distribution):
        how = {"distribution": distribution, "oversampling": 400}
        blocks = run_sort(2**18, 16, backend, **how)
        assert balance(blocks) <= 1.1

    @pytest.mark.parametrize("nprocs", [2, 16])
    def test_equal_keys_of_a_few_processes_only_are_divided_among_all(self, nprocs):
        keys = np.append(np.zeros(30_000), np.arange(2000))
        assert balance(run_sort(keys, nprocs, oversampling=400)) <= 1.1


class TestOversampling:
    def test_the_bound_holds_at_the_factor_and_fails_just_under_it(self):
        n, p, a, risk = 2**20, 16, 1.1, 1e-6
        s = theoretical_oversampling(n, p, a - 1, risk)

        def bound(s):
            return n * math.exp(-((1 - 1 / a) ** 2) * a * s * p / 2)

        assert bound(s) <= risk < bound(s - 1)

    def test_one_process_draws_no_sample(self):
        assert sample_sizes([100], 64, 1) == [0]

    def test_a_factor_below_one_draws_fewer_than_p_records(self):
        assert sample_sizes([100] * 16, 0.25, 16) == [4] * 16
        assert sample_sizes([100] * 16, 1e-9, 16) == [1] * 16

    @examples(100)
    @given(st.lists(st.integers(0, 10_000), min_size=2, max_size=20), st.integers(1, 500))
    def test_samples_are_in_proportion_and_never_more_than_there_is(self, sizes, factor):
        if not sum(sizes):
            return
        counts = sample_sizes(sizes, factor, len(sizes))
        wanted = factor * len(sizes) ** 2
        for size, count in zip(sizes, counts, strict=True):
            share = size * wanted / sum(sizes)
            assert count == size or share <= count < share + 1

    @pytest.mark.parametrize("factor", [0, -3, "much"])
    def test_another_factor_is_one_sentence(self, factor):
        with pytest.raises(
            ValueError, match=rf"oversampling is {factor!r}; it is a number above 0, or"
        ):
            run_sort(10, 2, oversampling=factor)


class TestWrongMethod:
    def test_there_are_two_ways_to_sort_the_sample(self):
        with pytest.raises(ValueError, match="sample_sort is 'quick'; choose one of one, bitonic"):
            run_sort(10, 2, sample_sort="quick")


class TestCommandLine:
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_every_dtype_can_be_made(self, dtype):
        line = ["--size", "500", "--nprocs", "2", "--backend", "sim", "--dtype", dtype]
        result = CliRunner().invoke(sample_sort.command, [*line, "--distribution", "zipf"])
        assert result.exit_code == 0, result.output

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            (["--oversampling", "none"], "'none' is neither a number above 0 nor 'theory'"),
            (["--oversampling", "0"], "'0' is neither a number above 0 nor 'theory'"),
            (["--size", "-1"], "-1 is not in the range"),
        ],
    )
    def test_what_cannot_be_is_one_sentence(self, line, message):
        result = CliRunner().invoke(sample_sort.command, line)
        assert result.exit_code == 2
        assert message in result.output
        assert "Traceback" not in result.output
