"""Messages of control: what a watcher passes on, and what it says itself."""

from __future__ import annotations

import os
import socket

import pytest

from bsplib.backends.mpi import control
from bsplib.backends.mpi.control import Message, Stream

LONG = os.urandom(5 << 19)
"""A content of several parts."""


@pytest.fixture
def connection():
    """Makes connections; gives both ends of one, as Streams."""
    plugs = []

    def connection(*, whole):
        plugs.extend(pair := socket.socketpair())
        return Stream(pair[0]), Stream(pair[1], whole=whole)

    yield connection
    for plug in plugs:
        plug.close()


def received(source, target, count):
    """Return the next messages of a connection, all of whose bytes have been put into it."""
    found = []
    while len(found) < count:
        source.flush()
        found += target.take()
    return found


def test_a_long_message_comes_whole(connection):
    source, target = connection(whole=True)
    source.put(control.REPORT, control.NUMBER.pack(7), LONG)
    source.put(control.REPORT, b"")
    expected = [Message(control.REPORT, control.NUMBER.pack(7) + LONG), (control.REPORT, b"")]
    assert received(source, target, 2) == expected


def test_what_a_watcher_says_may_stand_between_the_parts_that_it_passes_on(connection):
    rank, watcher = connection(whole=False)
    out, hub = connection(whole=True)
    rank.put(control.REPORT, LONG)
    parts = received(rank, watcher, 3)
    assert [part.kind for part in parts] == [control.PART, control.PART, control.REPORT]
    pong = Message(control.PONG, control.STATE.pack(False, 3))
    for message in (parts[0], pong, parts[1], pong, parts[2]):
        out.put(*message)
    assert received(out, hub, 3) == [pong, pong, Message(control.REPORT, LONG)]
