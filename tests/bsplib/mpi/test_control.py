"""Messages of control, and who may connect to the hub."""

from __future__ import annotations

import os
import socket
import threading

import pytest

from bsplib.backends.mpi import control
from bsplib.backends.mpi.control import Stream
from bsplib.backends.mpi.hub import Hub
from bsplib.backends.mpi.watcher import Hub as Address
from bsplib.backends.mpi.watcher import Lost, Page, connected
from bsplib.errors import StartError


@pytest.fixture
def pair():
    plugs = socket.socketpair()
    yield tuple(Stream(plug) for plug in plugs)
    for plug in plugs:
        plug.close()


@pytest.fixture
def hub():
    made = Hub(2)
    yield made
    made.close()


def polled(hub, over):
    """Poll a hub in a thread until an event."""

    def poll():
        while not over.is_set():
            hub.wait(0.05)

    thread = threading.Thread(target=poll)
    thread.start()
    return thread


def test_messages_of_all_sizes_arrive_whole_and_in_order(pair):
    sizes = [0, 1, 20, 1 << 12, 3 << 20, 5, (1 << 20) + 1]
    contents = [os.urandom(size) for size in sizes]
    for number, content in enumerate(contents):
        pair[0].put(number + 1, b"", content[:3], content[3:])
    came = []
    while len(came) < len(sizes):
        pair[0].flush()
        came += pair[1].take()
    assert came == [(number + 1, content) for number, content in enumerate(contents)]


def test_a_long_message_comes_in_parts_where_they_are_passed_on():
    plugs = socket.socketpair()
    sends, takes = Stream(plugs[0]), Stream(plugs[1], whole=False)
    sends.put(control.REPORT, b"head", bytes(3 << 20))
    came = []
    while not came or came[-1].kind != control.REPORT:
        sends.flush()
        came += takes.take()
    assert {message.kind for message in came[:-1]} == {control.PART}
    assert max(len(message.content) for message in came) <= 1 << 20
    assert sum(len(message.content) for message in came) == (3 << 20) + 4
    for plug in plugs:
        plug.close()


def test_the_end_of_the_other_side_is_told(pair):
    pair[0].close()
    with pytest.raises(EOFError):
        pair[1].take()


def test_the_page_counts_the_barrier_before_main():
    page = Page()
    page.begun[0] = 1
    assert page.superstep == 0
    page.begun[0] = 8
    assert page.superstep == 7
    page.begin()
    assert page.superstep == 0


def test_a_watcher_that_knows_the_key_is_taken_in(hub):
    over = threading.Event()
    thread = polled(hub, over)
    stream = connected(1, 4711, hub.address())
    over.set()
    thread.join()
    assert (hub.connected(), hub.os_pid(1)) == ([1], 4711)
    assert hub.hosts == {1: socket.gethostname()}
    stream.close()


def test_a_wrong_key_is_refused_on_both_sides(hub):
    over = threading.Event()
    thread = polled(hub, over)
    addresses = hub.address().addresses
    with pytest.raises(Lost):
        connected(1, 4711, Address(addresses, control.challenge()))
    over.set()
    thread.join()
    assert hub.connected() == []


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.0\r\n\r\n",
        bytes([control.HELLO, *(0,) * 7, 64, *(0,) * 64]),
        bytes([control.END, *(0,) * 8]),
        bytes([control.HELLO, *(255,) * 8]),
    ],
    ids=["HTTP", "no proof", "no hello", "long"],
)
def test_somebody_else_is_not_listened_to(hub, data):
    address = hub.address().addresses[-1]
    with socket.create_connection(address) as plug:
        plug.sendall(data)
        for _ in range(20):
            hub.wait(0.01)
        assert hub.connected() == []
        plug.settimeout(5)
        while plug.recv(4096):  # the challenge, then the end
            pass


def test_too_many_ranks_for_this_process_are_refused_before_the_start():
    words = r"run: 1000000000 processes need \d+ file descriptors, and this process may open"
    with pytest.raises(StartError, match=words):
        Hub(1_000_000_000)
