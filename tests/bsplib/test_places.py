"""Naming elements of an array on another process: by a view, an offset, an index there."""

from __future__ import annotations

import numpy as np
import pytest

import bsplib

from .neighbours import right

STRUCT = np.dtype([("key", np.int32), ("weight", np.float64), ("name", "U3")], align=True)

VIEWS = {
    "a part": np.s_[1:3],
    "a single element": np.s_[2:3],
    "the last element": np.s_[-1:],
    "every second one": np.s_[::2],
    "backwards": np.s_[::-1],
    "backwards in steps": np.s_[4:0:-2],
    "an inner column": np.s_[:, 1],
    "the last column": np.s_[:, -1],
    "a row": np.s_[2],
    "a block": np.s_[1:4, 1:3],
    "a block in steps": np.s_[1::3, ::-2],
    "all by Ellipsis": np.s_[...],
    "one element of both axes": np.s_[3:4, 2:3],
    "a new axis": np.s_[np.newaxis, 1:3, :],
}


def matrix():
    return np.arange(20, dtype=np.int64).reshape(5, 4)


# -- a view ---------------------------------------------------------------------------------


@pytest.mark.procs(least=2)
def test_a_view_of_a_new_array_of_another_shape_is_told_apart_at_the_sync(bsp):
    x = bsp.zeros((3, 4 + bsp.pid), int)  # its shape there is not known yet
    bsp.put(1, [[1, 2], [3, 4]], x[1:, :2])
    bsp.sync()
    if bsp.pid == 1:
        assert x.tolist() == [[0] * 5, [1, 2, 0, 0, 0], [3, 4, 0, 0, 0]]


@pytest.mark.procs(least=2)
@pytest.mark.parametrize("primitive", ["put", "get"])
@pytest.mark.parametrize(
    ("index", "lacking", "count", "why"),
    [
        (np.s_[4:6, 0:1], 1, 2, r"index 5 on axis 0 of shape \(5, 3\)"),
        (np.s_[0, :], 1, 4, r"index 3 on axis 1 of shape \(5, 3\)"),
        (np.s_[::-1, 0], 1, 6, "index 5 on axis 0"),
        (np.s_[4:, 2:], 3, 4, "index 5 on axis 0"),
        (np.s_[5:, 3:], 1, 1, "index 5 on axis 0"),
    ],
)
@pytest.mark.raises(
    bsplib.BoundsError,
    match=lambda count, lacking, primitive, why: (
        rf"^{primitive}: {lacking} of {count} elements fall outside the array on process 1 "
        rf"\({why}.*\[process 0, superstep 1, test_places.py:\d+\]"
    ),
)
def test_an_axis_that_is_shorter_there_is_out_of_bounds_there(
    bsp, primitive, index, lacking, count, why
):
    x = bsp.zeros((6, 4) if bsp.pid == 0 else (5, 3))
    bsp.sync()
    if bsp.pid == 0:
        bsp.put(1, 1, x[index]) if primitive == "put" else bsp.get(1, x[index])


@pytest.mark.procs(2)
@pytest.mark.raises(bsplib.BoundsError, match=r"an array of 1 axes here, of 2 there")
def test_another_number_of_axes_there_is_out_of_bounds(bsp):
    x = bsp.zeros(6 if bsp.pid == 0 else (2, 3))
    bsp.sync()
    if bsp.pid == 0:
        bsp.put(1, 1, x)


# -- what names no place ------------------------------------------------------------------


NO_SLICE = r"put: the view of shape \(.*\) is no basic slice .* no contiguous part of it in another"


@pytest.mark.procs(2)
@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda bsp, x: bsp.put(0, 1, [0.0]), "Place", "put: list is no registered array; bsp.zer"),
        (lambda bsp, x: bsp.put(0, 1, None), "Place", "put: NoneType is no registered array"),
        (lambda bsp, x: bsp.put(0, 1, "x"), "Place", "put: str is no registered array"),
        (lambda bsp, x: bsp.put(0, 1, x.reshape(4, 5)[1:, 0]), "Place", NO_SLICE),
        (lambda bsp, x: bsp.put(0, 1, x.reshape(4, 5)[:, 1:3]), "Place", NO_SLICE),
        (lambda bsp, x: bsp.put(0, 1, x.view(np.uint64)), "Place", NO_SLICE),
        (lambda bsp, x: bsp.put(0, 1, x.view(np.int32)), "Place", NO_SLICE),
        (lambda bsp, x: bsp.put(0, 1, np.diagonal(x)), "Place", NO_SLICE),
        (lambda bsp, x: bsp.put(0, 1, np.broadcast_to(x[0], (3, 4))), "Place", NO_SLICE),
        (
            lambda bsp, x: bsp.put(0, 1, x[[0, 1]]),
            "Registration",
            r"put: .*shape \(2, 4\) is not in",
        ),
        (
            lambda bsp, x: bsp.put(0, 1, x[3, 1]),
            "Place",
            r"put: .* names no place; write x\[3:4\] or",
        ),
        (lambda bsp, x: bsp.get(0, x[3, 1]), "Place", r"get: .* names no place; write x\[3:4\] or"),
        (lambda bsp, x: bsp.put(0, 1, x, at=np.s_[0:2:0]), "Bsp", "put: "),
        (
            lambda bsp, x: bsp.put(0, [1, 2, 3], x, at=np.s_[1]),
            "Bounds",
            r"put: values of shape \(3,\) do not fit the shape \(4,\) that at=",
        ),
        (
            lambda bsp, x: bsp.get(0, x, np.zeros(3, int), at=np.s_[1]),
            "Place",
            r"get: .*destination has shape \(3,\), what is named has shape \(4,\)",
        ),
    ],
)
def test_what_names_no_place_is_an_error(run, call, kind, words):
    def main(bsp):
        x = bsp.array(matrix())
        bsp.sync()
        call(bsp, x)

    with pytest.raises(getattr(bsplib, f"{kind}Error"), match=f"^{words}"):
        run(main)


# -- an offset --------------------------------------------------------------------------------


@pytest.mark.procs(1, 3)
@pytest.mark.parametrize("offset", [0, 1, 4, np.int64(3)], ids="offset={}".format)
def test_an_offset_names_as_many_elements_as_are_put(run, offset):
    def main(bsp):
        x = bsp.zeros((2, 3), int)
        bsp.put(right(bsp), [7, 8], x, offset=offset)
        bsp.sync()
        return x.reshape(-1).tolist()

    expected = [0] * 6
    expected[offset : offset + 2] = [7, 8]
    assert all(result == expected for result in run(main))


def test_an_offset_counts_from_the_start_of_the_whole_array_even_for_a_view(bsp):
    x = bsp.zeros((3, 4), int)
    bsp.put(right(bsp), [1, 2], x[2, 1:], offset=1)
    got = bsp.get(right(bsp), x[2:], np.empty(3, int), offset=0)
    bsp.sync()
    again = bsp.get(right(bsp), x[2:], np.empty(3, int), offset=0)
    bsp.sync()
    assert x.reshape(-1).tolist()[:4] == [0, 1, 2, 0]
    assert got.tolist() == [0, 0, 0]
    assert again.tolist() == [0, 1, 2]


def test_a_get_at_an_offset_is_as_long_as_its_destination(bsp):
    x = bsp.array(np.arange(10))
    got = bsp.get(right(bsp), x, np.zeros((2, 2), int), offset=5)
    bsp.sync()
    assert got.tolist() == [[5, 6], [7, 8]]


@pytest.mark.parametrize("primitive", ["put", "get"])
@pytest.mark.parametrize(
    ("offset", "count", "lacking"), [(7, 1, 1), (8, 1, 1), (6, 2, 1), (93, 8, 8), (0, 8, 1)]
)
@pytest.mark.procs(1, 3)
def test_an_offset_beyond_the_array_is_an_error_with_numbers(
    run, primitive, offset, count, lacking
):
    def main(bsp):
        x = bsp.zeros(7)
        bsp.sync()
        if primitive == "put":
            bsp.put(0, np.zeros(count), x, offset=offset)
        else:
            bsp.get(0, x, np.zeros(count), offset=offset)

    with pytest.raises(
        bsplib.BoundsError,
        match=rf"^{primitive}: {lacking} of {count} elements fall outside 'x' on process 0 "
        rf"\(offset {offset} \+ {count} > size 7\) "
        r"\[process 0, superstep 1, test_places.py:\d+\](\n|$)",
    ) as raised:
        run(main)
    assert isinstance(raised.value, IndexError)


# -- an index there ------------------------------------------------------------------------


@pytest.mark.procs(1, 2, 3)
@pytest.mark.parametrize(
    "index",
    [
        np.s_[:, -1],
        np.s_[-1],
        np.s_[1:3],
        np.s_[::2, ::-1],
        np.s_[..., 0],
        np.s_[2, 1],
        np.s_[np.int64(1), np.int8(2) :],
        np.s_[-2:100],
        np.s_[...],
        (),
    ],
    ids=str,
)
def test_an_index_is_taken_against_the_array_there(run, index):
    def main(bsp):
        x = bsp.zeros((4 * bsp.nprocs, 3) if bsp.pid == 0 else (1, 1), int)
        x[...] = np.arange(x.size).reshape(x.shape)
        bsp.sync()
        old = bsp.get(0, x, at=index)
        if bsp.pid == bsp.nprocs - 1:
            bsp.put(0, -1, x, at=index)
        bsp.sync()
        return old.tolist(), x.tolist()

    results = run(main)
    expected = np.arange(len(results) * 12).reshape(-1, 3)
    assert all(old == expected[index].tolist() for old, _ in results)
    expected[index] = -1
    assert results[0][1] == expected.tolist()


@pytest.mark.parametrize("index", [4, -5])
@pytest.mark.raises(bsplib.BoundsError, match=r"^put: at= does not index 'x' of shape \(4, 3\)")
def test_an_index_outside_is_an_error_after_others_were_not(bsp, index):
    x = bsp.zeros((4, 3))
    for at in (3, 3, index):
        bsp.put(right(bsp), 1, x, at=at)
        bsp.sync()


@pytest.mark.procs(2)
@pytest.mark.parametrize("primitive", ["put", "get"])
@pytest.mark.parametrize("index", [3, -4, np.s_[0, 2], np.s_[0, 0, 0], np.s_[:, -3]], ids=str)
@pytest.mark.raises(
    bsplib.BoundsError,
    match=lambda primitive: rf"^{primitive}: at= does not index 'x' of shape \(3, 2\) on pro",
)
def test_an_index_outside_the_array_there_is_an_error(bsp, primitive, index):
    x = bsp.zeros((3, 2) if bsp.pid else (9, 9))
    bsp.sync()
    bsp.put(1, 1, x, at=index) if primitive == "put" else bsp.get(1, x, at=index)


@pytest.mark.procs(2)
@pytest.mark.parametrize("primitive", ["put", "get"])
@pytest.mark.parametrize(
    "index",
    [
        [0, 1],
        np.array([0]),
        True,
        np.array([True, False, True]),
        None,
        np.s_[0, None],
        1.0,
        "key",
        slice(0, 1.5),
        np.s_[0, [1]],
    ],
    ids=repr,
)
def test_an_index_that_is_not_basic_is_an_error(run, primitive, index):
    at = (index,) if index is None else index

    def main(bsp):
        x = bsp.zeros((3, 2))
        bsp.sync()
        bsp.put(0, 1, x, at=at) if primitive == "put" else bsp.get(0, x, at=at)

    words = rf"^{primitive}: at=.* is no basic index .*; name single elements with {primitive}_at "
    with pytest.raises(bsplib.PlaceError, match=words):
        run(main)


# -- kinds of elements -----------------------------------------------------------------------

KINDS = {
    "bool": np.array([True, False, True]),
    "complex": np.array([1j, 2 - 1j, 0]),
    "half": np.array([0.5, -1, np.inf], "f2"),
    "long double": np.array([1, 2, 3], np.longdouble) / 3,
    "dates": np.array(["2026-01-01", "NaT", "1969-07-20"], "M8[D]"),
    "durations": np.array([1, -5, 3], "m8[ns]"),
    "big-endian": np.array([1, 2, 3], ">i4"),
    "text": np.array(["one", "", "three"]),
    "bytes": np.array([b"a", b"", b"abc"]),
    "void": np.array([b"ab", b"cd", b"ef"], "V2"),
    "records": np.array([(1, 0.5, "a"), (2, 1.5, "bc"), (-3, 0, "")], STRUCT),
}


@pytest.mark.procs(1, 2)
@pytest.mark.parametrize("values", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("gaps", [False, True], ids=["dense", "gaps"])
def test_elements_of_every_kind_are_put_and_got(bsp, values, gaps):
    x = np.zeros((4, 2), values.dtype)[:, 0] if gaps else np.zeros(4, values.dtype)
    bsp.push_reg(x)
    bsp.sync()
    bsp.put(right(bsp), values, x[1:])
    bsp.sync()
    got = bsp.get(right(bsp), x[::-1])
    flat = bsp.get(right(bsp), x, np.zeros(2, values.dtype), offset=2)
    there = bsp.get(right(bsp), x, at=np.s_[-1])
    bsp.sync()
    parts = (x[1:], got[2::-1], flat, there)
    expected = [part.tolist() for part in (values, values, values[1:], values[2:3].reshape(()))]
    assert [part.tolist() for part in parts] == expected
    assert {part.dtype for part in parts} == {values.dtype}


def test_an_array_without_axes_is_put_and_got_whole(run):
    def main(bsp):
        x = bsp.zeros((), int)
        bsp.put(right(bsp), 5, x)
        bsp.sync()
        got = bsp.get(right(bsp), x)
        flat = bsp.get(right(bsp), x, np.zeros(1, int), offset=0)
        there = bsp.get(right(bsp), x[...], at=())
        bsp.sync()
        return got.shape, int(got), flat.tolist(), int(there)

    assert set(map(str, run(main))) == {"((), 5, [5], 5)"}


@pytest.mark.procs(2)
def test_records_of_another_layout_cannot_be_put(run):
    other = np.zeros(1, [("key", "f4"), ("more", "f8"), ("name", "U3"), ("last", "i4")])
    with pytest.raises(bsplib.DtypeError, match=r"put: values of dtype .* cannot be cast"):
        run(lambda bsp: bsp.put(0, other, bsp.zeros(1, STRUCT)))


# -- a part of the array in another shape --------------------------------------------------------

SHAPES = {
    "flat": lambda x: x.reshape(-1),
    "a part of it, over rows": lambda x: x.reshape(-1)[2:11],
    "other rows": lambda x: x.reshape(2, 10)[1],
    "more axes": lambda x: x.reshape(5, 2, 2)[1:3],
    "some rows, flat": lambda x: x[1:3].reshape(8),
    "another axis": lambda x: x[:, None].reshape(10, 2),
}


@pytest.mark.procs(1, 2, 3)
@pytest.mark.parametrize("shaped", SHAPES.values(), ids=SHAPES)
def test_a_contiguous_part_in_another_shape_names_its_elements(run, shaped):
    values = -1 - np.arange(shaped(matrix()).size).reshape(shaped(matrix()).shape)

    def main(bsp):
        x = bsp.array(matrix())
        y = bsp.array(matrix() + 100 * bsp.pid)
        bsp.put(right(bsp), values, shaped(x))  # before the shapes are known
        bsp.sync()
        first = x.tolist()
        bsp.put(right(bsp), 7, shaped(x))
        bsp.hpput(right(bsp), values, shaped(x))
        got = [bsp.get(right(bsp), shaped(y)), bsp.hpget(right(bsp), shaped(y))]
        bsp.sync()
        return (
            first,
            x.tolist(),
            [bool((g == shaped(matrix() + 100 * right(bsp))).all()) for g in got],
        )

    expected = matrix()
    shaped(expected)[...] = values
    assert all(
        result == (expected.tolist(), expected.tolist(), [True, True]) for result in run(main)
    )


@pytest.mark.procs(2, 3)
def test_a_part_of_a_line_in_another_shape_may_be_of_a_longer_line_there(bsp):
    x = bsp.zeros(4 + bsp.pid, int)
    bsp.sync()
    bsp.put(right(bsp), [[1, 2], [3, 4]], x[:4].reshape(2, 2))
    bsp.sync()
    assert x.tolist() == [1, 2, 3, 4] + [0] * bsp.pid


@pytest.mark.procs(2, 3)
@pytest.mark.parametrize("known", [False, True])
def test_a_part_in_another_shape_of_unlike_arrays_is_an_error(run, known):
    def main(bsp):
        x = bsp.zeros((2, 3 + bsp.pid))
        if known:
            bsp.sync()
        if bsp.pid == 0:
            bsp.put(1, np.ones(5), x.reshape(-1)[:5])
        bsp.sync()

    words = r"put: the place is a part of .*\(2, 3\) here and \(2, 4\) on process 1; give offset="
    with pytest.raises(bsplib.PlaceError, match=words):
        run(main)


VIEWS = {
    "a field": (lambda: np.zeros(4, STRUCT), lambda x: x["key"]),
    "the real parts": (lambda: np.zeros((2, 3), complex), lambda x: x.real),
    "a column of other rows": (lambda: np.zeros((5, 4)), lambda x: x.reshape(4, 5)[1:, 0]),
    "columns of other rows": (lambda: np.zeros((5, 4)), lambda x: x.reshape(4, 5)[:, 1:3]),
    "the diagonal": (lambda: np.zeros((3, 3)), lambda x: x.reshape(-1)[::4]),
}


@pytest.mark.procs(1, 2, 3)
@pytest.mark.parametrize("kind", VIEWS)
def test_a_view_that_names_no_place_can_be_registered_itself(run, kind):
    make, view = VIEWS[kind]

    def main(bsp):
        x = bsp.array(make())
        bsp.push_reg(view(x))
        bsp.sync()
        bsp.put(right(bsp), 1 + np.arange(view(x).size).reshape(view(x).shape), view(x))
        got = bsp.get(right(bsp), view(x))  # before the put writes
        bsp.sync()
        again = bsp.get(right(bsp), view(x)[1:])
        bsp.sync()
        return x.tolist(), got.any(), again.tolist()

    expected = make()
    view(expected)[...] = 1 + np.arange(view(expected).size).reshape(view(expected).shape)
    results = run(main)
    assert all(r == (expected.tolist(), False, view(expected)[1:].tolist()) for r in results)


@pytest.mark.procs(2, 3)
@pytest.mark.parametrize("again", [True, False])
def test_a_view_of_an_array_without_elements_here_names_that_array(run, again):
    """The array before it has 64 bytes, and so it may end where the view begins."""

    def main(bsp):
        before = bsp.zeros(8)
        x = bsp.zeros(0 if bsp.pid == 0 else 2)
        after = bsp.zeros(8)
        if again:
            bsp.push_reg(before)
        bsp.sync()
        got = None
        if bsp.pid == 0:
            view = x[:]
            view.flags.writeable = False
            bsp.put(1, 5.0, view, at=(-2,))
            bsp.put(1, [7.0], x[0:0], offset=1)
            got = bsp.get(1, view, at=np.s_[:])
        bsp.sync()
        return before.tolist(), x.tolist(), after.tolist(), got is not None and got.tolist()

    zeros = [0.0] * 8
    first, second, *_ = run(main)
    assert first == (zeros, [], zeros, [0.0, 0.0])
    assert second == (zeros, [5.0, 7.0], zeros, False)


# -- any views of any arrays -----------------------------------------------------------------------


def part_of(rng, shape):
    """Return a function that makes a part, of any strides, of an array with twice the length."""
    steps = tuple(slice(None, None, int(step)) for step in rng.choice([2, -2], len(shape)))
    axes = rng.permutation(len(shape)) if rng.random() < 0.5 else range(len(shape))
    return lambda room: room[steps].transpose(axes)


def slice_of(rng, size):
    low, high = sorted(rng.integers(0, size + 1, 2).tolist())
    part = slice(low, high, int(rng.integers(1, 3)))
    return slice(None, None, -part.step) if rng.random() < 0.3 else part


def view_of(rng, shape):
    """Return a function that makes a basic slice of an array, with its axes in any order."""
    index = tuple(slice_of(rng, size) for size in shape)
    axes = rng.permutation(len(shape))
    return lambda array: array[index].transpose(axes)


@pytest.mark.procs(1, 2)
@pytest.mark.parametrize("dtype", [float, "S3"])
@pytest.mark.parametrize("shape", [(7,), (4, 5), (1, 6), (3, 1, 4), (2, 3, 4)], ids=str)
def test_any_view_of_an_array_of_any_strides_names_its_elements(bsp, shape, dtype):
    rng = np.random.default_rng([len(shape), *shape])
    for number in range(8):
        part = part_of(rng, shape) if number % 2 else lambda room: room
        room = np.zeros([2 * size for size in shape] if number % 2 else shape, dtype)
        numbers, model = np.arange(room.size).reshape(room.shape), np.zeros(room.size, dtype)
        x = bsp.push_reg(part(room))
        bsp.sync()
        for turn in range(8):  # after the first ones on a shorter path
            view = view_of(rng, x.shape)
            named = view(part(numbers))
            values = (np.arange(named.size) + turn + 1).reshape(named.shape).astype(dtype)
            got = bsp.get(right(bsp), view(x))
            bsp.put(right(bsp), values, view(x))
            bsp.sync()
            assert got.tolist() == model[named].tolist()
            model[named] = values
            assert room.reshape(-1).tolist() == model.tolist()
        bsp.pop_reg(x)
        bsp.sync()


@pytest.mark.procs(1, 2)
def test_what_has_strides_of_its_own_names_its_elements_or_is_refused(bsp):
    rng, shape = np.random.default_rng(5), (3, 4, 5)
    x, numbers, model = bsp.zeros(shape), np.arange(60), np.zeros(60)
    taken = refused = 0
    bsp.sync()
    for _ in range(500):
        size = rng.integers(1, 4, rng.integers(1, 4))
        steps, first = rng.integers(-25, 26, len(size)), int(rng.integers(60))
        reach = steps * (size - 1)
        if first + reach[reach < 0].sum() < 0 or first + reach[reach > 0].sum() >= 60:
            continue
        view, named = (
            np.lib.stride_tricks.as_strided(line[first:], size, 8 * steps)
            for line in (x.reshape(-1), numbers)
        )
        values = rng.random(size)
        try:
            bsp.put(right(bsp), values, view)
        except bsplib.PlaceError:
            refused += 1
            continue
        bsp.sync()
        taken += 1
        model[named] = values
        assert x.reshape(-1).tolist() == model.tolist()
    assert min(taken, refused) > 30
