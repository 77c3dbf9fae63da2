"""When frames arrive, in a time that the test sets."""

from __future__ import annotations

import pytest

from tests.hosts import link
from tests.hosts.switch import Links

RATE = 8000.0
"""Bits a second: 1000 bytes."""
DELAY = 5.0
TO_ALL = b"\xff" * 6


def mac(host):
    return link.MAC_PREFIX + bytes([host + 1])


def frame(source, target, nbytes=1000, *, start=b"\0\0"):
    """A frame with a number of bytes on the link, of no protocol that the switch knows."""
    to = TO_ALL if target is None else mac(target)
    head = bytes(link.HEADER_SIZE) + to + mac(source) + start
    return head.ljust(link.HEADER_SIZE + nbytes, b"\0")


def tcp(source, target, *, nbytes=0, flags=0x10):
    ip = bytes([0x45, 0]) + (40 + nbytes).to_bytes(2) + bytes(5) + b"\x06" + bytes(10)
    head = bytes(12) + bytes([0x50, flags]) + bytes(6)
    return frame(source, target, 54 + nbytes, start=b"\x08\x00" + ip + head)


@pytest.fixture
def links():
    return Links(3, RATE, DELAY)


def arrivals(links, until=100.0):
    """(receiver, arrival) of all frames, in order."""
    found = []
    while (now := links.next_arrival()) is not None and now <= until:
        found += [(target, now) for target, _ in links.arrived(now)]
    return found


def test_a_frame_takes_its_length_over_the_rate_and_then_the_delay(links):
    links.send(2.0, 0, frame(0, 1))
    assert arrivals(links) == [(1, 2.0 + 1.0 + DELAY)]


def test_frames_of_one_sender_follow_each_other_whoever_receives_them(links):
    links.send(0.0, 0, frame(0, 1))
    links.send(0.0, 0, frame(0, 2))
    assert arrivals(links) == [(1, 1.0 + DELAY), (2, 2.0 + DELAY)]


def test_frames_to_one_receiver_follow_each_other_whoever_sends_them(links):
    links.send(0.0, 0, frame(0, 2))
    links.send(0.0, 1, frame(1, 2))
    assert arrivals(links) == [(2, 1.0 + DELAY), (2, 2.0 + DELAY)]


def test_an_acknowledgement_overtakes_what_waits(links):
    links.send(0.0, 0, frame(0, 1))
    links.send(0.0, 0, tcp(0, 1))
    assert arrivals(links) == [(1, 0.054 + DELAY), (1, 1.0 + DELAY)]


@pytest.mark.parametrize("more", [{"nbytes": 1}, {"flags": 0x11}, {"flags": 0x02}])
def test_what_carries_data_or_opens_or_closes_a_connection_overtakes_nothing(links, more):
    links.send(0.0, 0, frame(0, 1))
    links.send(0.0, 0, tcp(0, 1, **more))
    assert arrivals(links)[0] == (1, 1.0 + DELAY)


def test_a_cut_loses_what_is_on_its_way(links):
    links.send(0.0, 0, frame(0, 1))
    links.cut(0)
    assert arrivals(links) == []


def test_a_mended_host_receives_again(links):
    links.cut(1)
    links.mend(1)
    links.send(0.0, 0, frame(0, 1))
    assert [target for target, _ in arrivals(links)] == [1]
