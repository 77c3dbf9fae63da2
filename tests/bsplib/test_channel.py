"""Messages through a pipe arrive whole, one after the other, whatever their length."""

from __future__ import annotations

import multiprocessing
import os
import struct
import threading
from types import SimpleNamespace

import pytest

from bsplib.backends.shm import channel
from bsplib.backends.shm.channel import Channel
from bsplib.backends.shm.child import Idling

LENGTHS = (0, 1, 8, (1 << 14) - 1, 1 << 14, (1 << 14) + 1, 1 << 16, (1 << 20) + 3, 5_000_000)


@pytest.fixture
def ends():
    """The two ends of a pipe."""
    made = [Channel(end) for end in multiprocessing.Pipe()]
    yield made
    for each in made:
        each.close()


@pytest.mark.parametrize("length", LENGTHS)
def test_a_message_arrives_as_it_was_sent(ends, length):
    message = os.urandom(length)
    sender = threading.Thread(target=ends[0].send, args=(message,))
    sender.start()
    assert ends[1].receive() == message
    sender.join()


def test_messages_that_were_sent_at_once_arrive_one_by_one(ends):
    for number in range(100):
        ends[0].send(b"x" * number)
    assert [len(ends[1].receive()) for _ in range(100)] == list(range(100))


def test_a_message_that_is_already_read_has_come(ends):
    assert not ends[1].has_come()
    ends[0].send(b"first")
    ends[0].send(b"second")
    assert ends[1].has_come()
    assert ends[1].receive() == b"first"
    assert ends[1].has_come()
    assert ends[1].receive() == b"second"
    assert not ends[1].has_come()


@pytest.mark.parametrize("cut", [0, 3, 8, 20])
def test_a_message_that_is_cut_short_is_an_error(ends, cut):
    message = struct.pack("!Q", 1 << 20) + b"the first bytes of many"
    os.write(ends[0].fileno(), message[:cut])
    ends[0].close()
    with pytest.raises(EOFError):
        ends[1].receive()


def test_a_header_that_comes_in_two_parts_is_read(ends):
    header = struct.pack("!Q", 3)
    os.write(ends[0].fileno(), header[:5])
    sender = threading.Timer(0.05, os.write, (ends[0].fileno(), header[5:] + b"abc"))
    sender.start()
    assert ends[1].receive() == b"abc"
    sender.join()


class Yields:
    """The clock and the yields of a process; each yield takes some time."""

    def __init__(self, monkeypatch, ends):
        self.count, self.now, self.takes = 0, 0, 1000
        self.message_at = None
        self._ends = ends
        monkeypatch.setattr(channel.os, "sched_yield", self._yield)
        clock = SimpleNamespace(perf_counter_ns=lambda: self.now)
        monkeypatch.setattr(channel, "time", clock)

    def _yield(self):
        self.count += 1
        self.now += self.takes
        if self.count == self.message_at:
            self._ends[0].send(b"job")


@pytest.fixture
def yields(monkeypatch, ends):
    return Yields(monkeypatch, ends)


def test_looking_ends_when_a_message_comes_or_after_some_yields(ends, yields):
    yields.message_at = 13
    assert ends[1].comes(10, 5000)
    assert yields.count == 10
    assert ends[1].comes(10, 5000)
    assert yields.count == 13
    assert ends[1].receive() == b"job"
    assert ends[1].comes(0, 5000)
    assert yields.count == 13


def test_looking_ends_when_a_yield_took_long(ends, yields):
    yields.takes = 5001
    assert not ends[1].comes(10, 5000)
    assert yields.count == 1


def test_a_process_whose_yields_take_long_sleeps_for_more_and_more_runs(ends, yields):
    idling = Idling(10)

    def runs_until_it_yields():
        before, runs = yields.count, 0
        while yields.count == before:
            idling.until_it_comes(ends[1])
            runs += 1
        return runs

    yields.takes = 1_000_000
    assert [runs_until_it_yields() for _ in range(8)] == [1, 17, 33, 65, 129, 257, 513, 1025]
    assert runs_until_it_yields() == 1025
    yields.takes = 1000
    assert [runs_until_it_yields() for _ in range(3)] == [1025, 1, 1]
    yields.takes = 1_000_000
    assert [runs_until_it_yields() for _ in range(2)] == [1, 17]


def test_a_process_that_may_not_yield_does_not(ends, yields):
    Idling(0).until_it_comes(ends[1])
    assert yields.count == 0
