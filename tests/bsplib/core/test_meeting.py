"""Meetings over shared memory look at words, and store them, in the order that PROTOCOL.md argues.

Two processes meet here, in two threads, by the interpreted core. Every access is noted.
"""

from __future__ import annotations

import threading

import numpy as np
import pytest

from tests.core_modules import interpreted

WORDS = 128
"""Of each process: two cells of 32 words, DELIVERED, WAITED, ASLEEP and its futex."""
CELLS, DELIVERED, WAITED, ASLEEP, FUTEX = (0, 32), 72, 80, 88, 96
NAMES = {0: "word", 32: "word", DELIVERED: "DELIVERED", WAITED: "WAITED", ASLEEP: "ASLEEP"}
NAMES |= {cell + 1: "stamp" for cell in CELLS} | {cell + 2: "head" for cell in CELLS}
ANNOUNCES, ANNOUNCED = ("word", "DELIVERED"), ("head", "stamp")
HEAD = 2 << 60 | 64


class MeetingOwner:
    """The rare parts of a meeting, for two processes that are there already."""

    def __init__(self, other, addresses):
        self.other, self.addresses = other, addresses

    def prepare(self):
        self.meeting.has_to_prepare = False

    def find_others(self):
        self.meeting.know(self.other, *self.addresses)

    def wait_for(self, pid, cell, floor):
        while not self.meeting._waiter.arrives(cell, floor):
            pass


class Noted:
    """The accesses of the thread that runs, as (operation, process, name of the word)."""

    def __init__(self, base):
        self.base = base
        self.events = {}

    def note(self, operation, address=None):
        pid, word = (None, 0) if address is None else divmod((address - self.base) // 8, WORDS)
        name = "" if address is None else NAMES.get(word, "")
        self.events.setdefault(threading.get_ident(), []).append((operation, pid, name))

    def around(self, name, function):
        def noted(*args):
            self.note(name, *args[:1])
            return function(*args)

        return noted


@pytest.fixture
def noted(monkeypatch):
    memory = np.zeros(2 * WORDS, np.uint64)
    found = Noted(memory.__array_interface__["data"][0])
    found.memory = memory
    module = interpreted("core.meeting")
    for name in ("load", "store", "peek", "poke", "full_fence"):
        monkeypatch.setattr(module, name, found.around(name, getattr(module, name)))
    return found


def addresses_of(noted, pid):
    start = noted.base + 8 * WORDS * pid
    return [start + 8 * cell for cell in CELLS], start + 8 * DELIVERED


def waiter_of(noted, pid, *, posts_need_fence=False, spins=0):
    starts = [noted.base + 8 * WORDS * each for each in range(2)]
    return interpreted("core.meeting").Waiter(
        starts[pid] + 8 * WAITED,
        [start + 8 * ASLEEP for start in starts],
        [start + 8 * FUTEX for start in starts],
        spins,
        64,
        True,
        posts_need_fence,
        lambda: None,
    )


def meet(noted, act, **options):
    """Let two processes act with a meeting each; return what each of them has noted, by pid."""
    events = [None, None]

    def be(pid):
        owner = MeetingOwner(1 - pid, addresses_of(noted, 1 - pid))
        waiter = waiter_of(noted, pid, **options)
        meeting = interpreted("core.meeting").SharedMeeting(pid, 2, 2, owner, waiter)
        owner.meeting = meeting
        meeting.enter(*addresses_of(noted, pid))
        act(meeting, pid)
        events[pid] = noted.events.pop(threading.get_ident())

    threads = [threading.Thread(target=be, args=(pid,)) for pid in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return events


def three_supersteps(meeting, pid):
    for number in range(3):
        head = HEAD if (number + pid) % 2 else 0
        assert meeting.meet(0, head, 7 + pid) is False
        assert [meeting.head_of(each) for each in (pid, 1 - pid)] == [head, HEAD - head]
        assert meeting.released == 8
        meeting.end_superstep()
        while not meeting.has_delivered(1 - pid):
            pass


def test_what_a_word_announces_is_written_before_a_store_with_release(noted):
    for pid, events in enumerate(meet(noted, three_supersteps)):
        written = [event for event in events if event[1] == pid and event[0] in ("store", "poke")]
        assert {what for what, _, name in written if name in ANNOUNCES} == {"store"}
        for number, (_, _, name) in enumerate(written):
            if name in ANNOUNCED:
                assert "word" in [later for _, _, later in written[number:]]


def test_what_a_word_announces_is_read_after_a_load_with_acquire(noted):
    for pid, events in enumerate(meet(noted, three_supersteps)):
        looks = [event for event in events if event[1] == 1 - pid]
        assert {what for what, _, name in looks if name == "DELIVERED"} == {"load"}
        loaded = 0
        for what, _, name in looks:
            loaded += (what, name) == ("load", "word")
            assert name not in ANNOUNCED or loaded > 0
        posts = sum(event == ("store", pid, "word") for event in events)
        assert loaded >= posts == 3


def test_a_process_looks_at_no_cell_before_it_has_posted_itself(noted):
    for pid, events in enumerate(meet(noted, three_supersteps)):
        first_post = events.index(("store", pid, "word"))
        assert all(whose != 1 - pid for _, whose, _ in events[:first_post])


@pytest.mark.parametrize("posts_need_fence", [False, True])
def test_a_post_is_fenced_from_the_look_at_waited_where_a_sleeper_cannot_fence_it(
    noted, posts_need_fence
):
    every = meet(noted, three_supersteps, posts_need_fence=posts_need_fence)
    for pid, events in enumerate(every):
        looks = [number for number, event in enumerate(events) if event == ("peek", pid, "WAITED")]
        assert len(looks) == 3
        before = [events[number - 1] for number in looks]
        fenced = ("full_fence", None, "")
        assert before == [fenced if posts_need_fence else ("store", pid, "word")] * 3


def test_who_wakes_others_looks_who_is_asleep_behind_a_fence(noted):
    waiter = waiter_of(noted, 0)
    noted.memory[WORDS + ASLEEP] = 1
    waiter.wake()
    events = noted.events.pop(threading.get_ident())
    assert events[:3] == [("store", 0, "WAITED"), ("full_fence", None, ""), ("peek", 0, "ASLEEP")]
    assert noted.memory[WORDS + FUTEX] == 1  # it has changed, so that process 1 wakes
    assert noted.memory[FUTEX] == 0


def test_a_process_whose_core_was_needed_looks_all_the_same_but_gives_way_no_more(
    noted, monkeypatch
):
    """Others that have a core of their own come sooner than a process that sleeps is woken."""
    module = interpreted("core.meeting")
    looks = iter([0, 0, 0, 1] + 6 * [0])
    monkeypatch.setattr(module, "load", lambda _: next(looks))
    monkeypatch.setattr(module, "give_way", lambda: pytest.fail("it gives way"))
    waiter = waiter_of(noted, 0, spins=5)
    waiter.pause.begin()
    assert waiter.arrives(0, 1) is True
    assert waiter.arrives(0, 1) is False
    assert next(looks, None) is None
