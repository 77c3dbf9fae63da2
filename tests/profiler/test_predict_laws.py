"""The laws of what is counted: exact from enough values, and refused from fewer."""

import numpy as np
import pytest

from bsplib.profiler.predict.laws import laws_of

SIZES, COUNTS = (64, 128, 256, 512), (2, 4, 8)
FAR = {"n": 4096.0, "p": 32.0}


def grid(law, sizes=SIZES, counts=COUNTS):
    points = [(n, p) for n in sizes for p in counts]
    values = {
        "n": np.array([n for n, _ in points], float),
        "p": np.array([p for _, p in points], float),
    }
    return values, np.array([law(n, p) for n, p in points], float)


def predicted(law, **more):
    return {found.at(FAR) for found in laws_of(*grid(law, **more))}


@pytest.mark.parametrize(
    "law",
    [
        lambda n, p: 7,
        lambda n, p: 2 * p - 1,
        lambda n, p: n // 16 + p - 1,
        lambda n, p: np.ceil(np.log2(p)),
        lambda n, p: 4 + 4 * np.log2(n) - 4 * np.log2(p),
        lambda n, p: 8 * n * (p - 1) / p,
        lambda n, p: 8 * n * (n - 1) * (p - 1) / 2,
        lambda n, p: 18 * (p - 1),
        lambda n, p: 128 * (p - 1) + 8 * n,
        lambda n, p: 8 * n * (p - 1) / p**2,
    ],
)
def test_a_sum_of_terms_is_found_exactly(law):
    assert predicted(law) == {float(law(4096, 32))}


def test_blocks_of_whole_elements_are_found_exactly():
    def law(n, p):
        return 8 * -(-n // p)

    assert predicted(law, sizes=(65, 129, 258, 515), counts=(2, 3, 5, 8)) == {8.0 * 128}


@pytest.mark.parametrize(
    ("law", "sizes"),
    [
        (lambda n, p: 8 * (n // 8), (100, 200, 400)),
        (lambda n, p: 8 * (n // 16) * (p - 1), (100, 250, 400, 700)),
        (lambda n, p: p + np.floor(np.sqrt(n)), (50, 100, 200, 400)),
        (lambda n, p: 3 * np.floor(np.log2(n)), (64, 100, 200, 400)),
        (lambda n, p: (16 if p > 2 else 8) * np.floor(np.sqrt(n)), (50, 100, 200, 400)),
    ],
)
def test_a_part_of_a_size_may_be_rounded(law, sizes):
    assert predicted(law, sizes=sizes) == {float(law(4096, 32))}


@pytest.mark.parametrize(
    ("law", "hull"),
    [
        (lambda n, p: 2 * np.sqrt(n) - 1, (133, 135)),
        (lambda n, p: 8 * (p - 1) * -(-np.sqrt(n) // p), (8 * 64, 8 * 31 * 3)),
    ],
)
def test_squares_do_not_tell_how_a_root_is_rounded(law, hull):
    laws = laws_of(*grid(law, sizes=(64, 256, 1024, 4096)))
    found = [each.at({"n": 4608, "p": 32}) for each in laws]
    assert (min(found), max(found)) == hull


def test_rounds_in_the_rows_of_a_grid_are_found_where_three_heights_are_shown():
    assert predicted(lambda n, p: np.log2(p) // 2, counts=(2, 4, 8, 16)) == {2.0}


@pytest.mark.lengthy
def test_a_program_may_cut_its_data_in_twelve_or_ten():
    assert predicted(lambda n, p: 8 * n * (p - 1) / 12) == {8 * 4096 * 31 / 12}
    assert predicted(lambda n, p: n / 10 * (p - 1)) == {4096 * 31 / 10}


def test_what_only_a_run_apart_from_all_others_has_is_no_law():
    values = {"n": np.array([64.0, 64, 128, 128, 512]), "p": np.array([2.0, 4, 2, 4, 32])}
    assert not laws_of(values, np.array([1.0, 1, 1, 1, 5]))


@pytest.mark.lengthy
def test_noise_has_no_law():
    random = np.random.default_rng(1)
    assert not laws_of(*grid(lambda n, p: 8 * n + random.integers(0, 50)))


def test_a_branch_is_found_where_both_sides_are_shown():
    (law,) = laws_of(*grid(lambda n, p: 1 if n >= 256 else 0, sizes=(64, 128, 256, 512)))
    assert law.text == "(1)*above(n, 128)"
    assert law.at(FAR) == 1
    assert law.at({"n": 64, "p": 4}) == 0


def test_from_some_number_of_processes_on_there_is_another_superstep():
    (law,) = laws_of(*grid(lambda n, p: 2 if p >= 4 else 1, counts=(2, 4, 8, 16)))
    assert law.text == "(2)*above(p, 2) + (1)*(1 - above(p, 2))"
    assert law.at(FAR) == 2


def test_a_simple_branch_wins_over_a_sum_of_rare_terms():
    values = {"p": np.array([2.0, 4, 8, 16])}
    assert laws_of(values, np.array([0.0, 1, 1, 1]))[0].text == "(1)*above(p, 2)"


@pytest.mark.lengthy
def test_the_larger_side_of_a_branch_is_a_bare_function_where_it_has_two_values():
    assert predicted(lambda n, p: p - 1 if p >= 4 else 0) == {31}
    assert not predicted(lambda n, p: np.ceil(np.log2(p) / 2))  # 1, 1 and 2 are p/4 from p = 4 on


def test_a_branch_may_depend_on_the_block_of_a_process():
    assert predicted(lambda n, p: 3 if n / p > 32 else 1) == {3.0}


def test_both_sides_of_a_branch_in_a_size_may_depend_on_the_processes():
    assert predicted(lambda n, p: (1 + np.log2(p)) * (2 if n >= 256 else 1)) == {12.0}


@pytest.mark.lengthy
def test_a_branch_whose_larger_side_is_a_chance_sum_is_no_law():
    """What is there from n = 512 on, in two sizes, is met by a sum with a logarithm from 256 on."""
    assert not laws_of(
        *grid(lambda n, p: 8 * n / p if n >= 512 else 0, sizes=(128, 256, 512, 1024))
    )


@pytest.mark.lengthy
def test_laws_that_differ_beyond_the_runs_are_all_given():
    """Rows of a grid of 2, 4 and 8 processes are 1, 2 and 2: so is a branch, and the whole root."""
    values, counts = grid(lambda n, p: 1 if p == 2 else 2)
    assert {law.at(FAR) for law in laws_of(values, counts)} == {2.0, 4.0}
    assert {law.at(FAR) for law in laws_of(values, counts, inside=True)} == {2.0, 4.0, 5.0}


@pytest.mark.lengthy
@pytest.mark.parametrize(
    "law",
    [
        lambda n, p: 96 * n * (1 if p < 8 else 1.25) / 2,  # edges of an inner block of a grid
        lambda n, p: {2: 400, 4: 1200, 8: 1600}[p],  # a tree whose nodes have four children
        lambda n, p: {64: 8, 128: 9, 256: 10, 512: 10}[n],  # rounds that depend on the data
    ],
)
def test_a_law_that_few_values_meet_by_chance_is_refused(law):
    assert not laws_of(*grid(law))


@pytest.mark.lengthy
def test_terms_of_two_sizes_are_products():
    points = [(n, m, p) for n in (8, 16, 32) for m in (3, 5, 9) for p in COUNTS]
    columns = np.array(points, float).T
    values = dict(zip("nmp", columns, strict=True))
    (law, *_) = laws_of(values, np.array([8 * n * m * (p - 1) / p for n, m, p in points], float))
    assert law.at({"n": 64, "m": 7, "p": 16}) == 8 * 64 * 7 * 15 / 16
