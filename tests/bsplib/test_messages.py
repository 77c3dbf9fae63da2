from __future__ import annotations

import threading

import numpy as np
import pytest

import bsplib

from .neighbours import right

STRUCT = np.dtype([("key", np.int32), ("weight", np.float64)])


class Point:
    """Something of one's own that can be pickled."""

    def __init__(self, x, y):
        self.x, self.y = x, y

    def __eq__(self, other):
        return (self.x, self.y) == (other.x, other.y)

    __hash__ = None  # type: ignore[assignment]


class Unpicklable:
    def __reduce__(self):
        raise RuntimeError("this one stays at home")


def test_a_message_can_be_read_in_the_next_superstep_and_not_before(bsp):
    bsp.send(right(bsp), b"hello", "tag")
    before = bsp.qsize()
    bsp.sync()
    assert before == (0, 0)
    assert bsp.qsize() == (1, 5)
    assert list(bsp.messages()) == [((bsp.pid - 1) % bsp.nprocs, "tag", b"hello")]
    assert bsp.qsize() == (0, 0)


@pytest.mark.every_count
def test_messages_come_in_the_order_of_source_and_program(bsp):
    for number in range(3):
        for pid in reversed(range(bsp.nprocs)):
            bsp.send(pid, number, tag=bsp.pid)
    bsp.sync()
    expected = [(source, source, number) for source in range(bsp.nprocs) for number in range(3)]
    assert list(bsp.messages()) == expected


PAYLOADS = {
    "None": None,
    "number": 3.5,
    "numpy number": np.float32(1.5),
    "text": "grüß",
    "bytes": b"\0\1",
    "bytearray": bytearray(b"12"),
    "tuple": (1, "a", None),
    "nested": {"list": [1, {2}, {"x": (3,)}]},
    "own class": Point(1, [2]),
    "class": Point,
    "function": right,
    "exception": None,
}


@pytest.mark.procs(1, 2)
@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS)
def test_any_picklable_object_arrives_equal_and_of_its_type(bsp, payload):
    bsp.send(right(bsp), payload)
    bsp.sync()
    got = bsp.move()
    assert type(got) is type(payload)
    assert got == payload


ARRAYS = {
    "floats": np.array([1.5, 2.5]),
    "none": np.zeros((0, 3)),
    "no axes": np.array(5),
    "matrix": np.arange(6, dtype=np.int8).reshape(2, 3),
    "fortran": np.asfortranarray(np.arange(6).reshape(2, 3)),
    "gaps": np.arange(20)[::3],
    "backwards": np.arange(5)[::-1],
    "bools": np.array([True, False]),
    "complex": np.array([1j]),
    "dates": np.array(["2026-01-01", "NaT"], "M8[D]"),
    "big-endian": np.array([1, 2], ">u2"),
    "text": np.array(["one", ""]),
    "records": np.array([(1, 0.5)], STRUCT),
    "1 KiB": np.arange(128.0),
    "more than 1 KiB": np.arange(129.0),
    "more than 1 MiB": np.arange(140_000.0).reshape(2, -1),
    "gaps of more than 1 MiB": np.arange(300_000.0).reshape(2, -1)[:, ::2],
}


@pytest.mark.procs(1, 2)
@pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS)
def test_an_array_arrives_with_shape_and_dtype(bsp, array):
    bsp.send(right(bsp), array)
    bsp.sync()
    got = bsp.move()
    assert type(got) is np.ndarray
    assert (got.shape, got.dtype, got.tolist()) == (array.shape, array.dtype, array.tolist())


@pytest.mark.procs(1, 2, 4)
@pytest.mark.parametrize("size", [3, 500, 200_000], ids="n={}".format)
def test_arrays_inside_objects_arrive_and_can_be_written(bsp, size):
    bsp.send(right(bsp), {"pid": bsp.pid, "x": np.full(size, bsp.pid), "y": [np.zeros(size)]})
    bsp.sync()
    got = bsp.move()
    got["x"] += 1
    got["y"][0][:] = 5
    assert (got["pid"], set(got["x"].tolist()), set(got["y"][0].tolist())) == (
        (bsp.pid - 1) % bsp.nprocs,
    ) * 1 + ({(bsp.pid - 1) % bsp.nprocs + 1}, {5})


@pytest.mark.procs(1, 2, 4)
@pytest.mark.parametrize("size", [4, 400, 200_000], ids="n={}".format)
def test_send_copies_at_the_call(bsp, size):
    x, text = np.ones(size), bytearray(b"1" * size)
    bsp.send(right(bsp), x)
    bsp.send(right(bsp), {"x": x, "text": text})
    x[:] = 9
    text[:] = b"9" * size
    bsp.sync()
    first, second = bsp.move(), bsp.move()
    assert set(first.tolist()) == {1.0}
    assert set(second["x"].tolist()) == {1.0}
    assert set(second["text"]) == {ord("1")}


# -- the ways to read -------------------------------------------------------------------------


@pytest.mark.parametrize("size", [5, 100_000], ids="n={}".format)
def test_hpmove_gives_tag_and_view_until_the_sync(bsp, size):
    bsp.send(right(bsp), np.arange(size), tag="array")
    bsp.send(right(bsp), bytes(size), tag=2)
    bsp.send(right(bsp), {"any": 1})
    bsp.sync()
    (tag, array), (two, data), (nothing, rest) = bsp.hpmove(), bsp.hpmove(), bsp.hpmove()
    whole = bool((array == np.arange(size)).all())
    assert tag == "array"
    assert whole
    assert array.base is not None
    assert two == 2
    assert bytes(data) == bytes(size)
    assert nothing is None
    assert rest == {"any": 1}


def test_an_empty_queue_has_no_tag_and_no_view(bsp):
    assert bsp.get_tag() is None
    assert bsp.hpmove() is None
    assert list(bsp.messages()) == []
    assert bsp.qsize() == (0, 0)


def test_move_on_an_empty_queue_is_an_error(run):
    with pytest.raises(
        bsplib.MessageError,
        match=r"^move: there is no message left; .* \[process 0, superstep 0, test_messages.py:\d+",
    ) as raised:
        run(lambda bsp: bsp.move())
    assert isinstance(raised.value, ValueError)


# -- tags -----------------------------------------------------------------------------------


@pytest.mark.procs(2)
@pytest.mark.parametrize(
    "tag", [None, 0, True, -1.5, "text", b"bytes", (1, ("a", None)), [1], Point(1, 2), np.int64(3)]
)
def test_a_tag_is_any_small_picklable_object(bsp, tag):
    bsp.send(right(bsp), None, tag)
    bsp.sync()
    ((_, got, _),) = bsp.messages()
    assert type(got) is type(tag)
    assert bool(got == tag)


@pytest.mark.parametrize("empty", [None, b"", "", np.zeros(0), []], ids=repr)
@pytest.mark.procs(1, 2)
def test_an_empty_message_still_delivers_its_tag(bsp, empty):
    bsp.send(right(bsp), empty, tag=7)
    bsp.sync()
    assert (bsp.qsize()[0], bsp.get_tag(), len(list(bsp.messages()))) == (1, 7, 1)


def test_set_tagsize_returns_the_old_size_and_takes_effect_at_the_sync(bsp):
    sizes = [bsp.set_tagsize(4)]
    bsp.send(right(bsp), 1, tag="still free")
    bsp.sync()
    tags = [bsp.get_tag()]
    sizes.append(bsp.set_tagsize(0))
    bsp.send(right(bsp), 2, tag=b"four")
    bsp.sync()
    tags.append(bsp.get_tag())
    bsp.send(right(bsp), 3, tag=b"")
    sizes.append(bsp.set_tagsize(2))
    bsp.sync()
    assert (sizes, [*tags, bsp.get_tag()]) == ([None, 4, 0], ["still free", b"four", b""])


@pytest.mark.procs(2)
@pytest.mark.parametrize("tag", [None, b"123", b"12345", "1234", 1234, bytearray(b"1234")])
@pytest.mark.raises(bsplib.MessageError, match=r"^send: tags are bytes of length 4, not ")
def test_with_a_tag_size_a_tag_is_bytes_of_that_length(bsp, tag):
    bsp.set_tagsize(4)
    bsp.sync()
    bsp.send(0, 1, tag)


@pytest.mark.procs(2)
def test_a_tag_cannot_have_a_negative_size(run):
    with pytest.raises(bsplib.MessageError, match=r"^set_tagsize: a tag cannot have -1 bytes"):
        run(lambda bsp: bsp.set_tagsize(-1))


@pytest.mark.procs(least=2)
@pytest.mark.raises(
    bsplib.SyncMismatchError,
    match=r"process 1 called set_tagsize\(5\) where this process called set_tagsize\(4\)",
)
def test_tag_sizes_that_differ_are_a_mismatch(bsp):
    bsp.set_tagsize(4 + (bsp.pid == 1))
    bsp.sync()


@pytest.mark.procs(least=2)
def test_a_tag_size_missing_on_one_process_is_a_mismatch(run):
    def main(bsp):
        if bsp.pid != 1:
            bsp.set_tagsize(4)
        bsp.sync()

    words = r"called set_tagsize\(4\) in this superstep, and (this process|process 1) did not"
    with pytest.raises(bsplib.SyncMismatchError, match=words):
        run(main)


# -- errors -----------------------------------------------------------------------------------


@pytest.mark.procs(2)
@pytest.mark.parametrize(
    ("make", "words"),
    [
        (threading.Lock, "of type lock cannot be pickled: cannot pickle '_thread.lock' object"),
        (lambda: lambda: 0, "of type function cannot be pickled"),
        (lambda: [Unpicklable()], "of type list cannot be pickled: this one stays at home"),
        (lambda: memoryview(b""), "of type memoryview cannot be pickled"),
        (lambda: (x for x in [1]), "of type generator cannot be pickled"),
    ],
)
def test_a_payload_that_cannot_be_pickled_is_an_error_with_its_type(run, make, words):
    with pytest.raises(
        bsplib.MessageError, match=rf"^send: a payload {words}.*test_messages.py:\d+\]"
    ):
        run(lambda bsp: bsp.send(0, make()))


@pytest.mark.procs(2)
def test_a_tag_that_cannot_be_pickled_is_an_error_that_blames_the_tag(run):
    with pytest.raises(bsplib.MessageError, match=r"^send: (a|the) tag of type lock cannot be pic"):
        run(lambda bsp: bsp.send(0, b"innocent", tag=threading.Lock()))


def test_a_failed_send_leaves_nothing_behind(bsp):
    with pytest.raises(bsplib.MessageError, match=r"cannot be pickled"):
        bsp.send(0, [np.zeros(1000), Unpicklable()])
    bsp.sync()
    assert bsp.qsize() == (0, 0)
