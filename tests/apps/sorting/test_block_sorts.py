"""The sorts in memory, by sampling and by a network, give what numpy's sort gives."""

from __future__ import annotations

import hypothesis.extra.numpy as npst
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st

from bsplib.apps.sorting import bitonic_sort, psrs, sample_sort
from bsplib.apps.sorting.keycheck import balance
from bsplib.apps.sorting.keys import DISTRIBUTIONS, all_keys
from bsplib.apps.sorting.spare_block import SpareBlock
from tests.drawn import examples

COUNTS = (1, 3, 16)
MANY = examples(12)
FEW = examples(4, suppress_health_check=list(HealthCheck))

SAMPLING = {
    "one": (sample_sort, {}),
    "bitonic": (sample_sort, {"sample_sort": "bitonic"}),
    "psrs": (psrs, {}),
}
SORTS = SAMPLING | {"network": (bitonic_sort, {})}

NUMBERS = (
    npst.boolean_dtypes()
    | npst.integer_dtypes(endianness="?")
    | npst.unsigned_integer_dtypes()
    | npst.floating_dtypes(endianness="?", sizes=(16, 32, 64))
)
DTYPES = (
    NUMBERS
    | npst.complex_number_dtypes(sizes=(64, 128))
    | npst.datetime64_dtypes(endianness="=")  # numpy pickles the others as native
    | npst.timedelta64_dtypes(endianness="=")
    | npst.byte_string_dtypes(max_len=4)
    | npst.unicode_string_dtypes(max_len=4)
)
KEYS = npst.arrays(DTYPES, st.integers(0, 200))
FEW_DISTINCT = npst.arrays(np.int8, st.integers(0, 200), elements=st.integers(-2, 2))
FLOATS = npst.arrays(
    st.sampled_from([np.float32, np.float64]),
    st.integers(0, 200),
    elements=st.sampled_from([np.nan, -np.nan, np.inf, -1.5, 0.0, -0.0, 2.0]),
)


def check(run_on, keys, sort, nprocs, backend):
    module, how = sort
    blocks = run_on(module.main, keys, nprocs=nprocs, backend=backend, **how)
    assert {block.dtype for block in blocks} == {keys.dtype}
    got, expected = np.concatenate(blocks, dtype=keys.dtype), np.sort(keys)
    if keys.dtype.kind == "c":  # a NaN in one part says nothing about the other
        np.testing.assert_array_equal(got.real, expected.real)
        np.testing.assert_array_equal(got.imag, expected.imag)
    else:
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("nprocs", COUNTS)
class TestAgainstNumpy:
    @pytest.mark.parametrize("sort", SORTS.values(), ids=SORTS)
    @MANY
    @given(keys=KEYS | FEW_DISTINCT | FLOATS)
    @example(keys=np.empty(0))
    @example(keys=np.array([3]))
    @example(keys=np.zeros(100))
    @example(keys=np.full(100, np.nan))
    def test_virtual_processors_sort_keys_of_any_dtype(self, run_on, nprocs, sort, keys):
        check(run_on, keys, sort, nprocs, "sim")

    @pytest.mark.slow
    @pytest.mark.parametrize("backend", ["shm"])
    @pytest.mark.parametrize("sort", SORTS.values(), ids=SORTS)
    @FEW
    @given(keys=KEYS | FEW_DISTINCT | FLOATS)
    @example(keys=np.empty(0))
    @example(keys=np.array([3]))
    @example(keys=np.zeros(100))
    def test_real_processes_sort_keys_of_any_dtype(self, run_on, nprocs, backend, sort, keys):
        check(run_on, keys, sort, nprocs, backend)


@pytest.mark.parametrize("backend", ["shm", "sim"])
@pytest.mark.parametrize("nprocs", [7])
@pytest.mark.parametrize("sort", SAMPLING.values(), ids=SAMPLING)
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_every_distribution_is_sorted(run_on, backend, nprocs, sort, distribution):
    module, how = sort
    size, made = 30_001, {"distribution": distribution, "seed": 3}
    blocks = run_on(module.main, size, nprocs=nprocs, backend=backend, **made, **how)
    expected = np.sort(all_keys(size, nprocs, **made))
    np.testing.assert_array_equal(np.concatenate(blocks), expected, strict=True)


@pytest.mark.parametrize("nprocs", [4])
@pytest.mark.parametrize("backend", ["shm", "sim"])
@pytest.mark.parametrize("sort", SORTS.values(), ids=SORTS)
def test_python_objects_are_sorted(run_on, sort, backend, nprocs):
    keys = np.array([10**30, -5, 3, 10**30 - 1, 3, 0, 77, *range(20)], object)
    check(run_on, keys, sort, nprocs, backend)


@pytest.mark.parametrize("backend", ["shm", "sim"])
@pytest.mark.parametrize(
    ("module", "more", "balance"),
    [
        (sample_sort, ["--oversampling", "theory"], "1.0"),
        (psrs, [], "1."),
        (bitonic_sort, [], "1.002"),
    ],
)
def test_the_command_reports_how_even_the_sorted_keys_are(backend, module, more, balance):
    line = ["--size", "1000", "--nprocs", "3", "--backend", backend, *more]
    result = CliRunner().invoke(module.command, line)
    assert result.exit_code == 0, result.output
    assert f"3 processes sorted 1000 keys; the most on one are {balance}" in result.output


# -- records --------------------------------------------------------------------------------

ROWS = [("name", "U3"), ("count", np.int8), ("price", np.float64), ("row", np.int64)]


def rows(size=500):
    """Records with many equal keys, numbered."""
    random = np.random.default_rng(5)
    table = np.empty(size, ROWS)
    table["name"] = random.choice(["x", "yy", "zzz", ""], size)
    table["count"] = random.integers(-2, 2, size)
    table["price"] = random.choice([1.5, np.nan, -2.0], size)
    table["row"] = np.arange(size)
    return table


@pytest.mark.parametrize("backend", ["shm", "sim"])
@pytest.mark.parametrize("nprocs", [3])
@pytest.mark.parametrize("sort", SAMPLING.values(), ids=SAMPLING)
@pytest.mark.parametrize("key", ["count", "name", "price"])
def test_records_of_equal_keys_stay_in_their_order(run_on, sort, key, nprocs, backend):
    module, how = sort
    table = rows()
    blocks = run_on(module.main, table, key=key, stable=True, nprocs=nprocs, backend=backend, **how)
    expected = table[table[key].argsort(kind="stable")]
    assert np.concatenate(blocks)["row"].tolist() == expected["row"].tolist()


@pytest.mark.parametrize("sort", SORTS.values(), ids=SORTS)
def test_records_without_a_key_are_sorted_by_all_their_fields(run_on, sort):
    module, how = sort
    table = rows()[["count", "name"]]
    blocks = run_on(module.main, table, nprocs=4, backend="sim", **how)
    np.testing.assert_array_equal(np.concatenate(blocks), np.sort(table))


@pytest.mark.parametrize("sort", SAMPLING.values(), ids=SAMPLING)
def test_all_fields_of_a_record_travel_with_its_key(run_on, sort):
    module, how = sort
    table = rows()
    blocks = run_on(module.main, table, key="count", nprocs=4, backend="sim", **how)
    got = np.sort(np.concatenate(blocks), order="row")
    assert got.tobytes() == table.tobytes()  # NaN included


# -- blocks of any lengths --------------------------------------------------------------------


def sort_given(bsp, module, blocks, how):
    before = blocks[bsp.pid].copy()
    got = module.sort_blocks(bsp, blocks[bsp.pid], **how)
    np.testing.assert_array_equal(blocks[bsp.pid], before)
    return got


@pytest.mark.parametrize("backend", ["shm", "sim"])
@pytest.mark.parametrize("sort", SAMPLING.values(), ids=SAMPLING)
@pytest.mark.parametrize("lengths", [[0, 5000, 0, 1], [3000, 10, 3000, 0], [0, 0, 0, 2]])
def test_blocks_of_any_lengths_are_sorted_and_left_as_they_were(run_on, backend, sort, lengths):
    module, how = sort
    random = np.random.default_rng(1)
    blocks = [random.random(length) for length in lengths]
    got = run_on(sort_given, module, blocks, how, nprocs=4, backend=backend)
    np.testing.assert_array_equal(np.concatenate(got), np.sort(np.concatenate(blocks)))


@pytest.mark.parametrize("sort", SAMPLING.values(), ids=SAMPLING)
def test_unequal_blocks_come_out_even(run_on, sort):
    module, how = sort
    more = {"oversampling": 1000} if module is sample_sort else {}
    blocks = [np.random.default_rng(1).random(length) for length in (60_000, 100, 3000, 900)]
    got = run_on(sort_given, module, blocks, how | more, nprocs=4, backend="sim")
    assert balance(got) < (1.1 if module is sample_sort else 2.1)


def sort_twice(bsp, module, size, how):
    block = np.random.default_rng(bsp.pid).random(size)
    bsp.send(bsp.pid, "not read")
    first = module.sort_blocks(bsp, block, **how)
    again = module.sort_blocks(bsp, first, **how)
    return first, again


@pytest.mark.parametrize("backend", ["shm", "sim"])
@pytest.mark.parametrize("sort", SAMPLING.values(), ids=SAMPLING)
def test_a_program_may_sort_again_and_again(run_on, sort, backend):
    module, how = sort
    results = run_on(sort_twice, module, 1000, how, nprocs=3, backend=backend)
    first, again = (np.concatenate(blocks) for blocks in zip(*results, strict=True))
    np.testing.assert_array_equal(first, again)


# -- what cannot be sorted ----------------------------------------------------------------------


def sort_of_different_dtypes(bsp, module):
    return module.sort_blocks(bsp, np.zeros(3, [np.int64, np.float32][bsp.pid]))


class TestWrongInput:
    @pytest.mark.parametrize("module", [sample_sort, psrs])
    def test_different_dtypes_are_named_with_their_processes(self, run_on, module):
        with pytest.raises(ValueError, match="dtype int64 on process 0 and dtype float32 on pro"):
            run_on(sort_of_different_dtypes, module, nprocs=2, backend="sim")

    @pytest.mark.parametrize(
        ("values", "how", "message"),
        [
            (np.zeros(3), {"key": "price"}, "'price' is no field of the records; they have none"),
            (rows(3), {"key": "pri"}, "'pri' is no field of the records; they have the fields na"),
            (9, {"distribution": "normal"}, "'normal' is not one of uniform, sorted"),
            (9, {"dtype": "complex"}, "'complex128' is not one of float64"),
        ],
    )
    @pytest.mark.parametrize("module", [sample_sort, psrs])
    def test_what_cannot_be_sorted_is_one_sentence(self, run_on, module, values, how, message):
        with pytest.raises(ValueError, match=message):
            run_on(module.main, values, nprocs=2, backend="sim", **how)

    @pytest.mark.parametrize("module", [sample_sort, psrs, bitonic_sort])
    @pytest.mark.parametrize(
        ("values", "message"),
        [
            (np.zeros((2, 3)), r"one dimension, and these have shape \(2, 3\)"),
            (-1, "the number of keys is -1"),
        ],
    )
    def test_keys_are_counted_in_one_dimension(self, run_on, module, values, message):
        with pytest.raises(ValueError, match=message):
            run_on(module.main, values, nprocs=2, backend="sim")


# -- the spare block of a block -------------------------------------------------------------------


@given(st.integers(0, 40), st.data())
def test_parts_are_laid_around_what_stays_whether_or_not_they_find_room(length, data):
    block = np.arange(length)
    spare = SpareBlock.like(block)
    spare.block[...] = block
    start = data.draw(st.integers(0, length))
    kept = slice(start, data.draw(st.integers(start, length)))
    sizes = st.lists(st.integers(0, 12), max_size=4)
    before, after = (
        [np.full(size, -1 - number) for number, size in enumerate(data.draw(sizes))]
        for _ in range(2)
    )
    expected = np.concatenate([*before, block[kept], *after])
    np.testing.assert_array_equal(spare.around(kept, before, after), expected)
    np.testing.assert_array_equal(block, np.arange(length))
