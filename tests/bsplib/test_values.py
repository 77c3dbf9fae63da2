"""Which values a transfer takes: nothing is cut short, and an empty list is legal."""

from __future__ import annotations

import numpy as np
import pytest

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
def test_a_string_that_fits_is_put(run, values):
    def main(bsp):
        x = bsp.zeros(2, "U3")
        bsp.sync()
        bsp.put(bsp.pid, values, x[:])
        bsp.sync()
        return x.tolist()

    expected = np.broadcast_to(np.asarray(values, "U3"), 2).tolist()
    assert all(found == expected for found in run(main))


def test_no_field_of_a_record_is_cut(run):
    def main(bsp):
        x = bsp.zeros(2, "i4,U3")
        bsp.sync()
        with pytest.raises(DtypeError, match="would be cut"):
            bsp.put(0, np.zeros(2, "i4,U4"), x)
        bsp.put(0, np.zeros(2, "i2,U2"), x)
        bsp.sync()

    run(main)


def test_a_string_is_not_cut_by_a_get_nor_by_words(run):
    def main(bsp):
        x = bsp.zeros(2, "U5")
        bsp.sync()
        with pytest.raises(DtypeError, match=r"get: .*would be cut to dtype <U3"):
            bsp.get(0, x, np.zeros(2, "U3"))
        with pytest.raises(DtypeError, match=r"get_at: .*would be cut to dtype <U3"):
            bsp.get_at(0, [0, 1], x, np.zeros(2, "U3"))
        with pytest.raises(DtypeError, match=r"put_at: .*would be cut to dtype <U5"):
            bsp.put_at(0, [0], ["abcdef"], x)

    run(main)


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, bool, "U3", "M8[s]", "i4,f8"])
def test_an_empty_list_is_put_into_any_array(run, dtype):
    def main(bsp):
        x = bsp.zeros(3, dtype)
        bsp.sync()
        for _ in range(2):
            bsp.put(0, [], x)
            bsp.put(0, [], x[:0])
            bsp.put(0, [], x, offset=3)
            bsp.put_at(0, [], [], x)
        bsp.sync()
        return bool((x == np.zeros(3, dtype)).all())

    assert all(run(main))


def test_an_empty_array_keeps_its_dtype(run):
    def main(bsp):
        x = bsp.zeros(3, np.int64)
        with pytest.raises(DtypeError):
            bsp.put(0, np.zeros(0), x)

    run(main)


def test_no_tag_is_the_tag_of_size_0(run):
    def main(bsp):
        bsp.set_tagsize(0)
        bsp.sync()
        bsp.send(bsp.pid, b"payload")
        bsp.send(bsp.pid, b"payload", b"")
        with pytest.raises(MessageError, match="tags are bytes of length 0, not b'x'"):
            bsp.send(bsp.pid, b"payload", b"x")
        bsp.sync()
        return [tag for _, tag, _ in bsp.messages()]

    assert all(found == [b"", b""] for found in run(main))


def test_no_tag_is_no_tag_of_another_size(run):
    def main(bsp):
        bsp.set_tagsize(2)
        bsp.sync()
        bsp.send(0, b"", None)

    with pytest.raises(MessageError, match="tags are bytes of length 2, not None"):
        run(main)
