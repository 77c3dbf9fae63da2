"""What ``check=True`` reports, and what it lets pass."""

from __future__ import annotations

import functools
import re

import numpy as np
import pytest

import bsplib

from .neighbours import place_of

# Programs say ``here()`` on the lines whose numbers a report has to name.


pytestmark = pytest.mark.checked


@pytest.fixture
def check(run):
    """Run a program with ``check=True``."""
    return functools.partial(run, check=True)


def said(check, main, *args):
    """Return what is reported of a program."""
    with pytest.raises(bsplib.OverlapError) as raised:
        check(main, *args)
    return str(raised.value)


def reported(*calls, elements=r"\d+", at=None, lines=("one", "two")):
    """Mark a program that is reported with two calls, on the lines that are marked so.

    Args:
        *calls: what they are (``{operation}`` is a parameter of the test), and the processes that
            make them, any if not given; nothing if any two calls are meant.
        elements: in how many they overlap.
        at: process and superstep that find it.
        lines: names of the lines.
    """

    def pattern(program, nprocs, operation):
        if not calls:
            return "overlap in "
        pids = [str(nprocs - 1) if pid == "last" else pid for pid in calls[2:] or (r"\d+",) * 2]
        named = [
            rf"{call.format(operation=operation)} \({place_of(program, name)}, process {pid}\)"
            for call, pid, name in zip(calls[:2], pids, lines, strict=True)
        ]
        where = rf".*process {at[0]}, superstep {at[1]}, test_check" if at else ""
        return rf"^{named[0]} and {named[1]} overlap in {elements} element{where}"

    return pytest.mark.raises(bsplib.OverlapError, match=pattern)


# -- overlapping puts ---------------------------------------------------------------------------


@pytest.mark.procs(least=2)
@reported("put", "put", 0, 1, elements=1, at=(1, 1))
def test_puts_of_two_processes_that_overlap_are_reported_with_both_calls(bsp):
    x = bsp.zeros(10)
    bsp.sync()
    if bsp.pid == 0:
        bsp.put(1, [1, 1, 1], x[2:5])  # one
    elif bsp.pid == 1:
        bsp.put(1, [2, 2], x[4:6])  # two
    bsp.sync()


def by_view(bsp, x, first, count):
    bsp.put(0, np.ones(count), x[first : first + count])


def by_offset(bsp, x, first, count):
    bsp.put(0, np.ones(count), x, offset=first)


def by_index(bsp, x, first, count):
    bsp.put(0, np.ones(count), x, at=np.s_[first : first + count])


def by_words(bsp, x, first, count):
    bsp.put_at(0, np.arange(first, first + count), 1.0, x)


def by_hpput(bsp, x, first, count):
    bsp.hpput(0, np.ones(count), x[first : first + count])


def by_a_view_with_steps(bsp, x, first, count):
    bsp.put(0, 1, x[first : first + 2 * count : 2])


WAYS = [by_view, by_offset, by_index, by_words, by_hpput, by_a_view_with_steps]


@pytest.mark.procs(2)
@pytest.mark.parametrize("second", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("first", WAYS, ids=lambda way: way.__name__)
@reported()
def test_puts_overlap_however_their_places_are_named(bsp, first, second):
    x = bsp.zeros(30)
    bsp.sync()
    if bsp.pid == bsp.nprocs - 1:
        first(bsp, x, 10, 4)
        second(bsp, x, 12, 3)
    bsp.sync()


@pytest.mark.procs(least=2)
def test_puts_that_only_touch_are_fine(bsp):
    for first in WAYS:
        for second in WAYS:
            x = bsp.zeros(30)
            bsp.sync()
            if bsp.pid == 1:
                first(bsp, x, 4, 4)  # up to 11, in steps of two
                second(bsp, x, 12, 3)
            bsp.sync()
            assert x.sum() == (0 if bsp.pid else 7)


@reported("put", "put", 0, 0)
def test_two_puts_of_one_process_that_overlap_are_reported(bsp):
    x = bsp.zeros((4, 4), int)
    bsp.put(0, 1, x[1])  # one
    bsp.put(0, 2, x[:, 2])  # two
    bsp.sync()


@pytest.mark.procs(least=2)
@reported("put", "put", 1, 1, lines=("loop", "loop"))
def test_a_loop_that_puts_twice_into_one_place_names_its_line_twice(bsp):
    x = bsp.zeros(5)
    for _ in range(2):
        if bsp.pid == 1:
            bsp.put(0, 1, x[2:3])  # loop
    bsp.sync()


def test_puts_into_rows_and_columns_that_do_not_meet_are_fine(bsp):
    x = bsp.zeros((bsp.nprocs, 6, 6), int)
    for pid in range(bsp.nprocs):
        bsp.put(pid, 1, x[bsp.pid, 0])
        bsp.put(pid, 2, x[bsp.pid, 1:, 0])
        bsp.put(pid, 3, x[bsp.pid, 1::2, 1::2])
        bsp.put(pid, 4, x, at=np.s_[bsp.pid, 2::2, 2::2])
    bsp.sync()
    assert x.sum() == bsp.nprocs * (6 + 10 + 27 + 16)


@pytest.mark.procs(least=2)
def test_puts_into_an_array_with_gaps_are_told_apart(check):
    def touches(bsp):
        whole = np.zeros((bsp.nprocs, 4))
        x, y = whole[:, 1], whole[:, 2]
        bsp.push_reg(x)
        bsp.push_reg(y)
        bsp.sync()
        bsp.put(0, 1, x[bsp.pid : bsp.pid + 1])
        bsp.put(0, 1, y[bsp.pid : bsp.pid + 1])
        bsp.sync()
        return int(whole.sum())

    def overlaps(bsp):
        x = np.zeros((bsp.nprocs + 2, 4))[:, 1]
        bsp.push_reg(x)
        bsp.sync()
        bsp.put(0, 1, x, offset=2)
        bsp.sync()

    first, *others = check(touches)
    assert first == 2 * (1 + len(others))
    assert others == [0] * len(others)
    assert re.search(r"overlap in 1 element( of \'\w+\')? \[", said(check, overlaps))


@pytest.mark.procs(least=2)
@reported()
def test_an_offset_and_a_view_that_name_one_element_of_a_part_are_reported(bsp):
    """The latest registration that contains the place is meant."""
    x = np.zeros(6)
    bsp.push_reg(x)
    bsp.push_reg(x[2:])
    bsp.sync()
    y = x[2:]
    if bsp.pid == 0:
        bsp.put(1, 1, y, offset=0)
        bsp.put(1, 1, x[2:3])
    bsp.sync()


@pytest.mark.procs(1, 2, 8)
@pytest.mark.parametrize("dtype", [float, np.float32, np.uint8])
def test_memory_that_is_registered_twice_is_written_once(check, dtype):
    """What counts is where it lies, not what it was named through."""

    def main(bsp, first):
        x = np.zeros(16)
        part = x[4:].view(dtype)
        bsp.push_reg(x)
        bsp.push_reg(part)
        bsp.sync()
        if bsp.pid == bsp.nprocs - 1:
            bsp.put(0, 1, x[first : first + 1])  # one
            bsp.put(0, 1, part[:3])  # two
        bsp.sync()
        return x[:4].tolist()

    assert check(main, 3)[0] == [0, 0, 0, 1]
    assert said(check, main, 4).startswith("put (")


@pytest.mark.procs(least=2)
def test_arrays_that_overlap_only_there_are_written_once(check):
    """Whoever puts has two arrays; where they arrive both are views of one."""

    def main(bsp, shared):
        whole = np.zeros(10, int)
        arrays = [whole[:6], whole[6 - shared :]] if bsp.pid == 1 else [whole[:6], np.zeros(5, int)]
        for array in arrays:
            bsp.push_reg(array)
        bsp.sync()
        if bsp.pid == 0:
            bsp.put(1, 1, arrays[0])  # one
            bsp.put(1, 2, arrays[1], offset=0)  # two
        bsp.sync()
        return whole.tolist()

    assert check(main, 0)[1] == [1, 1, 1, 1, 1, 1, 2, 0, 0, 0]
    words = (
        r"put .*process 0\) and put .*process 0\) overlap in 1 element.*\[process 1, superstep 1, "
    )
    assert re.match(words, said(check, main, 1))


@pytest.mark.procs(1, 2)
@pytest.mark.parametrize("second", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("first", WAYS, ids=lambda way: way.__name__)
def test_overlaps_through_two_registrations_are_found_however_they_are_named(check, first, second):
    def main(bsp, start):
        whole = np.zeros((30, 2))
        x, y = whole[:, 0], whole[10:28, 0]
        bsp.push_reg(x)
        bsp.push_reg(y)
        bsp.sync()
        if bsp.pid == bsp.nprocs - 1:
            first(bsp, x, 6, 5)  # up to 10, or every other up to 14
            second(bsp, y, start, 3)
        bsp.sync()
        return whole.any()

    assert check(main, 6)[0]
    assert "overlap in " in said(check, main, 0)


def test_registrations_that_interleave_do_not_overlap(bsp):
    whole = np.zeros((6, 4), np.int32)
    parts = [whole[:, column] for column in range(3)] + [whole[::2, 3], whole[1::2, 3]]
    for part in parts:
        bsp.push_reg(part)
    bsp.sync()
    if bsp.pid == 0:
        for number, part in enumerate(parts, 1):
            bsp.put(bsp.nprocs - 1, number, part)
    bsp.sync()
    if bsp.pid == bsp.nprocs - 1:
        assert int(whole.sum()) == 6 * (1 + 2 + 3) + 3 * (4 + 5)


@reported("put", "hpget")
def test_an_hpget_through_one_registration_of_what_is_put_through_another_is_reported(bsp):
    x = np.zeros(8)
    bsp.push_reg(x)
    bsp.push_reg(x[4:])
    bsp.sync()
    if bsp.pid == 0:
        bsp.put(0, 1, x[4:6])  # one
    if bsp.pid == bsp.nprocs - 1:
        bsp.hpget(0, x[5:2:-1])  # two
    bsp.sync()


@pytest.mark.procs(least=2)
def test_arrays_without_axes_are_compared_too(check):
    def main(bsp, both):
        x = bsp.zeros((), int)
        bsp.sync()
        if bsp.pid == 0 or both:
            bsp.put(1, 5, x)
        got = bsp.get_at(1, 0, x)
        bsp.sync()
        return int(x), int(got)

    results = check(main, False)
    assert results[1] == (5, 0)
    assert {result for pid, result in enumerate(results) if pid != 1} == {(0, 0)}
    assert re.search(r"overlap in 1 element( of \'\w+\')? \[", said(check, main, True))


@pytest.mark.procs(least=2)
def test_empty_puts_overlap_with_nothing(bsp):
    x = bsp.zeros(bsp.nprocs)
    bsp.put(0, [], x[1:1])
    bsp.put(0, [], x, offset=bsp.pid)
    bsp.put_at([], [], [], x)
    bsp.put(0, 1, x[bsp.pid : bsp.pid + 1])
    bsp.sync()


# -- words ------------------------------------------------------------------------------------


def test_combining_words_may_meet(bsp):
    x = bsp.zeros(4, int)
    bsp.put_at(0, [1, 1, 2], 1, x, op=np.add)
    bsp.put_at(0, [2, 3], 5, x, op=np.add)
    bsp.sync()
    if bsp.pid == 0:
        assert x.tolist() == [0, 2 * bsp.nprocs, 6 * bsp.nprocs, 5 * bsp.nprocs]


@reported("put_at", "put")
def test_a_put_and_combining_words_in_one_place_are_reported(bsp):
    x = bsp.zeros(4, int)
    if bsp.pid == bsp.nprocs - 1:
        bsp.put_at(0, [1], 1, x, op=np.add)  # one
        bsp.put(0, 1, x[1:2])  # two
    bsp.sync()


def test_words_that_are_combined_into_what_a_put_has_written_are_fine(bsp):
    """Nothing is lost."""
    x = bsp.zeros(4, int)
    if bsp.pid == bsp.nprocs - 1:
        bsp.put(0, 5, x)
        bsp.put_at(0, [1, 1], 2, x, op=np.add)
    bsp.sync()
    if bsp.pid == 0:
        assert x.tolist() == [5, 9, 5, 5]


# -- hp-transfers ---------------------------------------------------------------------------------


def test_a_source_of_hpput_that_is_changed_is_reported_with_call_and_sync(check):
    def main(bsp):
        x = bsp.zeros((bsp.nprocs, 100))
        values = np.ones(100)
        bsp.hpput(0, values, x[bsp.pid])  # hpput
        values[99] = 2
        bsp.sync()  # sync

    call, sync = place_of(main, "hpput"), place_of(main, "sync")
    assert said(check, main).startswith(
        f"the source of hpput at {call} was changed before the sync at {sync} "
        f"[process 0, superstep 0, {sync}]"
    )


@pytest.mark.procs(least=2)
def test_a_source_of_hpput_that_is_a_view_is_watched_as_far_as_it_goes(check):
    def beside(bsp):
        x = bsp.zeros((bsp.nprocs, 4))
        values = np.ones((4, 4))
        bsp.hpput(0, values[:, 1], x[bsp.pid])
        values[:, [0, 2, 3]] = 5
        bsp.sync()

    def inside(bsp):
        x = bsp.zeros((bsp.nprocs, 4))
        values = np.ones((4, 4))
        bsp.hpput(0, values[:, 1], x[bsp.pid])
        values[3] = 5
        bsp.sync()

    check(beside)
    assert "the source of hpput" in said(check, inside)


def by_get(bsp, x, out):
    bsp.get(0, x, out)  # get


def by_hpget(bsp, x, out):
    bsp.hpget(0, x, out)  # hpget


def by_get_at(bsp, x, out):
    bsp.get_at(0, np.arange(8), x, out)  # get_at


@pytest.mark.procs(1, 3)
@pytest.mark.parametrize("way", [by_get, by_hpget, by_get_at], ids=lambda way: way.__name__)
def test_a_destination_of_get_that_is_changed_is_reported_with_call_and_sync(check, way):
    def main(bsp):
        x = bsp.array(np.arange(8))
        out = np.zeros(8, int)
        bsp.sync()
        way(bsp, x, out)
        out[3] = 1
        bsp.sync()  # sync

    operation = way.__name__.removeprefix("by_")
    call, sync = place_of(way, operation), place_of(main, "sync")
    assert said(check, main).startswith(
        f"the destination of {operation} at {call} was changed before the sync at {sync} ["
    )


@pytest.mark.procs(2)
@pytest.mark.parametrize("way", [by_get, by_hpget, by_get_at], ids=lambda way: way.__name__)
def test_a_destination_of_get_may_be_changed_after_the_sync(check, way):
    def main(bsp):
        x = bsp.array(np.arange(8))
        out = np.zeros(8, int)
        bsp.sync()
        way(bsp, x, out)
        bsp.sync()
        out += 1
        bsp.sync()
        return out.tolist()

    assert check(main) == [list(range(1, 9))] * 2


@pytest.mark.procs(least=2)
@pytest.mark.raises(bsplib.OverlapError, match="the destination of get")
def test_a_new_destination_of_get_is_watched_too(bsp):
    x = bsp.zeros(3)
    bsp.sync()
    bsp.get(1, x).view(np.uint8)[-1] ^= 1  # whatever was there before
    bsp.sync()


@reported("put", "hpget")
def test_an_hpget_of_what_is_put_is_reported_with_both_calls(bsp):
    x = bsp.zeros(8)
    bsp.sync()
    if bsp.pid == 0:
        bsp.put(0, [1, 2], x, offset=3)  # one
    if bsp.pid == bsp.nprocs - 1:
        bsp.hpget(0, x[4:8])  # two
    bsp.sync()


@pytest.mark.raises(bsplib.OverlapError, match=r"^put_at \(.* and hpget \(")
def test_an_hpget_of_words_that_are_put_is_reported_with_both_calls(bsp):
    x = bsp.zeros(8)
    bsp.sync()
    if bsp.pid == 0:
        bsp.put_at(0, [1, 5], 2, x)
    if bsp.pid == bsp.nprocs - 1:
        bsp.hpget(0, x[::5])
        bsp.hpget(0, x, np.zeros(3), offset=4)
    bsp.sync()


@reported("hpput", "get")
def test_a_get_of_what_is_hpput_is_reported_with_both_calls(bsp):
    """An hpput may be written before the get reads."""
    x = bsp.zeros(8)
    bsp.sync()
    if bsp.pid == 0:
        bsp.hpput(0, np.ones(2), x, offset=3)  # one
    if bsp.pid == bsp.nprocs - 1:
        bsp.get(0, x[4:8])  # two
    bsp.sync()


def test_a_get_of_what_is_put_is_fine(bsp):
    """It reads before the put writes."""
    x = bsp.zeros(bsp.nprocs)
    bsp.sync()
    bsp.put(0, 1, x[bsp.pid : bsp.pid + 1])
    got = bsp.get(0, x)
    words = bsp.get_at(0, [0], x)
    bsp.sync()
    assert float(got.sum() + words.sum()) == 0.0


def test_hpgets_of_one_place_by_many_are_fine(bsp):
    x = bsp.array(np.arange(4.0))
    bsp.sync()
    first = bsp.hpget(0, x)
    second = bsp.hpget(0, x[1:3])
    bsp.sync()
    assert float(first.sum() + second.sum()) == 9.0


@reported("destination of hpget", "destination of hpget", 0, 0, elements=2)
def test_two_hpgets_into_one_destination_are_reported(bsp):
    """Overlapping hp-transfers are undefined, in what they write no less."""
    x = bsp.array(np.arange(4.0))
    out = np.zeros(4)
    bsp.sync()
    bsp.hpget(0, x, out)  # one
    bsp.hpget(0, x[:2], out[1:3])  # two
    bsp.sync()


DESTINATIONS = {
    "registered": lambda y: y[1:5],
    "a view with steps": lambda y: y[7:0:-2],
    "all of it": lambda y: y[:],
}


@pytest.mark.procs(1, 2, 3, 8)
@pytest.mark.parametrize("part", DESTINATIONS.values(), ids=DESTINATIONS)
@pytest.mark.parametrize("operation", ["put", "hpput"])
@reported("{operation}", "destination of hpget", "last", 0, elements=1, at=(0, 1))
def test_a_destination_of_hpget_that_is_put_into_is_reported_with_both_calls(bsp, operation, part):
    x, y = bsp.zeros(8), bsp.zeros(8)
    bsp.sync()
    if bsp.pid == bsp.nprocs - 1:
        getattr(bsp, operation)(0, np.ones(1), y, offset=3)  # one
    if bsp.pid == 0:
        dst = part(y)
        bsp.hpget(bsp.nprocs - 1, x[: len(dst)], dst)  # two
    bsp.sync()


@reported("put_at", "destination of hpget")
def test_a_destination_of_hpget_is_found_in_memory_that_is_registered_otherwise(bsp):
    x, whole = bsp.zeros(4), np.zeros((4, 3))
    bsp.push_reg(whole[:, 1])
    bsp.sync()
    if bsp.pid == 0:
        bsp.put_at(0, [2], 1.0, whole[:, 1])  # one
        bsp.hpget(0, x[:3], whole[2])  # two
    bsp.sync()


@reported("put_at", "destination of hpget")
def test_a_destination_of_hpget_that_words_are_combined_into_is_reported(bsp):
    x, y = bsp.zeros(4), bsp.zeros(4)
    bsp.sync()
    bsp.put_at(0, [2], 1.0, y, op=np.add)  # one
    bsp.hpget(0, x, y)  # two
    bsp.sync()


@pytest.mark.procs(1, 2)
@pytest.mark.parametrize("operation", ["get", "hpget", "get_at"])
@reported("{operation}", "destination of hpget", "last", 0)
def test_what_an_hpget_writes_may_not_be_read_by_a_get(bsp, operation):
    x, y = bsp.zeros(4), bsp.zeros(4)
    bsp.sync()
    if bsp.pid == bsp.nprocs - 1:
        getattr(bsp, operation)(0, *([[1]] if operation == "get_at" else []), y)  # one
    if bsp.pid == 0:
        bsp.hpget(0, x, y)  # two
    bsp.sync()


@reported("hpget", "destination of get", "last", 0)
def test_what_an_hpget_reads_may_not_be_the_destination_of_a_get(bsp):
    x, y = bsp.zeros(4), bsp.zeros(4)
    bsp.sync()
    if bsp.pid == bsp.nprocs - 1:
        bsp.hpget(0, y[2:])  # one
    if bsp.pid == 0:
        bsp.get(0, x[:3], y[:3])  # two
    bsp.sync()


@reported("hpput", "destination of get", "last", 0)
def test_a_destination_of_get_that_is_hpput_into_is_reported_with_both_calls(bsp):
    x, y = bsp.zeros(4), bsp.zeros(4)
    bsp.sync()
    if bsp.pid == bsp.nprocs - 1:
        bsp.hpput(0, np.ones(2), y[2:])  # one
    if bsp.pid == 0:
        bsp.get(0, x, y)  # two
    bsp.sync()


def test_a_destination_of_get_may_be_put_into_and_read(bsp):
    """Gets read, then their destinations are written, then come the puts."""
    x, y = bsp.array([1, 2, 3, 4]), bsp.array([5, 6, 7, 8])
    bsp.sync()
    if bsp.pid == bsp.nprocs - 1:
        bsp.put(0, 9, y[3:])
    seen = bsp.get(0, y)
    bsp.get(0, x, y)
    bsp.sync()
    assert (seen.tolist(), y.tolist()) == ([5, 6, 7, 8], [1, 2, 3, 4 if bsp.pid else 9])


@reported("put", "source of hpput", "last", 0, elements=1)
def test_a_source_of_hpput_that_is_put_into_is_reported_with_both_calls(bsp):
    x, y = bsp.zeros(8), bsp.zeros((bsp.nprocs, 8))
    bsp.sync()
    if bsp.pid == bsp.nprocs - 1:
        bsp.put(0, [1, 1], x[3:5])  # one
    if bsp.pid == 0:
        bsp.hpput(bsp.nprocs - 1, x[4:], y[0, 4:])  # two
    bsp.sync()


@pytest.mark.procs(1, 2)
@pytest.mark.parametrize("operation", ["get", "hpget"])
@reported("source of hpput", "destination of {operation}", 0, 0, elements=2)
def test_a_source_of_hpput_that_a_get_writes_is_reported_with_both_calls(bsp, operation):
    """Nobody registered it: all that happens to it happens here."""
    x, y = bsp.zeros(8), bsp.zeros((bsp.nprocs, 8))
    values = np.ones(8)
    bsp.sync()
    bsp.hpput(0, values, y[bsp.pid])  # one
    getattr(bsp, operation)(0, x[:2], values[::4])  # two
    bsp.sync()


@pytest.mark.procs(least=2)
@reported("put", "source of hpput", 0, 1)
def test_a_source_of_hpput_that_is_put_into_in_an_oblivious_superstep_is_reported(bsp):
    x, y = bsp.zeros(8), bsp.zeros(8)
    bsp.sync()
    if bsp.pid == 0:
        bsp.put(1, 1, x[3:4])  # one
    if bsp.pid == 1:
        bsp.hpput(1, x[2:6], y[2:6])  # two
    bsp.oblsync(2 if bsp.pid == 1 else 0)


def test_a_source_of_hpput_may_be_read_and_sent_again(bsp):
    x, y = bsp.array(np.arange(4)), bsp.zeros((bsp.nprocs, 4), int)
    bsp.sync()
    for pid in range(bsp.nprocs):
        bsp.hpput(pid, x, y[bsp.pid])
    got, words, again = bsp.get(0, x), bsp.get_at(0, [3, 3], x), bsp.hpget(0, x[1:])
    bsp.sync()
    assert y.tolist() == [[0, 1, 2, 3]] * bsp.nprocs
    assert got.tolist() == [0, 1, 2, 3]
    assert words.tolist() == [3, 3]
    assert again.tolist() == [1, 2, 3]


@reported("hpput", "put_at", 0, "last", elements=1)
def test_words_combined_into_what_an_hpput_writes_are_reported(bsp):
    """The hpput may be written after them."""
    x = bsp.zeros(4)
    bsp.sync()
    if bsp.pid == 0:
        bsp.hpput(0, np.ones(4), x)  # one
    if bsp.pid == bsp.nprocs - 1:
        bsp.put_at(0, [1, 1], 1.0, x, op=np.add)  # two
    bsp.sync()


def test_gets_into_one_destination_are_written_in_order_and_fine(bsp):
    x = bsp.array(np.arange(4))
    out = np.zeros(4, int)
    bsp.sync()
    bsp.get(0, x, out)
    bsp.get(0, x[:2], out[1:3])
    bsp.sync()
    if bsp.pid == 0:
        assert out.tolist() == [0, 0, 1, 3]


# -- other groups, other supersteps, other runs ------------------------------------------------


@pytest.mark.procs(least=2)
@reported("put", "put", 1, "last", at=(1, 1))
def test_overlaps_in_a_sub_group_are_reported_with_pids_of_the_run(bsp):
    with bsp.partition([1, bsp.nprocs]) as sub:
        x = sub.zeros(1)
        sub.sync()
        if bsp.pid == 1:
            sub.put(0, 1, x)  # one
        if bsp.pid == bsp.nprocs - 1:
            sub.put(0, 2, x)  # two
        sub.sync()


@pytest.mark.procs(least=2)
@pytest.mark.raises(bsplib.OverlapError, match="the source of hpput")
def test_early_changes_in_a_sub_group_are_reported(bsp):
    with bsp.partition([1, bsp.nprocs]) as sub:
        x, values = sub.zeros(sub.nprocs), np.ones(1)
        sub.hpput(0, values, x, offset=sub.pid)
        values[0] = 2
        sub.sync()


@pytest.mark.procs(least=2)
def test_a_put_of_the_parent_and_one_in_its_sub_group_are_of_two_supersteps(bsp):
    x = bsp.zeros(bsp.nprocs)
    bsp.sync()
    bsp.put(0, 1, x[bsp.pid : bsp.pid + 1])
    with bsp.partition([bsp.nprocs]) as sub:
        sub.push_reg(x)
        sub.sync()
        sub.put(0, 2, x[bsp.pid : bsp.pid + 1])
        sub.sync()
    bsp.sync()
    assert bsp.pid or set(x.tolist()) == {1}


@pytest.mark.procs(least=2)
@reported("put", "put", 0, 1)
def test_overlaps_in_an_oblivious_superstep_are_reported_with_both_calls(bsp):
    x = bsp.zeros(4)
    bsp.sync()
    if bsp.pid == 0:
        bsp.put(1, 1, x[1:3])  # one
    if bsp.pid == 1:
        bsp.put(1, 1, x[2:4])  # two
    bsp.oblsync(2 if bsp.pid == 1 else 0)
    bsp.sync()


@pytest.mark.procs(1, 2, 8)
@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"offset": 3}, "put: 3 elements at offset 3 from process"),
        ({"at": np.s_[2:]}, r"put: values of shape \(3,\) at "),
        ({"at": 4}, r"put: values of shape \(3,\) at "),
    ],
    ids=["offset", "at", "one"],
)
@pytest.mark.raises(
    bsplib.BoundsError, match=lambda said: f"^{said}.* lie outside the array of shape"
)
def test_what_leaves_an_array_in_an_oblivious_superstep_is_out_of_bounds(bsp, more, said):
    """Whether or not somebody looks for overlaps."""
    x = bsp.zeros(4)
    bsp.put(bsp.pid, np.ones(3), x, **more)
    bsp.oblsync(1)


@pytest.mark.procs(least=2)
@pytest.mark.raises(
    bsplib.OverlapError,
    match=lambda program: f"the source of hpput at {place_of(program, 'hpput')} was changed",
)
def test_early_changes_in_an_oblivious_superstep_are_reported(bsp):
    x = bsp.zeros(bsp.nprocs)
    bsp.sync()
    values = np.ones(1)
    bsp.hpput(bsp.pid, values, x[:1])  # hpput
    values[0] = 2
    bsp.oblsync(1)


@pytest.mark.procs(least=2)
def test_puts_of_oblivious_supersteps_that_follow_each_other_do_not_overlap(bsp):
    x = bsp.zeros(1, int)
    bsp.sync()
    for number in range(5):
        bsp.put((bsp.pid + 1) % bsp.nprocs, number, x)
        bsp.oblsync(1)
        assert x[0] == number


def test_programs_without_overlaps_do_what_they_do_without_check(check, run):
    def main(bsp):
        x = bsp.array(np.arange(6) * (bsp.pid + 1))
        right = (bsp.pid + 1) % bsp.nprocs
        got = bsp.get(right, x[:4])
        bsp.put(right, -x[:3], x[:3])
        bsp.hpput(right, np.full(2, 9), x, offset=4)
        bsp.send(right, x, tag="t")
        bsp.put_at(right, 3, 7, x)
        bsp.sync()
        message = bsp.move().tolist()
        with bsp.partition([bsp.nprocs]) as sub:
            total = sub.allreduce(int(x.sum()))
        return got.tolist(), x.tolist(), total, message

    assert check(main) == run(main)


@pytest.mark.procs(least=2)
def test_nothing_is_reported_unless_it_is_asked_for(run):
    def main(bsp):
        x = bsp.zeros(1)
        bsp.put(0, bsp.pid + 1, x)
        values = np.ones(1)
        bsp.hpput(1, values, x)
        values[0] = 2
        bsp.sync()

    run(main)
