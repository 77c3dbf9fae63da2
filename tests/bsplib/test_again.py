"""The second put or get of an array has the same effect as the first, on a shorter path."""

from __future__ import annotations

import numpy as np
import pytest

import bsplib

from .neighbours import left, right

pytestmark = pytest.mark.procs(1, 2, 3)


def opened(bsp, size=8, dtype=float):
    """Return an array that has been put to once."""
    x = bsp.zeros(size, dtype)
    bsp.sync()
    bsp.put(right(bsp), x[:1], x[:1])
    bsp.sync()
    return x


@pytest.mark.parametrize("operation", ["put", "hpput"])
@pytest.mark.parametrize(
    ("place", "values"),
    [
        (lambda x: {"dst": x, "offset": 3}, 5.0),
        (lambda x: {"dst": x, "offset": 3}, np.float64(5)),
        (lambda x: {"dst": x, "offset": np.int64(3)}, np.array([5.0])),
        (lambda x: {"dst": x, "offset": 3}, np.array([[5.0]])),
        (lambda x: {"dst": x, "offset": 3}, np.array([5], np.float32)),
        (lambda x: {"dst": x, "offset": 3}, 5),
        (lambda x: {"dst": x[3:4]}, np.array([5.0])),
        (lambda x: {"dst": x[3:4]}, 5.0),
        (lambda x: {"dst": x[3:2:-1]}, np.array([5.0])),
        (lambda x: {"dst": x, "at": 3}, 5.0),
    ],
)
def test_a_word_lands_however_it_and_its_place_are_given(bsp, operation, place, values):
    x = opened(bsp)
    for _ in range(3):
        getattr(bsp, operation)(right(bsp), values, **place(x))
    bsp.sync()
    assert x.tolist() == [0, 0, 0, 5, 0, 0, 0, 0]


@pytest.mark.parametrize("operation", ["put", "hpput"])
def test_a_read_only_view_names_a_place_each_time(bsp, operation):
    x = opened(bsp)
    view = x[3:5]
    view.flags.writeable = False
    for _ in range(3):
        getattr(bsp, operation)(right(bsp), np.ones(2), view)
    bsp.sync()
    into = np.zeros(2)
    for _ in range(3):
        bsp.get(right(bsp), view, into)
    bsp.sync()
    assert (x.tolist(), into.tolist()) == ([0, 0, 0, 1, 1, 0, 0, 0], [1, 1])


@pytest.mark.parametrize("dtype", ["M8[s]", "m8[D]", "U3", "S5", "f2", "c16", "?", "i4,f8"])
def test_views_of_every_dtype_name_a_place_each_time(bsp, dtype):
    x = opened(bsp, dtype=dtype)
    values = np.ones(2, np.int8).astype(x.dtype)
    for _ in range(3):
        bsp.put(right(bsp), values, x[3:5])
    bsp.sync()
    into = np.zeros(2, x.dtype)
    for _ in range(3):
        bsp.get(right(bsp), x[3:5], into)
    bsp.sync()
    assert (x[3:5] == values).all()
    assert (into == values).all()
    assert (x[5:] == x[0]).all()


@pytest.mark.parametrize("operation", ["put", "hpput"])
@pytest.mark.parametrize("step", [1, 2, -1])
def test_strides_of_the_source_do_not_matter(bsp, operation, step):
    x = opened(bsp, (3, 4))
    source = np.arange(24.0).reshape(3, 8)[:, :4] if step == 1 else np.arange(12.0)[::step]
    for _ in range(2):
        if step == 1:
            getattr(bsp, operation)(right(bsp), source, x)
        else:
            getattr(bsp, operation)(right(bsp), source, x, offset=1 if step == 2 else 0)
    bsp.sync()
    expected = {
        1: [0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19],
        2: [0, 0, 2, 4, 6, 8, 10, 0, 0, 0, 0, 0],
        -1: list(range(11, -1, -1)),
    }
    assert x.reshape(-1).tolist() == expected[step]


@pytest.mark.parametrize("operation", ["put", "hpput"])
@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        (
            {"offset": 8},
            bsplib.BoundsError,
            r"1 of 1 elements fall outside .*offset 8 \+ 1 > size 8",
        ),
        ({"offset": -1}, bsplib.BoundsError, "offset -1 is negative"),
        ({"offset": 1.0}, bsplib.PlaceError, "offset 1.0 is no integer"),
        ({"offset": 0, "at": 0}, bsplib.PlaceError, "give offset=0 or at=, not both"),
    ],
)
def test_a_place_that_is_none_is_an_error_the_second_time_too(
    run, operation, arguments, kind, words
):
    def main(bsp):
        x = opened(bsp)
        getattr(bsp, operation)(right(bsp), np.ones(1), x, **arguments)

    with pytest.raises(kind, match=words):
        run(main)


@pytest.mark.parametrize("pid", [-1, 3, 1.0, "1", None])
@pytest.mark.raises(bsplib.ProcessRangeError, match=r"(there|is) .*no process")
def test_a_process_that_is_none_is_an_error_the_second_time_too(bsp, pid):
    x = opened(bsp)
    bsp.put(pid, np.ones(1), x, offset=0)


@pytest.mark.parametrize("pid", [np.int64(0), np.uint8(0), False])
def test_whatever_is_an_integer_is_a_pid(run, nprocs, pid):
    def main(bsp):
        x = opened(bsp)
        for word in (1.0, 2.0):
            bsp.put(pid, word, x, offset=bsp.pid)
        bsp.sync()
        return x.tolist()

    assert run(main)[0][:nprocs] == [2.0] * nprocs


def test_words_and_longer_puts_keep_the_order_of_the_program(bsp):
    x, y = opened(bsp), opened(bsp)
    for word in range(20):
        bsp.put(right(bsp), float(word), x, offset=word % 3)
    bsp.put(right(bsp), np.full(2, 50.0), x, offset=1)
    bsp.put(right(bsp), 60.0, y, offset=0)
    bsp.put(right(bsp), 51.0, x, offset=2)
    bsp.put_at(right(bsp), [3, 4], [1, 2], x)
    bsp.put(right(bsp), 70.0, x, offset=4)
    bsp.put(right(bsp), 71.0, x, offset=5)
    bsp.sync()
    assert (x.tolist(), y[0]) == ([18, 50, 51, 1, 70, 71, 0, 0], 60)


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("operation", ["put", "hpput"])
def test_each_word_is_a_message_of_an_oblivious_superstep(bsp, operation, count):
    x = opened(bsp)
    for word in range(count):
        getattr(bsp, operation)(right(bsp), word + 1.0, x, offset=word)
    bsp.oblsync(count)
    assert x.tolist()[:count] == list(range(1, count + 1))


def test_an_hpput_after_an_oblivious_superstep_is_not_early(run):
    def main(bsp):
        x = opened(bsp)
        for step in (1.0, 2.0, 3.0):
            bsp.hpput(right(bsp), np.full(8, step), x)
            bsp.oblsync(1)
            bsp.send(left(bsp), None)  # that x has been read there
            if set(x.tolist()) != {step}:
                return x.tolist()
            bsp.oblsync(1)
        return "right"

    assert set(run(main)) == {"right"}


@pytest.mark.raises(bsplib.SyncMismatchError, match="messages")
def test_one_message_more_than_was_waited_for_is_an_error_for_early_ones_too(bsp):
    x = opened(bsp)
    bsp.hpput(right(bsp), np.ones(4), x, offset=0)
    bsp.hpput(right(bsp), np.ones(4), x, offset=4)
    bsp.oblsync(1)


@pytest.mark.parametrize(
    ("place", "shape", "dtype", "expected"),
    [
        (lambda x: {"src": x}, (3, 4), float, list(range(12))),
        (lambda x: {"src": x, "offset": 5}, 3, float, [5, 6, 7]),
        (lambda x: {"src": x, "offset": np.int64(5)}, (3, 1), float, [5, 6, 7]),
        (lambda x: {"src": x, "offset": 5}, 3, np.float32, [5, 6, 7]),
        (lambda x: {"src": x, "offset": 5}, 3, complex, [5, 6, 7]),
        (lambda x: {"src": x, "offset": 12}, 0, float, []),
        (lambda x: {"src": x[1]}, 4, float, [4, 5, 6, 7]),
        (lambda x: {"src": x[:, 1]}, 3, float, [1, 5, 9]),
        (lambda x: {"src": x[2, 3:0:-1]}, 3, float, [11, 10, 9]),
        (lambda x: {"src": x, "at": np.s_[1:, ::3]}, (2, 2), float, [4, 7, 8, 11]),
    ],
)
@pytest.mark.parametrize("gaps", [False, True], ids=["", "with_gaps"])
def test_a_get_brings_the_same_however_it_and_its_place_are_given(
    bsp, place, shape, dtype, expected, gaps
):
    x = bsp.array(np.arange(12.0).reshape(3, 4))
    bsp.sync()
    came = []
    for turn in range(3):
        x += 100
        dst = np.zeros(np.append(shape, 2), dtype)[..., 0] if gaps else np.zeros(shape, dtype)
        for _ in range(2):
            assert bsp.get(left(bsp), dst=dst, **place(x)) is dst
        bsp.put(right(bsp), np.full((3, 4), -1.0), x)  # what is read is what stands before
        bsp.sync()
        came.append((dst.reshape(-1) - 100 * (turn + 1)).tolist())
        x[:] = np.arange(12.0).reshape(3, 4) + 100 * (turn + 1)
    assert came == 3 * [expected]


@pytest.mark.parametrize(
    ("dst", "arguments", "kind", "words"),
    [
        (lambda: np.zeros(2), {"offset": 7}, bsplib.BoundsError, r"1 of 2 elements fall outside"),
        (lambda: np.zeros(1), {"offset": -1}, bsplib.BoundsError, "offset -1 is negative"),
        (lambda: np.zeros(1), {"offset": "1"}, bsplib.PlaceError, "offset '1' is no integer"),
        (
            lambda: np.zeros(2),
            {},
            bsplib.PlaceError,
            r"shape \(2,\), what is named has shape \(8,\)",
        ),
        (lambda: np.zeros(2, np.int64), {"offset": 0}, bsplib.DtypeError, "cannot be cast"),
        (lambda: np.broadcast_to(0.0, 2), {"offset": 0}, bsplib.PlaceError, "no writable array"),
        (lambda: [0.0], {"offset": 0}, bsplib.PlaceError, "no writable array"),
    ],
)
def test_a_get_that_cannot_be_is_an_error_the_second_time_too(run, dst, arguments, kind, words):
    def main(bsp):
        x = opened(bsp)
        bsp.get(right(bsp), x, np.zeros(8))
        bsp.get(right(bsp), x, dst(), **arguments)

    with pytest.raises(kind, match=words):
        run(main)


def test_an_hpget_reads_what_the_last_superstep_has_written(run):
    def main(bsp):
        x = opened(bsp, 4096)
        for step in (1.0, 2.0, 3.0):
            bsp.put(right(bsp), np.full(4096, step), x)
            bsp.sync()
            whole = bsp.hpget(left(bsp), x)
            part = bsp.hpget(left(bsp), x[7:2:-2])
            bsp.sync()
            if set(whole.tolist()) != {step} or part.tolist() != [step] * 3:
                return step
        return "right"

    assert set(run(main)) == {"right"}


@pytest.mark.raises(
    bsplib.PendingTransferError, match="1 get is pending, and only a global sync serves it"
)
def test_an_hpget_stands_in_the_way_of_an_oblivious_sync(bsp):
    x = opened(bsp)
    bsp.hpget(right(bsp), x)
    bsp.oblsync(0)


@pytest.mark.parametrize("operation", ["hpput", "hpget"])
@pytest.mark.raises(bsplib.PendingTransferError, match="1 transfer is pending")
def test_an_early_transfer_is_pending_like_any_other(bsp, operation):
    x = opened(bsp)
    getattr(bsp, operation)(right(bsp), np.zeros(8), x) if operation == "hpput" else bsp.hpget(
        right(bsp), x
    )


def test_a_later_registration_of_a_part_is_what_its_views_name(run, nprocs):
    def main(bsp):
        x = opened(bsp)
        y = np.zeros(8)
        part = x[2:6] if bsp.pid == 0 else y[1:5]
        bsp.push_reg(part)
        bsp.sync()
        for word in (1.0, 2.0):
            bsp.put(nprocs - 1, np.full(2, word), part[:2])
        bsp.sync()
        return x.tolist() if nprocs == 1 else y.tolist()

    expected = [0, 0, 2, 2, 0, 0, 0, 0] if nprocs == 1 else [0, 2, 2, 0, 0, 0, 0, 0]
    assert run(main)[nprocs - 1] == expected


def test_a_parent_puts_again_after_its_sub_group(bsp):
    x = opened(bsp)
    with bsp.partition([bsp.nprocs]) as sub:
        sub.sync()
    bsp.put(right(bsp), 1.0, x, offset=0)
    bsp.hpput(right(bsp), np.full(2, 2.0), x, offset=1)
    bsp.sync()
    assert x.tolist()[:3] == [1, 2, 2]


def test_arrays_of_other_sizes_elsewhere_have_bounds_of_their_own(run, nprocs):
    def main(bsp):
        x = bsp.zeros(4 + bsp.pid)
        bsp.sync()
        bsp.put(nprocs - 1, 1.0, x, offset=0)
        bsp.put(nprocs - 1, 2.0, x, offset=nprocs + 2)
        bsp.hpput(nprocs - 1, np.full(2, 3.0), x, offset=1)
        bsp.sync()
        return x.tolist()

    assert run(main)[nprocs - 1] == [1, 3, 3, *[0] * (nprocs - 1), 2]
