"""The six programs have one result on any number of processes; their commands print numbers."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner

import bsplib
from bsplib.apps.papers.steady.cli import cli
from bsplib.apps.papers.steady.measure import SIZES, measure, setting_of
from bsplib.apps.papers.steady.model import ALGORITHMS
from bsplib.apps.papers.steady.programs import (
    LIMIT,
    PROBLEMS,
    PROGRAMS,
    SPLITS,
    by_rank,
    dominant,
    factors,
    fractal,
    iterations,
    keys,
    rounds,
)
from bsplib.recording.trace import read_trace

N = 20


def result(program, nprocs, backend="sim", **how):
    first, *rest = bsplib.run(program, N, nprocs=nprocs, backend=backend, **how)
    assert all(other is None for other in rest)
    return first


def test_every_algorithm_has_a_program_and_a_size():
    assert set(PROGRAMS) == set(ALGORITHMS) == set(SIZES)


@pytest.mark.parametrize("nprocs", [2, 3, 7])
@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "elimination"])
def test_the_result_is_that_of_one_process(name, nprocs):
    np.testing.assert_allclose(result(PROGRAMS[name], nprocs), result(PROGRAMS[name], 1))


@pytest.mark.parametrize("name", ["sort", "slow-sort"])
def test_the_sorts_sort(name):
    assert np.array_equal(result(PROGRAMS[name], 3), np.sort(keys(N)))


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_problem_that_is_there_already_gives_the_same_result_and_stays(name):
    given = PROBLEMS[name](N)
    found = result(PROGRAMS[name], 2, given=given)
    np.testing.assert_array_equal(found, result(PROGRAMS[name], 2))
    np.testing.assert_array_equal(given, PROBLEMS[name](N))


@pytest.mark.parametrize("n", [0, 1, 127, 128, 4096, 9000])
def test_keys_of_any_number_are_sorted_by_rank_and_equal_ones_too(n):
    """Blocks of 127 keys are compared with blocks of 4096."""
    random = np.random.default_rng(n)
    for given in (random.random(n), random.integers(0, 9, n)):
        np.testing.assert_array_equal(by_rank(given), np.sort(given))


@pytest.mark.parametrize(
    ("name", "expected"), [("sort", 1), ("fractal", 1), ("monte-carlo", 8), ("elimination", N - 1)]
)
def test_rounds_are_those_that_the_program_makes(name, expected, tmp_path):
    """A round is two supersteps: work is handed out, and results are gathered."""
    assert rounds(name, N) == expected
    path = tmp_path / "run.trace"
    bsplib.run(PROGRAMS[name], N, nprocs=2, backend="sim", profile=path)
    (run,) = read_trace(path).runs
    records = run.records
    assert len(np.unique(records["superstep"][records["kind"] == 0])) == 2 * expected


def test_matrices_are_multiplied():
    first, second = factors(N)
    np.testing.assert_allclose(result(PROGRAMS["matrices"], 3), first @ second)


@pytest.mark.parametrize("nprocs", [1, 3])
def test_an_eliminated_matrix_is_triangular_and_has_its_determinant(nprocs):
    whole = result(PROGRAMS["elimination"], nprocs)
    matrix = dominant(N)
    assert np.abs(np.tril(whole, -1)).max() < 1e-12 * N
    assert np.prod(np.diag(whole)) == pytest.approx(np.linalg.det(matrix))


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("backend", ["sim", "shm"])
def test_all_splits_draw_one_fractal(split, backend):
    drawn = result(fractal, 2, backend, split=split)
    assert np.array_equal(drawn, iterations(N, np.arange(N * N)))


def test_a_split_that_there_is_not_is_told():
    with pytest.raises(ValueError, match="there is no split 'tile'; choose one of pixel, column"):
        bsplib.run(fractal, 4, split="tile", nprocs=1, backend="sim")


def test_the_inside_of_the_set_takes_all_iterations():
    n = 100
    counts = iterations(n, np.array([int(2 / 2.5 * n) * n + n // 2]))  # c = 0
    assert counts.tolist() == [LIMIT]


@pytest.mark.slow
def test_models_calibrated_here_predict_greater_sizes():
    """Within a factor of 4, as other work on the computer may take as much as the program."""
    for row in measure(["fractal", "matrices"], 2):
        assert 0.25 < row.parallel_s / row.parallel_predicted_s < 4


def test_the_density_of_a_fractal_is_counted_with_few_pixels():
    counted = setting_of("fractal", 50)
    assert counted.n == 2500
    assert 1 < counted.c < LIMIT


def run(*line):
    return CliRunner(env={"COLUMNS": "100"}).invoke(cli, list(map(str, line)))


@pytest.mark.parametrize(
    ("line", "texts"),
    [
        (["tables"], ["163,840,000", "1,908.35", "1,137.99", "990.84"]),
        (["laws"], ["Gustafson: speedup 4.6", "1.6", "of the time on one: 4.6"]),
        (["grain"], ["by pixel", "128 B to distribute"]),
        (["predict", "fractal", "--at", "P=512,W=101e6"], ["efficiency 0.886", "compact"]),
        (["predict", "slow-sort", "--at", "n=1e5,P=4"], ["superlinear", "steps fewer"]),
    ],
)
def test_commands_print_their_numbers(line, texts):
    found = run(*line)
    assert found.exit_code == 0, found.output
    for text in texts:
        assert text in found.output


@pytest.mark.lengthy
def test_a_map_is_drawn(tmp_path):
    file = tmp_path / "map.png"
    found = run("map", "sort", "--across", "n=1e3:1e9", "--plot", file)
    assert found.exit_code == 0, found.output
    assert "speedup from" in found.output
    assert file.stat().st_size > 10_000


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (["predict", "sort", "--at", "n=-1"], "n is -1; it is a finite number, 1 or more"),
        (["map", "sort", "--up", "W=1:2", "--plot", "a.png"], "both axes have the parameter W"),
        (["map", "sort", "--plot", "a.nothing"], "has no suffix of a known format"),
    ],
)
def test_what_cannot_be_is_one_sentence(line, message):
    found = run(*line)
    assert found.exit_code == 1
    assert message in found.output
    assert "Traceback" not in found.output
