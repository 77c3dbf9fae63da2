"""Which values a transfer takes: nothing is cut short, and an empty list is legal."""

from __future__ import annotations

import numpy as np
import pytest

import bsplib
from bsplib import DtypeError, MessageError

pytestmark = pytest.mark.procs(1, 2)


@pytest.mark.parametrize("values", ["abcd", ["a", "abcd"], np.array(["a"], "U4"), 12345, b"abcd"])
def test_a_string_is_not_cut_by_a_put(run, values):
    def main(bsp):
        x = bsp.zeros(2, "U3")
        bsp.sync()
        for _ in range(2):
            with pytest.raises(DtypeError, match=r"put: .*<U3") as caught:
                bsp.put(0, values, x)
        return str(caught.value)

    assert all("would be cut to dtype <U3" in text for text in run(main))


@pytest.mark.parametrize("values", ["abc", ["a", "abc"], np.array(["a"], "S3"), np.array("ab")])
def test_a_string_that_fits_is_put(bsp, values):
    x = bsp.zeros(2, "U3")
    bsp.sync()
    bsp.put(bsp.pid, values, x[:])
    bsp.sync()
    expected = np.broadcast_to(np.asarray(values, "U3"), 2).tolist()
    assert x.tolist() == expected


def test_no_field_of_a_record_is_cut(bsp):
    x = bsp.zeros(2, "i4,U3")
    bsp.sync()
    with pytest.raises(DtypeError, match="would be cut"):
        bsp.put(0, np.zeros(2, "i4,U4"), x)
    bsp.put(0, np.zeros(2, "i2,U2"), x)
    bsp.sync()


@pytest.mark.procs(least=2)
def test_words_are_cast_to_the_dtype_of_the_array_that_takes_them(bsp):
    x = bsp.zeros(3, np.int32)
    x[:] = 1, 2, 3
    bsp.sync()
    got = bsp.get_at([0, 1, 0, 1], [2, 0, 1, 2], x, np.zeros(4))
    bsp.sync()
    assert got.tolist() == [3, 1, 2, 3]


def test_a_string_is_not_cut_by_a_get_nor_by_words(bsp):
    x = bsp.zeros(2, "U5")
    bsp.sync()
    with pytest.raises(DtypeError, match=r"get: .*would be cut to dtype <U3"):
        bsp.get(0, x, np.zeros(2, "U3"))
    with pytest.raises(DtypeError, match=r"get_at: .*would be cut to dtype <U3"):
        bsp.get_at(0, [0, 1], x, np.zeros(2, "U3"))
    with pytest.raises(DtypeError, match=r"put_at: .*would be cut to dtype <U5"):
        bsp.put_at(0, [0], ["abcdef"], x)


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, bool, "U3", "M8[s]", "i4,f8"])
def test_an_empty_list_is_put_into_any_array(bsp, dtype):
    x = bsp.zeros(3, dtype)
    bsp.sync()
    for _ in range(2):
        bsp.put(0, [], x)
        bsp.put(0, [], x[:0])
        bsp.put(0, [], x, offset=3)
        bsp.put_at(0, [], [], x)
    bsp.sync()
    assert (x == np.zeros(3, dtype)).all()


def test_an_empty_array_keeps_its_dtype(bsp):
    x = bsp.zeros(3, np.int64)
    with pytest.raises(DtypeError):
        bsp.put(0, np.zeros(0), x)


def test_no_tag_is_the_tag_of_size_0(bsp):
    bsp.set_tagsize(0)
    bsp.sync()
    bsp.send(bsp.pid, b"payload")
    bsp.send(bsp.pid, b"payload", b"")
    with pytest.raises(MessageError, match="tags are bytes of length 0, not b'x'"):
        bsp.send(bsp.pid, b"payload", b"x")
    bsp.sync()
    assert [tag for _, tag, _ in bsp.messages()] == [b"", b""]


# -- values that are lost without a word ---------------------------------------------------------

MASKED = {
    "put": lambda bsp, x, m: bsp.put(0, m, x),
    "hpput": lambda bsp, x, m: bsp.hpput(0, m, x),
    "put_at": lambda bsp, x, m: bsp.put_at(0, [0, 1, 2], m, x),
    "get": lambda bsp, x, m: bsp.get(0, x, m),
    "hpget": lambda bsp, x, m: bsp.hpget(0, x, m),
    "get_at": lambda bsp, x, m: bsp.get_at(0, [0, 1, 2], x, m),
    "put of a list": lambda bsp, x, m: bsp.put(0, [m, m], x),
    "put of a list of lists": lambda bsp, x, m: bsp.put(0, [[[1.0, 2.0, 3.0], m]], x),
    "put_at of masked indices": lambda bsp, x, m: bsp.put_at(0, m.astype(int) % 3, 1.0, x),
    "put_at to masked pids": lambda bsp, x, m: bsp.put_at(m.astype(int) * 0, [0, 1, 2], 1.0, x),
    "get_at of masked indices": lambda bsp, x, m: bsp.get_at(0, (m.astype(int) % 3,), x),
    "array of a list": lambda bsp, x, m: bsp.array([m, m]),
    "shared": lambda bsp, x, m: bsplib.shared(m),
    "push_reg": lambda bsp, x, m: bsp.push_reg(m),
    "array": lambda bsp, x, m: bsp.array(m),
    "full": lambda bsp, x, m: bsp.full(3, m),
    "allreduce": lambda bsp, x, m: bsp.allreduce(m),
    "scan": lambda bsp, x, m: bsp.scan(m),
    "gather": lambda bsp, x, m: bsp.gather(m, axis=0),
}


@pytest.mark.procs(1, 2)
@pytest.mark.parametrize("name", MASKED)
def test_a_masked_array_raises_and_the_error_names_the_way_out(bsp, name):
    x = bsp.zeros(3)
    bsp.sync()
    bsp.put(0, np.ones(3), x)  # now the core takes puts
    masked = np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0])
    with pytest.raises(DtypeError) as caught:
        MASKED[name](bsp, x, masked)
    bsp.sync()
    text = str(caught.value)
    primitive = name.split()[0]
    assert text.startswith(f"{primitive}: a masked array would lose its mask; fill it by")
    assert text.count("[process ") == (primitive != "shared")


@pytest.mark.procs(1, 2)
def test_a_list_of_numbers_is_put_as_the_array_of_it(run):
    lists = [[1, 2, 3], [1.5, 2, True], [True, 2.5, 3], [3], [np.float32(3), 4, 5], (6.0, 7.0, 8.0)]

    def main(bsp):
        x = bsp.zeros(3)
        got = []
        for values in lists:
            bsp.put(bsp.pid, values, x[:])
            bsp.sync()
            got.append(x.tolist())
        for wrong in ([1.0, None, 2.0], [1.0, 2.0], [1.0, 2.0, 3j]):
            with pytest.raises(bsplib.BspError):
                bsp.put(bsp.pid, wrong, x)
        with pytest.raises(ValueError, match="inhomogeneous"):
            bsp.put(bsp.pid, [1.0, [2.0, 3.0]], x)
        y = bsp.zeros(3, np.int8)
        bsp.sync()
        bsp.put(bsp.pid, [1, 2, 3], y)
        with pytest.raises(DtypeError, match="dtype int64 do not fit into dtype int8"):
            bsp.put(bsp.pid, [1, 2, 300], y)
        with pytest.raises(DtypeError, match="dtype float64 cannot be cast"):
            bsp.put(bsp.pid, [1, 2.5, 3], y)
        bsp.sync()
        return [*got, y.tolist()]

    expected = [np.broadcast_to(np.asarray(each, float), 3).tolist() for each in lists]
    assert all(found == [*expected, [1, 2, 3]] for found in run(main))


RECORD = np.dtype([("a", "i4"), ("b", "f8")])
UNCASTABLE = {
    "negative": ([1, -1, 70_000], "u2", "dtype int64 do not fit into dtype uint16: -1 is not"),
    "one number": (300, "u1", "300 is not in 0 to 255; make the array of dtype int64"),
    "beyond 64 bits": ([1, 2**70], "i8", "1180591620717411303424, of type int, cannot be cast"),
    "None": ([1.0, None], "f8", "None, of type NoneType, cannot be cast to dtype float64; give"),
    "a set": ({1, 2}, "f8", "{1, 2}, of type set, cannot be cast to dtype float64"),
    "tuples": ([(1, 2.5)], RECORD, "make an array of that dtype of them first, as numpy.array("),
}
"""Values, the dtype of the array that they are put into, and words of the error."""


@pytest.mark.procs(1, 2)
@pytest.mark.parametrize("name", UNCASTABLE)
def test_an_error_names_the_value_that_an_array_cannot_hold(run, name):
    values, dtype, words = UNCASTABLE[name]

    def main(bsp):
        x = bsp.zeros(3, dtype)
        with pytest.raises(DtypeError) as caught:
            bsp.put(0, values, x, offset=0)
        return str(caught.value)

    for text in run(main):
        assert text.startswith("put: ")
        assert words in text


@pytest.mark.procs(2)
def test_a_masked_array_keeps_its_mask_as_a_message(run):
    def main(bsp):
        bsp.send(0, np.ma.array([1.0, 2.0], mask=[0, 1]))
        bsp.sync()
        return [payload.mask.tolist() for _, _, payload in bsp.messages()]

    assert run(main) == [[[False, True]] * 2, []]


LOST = [
    (np.array([300]), "i1", "300 would become 44"),
    (np.int64(300), "i1", "300 would become 44"),
    (np.array([5, 1 << 40]), "i4", "1099511627776 would become 0"),
    (np.array([16777217]), "f4", "16777217 would become 16777216.0"),
    (np.array([(1 << 53) + 1]), "f8", "9007199254740993 would become 9007199254740992.0"),
    (np.array([1.0, 1e300]), "f4", "1e+300 would become inf"),
    (np.array([1e300 + 1j]), "c8", "(1e+300+1j) would become (inf+1j)"),
    (np.array([(7, 1.0), (300, 1.0)], "i8,f8"), "i1,f4", "(300, 1.0) would become (44, 1.0)"),
    (
        np.array([(1, [1, 1 << 40])], "i8,(2,)i8"),
        "i8,(2,)i4",
        "(1, [            1, 1099511627776]) would become (1, [1, 0])",
    ),
    (np.array(["3000-01-01"], "M8[s]"), "M8[ns]", "3000-01-01T00:00:00 would become 1830-"),
]
KEPT = [
    (np.array([-128, 127]), "i1"),
    (np.array([1 << 24]), "f4"),
    (np.array([0.1, np.inf, np.nan, 1e-300]), "f4"),
    (np.array([True]), "i1"),
    (np.array([1], "M8[s]"), "M8[ms]"),
    (np.array(["NaT", "2000-01-01T00:00:00.5"], "M8[ms]"), "M8[s]"),
    (np.array([(7, 0.1)], "i8,f8"), "i1,f4"),
]
WAYS = {
    "put": lambda bsp, values, x: bsp.put(0, values, x),
    "hpput": lambda bsp, values, x: bsp.hpput(0, values, x),
    "put_at": lambda bsp, values, x: bsp.put_at(0, range(x.size), values, x),
}


@pytest.mark.procs(2)
@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize(("values", "dtype", "words"), LOST)
@pytest.mark.checked
def test_under_check_a_value_that_does_not_survive_its_cast_is_an_error(
    bsp, name, values, dtype, words
):
    x = bsp.zeros(values.size, dtype)
    with pytest.raises(DtypeError) as caught:
        WAYS[name](bsp, values, x)
    bsp.sync()
    text = str(caught.value)
    assert text.startswith(f"{name}: 1 of {values.size} values of dtype ")
    assert words in text
    assert text.count("[process ") == 1


@pytest.mark.procs(2)
@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize(("values", "dtype"), KEPT)
@pytest.mark.checked
def test_under_check_values_that_survive_their_cast_are_transferred(bsp, name, values, dtype):
    x = bsp.zeros(values.size, dtype)
    if bsp.pid == 1:
        WAYS[name](bsp, values, x)
    bsp.sync()
    if bsp.pid == 0:
        assert x.tobytes() == values.astype(dtype).tobytes()


INTO = {
    "get": lambda bsp, x, into: bsp.get(0, x, into),
    "get of a part": lambda bsp, x, into: bsp.get(0, x[:], into[:]),
    "get by index": lambda bsp, x, into: bsp.get(0, x, into, at=np.s_[::-1])[::-1],
    "hpget": lambda bsp, x, into: bsp.hpget(0, x, into),
    "get_at": lambda bsp, x, into: bsp.get_at(0, np.arange(x.size), x, into),
}
"""Ways to read an array into another one. What they return is read after the sync."""


def _filled(bsp, values):
    x = bsp.zeros(values.shape, values.dtype)
    x[:] = values
    return x


@pytest.mark.procs(1, 2)
@pytest.mark.parametrize("name", INTO)
@pytest.mark.parametrize(("values", "dtype", "words"), LOST)
def test_under_check_a_get_of_what_does_not_survive_its_cast_is_an_error(
    run, name, values, dtype, words
):
    values = np.atleast_1d(values)

    def main(bsp):
        x = _filled(bsp, values)
        bsp.sync()
        into = np.zeros(values.size, dtype)
        INTO[name](bsp, x, into)
        bsp.sync()

    with pytest.raises(DtypeError) as caught:
        run(main, check=True)
    text = str(caught.value)
    operation = name.split()[0]
    line = INTO[name].__code__.co_firstlineno
    assert text.startswith(f"{operation} at test_values.py:{line} from process 0: 1 of ")
    assert f"of dtype {values.dtype} do not fit into dtype {np.dtype(dtype)}: {words}" in text
    assert f"; get them into an array of dtype {values.dtype}, or " in text
    assert text.count("[process ") == 1


@pytest.mark.procs(1, 2)
@pytest.mark.parametrize("name", INTO)
@pytest.mark.parametrize(("values", "dtype"), KEPT)
def test_under_check_a_get_of_what_survives_its_cast_is_read(run, name, values, dtype):
    def main(bsp):
        x = _filled(bsp, values)
        bsp.sync()
        got = INTO[name](bsp, x, np.zeros(values.size, dtype))
        bsp.sync()
        return got.tobytes()

    assert {*run(main, check=True)} == {values.astype(dtype).tobytes()}


@pytest.mark.procs(2)
@pytest.mark.raises(DtypeError, match=r"get at .*: 1 of 40000 values .*: 128 would become -128")
@pytest.mark.checked
def test_under_check_a_long_get_into_a_narrower_array_is_found(bsp):
    x = bsp.full(40000, 7)
    x[-1] = 128
    bsp.sync()
    bsp.get(1 - bsp.pid, x, np.zeros((200, 200), "i1").reshape(-1))
    bsp.sync()


@pytest.mark.procs(1, 2)
def test_without_check_a_get_casts_as_numpy_does(run):
    def main(bsp):
        x = bsp.full(2, 300)
        bsp.sync()
        got = bsp.get(0, x, np.zeros(2, "i1"))
        bsp.sync()
        return got.tolist()

    assert {*map(tuple, run(main))} == {(44, 44)}
