"""Collectives that write their result into an array of the program: ``out=``."""

from __future__ import annotations

import numpy as np
import pytest

from bsplib.errors import DtypeError, PlaceError, ShapeError, UsageError
from bsplib.machine import Machine

ONE_STAGE = Machine("all latency", "made up", g=0.0, l=1e-6)
TWO_STAGES = Machine("all bandwidth", "made up", g=1e-9, l=0.0)
BOTH = pytest.mark.parametrize("machine", [ONE_STAGE, TWO_STAGES], ids=lambda one: one.name)

SIZES = [1, 7, 1_000, 9_000, 40_000]
"""Numbers in an array: in a record, in a box, staged, and large."""


def values(bsp, n, pid=None):
    return np.arange(n) + 1000.0 * (bsp.pid if pid is None else pid)


def at(bsp, pid, x):
    return x if bsp.pid == pid else None


def empty_like(x):
    """Return arrays of the form of a result, with other values; None for None."""
    if isinstance(x, list):
        return [empty_like(each) for each in x]
    return None if x is None else np.full_like(x, -7)


def as_row(bsp, n):
    return [values(bsp, n + to, 10 * bsp.pid + to) for to in range(bsp.nprocs)]


CALLS = {
    "broadcast": lambda bsp, n, **out: bsp.broadcast(at(bsp, 0, values(bsp, n)), **out),
    "broadcast in two": lambda bsp, n, **out: bsp.broadcast(
        at(bsp, 0, values(bsp, n)), stages=2, **out
    ),
    "gather": lambda bsp, n, **out: bsp.gather(values(bsp, n), root=bsp.nprocs - 1, **out),
    "gather joined": lambda bsp, n, **out: bsp.gather(values(bsp, n + bsp.pid), axis=0, **out),
    "allgather": lambda bsp, n, **out: bsp.allgather(values(bsp, n + bsp.pid), **out),
    "allgather joined": lambda bsp, n, **out: bsp.allgather(
        values(bsp, 2 * n).reshape(2, n), axis=1, **out
    ),
    "scatter": lambda bsp, n, **out: bsp.scatter(at(bsp, 0, as_row(bsp, n)), **out),
    "scatter blocks": lambda bsp, n, **out: bsp.scatter(
        at(bsp, 0, values(bsp, 3 * n)), axis=0, **out
    ),
    "alltoall": lambda bsp, n, **out: bsp.alltoall(as_row(bsp, n), **out),
    "alltoall joined": lambda bsp, n, **out: bsp.alltoall(values(bsp, 3 * n), axis=0, **out),
    "alltoall of two axes": lambda bsp, n, **out: bsp.alltoall(
        values(bsp, 4 * n).reshape(2, 2 * n), axis=(1, 0), **out
    ),
    "reduce": lambda bsp, n, **out: bsp.reduce(values(bsp, n), root=bsp.nprocs - 1, **out),
    "allreduce": lambda bsp, n, **out: bsp.allreduce(values(bsp, n), **out),
    "allreduce from the left": lambda bsp, n, **out: bsp.allreduce(
        values(bsp, n), np.subtract, **out
    ),
    "allreduce of bools": lambda bsp, n, **out: bsp.allreduce(values(bsp, n), "all", **out),
    "allreduce by a function": lambda bsp, n, **out: bsp.allreduce(
        values(bsp, n), lambda a, b: a - b, **out
    ),
    "scan": lambda bsp, n, **out: bsp.scan(values(bsp, n), np.maximum, **out),
    "exscan": lambda bsp, n, **out: bsp.exscan(values(bsp, n), **out),
}


def with_and_without(bsp, name, n):
    """Return what a collective returns, what it writes, and whether it returned its array."""
    found = []
    for _ in range(2):  # the first message of a form takes another way
        expected = CALLS[name](bsp, n)
        out = empty_like(expected)
        returned = CALLS[name](bsp, n, out=out)
        found.append((expected, out, returned is out))
    return found


def same(one, other):
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if one is None:
        return other is None
    return one.dtype == other.dtype and np.array_equal(one, other)


@BOTH
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", CALLS)
def test_a_collective_writes_into_out_what_it_returns_without(run, nprocs, machine, name, n):
    for found in run(with_and_without, name, n, machine=machine):
        for expected, out, is_returned in found:
            assert is_returned
            assert same(expected, out)


@pytest.mark.parametrize("n", [7, 40_000])
@pytest.mark.parametrize("name", ["broadcast in two", "alltoall joined", "allreduce", "scan"])
def test_out_is_written_with_check(run, nprocs, name, n):
    for found in run(with_and_without, name, n, check=True, machine=TWO_STAGES):
        assert all(same(expected, out) for expected, out, _ in found)


@BOTH
@pytest.mark.parametrize("n", SIZES)
def test_out_may_be_what_is_given(run, nprocs, machine, n):
    def main(bsp):
        found = []
        for _ in range(2):
            x = values(bsp, n)
            found.append(bsp.broadcast(x, out=x))
            for call in (bsp.allreduce, bsp.scan, bsp.exscan):
                x = values(bsp, n)
                found.append(call(x, out=x))
            x = np.stack([values(bsp, n, 10 * bsp.pid + to) for to in range(bsp.nprocs)])
            found.append(bsp.alltoall(x, out=x))
        return found

    for pid, found in enumerate(run(main, machine=machine)):
        ramp = np.arange(n)
        upto = [1000.0 * sum(range(k)) + k * ramp for k in range(nprocs + 1)]
        rows = np.stack([ramp + 1000.0 * (10 * source + pid) for source in range(nprocs)])
        expected = [ramp, upto[nprocs], upto[pid + 1], upto[pid], rows]
        for one, other in zip(found, expected * 2, strict=True):
            assert np.array_equal(one, other)


@pytest.mark.parametrize("n", SIZES)
def test_out_may_overlap_what_is_given(bsp, n):
    found = []
    for _ in range(2):
        for call in (bsp.broadcast, bsp.allreduce, bsp.scan):
            x = np.arange(n + 3) + 1000.0 * bsp.pid
            found.append(call(x[:n], out=x[3:]).copy())
        x = np.arange(n * (bsp.nprocs + 1)) + 1000.0 * bsp.pid
        parts = [x[n * to : n * (to + 1)] for to in range(bsp.nprocs)]
        places = [x[n * to : n * (to + 1)] for to in range(1, bsp.nprocs + 1)]
        found.append([each.copy() for each in bsp.alltoall(parts, out=places)])
        x = np.arange(n * (bsp.nprocs + 1)) + 1000.0 * bsp.pid
        parts = [x[n * to : n * (to + 1)] for to in range(bsp.nprocs)]
        found.append(bsp.scatter(parts, out=x[n // 2 : n // 2 + n]).copy())
    ramp = np.arange(n)
    upto = [1000.0 * sum(range(k)) + k * ramp for k in range(bsp.nprocs + 1)]
    came = [ramp + n * bsp.pid + 1000.0 * source for source in range(bsp.nprocs)]
    expected = [ramp, upto[bsp.nprocs], upto[bsp.pid + 1], came, ramp + n * bsp.pid]
    for one, other in zip(found, expected * 2, strict=True):
        assert np.array_equal(one, other)


@BOTH
@pytest.mark.parametrize("n", [1, 1_000, 40_000])
def test_out_may_have_gaps(run, nprocs, machine, n):
    def main(bsp):
        room = np.full((n, 3), -1.0)
        for _ in range(2):
            bsp.broadcast(at(bsp, 0, values(bsp, n)), out=room[:, 0])
            bsp.allreduce(values(bsp, n), out=room[:, 2])
        return room

    for room in run(main, machine=machine):
        assert np.array_equal(room[:, 0], np.arange(n))
        assert (room[:, 1] == -1).all()
        assert np.array_equal(room[:, 2], nprocs * np.arange(n) + 1000.0 * sum(range(nprocs)))


@pytest.mark.parametrize("n", [1, 1_000, 40_000])
def test_out_may_be_a_registered_array_whose_puts_and_gets_come_before(bsp, n):
    x, old = bsp.zeros(n), np.empty(n)
    right = (bsp.pid + 1) % bsp.nprocs
    x[:] = -1.0 - bsp.pid
    bsp.sync()
    bsp.get(right, x, old)
    bsp.put(right, np.full(n, 5.0), x)
    bsp.allreduce(values(bsp, n), out=x)
    bsp.sync()
    new = bsp.get(right, x)
    bsp.sync()
    total = bsp.nprocs * np.arange(n) + 1000.0 * sum(range(bsp.nprocs))
    assert (old == -1.0 - (bsp.pid + 1) % bsp.nprocs).all()
    assert np.array_equal(x, total)
    assert np.array_equal(new, total)


@pytest.mark.parametrize("n", [1, 1_000, 40_000])
def test_a_put_into_what_the_root_gives_and_takes_changes_no_broadcast(bsp, n):
    x = bsp.zeros(n)
    x[:] = bsp.pid
    found = []
    for _ in range(2):
        bsp.put(0, np.full(n, 9.0), x)
        found.append(bsp.broadcast(x, out=x).copy())
    private, there = np.zeros(n), bsp.zeros(n)
    there[:] = 3.0
    bsp.sync()
    bsp.get(0, there, private)
    found.append(bsp.broadcast(private, out=private))
    assert [float(x.max()) for x in found] == [0.0, 0.0, 0.0]
    assert [float(x.min()) for x in found] == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("n", [1_000, 40_000])
def test_out_may_be_what_came_from_another_process(bsp, n):
    right = (bsp.pid + 1) % bsp.nprocs
    for _ in range(3):
        bsp.send(right, values(bsp, n))
        bsp.sync()
        came = bsp.move()
        bsp.allreduce(values(bsp, n), out=came)
    assert np.array_equal(came, bsp.nprocs * np.arange(n) + 1000.0 * sum(range(bsp.nprocs)))


def test_numbers_are_written_into_an_array_without_axes(bsp):
    total, first = np.empty((), int), np.empty(())
    places = np.empty(bsp.nprocs)
    bsp.allreduce(bsp.pid, out=total)
    bsp.broadcast(2.5 if bsp.pid == 0 else None, out=first)
    bsp.allgather(float(bsp.pid), out=places)
    assert total == sum(range(bsp.nprocs))
    assert first == 2.5
    assert places.tolist() == [float(pid) for pid in range(bsp.nprocs)]


def test_one_array_takes_the_values_of_all_by_pid(bsp):
    whole = np.empty((bsp.nprocs, 2, 3))
    bsp.allgather(np.full((2, 3), bsp.pid), out=np.empty((bsp.nprocs, 2, 3), int))
    whole = bsp.allgather(np.full((2, 3), float(bsp.pid)), out=whole)
    assert [each.max() for each in whole] == list(range(bsp.nprocs))


def test_a_part_of_none_leaves_its_place_as_it_is(bsp):
    parts = [np.full(2, bsp.pid) if to != bsp.pid else None for to in range(bsp.nprocs)]
    found = bsp.alltoall(parts, out=np.full((bsp.nprocs, 2), -1)).tolist()
    assert found == [
        [-1, -1] if source == bsp.pid else [source] * 2 for source in range(bsp.nprocs)
    ]


def test_only_the_root_needs_an_out(run, nprocs):
    def main(bsp):
        return bsp.reduce(np.ones(3), out=np.empty(3) if bsp.pid == 0 else "ignored")

    assert run(main)[1:] == [None] * (nprocs - 1)


def test_an_exscan_without_identity_leaves_the_out_of_process_0(bsp):
    out = np.full(2, -1.0)
    result = bsp.exscan(np.ones(2), np.maximum, out=out)
    if bsp.pid == 0:
        assert (result, out.tolist()) == (None, [-1.0, -1.0])


READ_ONLY = np.zeros(3)
READ_ONLY.flags.writeable = False

WRONG = {
    "a list": (
        lambda bsp: bsp.allreduce(np.ones(3), out=[0.0, 0.0, 0.0]),
        (PlaceError, "allreduce: out is a list; it is a writable array"),
    ),
    "read-only": (
        lambda bsp: bsp.scan(np.ones(3), out=READ_ONLY),
        (PlaceError, "scan: out is a read-only array; give one that can be written"),
    ),
    "a shape": (
        lambda bsp: bsp.broadcast(np.ones(3), out=np.empty((3, 1))),
        (ShapeError, "broadcast: out has shape (3, 1), the result has (3,)"),
    ),
    "a shape in two stages": (
        lambda bsp: bsp.broadcast(np.ones(3), stages=2, out=np.empty(4)),
        (ShapeError, "broadcast: out has shape (4,), the result has (3,)"),
    ),
    "a dtype": (
        lambda bsp: bsp.allreduce(np.ones(3), out=np.empty(3, np.float32)),
        (DtypeError, "allreduce: out has dtype float32, the result has float64"),
    ),
    "a dtype of the operation": (
        lambda bsp: bsp.allreduce(np.ones(3), "any", out=np.empty(3)),
        (DtypeError, "allreduce: out has dtype float64, the result has bool"),
    ),
    "an object": (
        lambda bsp: bsp.broadcast({"a": 1}, out=np.empty(3)),
        (ShapeError, "broadcast: out has shape (3,), the result has ()"),
    ),
    "a shape among many": (
        lambda bsp: bsp.allgather(np.ones(3), out=[np.empty(3), np.empty(2)]),
        (ShapeError, "allgather: out[1] has shape (2,), the result has (3,)"),
    ),
    "no array among many": (
        lambda bsp: bsp.allgather(np.ones(3), out=[np.empty(3), None]),
        (PlaceError, "allgather: out[1] is a NoneType; it is a writable array"),
    ),
    "too many places": (
        lambda bsp: bsp.alltoall([1, 2], out=np.empty(3)),
        (UsageError, "alltoall: out has 3 places for the values of 2 processes"),
    ),
    "no places": (
        lambda bsp: bsp.gather(1, out=7),
        (PlaceError, "gather: out is a int; without axis= it is an array whose first axis"),
    ),
    "a joined shape": (
        lambda bsp: bsp.allgather(np.ones((2, 3)), axis=1, out=np.empty((2, 5))),
        (ShapeError, "allgather: out has shape (2, 5), the result has (2, 6)"),
    ),
    "blocks that do not fit": (
        lambda bsp: bsp.allgather(np.ones((2, 3 + bsp.pid)), axis=0, out=np.empty((4, 3))),
        (ShapeError, "cannot be joined along axis 0"),
    ),
    "blocks of different axes": (
        lambda bsp: bsp.allgather(np.ones((2,) * (1 + bsp.pid)), axis=0, out=np.empty(4)),
        (ShapeError, "cannot be joined along axis 0"),
    ),
}


@pytest.mark.procs(2)
@pytest.mark.parametrize("case", WRONG)
def test_an_out_that_does_not_fit_is_an_error(run, case):
    call, (kind, words) = WRONG[case]
    with pytest.raises(kind) as caught:
        run(call)
    assert words in str(caught.value)
    assert "test_outs.py:" in str(caught.value)
