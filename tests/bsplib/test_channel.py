"""Messages through a pipe arrive whole, one after the other, whatever their length."""

from __future__ import annotations

import multiprocessing
import os
import struct
import threading

import pytest

from bsplib.backends.shm.channel import Channel

LENGTHS = (0, 1, 8, (1 << 14) - 1, 1 << 14, (1 << 14) + 1, 1 << 16, (1 << 20) + 3, 5_000_000)


@pytest.fixture
def ends():
    """The two ends of a pipe."""
    made = [Channel(end) for end in multiprocessing.Pipe()]
    yield made
    for each in made:
        each.close()


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
