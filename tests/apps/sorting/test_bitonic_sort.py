"""Bitonic merge sort: its network, the sizes of its blocks, and the cost that it states."""

from __future__ import annotations

import math

import hypothesis.extra.numpy as npst
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import bsplib
from bsplib.apps.sorting import bitonic_sort
from bsplib.apps.sorting.keys import all_keys
from bsplib.profiler.costs import h_relation
from bsplib.recording.trace import read_trace
from tests.drawn import examples

COUNTS = (1, 3, 16)
MANY = examples(30)
DUPLICATES = npst.arrays(np.int8, st.integers(0, 70), elements=st.integers(-2, 2))
FLOATS = npst.arrays(
    np.float64, st.integers(0, 40), elements=st.sampled_from([math.nan, math.inf, -1.5, 0.0, -0.0])
)


def run_sort(values, nprocs, backend="sim", **more):
    return bsplib.run(bitonic_sort.main, values, nprocs=nprocs, backend=backend, **more)


def check(keys, nprocs, backend, *, descending=False):
    """The blocks are of the sizes that are promised, and numpy's sort in pieces."""
    blocks = run_sort(keys, nprocs, backend, descending=descending)
    length = -(-len(keys) // nprocs)
    starts = [min(pid * length, len(keys)) for pid in range(nprocs + 1)]
    assert [len(block) for block in blocks] == list(np.diff(starts))
    ordered = np.sort(keys)
    np.testing.assert_array_equal(np.concatenate(blocks), ordered[:: -1 if descending else 1])


@pytest.mark.parametrize("nprocs", COUNTS)
@pytest.mark.parametrize("backend", ["shm", "sim"])
@pytest.mark.parametrize("size", [5, 1000])
def test_random_keys_are_the_same_however_many_processes_make_them(nprocs, backend, size):
    blocks = run_sort(size, nprocs, backend, seed=7)
    expected = np.sort(all_keys(size, 1, seed=7))
    np.testing.assert_array_equal(np.concatenate(blocks), expected, strict=True)


@MANY
@given(FLOATS, FLOATS, st.data())
def test_keys_that_are_equal_but_not_alike_all_stay(first, second, data):
    first, second = np.sort(first, kind="stable"), np.sort(second, kind="stable")
    count = data.draw(st.integers(0, len(first) + len(second)))
    halves = [bitonic_sort.half(first, second, count, least=least) for least in (True, False)]
    assert len(halves[0]) == count
    got, had = np.concatenate(halves), np.concatenate((first, second))
    np.testing.assert_array_equal(np.sort(got.view(np.int64)), np.sort(had.view(np.int64)))
    np.testing.assert_array_equal(got, np.sort(had))


@MANY
@given(DUPLICATES, DUPLICATES, st.data())
def test_two_blocks_are_cut_so_that_the_first_block_comes_first_among_equals(first, second, data):
    first, second = np.sort(first), np.sort(second)
    count = data.draw(st.integers(0, len(first) + len(second)))
    order = np.argsort(np.concatenate((first, second)), kind="stable")
    of_first = int((order[:count] < len(first)).sum())
    assert bitonic_sort.merge_path(first, second, count) == of_first


@pytest.mark.parametrize("backend", ["shm", "sim"])
@pytest.mark.parametrize("descending", [False, True])
def test_large_blocks_are_sorted(backend, descending):
    check(np.random.default_rng(1).integers(0, 1000, 100_001), 3, backend, descending=descending)


def test_the_keys_that_are_given_are_not_changed():
    keys = np.array([3, 1, 2, 0])
    bsplib.run(bitonic_sort.main, keys, nprocs=1, backend="shm", start_method="fork")
    assert list(keys) == [3, 1, 2, 0]


@pytest.mark.parametrize("nprocs", [*range(1, 10), 33])
def test_every_number_of_processes_is_sorted_from_the_worst_order(nprocs):
    keys = np.arange(3 * nprocs)[::-1].copy()
    for count in (3 * nprocs, 2 * nprocs + 1, nprocs // 2):
        for descending in (False, True):
            check(keys[:count], nprocs, "sim", descending=descending)


@pytest.mark.parametrize("nprocs", [*range(1, 6), pytest.param(7, marks=pytest.mark.slow)])
def test_the_network_sorts_every_row_of_zeros_and_ones(nprocs):
    """By the 0-1 principle it then sorts any keys; with one key a process."""
    for bits in range(2**nprocs):
        keys = np.array([bits >> position & 1 for position in range(nprocs)], np.uint8)
        for descending in (False, True):
            blocks = run_sort(keys, nprocs, descending=descending)
            expected = np.sort(keys)[:: -1 if descending else 1]
            assert np.array_equal(np.concatenate(blocks), expected)


@pytest.mark.parametrize("backend", ["shm", "sim"])
@pytest.mark.parametrize("nprocs", COUNTS)
def test_supersteps_and_h_are_what_the_cost_says(tmp_path, backend, nprocs):
    keys = np.random.default_rng(3).permutation(20 * nprocs).astype(np.int16)
    run_sort(keys, nprocs, backend, profile=tmp_path / "trace.bsp")
    (run,) = read_trace(tmp_path / "trace.bsp").runs
    h, k = np.maximum(*h_relation(run)), math.ceil(math.log2(nprocs))
    steps = np.unique(run.records["superstep"][run.records["kind"] == 0])
    assert len(steps) == k * (k + 1) // 2
    for step in steps:  # one block
        assert h[run.records["superstep"] == step].max() == 20 * keys.itemsize


class TestCommandLine:
    def test_virtual_processors_report_their_times(self):
        line = ["--backend", "sim", "--nprocs", "64", "--size", "1000", "--machine", "ibm-sp2-pvm"]
        result = CliRunner().invoke(bitonic_sort.command, [*line, "--descending"])
        assert result.exit_code == 0
        assert "64 processes sorted 1000 keys" in result.output
        for word in ("virtual time: parallel", "total computation"):
            assert word in result.output

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            (["--machine", "nowhere"], "there is no Machine 'nowhere'"),
            (["--nprocs", "257"], "it may be 1 to 256 on shm"),
            (["--backend", "sim", "--nprocs", "4097"], "it may be 1 to 4096 on sim"),
            (["--profile", "no/such/folder/x.bsp"], "there is no folder"),
        ],
    )
    def test_a_place_that_does_not_exist_is_one_sentence(self, line, message):
        result = CliRunner().invoke(bitonic_sort.command, line)
        assert result.exit_code == 1
        assert message in result.output
        assert "Traceback" not in result.output
