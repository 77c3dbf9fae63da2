"""The models give the paper's printed numbers, and agree with each other."""

from __future__ import annotations

import math

import pytest

from bsplib.apps.papers.steady import (
    ALGORITHMS,
    SteadySetting,
    amdahl,
    best_processors,
    gustafson,
    merge_sort_table,
    on_one,
)

SIZES = [10_000 * 2**k for k in range(15)]
FRACTAL = SteadySetting(n=1e6, P=512, W=101e6, u=100e6, c=32_000, d=8)

TABLE_1 = """
0.03 0.06 0.09; 0.05 0.13 0.18; 0.12 0.26 0.37; 0.25 0.51 0.76; 0.53 1.02 1.56; 1.13 2.05 3.17;
2.37 4.10 6.47; 4.99 8.19 13.19; 10.48 16.38 26.86; 21.94 32.77 54.71; 45.86 65.54 111.39;
95.66 131.07 226.73; 199.19 262.14 461.33; 414.13 524.29 938.42; 859.77 1048.58 1908.35
"""
TABLE_2 = """
0.09 0.08 0.06 0.04 0.03; 0.18 0.16 0.12 0.09 0.07; 0.37 0.33 0.25 0.18 0.15;
0.76 0.68 0.51 0.38 0.31; 1.56 1.39 1.04 0.79 0.66; 3.17 2.83 2.15 1.64 1.38;
6.47 5.79 4.42 3.40 2.89; 13.19 11.82 9.09 7.04 6.02; 26.86 24.13 18.67 14.58 12.53;
54.71 49.25 38.33 30.14 26.04; 111.39 100.47 78.63 62.24 54.05;
226.73 204.88 161.19 128.42 112.04; 461.33 417.64 330.26 264.73 231.96;
938.42 851.04 676.28 545.20 479.67; 1908.35 1733.59 1384.06 1121.92 990.84
"""
TABLE_3 = """
0.09 0.08 0.07 0.07; 0.18 0.16 0.14 0.13; 0.37 0.32 0.29 0.27; 0.76 0.64 0.58 0.54;
1.56 1.30 1.16 1.08; 3.17 2.63 2.34 2.17; 6.47 5.33 4.71 4.34; 13.19 10.79 9.49 8.71;
26.86 21.83 19.11 17.47; 54.71 44.18 38.47 35.05; 111.39 89.38 77.46 70.31;
226.73 180.81 155.94 141.02; 461.33 365.72 313.93 282.86; 938.42 739.64 631.96 567.36;
1908.35 1495.66 1272.12 1137.99
"""


def printed(table):
    return [tuple(row.split()) for row in table.replace("\n", " ").split(";")]


def shown(rows):
    return [tuple(f"{value:.2f}" for value in row) for row in rows]


def test_table_1_is_there_to_the_printed_digit():
    assert shown(merge_sort_table(SIZES, 5.2e6, 2.5e6)) == printed(TABLE_1)


def test_table_2_is_there_to_the_printed_digit():
    columns = [merge_sort_table(SIZES, 5.2e6, mb * 1e6) for mb in (2.5, 3, 5, 10, 20)]
    rows = [[row[2] for row in rows] for rows in zip(*columns, strict=True)]
    assert shown(rows) == printed(TABLE_2)


def test_table_3_is_there_to_the_printed_digit():
    columns = [merge_sort_table(SIZES, mips * 1e6, 2.5e6) for mips in (5.2, 10, 20, 50)]
    rows = [[row[2] for row in rows] for rows in zip(*columns, strict=True)]
    assert shown(rows) == printed(TABLE_3)


def test_the_example_of_both_laws_is_there():
    """1.6 and 4.6 and 0.13, as printed in section 1; the laws agree on one program."""
    assert round(amdahl(0.6, 10), 1) == 1.6
    assert round(gustafson(0.6, 10), 1) == 4.6
    assert round(on_one(0.6, 10), 2) == 0.13
    assert amdahl(on_one(0.6, 10), 10) == pytest.approx(gustafson(0.6, 10))


@pytest.mark.parametrize("fraction", [-0.1, 1.1, math.nan])
def test_a_fraction_that_is_none_is_told(fraction):
    with pytest.raises(ValueError, match="a sequential fraction is 0 to 1, and not"):
        amdahl(fraction, 4)


def test_the_efficiency_of_the_fractal_is_886_and_not_870():
    """The paper prints 87%; 1 / (1 + 8 x 512 x 101 / (32000 x 100)) is 0.8855."""
    assert round(ALGORITHMS["fractal"].efficiency(FRACTAL), 3) == 0.886


@pytest.mark.parametrize("name", ["fractal", "monte-carlo"])
@pytest.mark.parametrize("n", [10, 1e9])
def test_the_size_of_a_fractal_or_simulation_does_not_matter(name, n):
    """Section 5: neither the number of objects nor the length of time has an impact."""
    algorithm = ALGORITHMS[name]
    closed = 1 / (1 + 8 * 512 * 101e6 / (32_000 * 100e6))  # equation 4.4
    assert algorithm.efficiency(FRACTAL.with_(n=n)) == pytest.approx(closed)


@pytest.mark.parametrize("name", ["sort", "fractal", "monte-carlo", "matrices"])
@pytest.mark.parametrize("nprocs", [2, 100])
def test_a_compact_algorithm_has_no_superlinear_speedup(name, nprocs):
    algorithm = ALGORITHMS[name]
    assert algorithm.compact
    fast = SteadySetting(n=1e5, P=nprocs, u=1e30, B=1e30)
    assert algorithm.speedup(fast) <= nprocs * (1 + 1e-12)
    assert algorithm.steps_saved(fast) <= 1e-6 * algorithm.sequential(fast).steps


def test_a_quadratic_sort_has_superlinear_speedup_on_few_workstations():
    """Section 3.2: 2 to 5 workstations, W = 5 MIPS, u = 60,000 B/s, B = 3.5 MB/s."""
    slow = ALGORITHMS["slow-sort"]
    here = SteadySetting(n=50_000, W=5e6, u=60_000, B=3.5e6)
    for nprocs in (2, 3, 4, 5):
        assert slow.speedup(here.with_(P=nprocs)) > nprocs
        assert slow.steps_saved(here.with_(P=nprocs)) > 0
    assert slow.speedup(here.with_(n=1000, P=2)) < 2  # larger problems have better speedups


@pytest.mark.parametrize("nprocs", [3, 4, 8, 19])
def test_equation_2_1_holds_with_the_merge_that_was_inferred(nprocs):
    """n^2 > P (n/P)^2 + n lg P for all n > P > 2; with n P instead it fails at n = P + 1."""
    n = nprocs + 1
    assert n**2 > n**2 / nprocs + n * math.log2(nprocs)
    assert not n**2 > n**2 / nprocs + n * nprocs


def test_figure_2_is_as_the_text_says():
    """n = 10^18, P = 3: worthwhile with W <= 1 MIPS and u >= 100 MB/s, not with 128 MIPS."""
    sort = ALGORITHMS["sort"]
    here = SteadySetting(n=1e18, P=3, B=10e6)
    assert sort.speedup(here.with_(W=1e6, u=100e6)) > 2.5
    assert sort.speedup(here.with_(W=129e6, u=1e30)) < 1.2


def test_the_network_of_an_elimination_has_to_be_faster_than_all_processors():
    """Section 7: unless u >> P W, communication offsets all benefits."""
    elimination = ALGORITHMS["elimination"]
    here = SteadySetting(n=1000, P=16, W=1e8)
    assert elimination.speedup(here.with_(u=100 * 16 * 1e8)) > 15
    assert elimination.speedup(here.with_(u=16 * 1e8)) < 3
    closed = 16 / (1 + 16 * 16 * 1e8 / (3 * 1e9))
    assert elimination.speedup(here.with_(u=1e9)) == pytest.approx(closed)


def test_larger_matrices_make_up_for_their_communication():
    matrices = ALGORITHMS["matrices"]
    here = SteadySetting(P=16, W=1e8, u=1e7)
    speedups = [matrices.speedup(here.with_(n=n)) for n in (100, 1000, 10_000, 100_000)]
    assert speedups == sorted(speedups)
    few, many = (best_processors(matrices, here.with_(n=n))[0] for n in (1000, 100_000))
    assert 1 <= few < many


@pytest.mark.parametrize("value", [0, math.nan])
@pytest.mark.parametrize("name", ["n", "P", "W", "u", "B", "c", "d"])
def test_values_that_are_none_are_told(name, value):
    with pytest.raises(ValueError, match=rf"{name} is .*; it is a finite number"):
        SteadySetting(**{name: value})
