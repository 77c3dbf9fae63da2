from __future__ import annotations

import numpy as np
import pytest

import bsplib

from .neighbours import left


def test_get_returns_a_new_array_that_is_valid_after_the_sync(bsp):
    x = bsp.array([bsp.pid, 10])
    bsp.sync()
    got = bsp.get(left(bsp), x)
    bsp.sync()
    assert got.tolist() == [(bsp.pid - 1) % bsp.nprocs, 10]
    assert got.dtype == x.dtype
    assert got is not x


def test_get_writes_into_the_destination_and_returns_it(bsp):
    x = bsp.array([bsp.pid, 10])
    mine = np.full(4, -1)
    view = mine[1:3]
    same = bsp.get(left(bsp), x, view) is view
    before = mine.tolist()
    bsp.sync()
    expected = [(True, [-1] * 4, [-1, (pid - 1) % bsp.nprocs, 10, -1]) for pid in range(bsp.nprocs)]
    assert (same, before, mine.tolist()) == expected[bsp.pid]


def test_get_reads_what_stands_there_at_the_end_of_the_superstep(bsp):
    x = bsp.zeros(1, int)
    bsp.sync()
    got = bsp.get(left(bsp), x)
    x[0] = bsp.pid + 1  # after the call, before the sync
    bsp.sync()
    assert int(got[0]) == (bsp.pid - 1) % bsp.nprocs + 1


@pytest.mark.every_count
def test_all_gets_read_before_any_get_writes(bsp):
    x = bsp.array([bsp.pid])
    bsp.get(left(bsp), x, x)  # a rotation without a second array
    bsp.sync()
    assert int(x[0]) == (bsp.pid - 1) % bsp.nprocs


@pytest.mark.parametrize("words", [False, True], ids=["get", "get_at"])
def test_who_gets_into_an_array_answers_with_what_it_held_before(run, nprocs, words):
    """The array is memory of its process alone, which others have to ask."""

    def main(bsp):
        shared, x = bsp.array([bsp.pid] * 4), np.zeros(4, int)
        bsp.push_reg(x)
        bsp.sync()
        seen, asked = [], 1 % bsp.nprocs
        for turn in range(3):
            x[:] = 10 * (turn + 1) + bsp.pid
            bsp.sync()
            got = None
            if bsp.pid == 0:
                got = bsp.get_at([asked] * 4, range(4), x) if words else bsp.get(asked, x)
            else:
                bsp.get(0, shared, x)
            bsp.sync()
            seen.append(None if got is None else set(got.tolist()))
        return seen

    asked = 1 % nprocs
    assert run(main)[0] == [{10 * (turn + 1) + asked} for turn in range(3)]


@pytest.mark.procs(1, 2, 4)
@pytest.mark.parametrize("size", [127, 128, 129, 300_000], ids="n={}".format)
def test_gets_of_any_size_arrive_whole(bsp, size):
    x = bsp.array(np.arange(size) + bsp.pid)
    got = bsp.get(left(bsp), x)
    bsp.sync()
    assert (got == np.arange(size) + left(bsp)).all()


# -- destinations -------------------------------------------------------------------------


def test_a_destination_may_have_gaps_and_another_dtype(bsp):
    x = bsp.array(np.arange(3, dtype=np.int32))
    mine = np.zeros((3, 2))
    bsp.get(left(bsp), x, mine[::-1, 1])
    bsp.sync()
    assert mine.tolist() == [[0, 2], [0, 1], [0, 0]]


@pytest.mark.procs(2)
@pytest.mark.parametrize("shape", [(2,), (4,), (1, 3), (3, 1), ()], ids=str)
@pytest.mark.raises(bsplib.PlaceError, match=r"^get: the destination has shape .* shape \(3,\)")
def test_a_destination_of_another_shape_is_an_error_that_names_both(bsp, shape):
    x = bsp.zeros(3)
    bsp.sync()
    bsp.get(0, x, np.zeros(shape))


@pytest.mark.procs(2)
@pytest.mark.parametrize(
    ("source", "destination"), [("f8", "i8"), ("c16", "f8"), ("i8", "?"), ("i8", "u8")]
)
def test_a_destination_that_cannot_take_the_values_names_both_dtypes(run, source, destination):
    here, there = np.dtype(destination), np.dtype(source)

    def main(bsp):
        bsp.get(0, bsp.zeros(2, there), np.zeros(2, here))

    with pytest.raises(bsplib.DtypeError, match=rf"get: values of dtype {there} .* dtype {here}"):
        run(main)


@pytest.mark.procs(2)
@pytest.mark.parametrize(
    "get",
    [
        lambda bsp, x: bsp.get(0, x[2:2]),
        lambda bsp, x: bsp.get(0, x[2:2], np.zeros(0)),
        lambda bsp, x: bsp.get(0, x, np.zeros(0)),
        lambda bsp, x: bsp.get(0, x, np.zeros(0), offset=5),
        lambda bsp, x: bsp.get(0, x, at=np.s_[2:2]),
    ],
)
def test_a_get_of_no_elements_does_nothing(bsp, get):
    x = bsp.zeros(5)
    bsp.sync()
    assert get(bsp, x).size == 0


# -- errors ------------------------------------------------------------------------------


@pytest.mark.raises(bsplib.PlaceError, match=r"get: give dst=, whose shape says how many")
def test_a_get_with_an_offset_needs_a_destination_for_its_length(bsp):
    bsp.get(0, bsp.zeros(3), offset=1)


# -- bounds that are known at the sync only ---------------------------------------------------


@pytest.mark.procs(least=2)
@pytest.mark.parametrize("primitive", ["put", "get"])
def test_bounds_of_a_new_array_are_checked_at_the_sync_on_the_process_that_asked(run, primitive):
    def main(bsp):
        x = bsp.zeros(2 if bsp.pid == 0 else 5)
        if bsp.pid == 1:
            if primitive == "put":
                bsp.put(0, np.ones(3), x, offset=0)
            else:
                bsp.get(0, x, np.zeros(3), offset=0)
        bsp.sync()

    with pytest.raises(
        bsplib.BoundsError,
        match=rf"^{primitive}: 1 of 3 elements fall outside 'x' on process 0 "
        r"\(offset 0 \+ 3 > size 2\) \[process 1, superstep 0, test_get.py:\d+\]",
    ) as raised:
        run(main)
    assert raised.value.pid == 1


@pytest.mark.procs(least=2)
def test_nothing_is_written_where_a_put_of_the_superstep_is_out_of_bounds(run, tmp_path):
    def main(bsp):
        x = np.memmap(tmp_path / str(bsp.pid), np.int64, "w+", shape=(2,))
        bsp.push_reg(x)
        new = bsp.zeros(1 if bsp.pid == 0 else 9)
        bsp.sync()
        new = bsp.zeros(1 if bsp.pid == 0 else 9)
        if bsp.pid == bsp.nprocs - 1:
            for pid in range(bsp.nprocs):
                bsp.put(pid, 5, x, offset=0)
            bsp.put(0, 5, new, offset=1)
        bsp.sync()

    with pytest.raises(bsplib.BoundsError, match=r"put: 1 of 1 elements fall outside 'new'"):
        run(main)
    assert {np.fromfile(file, np.int64)[0] for file in tmp_path.iterdir()} == {0}


@pytest.mark.procs(2)
def test_an_offset_counts_in_c_order_in_a_reversed_array_that_has_more_rows_there(bsp):
    x = bsp.zeros((2 + 2 * bsp.pid, 3), int)
    x[...] = np.arange(x.size).reshape(x.shape)
    reversed_rows = bsp.push_reg(x[::-1])
    bsp.sync()
    got = np.full(4, -1)
    if bsp.pid == 0:
        bsp.get(1, reversed_rows, got, offset=4)
    bsp.sync()
    if bsp.pid == 0:
        assert got.tolist() == [7, 8, 3, 4]


# -- a number of elements from an offset on -------------------------------------------------------


@pytest.mark.parametrize("primitive", ["get", "hpget"])
def test_a_get_of_a_count_from_an_offset_makes_the_destination(run, nprocs, primitive):
    def main(bsp):
        x = bsp.array(np.arange(6).reshape(2, 3) + 10 * bsp.pid)
        bsp.sync()
        get = getattr(bsp, primitive)
        right = (bsp.pid + 1) % bsp.nprocs
        got = [get(right, x, offset=2, count=3), get(right, x, offset=5, count=1)]
        none = get(right, x, offset=6, count=0)
        bsp.sync()
        return [each.tolist() for each in got], none.shape, got[0].dtype == x.dtype

    there = [10 * ((pid + 1) % nprocs) for pid in range(nprocs)]
    assert run(main) == [([[2 + k, 3 + k, 4 + k], [5 + k]], (0,), True) for k in there]


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ({"count": 2}, bsplib.PlaceError, "count=2 goes with offset="),
        ({"at": np.s_[1:], "count": 2}, bsplib.PlaceError, "count=2 goes with offset="),
        ({"offset": 1, "count": -1}, bsplib.PlaceError, "count is -1; it is a number of elements"),
        ({"offset": 1, "count": 1.5}, bsplib.PlaceError, "count is 1.5; it is a number"),
        ({"offset": 1, "count": 2, "dst": np.empty(2)}, bsplib.PlaceError, "give count=2, or dst="),
        ({"offset": 1, "count": 3}, bsplib.BoundsError, r"1 of 3 elements .*offset 1 \+ 3 > size"),
    ],
    ids=str,
)
@pytest.mark.parametrize("primitive", ["get", "hpget"])
@pytest.mark.procs(1, 3)
def test_a_wrong_count_is_an_error(run, primitive, arguments, kind, words):
    def main(bsp):
        x = bsp.zeros(3)
        bsp.sync()
        getattr(bsp, primitive)(0, x, **arguments)

    with pytest.raises(kind, match=f"^{primitive}: .*{words}"):
        run(main)


NEW = {
    "an array": lambda bsp, x: bsp.get(0, x),
    "a view": lambda bsp, x: bsp.get(0, x[1:]),
    "every other element": lambda bsp, x: bsp.get(0, x[::2]),
    "a count": lambda bsp, x: bsp.get(0, x, offset=0, count=x.size),
    "an index": lambda bsp, x: bsp.get(0, x, at=np.s_[:]),
    "by on": lambda bsp, x: bsp.on(0, x)[:],
    "words": lambda bsp, x: bsp.get_at(0, range(x.size), x),
}


@pytest.mark.parametrize("size", [2, 1000])
@pytest.mark.parametrize("get", NEW)
def test_a_new_destination_has_no_plausible_values_before_the_sync(bsp, get, size):
    x = bsp.full(size, 3.5)
    bsp.sync()
    found = []
    for _ in range(3):  # the first one is checked
        got = NEW[get](bsp, x)
        with np.errstate(all="ignore"):  # the middle has what was in that memory before
            early = got[[0, -1]].tolist(), float(got.sum())
        bsp.sync()
        found.append((early, got.min(), got.max()))
    for (ends, total), low, high in found:
        assert np.isnan([*ends, total]).all()
        assert (low, high) == (3.5, 3.5)


UNREAD = {
    "i1": -128,
    "<i4": -(1 << 31),
    "i8": -(1 << 63),
    ">i8": -1,
    "u2": 65535,
    "?": True,
    "U3": "\ufffd" * 3,
    ">U3": "\ufffd" * 3,
    "S2": b"\xff\xff",
    "m8[s]": None,
}


@pytest.mark.procs(1, 2)
@pytest.mark.parametrize("dtype", UNREAD)
def test_a_new_destination_has_the_same_first_values_on_both_ways(bsp, dtype):
    x = bsp.zeros(50, dtype)
    bsp.sync()
    found = []
    for _ in range(2):
        got = bsp.get(0, x)
        found += got[[0, -1]].tolist()
        bsp.sync()
    assert found == [UNREAD[dtype]] * 4


@pytest.mark.procs(1, 2)
def test_a_destination_that_the_program_passes_is_not_touched_before_the_sync(bsp):
    x, mine = bsp.zeros(3), np.ones(3)
    bsp.sync()
    found = []
    for _ in range(2):
        mine[:] = 1.0
        bsp.get(0, x, mine)
        found += mine.tolist()
        bsp.sync()
    words = bsp.get_at(0, [0], x, np.ones(1)).tolist()
    bsp.sync()
    assert found + words == [1.0] * 7
