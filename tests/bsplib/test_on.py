"""The array of another process as a place with indices: bsp.on(pid, x)."""

from __future__ import annotations

import numpy as np
import pytest

import bsplib

from .neighbours import right


def test_indices_are_those_of_the_array_there(bsp):
    x = bsp.zeros(bsp.pid + 1, int)
    bsp.sync()
    bsp.on(right(bsp), x)[-1:] = 5 + bsp.pid
    bsp.sync()
    got = bsp.on(right(bsp), x)[:]
    bsp.sync()
    arrays = [[0] * pid + [5 + (pid - 1) % bsp.nprocs] for pid in range(bsp.nprocs)]
    assert (x.tolist(), got.tolist()) == (arrays[bsp.pid], arrays[(bsp.pid + 1) % bsp.nprocs])


@pytest.mark.procs(1, 3)
def test_values_are_broadcast_to_what_the_index_selects(run):
    def main(bsp):
        x = bsp.zeros((3, 4), int)
        bsp.on(right(bsp), x)[1] = 7
        bsp.on(right(bsp), x)[:, 2:3] = [[1], [2], [3]]
        bsp.sync()
        return x.tolist()

    assert set(map(str, run(main))) == {str([[0, 0, 1, 0], [7, 7, 2, 7], [0, 0, 3, 0]])}


@pytest.mark.procs(1, 3)
def test_a_place_can_be_kept_for_later_supersteps(bsp):
    x = bsp.zeros(4, int)
    there = bsp.on(right(bsp), x)
    for step in range(3):
        there[step] = step + 1
        bsp.sync()
    got = there[1:]
    bsp.sync()
    assert (x.tolist(), got.tolist()) == ([1, 2, 3, 0], [2, 3, 0])


@pytest.mark.procs(2, 3)
def test_an_array_may_be_missing_here_and_not_there(run):
    def main(bsp):
        x = np.arange(4) if bsp.pid == 0 else None
        x = bsp.push_reg(x)
        bsp.sync()
        got = bsp.on(0, x)[2:]
        if bsp.pid == 1:
            bsp.on(0, x)[:2] = [8, 9]
        bsp.sync()
        return got.tolist(), x.tolist() if bsp.pid == 0 else None

    results = run(main)
    assert results[0] == ([2, 3], [8, 9, 2, 3])
    assert all(result == ([2, 3], None) for result in results[1:])


@pytest.mark.procs(1, 3)
@pytest.mark.parametrize("check", [False, True], ids=["unchecked", "checked"])
def test_adding_in_place_is_an_error_that_names_put_at(run, check):
    def main(bsp):
        x = bsp.zeros(4)
        bsp.sync()
        bsp.on(right(bsp), x)[1:3] += 1

    kind = bsplib.OverlapError if check else bsplib.PlaceError
    words = r"before the sync" if check else r"put_at\(pid, i, v, x, op=numpy.add\)"
    with pytest.raises(kind, match=words):
        run(main, check=check)


@pytest.mark.procs(1, 3)
@pytest.mark.parametrize("part", [np.s_[:], np.s_[1:]], ids=["the result", "a view of it"])
@pytest.mark.raises(bsplib.PlaceError, match="complete after the sync only")
def test_assigning_a_result_before_the_sync_is_an_error(bsp, part):
    x = bsp.zeros(4)
    bsp.sync()
    got = bsp.on(right(bsp), x)[1:3]
    bsp.on(0, x)[0:1] = got[part]


@pytest.mark.procs(1, 3)
def test_a_result_can_be_assigned_after_the_sync(bsp):
    x = bsp.array([1.0, 2.0])
    bsp.sync()
    got = bsp.on(right(bsp), x)[:1]
    bsp.sync()
    got += 10
    bsp.on(right(bsp), x)[1:] = got
    bsp.sync()
    assert x.tolist() == [1.0, 11.0]


@pytest.mark.procs(2)
@pytest.mark.parametrize(
    ("use", "kind", "words"),
    [
        (lambda bsp, x: bsp.on(2, x), "ProcessRange", "on: there is no process 2 among 2"),
        (lambda bsp, x: bsp.on("1", x), "ProcessRange", "on: '1' is no process"),
        (lambda bsp, x: bsp.on(1, x[1:]), "Place", r"on: .* not a view of shape \(3,\)"),
        (lambda bsp, x: bsp.on(1, x + 1), "Registration", "on: the array is not registered"),
        (lambda bsp, x: bsp.on(1, 3), "Registration", "on: the array is not registered"),
        (lambda bsp, x: bsp.on(1, x)[4], "Bounds", r"get: at= does not index 'x' .*process 1"),
        (lambda bsp, x: bsp.on(1, x)[[0, 2]], "Place", "get: at=.* is no basic index"),
        (lambda bsp, x: np.asarray(bsp.on(1, x)), "Place", r"on process 1; write .*on\(pid, x\)"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.isalpha() else "",
)
def test_a_wrong_use_is_an_error(run, use, kind, words):
    def main(bsp):
        x = bsp.zeros(4)
        bsp.sync()
        use(bsp, x)

    with pytest.raises(getattr(bsplib, f"{kind}Error"), match=words):
        run(main)


@pytest.mark.procs(1, 3)
@pytest.mark.raises(bsplib.PlaceError, match="known after the next sync only")
def test_a_get_needs_the_shape_there_which_is_known_after_a_sync(bsp):
    x = bsp.zeros(4)
    bsp.on(right(bsp), x)[1:]


@pytest.mark.procs(1, 3)
@pytest.mark.raises(TypeError, match="not iterable")
def test_a_loop_over_it_is_an_error(bsp):
    x = bsp.zeros(4)
    for _ in bsp.on(right(bsp), x):
        pass


@pytest.mark.procs(1)
def test_it_says_where_the_array_is(run):
    def main(bsp):
        return repr(bsp.on(0, bsp.zeros((2, 3))))

    assert run(main) == ["<array of shape (2, 3) here, on process 0>"]


@pytest.mark.procs(2)
@pytest.mark.raises(bsplib.PendingTransferError, match=r"calls on at test_on.py:\d+")
def test_a_transfer_that_no_sync_ends_is_named_by_its_line(bsp):
    x = bsp.zeros(4)
    bsp.sync()
    bsp.on(1, x)[0] = 1
