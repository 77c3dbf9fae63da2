"""Chittor's coefficients come back from her times, and our runs can be predicted as hers can."""

from __future__ import annotations

import numpy as np
import pytest

import bsplib
from bsplib.apps.papers import bitonic
from bsplib.apps.papers.speedup import (
    ALONE,
    BARRIER,
    BARRIER_PVM_MS,
    BUFFERED,
    CREATION,
    CREATION_PVM_MS,
    PRINTED,
    PRINTED_ALONE,
    PRINTED_BUFFERED,
    PRINTED_PVM,
    PRINTED_PVM_BUFFERED,
    TERMS,
    SequentialParts,
    characterise,
    cost_of,
    fit_parts,
    roll_off,
    values,
)

TABLE_3 = (247, 307, 437, 727, 1287, 2387, 4587, 9007, 17847, 35507)
"""Seq(P) for P = 1 to 512."""
TABLE_6 = {
    8: (4161, 2201, 2141, 2491),
    16: (10865, 5418, 4038, 3898, 4998),
    32: (27183, 12922, 8672, 6752, 6942),
    64: (66807, 30947, 19257, 13357, 11387),
    128: (163377, 74117, 44147, 28577, 21097),
    256: (395097, 177760, 101900, 63030, 43180),
    512: (943303, 423636, 236566, 140826, 91936),
}
"""T(N, P) for P = 1 to 16: the characterisation region of equation 14."""
LAST_ROW = (*(27061469, 12119279, 6288269, 3324109, 1817819, 1049129, 658229, 466199, 389829),)
"""T(8192, P) for P = 1 to 256."""
REGION = {(n, 2**k): float(t) for n, row in TABLE_6.items() for k, t in enumerate(row)}


def test_equation_14_comes_back_from_her_times():
    """Within 0.5%: of plain least squares the last is 0.8140, and 0.811 is printed."""
    found = characterise(REGION).coefficients
    assert found == pytest.approx(PRINTED.coefficients, rel=0.005)
    assert [round(each) for each in found[:4]] == [14773, 146, 899, -4486]
    assert int(10 * found[4]) == 226  # 22.66, which she cuts to 22.6


def test_equation_13_goes_through_four_times_of_table_6_that_have_eight_keys_a_processor():
    """It is printed for N = P; T(N, N/8) of N = 16 to 128 gives its four coefficients exactly."""
    given = {(n, n): float(TABLE_6[n][n.bit_length() - 4]) for n in (16, 32, 64, 128)}
    assert list(given.values()) == [5418, 8672, 13357, 21097]
    found = characterise(given, ALONE)
    assert [round(each, 2) for each in found.coefficients] == [341.0, 31.23, -210.81, 403.2]
    for n, time in given.items():
        assert PRINTED_ALONE.time(*n) == pytest.approx(time, abs=1)


def test_equations_15_to_18_written_out():
    """For N = 64, P = 4: log2(N)^2 = 36."""
    assert PRINTED_BUFFERED[4].time(64, 4) == pytest.approx(
        23041 - 2748 * 16 - 2470 * 4 + 285 * 16 * 36 + 45 * 4 * 36
    )
    assert PRINTED_BUFFERED[16].time(64, 4) == pytest.approx(
        13573 - 1952 * 16 - 4126 * 4 + 87.34 * 16 * 36 + 80.26 * 4 * 36
    )
    assert PRINTED_PVM.time(64, 4) == pytest.approx(
        161.9 + 0.23 * 16 * 4 + 25.36 * 8 + 167.5 * 4 + 0.0025 * 16 * 16 - 0.00047 * 2 * 16 * 16
    )
    assert PRINTED_PVM_BUFFERED.time(64, 4) == pytest.approx(
        2921 - 41.72 * 16 - 2424.6 * 4 + 0.63 * 16 * 36 + 46.03 * 4 * 36
    )


def test_what_the_text_says_of_pvm_is_true_of_equation_17():
    """Section 6.2: no speedup above 4. One process is fastest by it to N = 2048, 8192 in 6.3."""
    speedups = {
        (n, p): PRINTED_PVM.speedup(n, p)
        for n in [2**k for k in range(3, 18)]
        for p in (2, 4, 8, 16)
        if p <= n
    }
    assert max(speedups.values()) < 4
    assert all(found < 1 for (n, _), found in speedups.items() if n <= 2048)
    assert speedups[4096, 2] > 1


def test_lines_through_the_columns_of_pvm():
    """Milliseconds; a processor takes three times as long to create as in Table 1 of Multi."""
    creation, barrier = fit_parts(CREATION_PVM_MS), fit_parts(BARRIER_PVM_MS)
    assert (round(creation.each, 2), round(creation.start, 2)) == (30.71, -10.42)
    assert (round(barrier.each, 2), round(barrier.start, 2)) == (70.23, -35.42)


@pytest.mark.parametrize(("n", "p", "size"), [(64, 1, 4), (64, 2, 4), (256, 4, 8), (512, 16, 16)])
def test_our_sort_with_limited_buffers_sorts(n, p, size):
    results = bsplib.run(bitonic.buffered, n, size, nprocs=p, backend="sim", machine=bitonic.MULTI)
    expected = np.sort(np.random.default_rng(n).integers(0, 2**30, n, np.int32))
    assert np.array_equal(bitonic.whole(results), expected)


@pytest.mark.parametrize(("n", "p", "size"), [(64, 4, 16), (64, 3, 4), (60, 2, 4), (64, 2, 0)])
def test_blocks_that_cannot_be_sorted_in_pairs_are_told(n, p, size):
    with pytest.raises(ValueError, match=f"{n} keys in blocks of {size} on {p} processes"):
        bitonic.buffered_time(n, p, size)


@pytest.mark.slow
def test_our_runs_with_limited_buffers_are_predicted_by_the_terms_of_equation_16():
    """Within 10%, of twice and four times as many keys as in the region."""
    region = bitonic.buffered_times([2**k for k in range(3, 10)], (1, 2, 4, 8, 16), 16)
    found = characterise(region, BUFFERED)
    for n, p in ((1024, 8), (2048, 16)):
        assert found.time(n, p) == pytest.approx(bitonic.buffered_time(n, p, 16), rel=0.1)


@pytest.mark.lengthy
def test_our_runs_with_a_key_on_each_processor_are_predicted_by_the_terms_of_equation_13():
    """Within 2%, from P = 1 to 32 to P = 64 to 256, as her experiments and Figure 20."""
    found = characterise({(p, p): bitonic.time_of(p, p) for p in (1, 2, 4, 8, 16, 32)}, ALONE)
    for p in (64, 128, 256):
        assert found.time(p, p) == pytest.approx(bitonic.time_of(p, p), rel=0.02)


@pytest.mark.lengthy
def test_512_processors_do_what_table_6_leaves_out():
    """1024 keys: NA in print. The speedup is the ratio of two runs, and falls from P = 64 on."""
    found = {p: bitonic.time_of(1024, p) for p in (1, 64, 512)}
    assert found[512] > found[64]
    assert 1 < found[1] / found[64] < 64


def test_seq_of_p_is_the_line_through_table_3():
    """69.02 P + 173.7, by least squares on the ten printed times."""
    found = fit_parts({2**k: time for k, time in enumerate(TABLE_3)})
    assert (round(found.each, 2), round(found.start, 1)) == (69.02, 173.7)


def test_the_methodology_is_nearer_to_her_times_than_seq_and_par():
    """Section 5.2.5: for 8192 keys, at P = 128 and 256 of the prediction region."""
    parts = fit_parts({2**k: time for k, time in enumerate(TABLE_3)})
    for k in (7, 8):
        actual = LAST_ROW[0] / LAST_ROW[k]
        ours, simple = PRINTED.speedup(8192, 2**k), parts.speedup(LAST_ROW[0], 2**k)
        assert abs(ours - actual) < abs(simple - actual)


def test_the_predicted_roll_off_is_not_above_the_actual_one():
    """The abstract: predicted less than and closer to the actual values; theory is above it."""
    actual = roll_off({2**k: time for k, time in enumerate(LAST_ROW)})
    parts = fit_parts({2**k: time for k, time in enumerate(TABLE_3)})
    theory = roll_off({2**k: parts.time(LAST_ROW[0], 2**k) for k in range(10)})
    assert PRINTED.roll_off(8192) <= actual == 256 < theory


def test_three_of_ten_sizes_cost_four_percent():
    """Chapter 7 prints 4%: 14 / 385 = 3.6%, for a time that grows with the square."""
    assert cost_of(range(1, 11), range(1, 4), 2) == pytest.approx(14 / 385)


def test_coefficients_of_the_terms_are_found_again():
    made = (5.0, 1.0, 2.0, 3.0, 0.5, 0.25)
    times = {
        (n, p): float(np.dot(made, values(n, p)))
        for n in (16, 32, 64, 128)
        for p in (1, 2, 4, 8, 16)
    }
    assert characterise(times).coefficients == pytest.approx(made)


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ({}, "0 times of these N and P do not tell 6 terms apart"),
        ({(8, 1): 1.0, (8, 2): 1.0}, "run more numbers of processes"),
        ({(2, 4): 1.0}, "at least as many keys as processes"),
    ],
)
def test_too_few_times_are_told(times, message):
    with pytest.raises(ValueError, match=message):
        characterise(times)


def test_a_line_takes_two_numbers_of_processors():
    with pytest.raises(ValueError, match="takes two numbers of processors, and not 1"):
        fit_parts({1: 3.0})


def test_speedup_of_parts_is_that_of_equations_1_to_4():
    parts = SequentialParts(start=10.0, each=2.0)
    assert parts.speedup(88.0, 4) == pytest.approx((12 + 88) / (18 + 22))


@pytest.mark.parametrize("nprocs", [1, 2, 4, 16])
@pytest.mark.parametrize("n", [16, 256])
def test_our_bitonic_sort_sorts(n, nprocs):
    results = bsplib.run(bitonic.main, n, nprocs=nprocs, backend="sim", machine=bitonic.MULTI)
    whole = np.concatenate([block for block, _ in results])
    assert np.array_equal(whole, np.sort(np.random.default_rng(n).integers(0, 2**30, n, np.int32)))


@pytest.mark.parametrize(("n", "p"), [(12, 2), (8, 3), (2, 4)])
def test_a_sort_that_cannot_be_divided_is_told(n, p):
    with pytest.raises(ValueError, match="both are powers of two, P at most N"):
        bitonic.time_of(n, p)


def test_a_run_takes_what_its_terms_say():
    """P = 4, m = 8: creation, two merges with barriers, three comparisons of 8 keys that move."""
    sorts = 3 * 8 * 3 * 4 / 4
    expected = 9.0 * 4 + 6.8 + sorts + 2 * (20.08 * 4 + 0.8) + 3 * (8 + 8)
    assert bitonic.time_of(32, 4) == pytest.approx(expected, abs=0.01)


def test_speedup_is_the_ratio_of_two_runs_of_one_program():
    """Her Table 5 is not the ratio of her Table 6; ours has no other sequential time."""
    once, again = bitonic.times([1024], [1, 8]), bitonic.times([1024], [1, 8])
    assert once == again
    assert once[1024, 1] > 3 * once[1024, 8]


@pytest.mark.lengthy
def test_our_runs_outside_the_region_are_predicted():
    """Within 15%: steps (lg m)(lg m + 1) and (lg P)(lg P + 1) are fitted by squares alone."""
    sizes, counts = [2**k for k in range(3, 10)], [1, 2, 4, 8, 16]
    found = characterise(bitonic.times(sizes, counts))
    for n, p in ((2048, 16), (2048, 32), (1024, 64)):
        assert found.time(n, p) == pytest.approx(bitonic.time_of(n, p), rel=0.15)


def test_the_lines_through_tables_1_and_2_are_those_of_our_virtual_computer():
    """9.00 P + 6.8 and 20.08 P + 0.8, of which the program counts its creation and barriers."""
    creation, barrier = fit_parts(CREATION), fit_parts(BARRIER)
    assert (round(creation.each, 2), round(creation.start, 1)) == (9.00, 6.8)
    assert (round(barrier.each, 2), round(barrier.start, 1)) == (20.08, 0.8)
    assert bitonic.time_of(0, 4) == pytest.approx(9.0 * 4 + 6.8 + 2 * (20.08 * 4 + 0.8))


def test_the_terms_are_those_of_equation_14():
    assert len(TERMS) == len(PRINTED.coefficients) == len(values(8, 2))
    assert values(8, 1) == [1.0, 0.0, 0.0, 1.0, 72.0, 0.0]
