"""What ``check=True`` sees of arrays that are used at the wrong time, and of lost messages."""

from __future__ import annotations

import pickle
import re
import warnings

import numpy as np
import pytest

from bsplib import CheckWarning, OverlapError, RegistrationError

from .neighbours import place_of, right

pytestmark = pytest.mark.procs(1, 2, 3)


# -- what was freed -------------------------------------------------------------------------

USES = {
    "an element": lambda bsp, x: x[0],
    "a sum": lambda bsp, x: x.sum(),
    "a sum by function": lambda bsp, x: np.sum(x),
    "arithmetic": lambda bsp, x: x + 1,
    "a write": lambda bsp, x: x.__setitem__(0, 1.0),
    "a write by method": lambda bsp, x: x.fill(0.0),
    "an output": lambda bsp, x: np.add(1, 1, out=x[:1]),
    "its text": lambda bsp, x: str(x),
    "a view": lambda bsp, x: x[1:3],
    "a put": lambda bsp, x: bsp.put(0, 1.0, x, offset=0),
    "a put of it": lambda bsp, x: bsp.put(0, x, x),
    "a get": lambda bsp, x: bsp.get(0, x),
    "a message": lambda bsp, x: bsp.send(0, x),
    "a collective": lambda bsp, x: bsp.allgather(x),
    "a registration": lambda bsp, x: bsp.push_reg(x),
}


@pytest.mark.parametrize("use", USES)
def test_the_use_of_an_array_after_its_scope_is_an_error_that_names_its_end(run, use):
    def main(bsp):
        with bsp.scope():  # scope
            x = bsp.zeros(8)
            view = x[2:6]
            bsp.sync()
        bsp.sync()
        other = bsp.zeros(8)
        other[...] = 3
        for stale in (x, view):
            with pytest.raises(RegistrationError) as caught:
                USES[use](bsp, stale)
        return str(caught.value), other.tolist()

    for text, other in run(main, check=True):
        assert f"was freed by the end of the scope at {place_of(main, 'scope')} and is used" in text
        assert text.count("[process ") == 1
        assert other == [3.0] * 8


@pytest.mark.procs(2)
def test_the_use_of_a_popped_array_names_its_pop(run):
    def main(bsp):
        x = bsp.zeros(8)
        bsp.sync()
        bsp.pop_reg(x)  # pop
        x[0] = 1.0  # it is there until the sync
        bsp.sync()
        x[0] = 2.0

    place = re.escape(place_of(main, "pop"))
    with pytest.raises(RegistrationError, match=rf"freed by pop_reg at {place} and is used"):
        run(main, check=True)


@pytest.mark.procs(2)
@pytest.mark.raises(RegistrationError, match="freed by the end of its group at test_check_use")
@pytest.mark.checked
def test_the_use_of_an_array_of_a_sub_group_that_was_left_is_an_error(bsp):
    with bsp.partition([1, 2]) as sub:
        x = sub.zeros(8)
        sub.sync()
    x.sum()


@pytest.mark.checked
def test_freed_memory_is_not_handed_out_at_once(bsp):
    with bsp.scope():
        x = np.asarray(bsp.zeros(8))  # a plain view, which sees nothing
        bsp.sync()
    bsp.sync()
    y = bsp.zeros(8)
    x[...] = 7.0
    assert y.tolist() == [0.0] * 8


@pytest.mark.lengthy
@pytest.mark.checked
def test_freed_memory_is_handed_out_again_in_the_end(bsp):
    for _ in range(40):
        with bsp.scope():
            x = bsp.zeros(1 << 20)
            x[0] = 1.0
            bsp.sync()
    bsp.sync()
    assert bsp.zeros(1 << 20).sum() == 0


def test_without_check_arrays_are_numpys_own(bsp):
    x = bsp.zeros(3)
    bsp.sync()
    assert type(x) is np.ndarray
    assert type(bsp.get(0, x)) is np.ndarray
    assert bsp.sync() is None


# -- what is not there yet ------------------------------------------------------------------

READS = {
    "an element": lambda bsp, got: got[1],
    "some elements": lambda bsp, got: got[[0, 1]],
    "a sum": lambda bsp, got: got.sum(),
    "arithmetic": lambda bsp, got: got * 2,
    "a view of it": lambda bsp, got: got[::2].tolist(),
    "its text": lambda bsp, got: repr(got),
    "a pickle": lambda bsp, got: pickle.dumps(got),
}


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("operation", ["get", "hpget"])
@pytest.mark.parametrize("into", ["a new array", "a registered one"])
def test_a_destination_of_get_that_is_read_before_the_sync_is_reported(run, read, operation, into):
    def main(bsp):
        x, y = bsp.zeros(3), bsp.zeros(3)
        bsp.sync()
        got = getattr(bsp, operation)(right(bsp), x, None if into == "a new array" else y)  # get
        with pytest.raises(OverlapError) as caught:
            READS[read](bsp, got)
        bsp.sync()
        READS[read](bsp, got)
        return str(caught.value)

    expected = f"the destination of {operation} at {place_of(main, 'get')} is read before the sync"
    assert all(text.startswith(expected) for text in run(main, check=True))


@pytest.mark.procs(2)
@pytest.mark.parametrize("into", ["a new array", "a registered one", "one of the program"])
@pytest.mark.parametrize(
    "passed_on",
    [
        lambda bsp, x, got: bsp.put(0, got, x),
        lambda bsp, x, got: bsp.hpput(0, got, x),
        lambda bsp, x, got: bsp.put_at(0, [0, 1, 2], got, x),
        lambda bsp, x, got: bsp.send(0, got),
        lambda bsp, x, got: bsp.broadcast(got),
    ],
)
def test_a_destination_of_get_that_is_passed_on_before_the_sync_is_reported(run, passed_on, into):
    def main(bsp):
        x, y = bsp.zeros(3), bsp.zeros(3)
        bsp.sync()
        given = {"a new array": None, "a registered one": y, "one of the program": np.ones(3)}
        got = bsp.get(right(bsp), x, given[into])  # get
        passed_on(bsp, x, got)

    words = f"the destination of get at {place_of(main, 'get')} is read before the sync"
    with pytest.raises(OverlapError, match=re.escape(words)) as caught:
        run(main, check=True)
    assert str(caught.value).count("[process ") == 1


@pytest.mark.checked
def test_the_rest_of_an_array_may_be_read_before_the_sync(bsp):
    x, y = bsp.zeros(8), bsp.zeros(8)
    y[...] = range(8)
    bsp.sync()
    bsp.get(right(bsp), x[2:4], y[2:4])
    found = float(y[1]), y[4:].sum(), [float(y[place]) for place in (0, 7)]
    with pytest.raises(OverlapError):
        y[1:3].sum()
    bsp.sync()
    assert found == (1.0, 22.0, [0.0, 7.0])
    assert y.tolist() == [0, 1, 0, 0, 4, 5, 6, 7]


@pytest.mark.parametrize("operation", ["get", "hpget", "get_at"])
@pytest.mark.checked
def test_what_numpy_does_not_see_finds_no_old_values_before_the_sync(bsp, operation):
    x = bsp.full(3, 7)
    bsp.sync()
    where = ([0], range(3), x) if operation == "get_at" else (0, x)
    got = getattr(bsp, operation)(*where)
    early = list(memoryview(np.asarray(got)))
    with pytest.raises(OverlapError, match="is read before the sync"):
        bsp.send(0, np.asarray(got))
    bsp.sync()
    least = np.iinfo(int).min
    assert (early, got.tolist()) == ([least] * 3, [7] * 3)


@pytest.mark.checked
def test_an_array_of_the_program_holds_rubbish_until_its_get_arrives(bsp):
    x = bsp.zeros(3)
    into = np.ones(3)
    bsp.sync()
    bsp.get(right(bsp), x, into)
    early = into.tolist()
    bsp.sync()
    assert not np.isfinite(early).any()
    assert into.tolist() == [0.0] * 3


@pytest.mark.checked
def test_a_get_into_what_others_get_does_not_change_what_they_see(bsp):
    x, into = bsp.zeros(3), np.ones(3)
    bsp.push_reg(into)
    bsp.sync()
    bsp.get(right(bsp), x, into)
    seen = bsp.get(right(bsp), into)
    bsp.sync()
    assert (seen.tolist(), into.tolist()) == ([1.0] * 3, [0.0] * 3)


@pytest.mark.parametrize("dtype", [bool, "U3", "M8[s]", "i4,f8", "f2", "c16"])
@pytest.mark.checked
def test_destinations_of_every_dtype_are_watched(bsp, dtype):
    x = bsp.zeros(3, dtype)
    into = np.zeros(3, dtype)
    bsp.sync()
    got = bsp.get(right(bsp), x, into)
    other = bsp.get(right(bsp), x)
    bsp.sync()
    assert (got == x).all()
    assert (other == x).all()


# -- what another process's transfer at any time names here -----------------------------------


@pytest.mark.procs(2, 3)
@pytest.mark.parametrize("change", ["before", "after"])
def test_a_source_of_a_remote_hpget_that_is_changed_is_reported(run, change):
    def main(bsp):
        x = bsp.zeros(8)
        bsp.sync()
        if bsp.pid == 1 and change == "before":
            x[3] = 1.0
        if bsp.pid == 0:
            bsp.hpget(1, x[2:5])  # hpget
        if bsp.pid == 1 and change == "after":
            x[3] = 1.0
        bsp.sync()  # sync

    words = (
        f"process 1 has changed the source of hpget ({place_of(main, 'hpget')}, process 0) in "
        f"the superstep that ends at {place_of(main, 'sync')}"
    )
    with pytest.raises(OverlapError, match=re.escape(words)):
        run(main, check=True)


@pytest.mark.procs(2, 3)
def test_a_local_write_into_the_destination_of_an_hpput_is_reported(run):
    def main(bsp):
        x = bsp.zeros((4, 4))
        bsp.sync()
        if bsp.pid == 0:
            bsp.hpput(1, np.ones(4), x[:, 1])  # hpput
        if bsp.pid == 1:
            x[2, 1] = 5.0
        bsp.sync()  # sync

    words = f"process 1 has changed the destination of hpput ({place_of(main, 'hpput')}, process 0)"
    with pytest.raises(OverlapError, match=re.escape(words)):
        run(main, check=True)


@pytest.mark.procs(2, 3)
@pytest.mark.checked
def test_what_lies_beside_an_hp_transfer_may_be_changed(bsp):
    x = bsp.zeros((4, 4))
    bsp.sync()
    for _ in range(3):
        bsp.hpput(right(bsp), np.ones(4), x[:, 1])
        got = bsp.hpget(right(bsp), x[:, 2])
        x[:, 3] += 1
        bsp.sync()
    assert (x.tolist(), got.tolist()) == ([[0.0, 1.0, 0.0, 3.0]] * 4, [0.0] * 4)


@pytest.mark.procs(2, 3)
@pytest.mark.checked
def test_what_a_put_names_may_be_changed_there(bsp):
    x = bsp.zeros(4)
    bsp.sync()
    bsp.put(right(bsp), 1.0, x[:2])
    x[:] = 5.0
    got = bsp.get(right(bsp), x)
    bsp.sync()
    assert (x.tolist(), got.tolist()) == ([1.0, 1.0, 5.0, 5.0], [5.0] * 4)


# -- what is overwritten before anybody has read it -------------------------------------------


def assigned(x):
    x[2:5] = np.arange(1.0, 4.0)  # write


def added(x):
    x[2:5] += 1.0  # write


def computed(x):
    np.multiply(np.arange(8.0), 2, out=x)  # write


@pytest.mark.procs(2, 3)
@pytest.mark.parametrize("write", [assigned, added, computed])
@pytest.mark.parametrize("operation", ["put", "put_at"])
def test_values_that_a_put_of_another_overwrites_unread_are_warned_of(run, write, operation):
    def main(bsp):
        x = bsp.zeros(8)
        for _ in range(2):
            bsp.sync()
            if bsp.pid == 1:
                write(x)
            elif bsp.pid == 0 and operation == "put":
                bsp.put(1, [7.0, 8.0], x[4:6])  # put
            elif bsp.pid == 0:
                bsp.put_at(1, [4, 5], [7.0, 8.0], x)  # put_at
        bsp.sync()
        return x[4]

    with pytest.warns(CheckWarning) as caught:
        assert run(main, check=True)[1] == 7.0
    elements, them = ("2 elements", "them") if write is computed else ("1 element", "it")
    (text,) = {str(each.message).split(" [")[0] for each in caught}
    assert text.startswith(
        f"{elements} of 'x' of process 1, written at {place_of(write, 'write')}: {operation} "
        f"({place_of(main, operation)}, process 0) overwrites {them} in the same superstep, and "
    )


OWN_USES = {
    "numpy": lambda bsp, x: x.sum(),
    "an element": lambda bsp, x: [float(x[place]) for place in range(8)],
    "a put": lambda bsp, x: bsp.put(0, x[2:4], x[6:8]),
    "a put of the same memory": lambda bsp, x: bsp.put(0, np.asarray(x)[2:4], x[6:8]),
    "a message": lambda bsp, x: bsp.send(0, x),
    "zero": lambda bsp, x: x.__setitem__(slice(None), 0),
    "one value for all": lambda bsp, x: x.__setitem__(slice(None), np.inf),
    "another array": lambda bsp, x: np.copyto(x, np.arange(8.0)),
}


@pytest.mark.procs(2, 3)
@pytest.mark.parametrize("use", OWN_USES)
def test_values_that_were_read_or_only_cleared_may_be_overwritten(run, use):
    def main(bsp):
        x = bsp.zeros(8)
        bsp.sync()
        if bsp.pid == 1:
            x[2:4] = [1.0, 2.0]
            OWN_USES[use](bsp, x)
        if bsp.pid == 0:
            bsp.put(1, [7.0, 8.0], x[2:4])
        bsp.sync()
        list(bsp.messages())
        return x.tolist()

    assert run(main, check=True)[1][2:4] == [7.0, 8.0]


@pytest.mark.checked
def test_what_an_array_begins_with_may_be_overwritten(bsp):
    x, y = bsp.array([1.0, 2.0, 3.0]), bsp.full(3, [4.0, 5.0, 6.0])
    bsp.put(right(bsp), [7.0, 8.0], x[1:])
    bsp.put(right(bsp), [9.0], y[1:2])
    bsp.sync()
    assert (x.tolist(), y.tolist()) == ([1, 7, 8], [4, 9, 6])


@pytest.mark.procs(2)
@pytest.mark.parametrize("operation", ["get", "get_at", "put_at", "own put", "sync"])
@pytest.mark.checked
def test_values_that_transfers_use_are_not_missed(bsp, operation):
    x = bsp.zeros(4)
    bsp.sync()
    if bsp.pid == 1:
        x[1:3] = [1.0, 2.0]
    if operation == "sync":
        bsp.sync()
    if operation == "get":
        bsp.get(1, x)
    elif operation == "get_at":
        bsp.get_at(1, [1, 2], x)
    if operation == "put_at" and bsp.pid == 0:
        bsp.put_at(1, [1, 2], 5.0, x, op=np.add)
    elif bsp.pid == (operation == "own put"):
        bsp.put(1, [6.0, 7.0], x[1:3])
    bsp.sync()
    if bsp.pid == 1:
        assert x.tolist() == [0.0, 6.0, 7.0, 0.0]


# -- messages -----------------------------------------------------------------------------------


def unread(bsp, end):
    """Send two messages, read one, and end the superstep in one of the possible ways."""
    sub = bsp if end == "main" else bsp.partition([bsp.nprocs])
    sub.send(right(bsp), "one")
    sub.send(right(bsp), "two")
    sub.sync()
    next(iter(sub.messages()))
    if end == "sync":
        sub.sync()
    elif end == "oblsync":
        sub.oblsync(0)
    if sub is not bsp:
        sub.done()


ENDS = pytest.mark.parametrize("end", ["sync", "oblsync", "sub-group", "main"])


@ENDS
def test_messages_that_are_never_read_are_warned_of(run, nprocs, end):
    with pytest.warns(CheckWarning) as caught:
        run(unread, end, check=True)
    found = sorted(str(each.message) for each in caught)
    assert len(found) == nprocs
    for pid, text in enumerate(found):
        assert text.startswith(
            f"1 message to process {pid} (1 from process {(pid - 1) % nprocs}) was not "
            f"read before the superstep ended at "
        )


def test_messages_that_are_read_are_not_warned_of(run):
    def main(bsp):
        bsp.send(right(bsp), "one")
        total = bsp.allreduce(np.arange(1000))
        found = bsp.move()
        bsp.send(right(bsp), "two")
        bsp.broadcast(np.arange(1000), stages=2)
        found += bsp.move()
        bsp.sync()
        return found, int(total[1])

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = run(main, check=True)
    assert found == [("onetwo", len(found))] * len(found)


def test_without_check_nobody_warns(run):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(unread, "sync")
