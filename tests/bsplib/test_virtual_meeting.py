"""The meetings of virtual processors, without a backend around them."""

from __future__ import annotations

import greenlet
import numpy as np
import pytest

from bsplib.core.clock import Clock
from bsplib.core.switch import Process, Rounds
from bsplib.core.virtual import Gathering, VirtualMeeting

HAS_GET, END = 4, 2
PRICE_NS, NOTHING_NS = 5000, 1000


class Backend:
    """What is rare, for one process: it notes what it is asked."""

    def __init__(self, asked):
        self.asked = asked

    def price_of_nothing(self):
        self.asked.append("price of nothing")
        return NOTHING_NS

    def price(self):
        self.asked.append("price")
        return PRICE_NS

    def after_posts(self):
        self.asked.append("after posts")

    def prepare(self):
        self.asked.append("prepare")

    def check_current(self):
        raise RuntimeError("another one runs")

    def check_together(self):
        raise RuntimeError("apart")


class Group:
    """A group of virtual processors that call a function each, with their meetings."""

    def __init__(self, nprocs, body):
        hub = greenlet.getcurrent()
        self.rounds = Rounds(np.random.default_rng(1), hub)
        self.gathering = Gathering(nprocs)
        self.asked = []
        self.clocks = [Clock() for _ in range(nprocs)]
        self.processes = [
            Process(greenlet.greenlet(lambda pid=pid: body(self, pid), hub))
            for pid in range(nprocs)
        ]
        self.meetings = [
            VirtualMeeting(
                pid,
                self.gathering,
                self.processes[pid],
                self.clocks[pid],
                self.rounds,
                Backend(self.asked),
                "in a test",
            )
            for pid in range(nprocs)
        ]
        self.rounds.wake(self.processes)

    def run(self):
        self.rounds.run()
        assert all(process.greenlet.dead for process in self.processes)
        return self


def test_a_meeting_ends_at_the_latest_arrival_and_its_price():
    seen = []

    def body(group, pid):
        clock, meeting = group.clocks[pid], group.meetings[pid]
        clock.charge((pid + 1) * 1e-6)
        seen.append(meeting.meet(0, 0, 0))
        assert (clock.now(), meeting.released) == (3000 + NOTHING_NS, 3000)

    assert Group(3, body).run().asked == ["price of nothing"]
    assert seen == [True] * 3


def test_only_the_first_meeting_of_a_superstep_has_a_price():
    def body(group, pid):
        meeting = group.meetings[pid]
        for superstep in range(1, 4):
            for _ in range(3):
                meeting.meet(0, 0, 0)
            assert group.clocks[pid].now() == superstep * NOTHING_NS
            meeting.end_superstep()

    assert Group(4, body).run().asked == ["price of nothing"]  # once for all supersteps


def test_the_barrier_before_main_ends_at_time_0():
    def body(group, pid):
        meeting, clock = group.meetings[pid], group.clocks[pid]
        clock.charge(0.1)
        meeting.is_before_main = True
        meeting.meet(0, 0, 0)
        assert clock.now() == clock.computed_ns() == 0
        meeting.end_superstep()
        meeting.meet(0, 0, 0)
        assert clock.now() == NOTHING_NS

    Group(2, body).run()


FLAGS = {"a head": [0, 0], "another flag": [0, 16], "gets on all": [HAS_GET, HAS_GET]}


@pytest.mark.parametrize("what", FLAGS)
def test_a_post_with_something_is_new_to_all(what):
    def body(group, pid):
        head = int(what == "a head" and pid == 1)
        flags = FLAGS[what][pid]
        meeting = group.meetings[pid]
        assert not meeting.meet(flags, head, 0)
        assert group.clocks[pid].now() == PRICE_NS
        assert [meeting.flags_of(other) for other in (0, 1)] == FLAGS[what]
        assert [meeting.head_of(other) for other in (0, 1)] == [0, what == "a head"]
        meeting.end_superstep()
        assert meeting.meet(0, 0, 0)

    assert Group(2, body).run().asked == ["price", "price of nothing"]


def test_a_process_reads_posts_while_another_one_has_posted_again():
    def body(group, pid):
        meeting = group.meetings[pid]
        for superstep in range(20):
            meeting.meet(superstep % 8, 0, 0)
            assert [meeting.flags_of(other) for other in range(3)] == [superstep % 8] * 3
            assert [meeting.superstep_of(other) for other in range(3)] == [superstep + 1] * 3
            meeting.end_superstep()

    Group(3, body).run()


def test_posts_of_different_supersteps_are_an_error_on_all():
    def body(group, pid):
        meeting = group.meetings[pid]
        if pid == 2:
            meeting.end_superstep()
        with pytest.raises(RuntimeError, match="apart"):
            meeting.meet(0, 0, 0)

    Group(3, body).run()


def test_another_virtual_processor_cannot_post():
    def body(group, pid):
        if pid == 0:
            with pytest.raises(RuntimeError, match="another one runs"):
                group.meetings[1].meet(0, 0, 0)
        group.meetings[pid].meet(0, 0, 0)

    Group(2, body).run()


@pytest.mark.parametrize(("flags", "doing"), [(0, "in a test"), (END, "at the end of main")])
def test_a_process_that_waits_says_where(flags, doing):
    def body(group, pid):
        if pid == 0:
            group.meetings[pid].meet(flags, 0, 0)

    group = Group(2, body)
    group.rounds.run()
    assert group.processes[0].doing == doing


def test_when_the_run_is_over_a_process_posts_and_goes_no_further():
    def body(group, pid):
        group.meetings[pid].meet(0, 0, 0)
        group.asked.append("went on")

    group = Group(1, body)
    group.rounds.is_over = True
    group.rounds.run()
    assert group.asked == []
    assert group.processes[0].doing == "stopped"


def test_what_is_rare_is_asked_only_where_it_is_needed():
    def body(group, pid):
        meeting = group.meetings[pid]
        meeting.looks_back = pid == 0
        group.processes[pid].left = ["a group"] if pid == 1 else []
        meeting.meet(HAS_GET, 0, 0)

    group = Group(2, body).run()
    assert sorted(group.asked) == ["after posts", "prepare", "price"]
