"""The three Fourier transforms give what numpy.fft gives, at the cost that they state."""

from __future__ import annotations

import math
import re

import hypothesis.extra.numpy as npst
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import example, given
from hypothesis import strategies as st

import bsplib
from bsplib.apps.fourier import common, fft, fft_barrier_free, fft_cyclic
from bsplib.profiler.costs import h_relation
from bsplib.sync_kinds import Kind
from tests.drawn import examples
from tests.recordings import record_run

COUNTS = (1, 2, 16)
OTHER_COUNTS = (3, 6, 7)
EPSILON = np.finfo(float).eps
PARTS = st.floats(-1e6, 1e6, allow_subnormal=False)
SIGNALS = npst.arrays(np.complex128, st.integers(1, 70), elements=st.builds(complex, PARTS, PARTS))


def first(results):
    return results[0]


GATHER = {fft: np.concatenate, fft_barrier_free: first, fft_cyclic: fft_cyclic.gather}
ALGORITHMS = pytest.mark.parametrize(
    "algorithm", GATHER, ids=lambda module: module.__name__.rpartition(".")[2]
)
REPLICATED = pytest.mark.parametrize(
    "algorithm", [fft, fft_barrier_free], ids=["fft", "fft_barrier_free"]
)


def transform(algorithm, values, nprocs, **more):
    return GATHER[algorithm](bsplib.run(algorithm.main, values, nprocs=nprocs, **more))


def assert_near(got, expected):
    """The error grows with the logarithm of the size, from a rounding error on."""
    assert got.dtype == np.complex128
    assert got.shape == expected.shape
    steps = 1 + math.log2(len(expected))
    assert common.error_of(got, expected) <= EPSILON * steps


@ALGORITHMS
@pytest.mark.parametrize("backend", ["sim", "shm"])
@pytest.mark.parametrize("nprocs", COUNTS)
@pytest.mark.parametrize("power", [8, 9, 16])
def test_a_transform_is_that_of_numpy(algorithm, backend, nprocs, power, run_on):
    parts = run_on(algorithm.main, 2**power, nprocs=nprocs, backend=backend, seed=power)
    assert_near(GATHER[algorithm](parts), common.reference(2**power, seed=power))


@REPLICATED
@pytest.mark.parametrize("nprocs", COUNTS)
@pytest.mark.parametrize("power", [0, 1, 3])
def test_there_may_be_fewer_values_than_processes(algorithm, nprocs, power):
    assert_near(transform(algorithm, 2**power, nprocs, backend="sim"), common.reference(2**power))


@REPLICATED
@pytest.mark.parametrize("nprocs", OTHER_COUNTS)
@pytest.mark.parametrize("backend", ["sim", "shm"])
def test_the_number_of_processes_need_not_be_a_power_of_two(algorithm, nprocs, backend, run_on):
    for size in (1, 2, 64, 4096):
        parts = run_on(algorithm.main, size, nprocs=nprocs, backend=backend)
        assert_near(GATHER[algorithm](parts), common.reference(size))


@REPLICATED
@examples(30)
@given(SIGNALS, st.sampled_from(COUNTS + OTHER_COUNTS))
@example(np.zeros(8, complex), 4)
@example(np.full(7, 1e100 + 0j), 2)
def test_signals_of_any_length_are_transformed(algorithm, values, nprocs):
    assert_near(transform(algorithm, values, nprocs, backend="sim"), np.fft.fft(values))


@examples(30)
@given(st.sampled_from((1, 2, 4, *OTHER_COUNTS)), st.integers(1, 5), st.integers(0, 99))
def test_any_number_of_processes_deals_out_a_multiple_of_its_square(nprocs, times, seed):
    size = times * nprocs**2
    got = transform(fft_cyclic, size, nprocs, backend="sim", seed=seed)
    assert_near(got, common.reference(size, seed=seed))


@pytest.mark.parametrize(("size", "nprocs"), [(2, 2), (65536, 3), (128, 16), (100, 7)])
@pytest.mark.parametrize("backend", ["sim", "shm"])
def test_other_numbers_of_values_cannot_be_dealt_out(size, nprocs, backend):
    message = f"{size} values cannot be distributed cyclically to {nprocs} processes.*multiple of"
    with pytest.raises(ValueError, match=f"{message} {nprocs**2}"):
        bsplib.run(fft_cyclic.main, size, nprocs=nprocs, backend=backend)


@ALGORITHMS
def test_an_impulse_becomes_a_wave_and_a_wave_an_impulse(algorithm):
    """What no reference has to tell: exp(2 pi i 5 j / 64) has all its weight at 5."""
    wave = np.exp(2j * np.pi * 5 * np.arange(64) / 64)
    impulse = np.zeros(64, complex)
    impulse[5] = 1
    assert_near(transform(algorithm, wave, 4, backend="sim"), 64 * impulse)
    assert_near(transform(algorithm, impulse, 4, backend="sim"), wave.conj())


@ALGORITHMS
def test_the_signal_is_left_as_it_was(algorithm):
    values = common.signal(256, 1)
    before = values.copy()
    bsplib.run(algorithm.main, values, nprocs=1, backend="shm", start_method="fork")
    np.testing.assert_array_equal(values, before)


@ALGORITHMS
@pytest.mark.parametrize("power", [18, 19])
def test_long_signals_are_transformed_row_by_row(algorithm, power):
    """From 2^18 values on a process does not leave them to numpy as they are."""
    assert_near(transform(algorithm, 2**power, 2, backend="sim"), common.reference(2**power))


# -- what numpy does not do ------------------------------------------------------------------------


@pytest.mark.parametrize("size", [2**18, 2**18 + 32, 2**18 + 1, 3 * 2**17])
@pytest.mark.parametrize("stride", [1, 3])
def test_a_local_transform_of_a_long_signal_is_numpys(size, stride):
    values = common.signal(size * stride, 3)[::stride]
    out = np.empty(size, complex)
    common.LocalTransform(size)(values, out)
    assert_near(out, np.fft.fft(values))


@given(st.integers(1, 40000), st.booleans())
@examples(15)
def test_halves_may_be_combined_in_place(half, in_place):
    values = common.signal(2 * half, half)
    out = np.empty(2 * half, complex)
    even, odd = (out[:half], out[half:]) if in_place else np.empty((2, half), complex)
    np.fft.fft(values[::2], out=even)
    np.fft.fft(values[1::2], out=odd)
    common.combine(out, even, odd, common.roots_of_unity(2 * half, np.arange(half)))
    assert_near(out, np.fft.fft(values))


def test_roots_of_unity_are_exact_to_the_last_digits_however_great_the_exponent():
    exponents = np.arange(2**18) * 2**30
    got = common.roots_of_unity(2**18, exponents + 1)
    expected = common.roots_of_unity(2**18, np.ones(2**18, np.int64))
    np.testing.assert_array_equal(got, expected)
    assert np.abs(np.abs(got) - 1).max() < 2 * EPSILON


# -- what it costs ---------------------------------------------------------------------------------


def record(path, algorithm, size, nprocs, backend="sim"):
    return record_run(path, algorithm.main, size, nprocs=nprocs, backend=backend)


def by_step(run, values):
    """For every process the values of its supersteps that send something, in order."""
    records = run.records
    return [
        [value for value in values[records["pid"] == pid] if value] for pid in range(run.nprocs)
    ]


@pytest.mark.parametrize("nprocs", COUNTS)
@pytest.mark.parametrize("backend", ["sim", "shm"])
def test_the_recursive_transform_exchanges_twice_as_much_at_each_level(tmp_path, nprocs, backend):
    size, levels = 256, int(math.log2(nprocs))
    run = record(tmp_path / "trace.bsp", fft, size, nprocs, backend)
    h_out, h_in = h_relation(run)
    expected = [16 * size // 2**level for level in range(levels, 0, -1)]
    assert by_step(run, h_out) == by_step(run, h_in) == [expected] * nprocs
    assert sum(expected) == 16 * size * (nprocs - 1) // nprocs
    oblivious = run.records["pid"][run.records["kind"] == Kind.OBLSYNC]
    assert np.bincount(oblivious, minlength=nprocs).tolist() == [levels] * nprocs


@pytest.mark.parametrize("nprocs", COUNTS)
def test_the_recursive_transform_works_in_groups_of_half_the_size(tmp_path, nprocs):
    run = record(tmp_path / "trace.bsp", fft, 256, nprocs)
    sizes = sorted((group.size for group in run.groups if group.size > 1), reverse=True)
    expected = [nprocs >> level for level in range(int(math.log2(nprocs))) for _ in range(2**level)]
    assert sizes == expected


@pytest.mark.parametrize("nprocs", [*COUNTS, 6])
@pytest.mark.parametrize("backend", ["sim", "shm"])
def test_without_barriers_half_of_those_that_work_send_at_each_step(tmp_path, nprocs, backend):
    size, steps = 256, int(math.log2(nprocs))
    run = record(tmp_path / "trace.bsp", fft_barrier_free, size, nprocs, backend)
    assert Kind.SYNC not in run.records["kind"]
    h_out, _ = h_relation(run)
    supersteps = run.records["superstep"]
    for step in range(steps):
        sent = h_out[supersteps == step + 1]  # after the one that prepares
        senders = 2**steps >> (step + 1)
        assert sorted(sent[sent > 0]) == [16 * size * 2**step // 2**steps] * senders
        assert sent.sum() == 8 * size


@pytest.mark.parametrize("nprocs", [2, 4, 8, 16])
@pytest.mark.parametrize("backend", ["sim", "shm"])
def test_dealt_out_values_are_exchanged_once_and_in_balance(tmp_path, nprocs, backend):
    size = 1024
    run = record(tmp_path / "trace.bsp", fft_cyclic, size, nprocs, backend)
    h_out, h_in = h_relation(run)
    each = 16 * size // nprocs * (nprocs - 1) / nprocs
    assert by_step(run, h_out) == by_step(run, h_in) == [[each]] * nprocs
    assert run.records["superstep"].max() == 2  # that which prepares, the exchange, the end


# -- what is refused, and the command line --------------------------------------------------------


@ALGORITHMS
class TestWhatIsRefused:
    def test_a_signal_of_two_dimensions(self, algorithm):
        with pytest.raises(ValueError, match=r"one dimension, and this one has shape \(2, 3\)"):
            transform(algorithm, np.zeros((2, 3)), 2, backend="sim")

    @pytest.mark.parametrize("values", [0, -1, np.zeros(0)])
    def test_a_signal_of_no_values(self, algorithm, values):
        with pytest.raises(ValueError, match="one value or more, and this one has"):
            transform(algorithm, values, 2, backend="sim")


@ALGORITHMS
class TestCommandLine:
    @pytest.mark.parametrize("backend", ["shm", "sim"])
    def test_it_says_how_near_to_numpys_the_transform_is(self, algorithm, backend):
        line = ["--size", "1024", "--nprocs", "4", "--backend", backend]
        result = CliRunner().invoke(algorithm.command, line)
        assert result.exit_code == 0, result.output
        assert "4 processes transformed 1024 values; relative error " in result.output

    @pytest.mark.parametrize("line", [["--size", "0"], ["--nprocs", "0"], ["--seed", "-1"]])
    def test_numbers_that_cannot_be_are_refused(self, algorithm, line):
        result = CliRunner().invoke(algorithm.command, line)
        assert result.exit_code == 2
        assert re.search(f"Invalid value for .*'{line[0]}'", result.output)


def test_a_size_that_cannot_be_dealt_out_is_one_sentence():
    line = ["--size", "1000", "--nprocs", "3", "--backend", "sim"]
    result = CliRunner().invoke(fft_cyclic.command, line)
    assert result.exit_code == 1
    assert result.output.startswith("Error: 1000 values cannot be distributed cyclically to 3")
    assert len(result.output.splitlines()) == 1


@ALGORITHMS
def test_a_wrong_transform_is_noticed(algorithm, monkeypatch):
    monkeypatch.setattr(common, "reference", lambda size, seed: np.ones(size, complex))
    result = CliRunner().invoke(algorithm.command, ["--backend", "sim", "--nprocs", "2"])
    assert result.exit_code == 1
    assert "the transform is wrong: its relative error is" in result.output


@pytest.mark.lengthy
def test_what_was_in_memory_before_does_not_disturb_the_preparation(monkeypatch):
    monkeypatch.setattr(np, "empty", lambda shape, dtype=float: np.full(shape, np.inf, dtype))
    local = common.LocalTransform(2**15)  # a warning of a value that is none is an error
    values = common.signal(2**15, 0)
    out = np.zeros_like(values)
    local(values, out)
    assert common.error_of(out, np.fft.fft(values)) < 1e-14
