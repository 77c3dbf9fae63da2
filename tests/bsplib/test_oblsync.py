"""Oblivious synchronisation: a superstep ends when the messages of this process are there."""

from __future__ import annotations

import os
import time

import numpy as np
import pytest

import bsplib

from .neighbours import right

pytestmark = pytest.mark.timeout(60)


def test_oblsync_returns_when_the_messages_are_there(bsp):
    bsp.send(right(bsp), bsp.pid)
    bsp.oblsync(1)
    assert list(bsp.messages()) == [((bsp.pid - 1) % bsp.nprocs, None, (bsp.pid - 1) % bsp.nprocs)]


def test_oblsync_of_none_returns_at_once(bsp):
    for _ in range(10):
        bsp.oblsync(0)
    assert bsp.qsize() == (0, 0)


def test_each_send_and_each_put_counts_as_one(bsp):
    x = bsp.zeros(500, int)
    bsp.sync()
    bsp.put(right(bsp), 1, x[:2])
    bsp.put(right(bsp), np.full(300, 2), x, offset=2)
    bsp.put(right(bsp), 3, x, at=np.s_[-1])
    bsp.send(right(bsp), "one")
    bsp.send(right(bsp), b"")
    bsp.oblsync(5)
    assert (x[[0, 1, 2, 301, 302, 499]].tolist(), bsp.qsize()[0]) == ([1, 1, 2, 2, 0, 3], 2)


@pytest.mark.parametrize("size", [1, 5000], ids="n={}".format)
def test_what_was_read_stays_while_others_go_on(bsp, size):
    kept = []
    for step in range(40):
        bsp.send(right(bsp), np.full(size, step))
        bsp.oblsync(1)
        kept.append(bsp.move())
    assert [set(part.tolist()) for part in kept] == [{step} for step in range(40)]


# -- processes in different supersteps -----------------------------------------------------


@pytest.mark.procs(least=2)
@pytest.mark.parametrize(
    "steps", [3, pytest.param(64, marks=pytest.mark.slow), 65, 300], ids="ahead={}".format
)
@pytest.mark.parametrize("size", [1, 400], ids="n={}".format)
def test_what_arrives_early_waits_for_its_superstep(run, nprocs, steps, size):
    def main(bsp):
        if bsp.pid == 0:  # waits for nobody, and is ahead of all
            for step in range(steps):
                for pid in range(1, bsp.nprocs):
                    bsp.send(pid, np.full(size, step))
                bsp.oblsync(0)
            return steps
        received = []
        for _ in range(steps):
            bsp.oblsync(1)
            received.append(int(bsp.move().sum()))
        return received

    expected = [step * size for step in range(steps)]
    assert run(main) == [steps] + [expected] * (nprocs - 1)


@pytest.mark.procs(3, 4)
def test_a_process_may_wait_while_its_neighbours_are_far_ahead(bsp):
    """Only the last superstep of process 1 needs process 0, which comes late to the first."""
    steps = 200
    for step in range(steps):
        if bsp.pid == 0:
            if step == 0:
                np.sort(np.random.default_rng(1).random(200_000))
            if step == steps - 1:
                bsp.send(1, "late")
            bsp.oblsync(0)
        elif bsp.pid == 1:
            bsp.send(2, step)
            bsp.oblsync(1)
            last = bsp.move()
        else:
            if bsp.pid == 2 and step < steps - 1:
                bsp.send(1, step)
            bsp.oblsync(1 if bsp.pid == 2 else 0)
    if bsp.pid == 1:
        assert last == "late"


# -- together with the rest -----------------------------------------------------------------


def test_a_registration_takes_effect_at_the_next_global_sync(bsp):
    x = np.zeros(1)
    bsp.push_reg(x)
    bsp.oblsync(0)
    with pytest.raises(bsplib.RegistrationError, match=r"takes effect at the next sync"):
        bsp.put(0, 1, x)
    bsp.sync()
    bsp.put(right(bsp), 1, x)
    bsp.oblsync(1)
    assert float(x[0]) == 1.0


def test_an_allocation_may_be_named_in_an_oblivious_superstep(bsp):
    bsp.oblsync(0)
    x = bsp.zeros(300, int)
    bsp.put(right(bsp), np.arange(300), x)
    bsp.oblsync(1)
    assert x.tolist() == list(range(300))


def test_a_pop_takes_effect_at_the_next_global_sync(bsp):
    x = bsp.zeros(1)
    bsp.sync()
    bsp.pop_reg(x)
    bsp.oblsync(0)
    bsp.put(right(bsp), 2, x)
    bsp.oblsync(1)
    got = float(x[0])
    bsp.sync()
    with pytest.raises(bsplib.RegistrationError, match=r"is not in a registered array"):
        bsp.put(0, 1, x)
    assert got == 2.0


def test_a_tag_size_takes_effect_at_the_next_global_sync(bsp):
    bsp.set_tagsize(2)
    bsp.oblsync(0)
    bsp.send(right(bsp), 1, tag="free")
    bsp.sync()
    bsp.send(right(bsp), 1, tag=b"12")
    bsp.oblsync(1)
    assert bsp.get_tag() == b"12"


# -- errors -----------------------------------------------------------------------------------


@pytest.mark.procs(least=2)
@pytest.mark.raises(
    bsplib.SyncMismatchError,
    match=r"process(es)? \[?0\]?.*\[process 1, .*test_oblsync.py:\d+\]",
)
def test_a_message_too_many_is_an_error_that_names_sender_and_line(bsp):
    if bsp.pid == 0:
        bsp.send(1, "expected")
        bsp.send(1, "too much")
    bsp.oblsync(1 if bsp.pid == 1 else 0)


@pytest.mark.procs(least=2)
@pytest.mark.parametrize("end", ["main", "oblsync", "sync"])
@pytest.mark.raises(bsplib.SyncMismatchError, match=r"process(es)? \[?0\]?.*\[process 1, ")
def test_a_message_too_many_is_found_even_if_it_comes_late(bsp, end):
    if bsp.pid == 0:
        np.sort(np.random.default_rng(1).random(100_000))
        bsp.send(1, "nobody waits for it")
    bsp.oblsync(0)
    if end == "oblsync":
        bsp.send(right(bsp), 1)
        bsp.oblsync(1)
    elif end == "sync":
        bsp.sync()


@pytest.mark.procs(least=2)
@pytest.mark.raises(
    bsplib.SyncMismatchError, match=r"oblsync.*2.*1.*\[process 1, superstep 0, test_oblsync.py"
)
def test_fewer_messages_than_expected_are_an_error_with_both_numbers(bsp):
    if bsp.pid == 0:
        bsp.send(1, 1)
    bsp.oblsync(2 if bsp.pid == 1 else 0)


@pytest.mark.raises(bsplib.SyncMismatchError, match=r"oblsync\(1\): .*itself 2 messages")
def test_more_messages_to_itself_than_expected_are_an_error(bsp):
    bsp.send(bsp.pid, 1)
    bsp.send(bsp.pid, 2)
    bsp.oblsync(1)


@pytest.mark.raises(bsplib.SyncMismatchError, match=r"oblsync.*test_oblsync.py:\d+")
def test_a_single_process_that_waits_for_messages_it_never_sent_is_told(bsp):
    bsp.oblsync(1)


@pytest.mark.procs(least=2)
@pytest.mark.parametrize("by", ["offset", "view"])
@pytest.mark.raises(bsplib.BoundsError, match=r"^put: ")
def test_a_put_beyond_a_new_array_is_an_error_in_an_oblivious_superstep_too(bsp, by):
    x = bsp.zeros((9, 2) if bsp.pid == 0 else (3, 2))
    if bsp.pid == 0:
        bsp.put(1, 5, x, offset=6) if by == "offset" else bsp.put(1, 5, x[2:5, 1])
    bsp.oblsync(1 if bsp.pid == 1 else 0)


def test_a_message_too_many_is_found_by_the_next_oblsync():
    """PROTOCOL.md: a process looks at the posts that came late before its next post."""
    has_ended, has_posted = os.pipe(), os.pipe()

    def main(bsp):
        if bsp.pid == 0:
            os.read(has_ended[0], 1)
            bsp.send(1, "nobody waits for it")
            bsp.oblsync(0)
            os.write(has_posted[1], b"1")
        else:
            bsp.oblsync(0)
            os.write(has_ended[1], b"1")
            os.read(has_posted[0], 1)
            bsp.oblsync(0)
        bsp.sync()

    try:
        with pytest.raises(bsplib.SyncMismatchError, match=r"\[process 1, superstep 1, "):
            bsplib.run(main, nprocs=2, start_method="fork")
    finally:
        for end in (*has_ended, *has_posted):
            os.close(end)


class Interrupted:
    """Words of shared memory whose writer is interrupted after every store."""

    def __init__(self, words):
        self._words = words

    def __getitem__(self, place):
        return self._words[place]

    def __setitem__(self, place, word):
        self._words[place] = word
        time.sleep(0.02)  # the others wait in earnest by now, and wonder


@pytest.mark.lengthy
def test_a_process_that_is_interrupted_while_it_posts_is_waited_for():
    def main(bsp):
        if bsp.pid == 1:
            oblivious = bsp._port._oblivious
            oblivious._control = Interrupted(oblivious._control)
            bsp.send(0, b"late")
        bsp.oblsync(1 - bsp.pid)
        return [payload for _, _, payload in bsp.messages()]

    assert bsplib.run(main, nprocs=2) == [[b"late"], []]
