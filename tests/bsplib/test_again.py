"""The second put or get of an array has the same effect as the first, on a shorter path."""

from __future__ import annotations

import numpy as np
import pytest

import bsplib

from .neighbours import right

pytestmark = pytest.mark.procs(1, 2, 3)


def closed(bsp):
    """Return an array that no transfer has named."""
    x = bsp.zeros(8)
    bsp.sync()
    return x


def opened(bsp):
    """Return an array that has been put to once."""
    x = closed(bsp)
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


@pytest.mark.parametrize("again", [False, True], ids=["first", "again"])
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
def test_a_place_that_is_none_is_an_error_the_first_time_and_again(
    run, operation, arguments, kind, words, again
):
    def main(bsp):
        x = opened(bsp) if again else closed(bsp)
        getattr(bsp, operation)(right(bsp), np.ones(1), x, **arguments)

    with pytest.raises(kind, match=f"^{operation}: .*{words}"):
        run(main)


@pytest.mark.parametrize("again", [False, True], ids=["first", "again"])
@pytest.mark.parametrize(
    ("dst", "arguments", "kind", "words"),
    [
        (lambda: np.zeros(2), {"offset": 7}, bsplib.BoundsError, r"1 of 2 elements fall outside"),
        (lambda: np.zeros(1), {"offset": -1}, bsplib.BoundsError, "offset -1 is negative"),
        (lambda: np.zeros(1), {"offset": "1"}, bsplib.PlaceError, "offset '1' is no integer"),
        (lambda: np.zeros(1), {"offset": 1, "at": 1}, bsplib.PlaceError, "give offset=1 or at=,"),
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
def test_a_get_that_cannot_be_is_an_error_the_first_time_and_again(
    run, dst, arguments, kind, words, again
):
    def main(bsp):
        x = opened(bsp) if again else closed(bsp)
        if again:
            bsp.get(right(bsp), x, np.zeros(8))
        bsp.get(right(bsp), x, dst(), **arguments)

    with pytest.raises(kind, match=f"^get: .*{words}"):
        run(main)


@pytest.mark.raises(
    bsplib.PendingTransferError, match="1 get is pending, and only a global sync serves it"
)
def test_an_hpget_stands_in_the_way_of_an_oblivious_sync(bsp):
    x = opened(bsp)
    bsp.hpget(right(bsp), x)
    bsp.oblsync(0)
