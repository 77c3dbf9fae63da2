"""What the end of a superstep does to the memory of one process, without any process."""

from __future__ import annotations

import numpy as np
import pytest

from bsplib.transfers.delivery import (
    Get,
    messages_of,
    read_sources,
    write_gets,
    write_puts,
)
from bsplib.transfers.messages import Queue, decode, encode
from bsplib.transfers.outgoing import Outgoing, parcel_bytes
from bsplib.transfers.registry import Registry


class Post:
    """Staged payloads, as a backend keeps them."""

    def __init__(self):
        self.rooms = []

    def stage(self, nbytes):
        self.rooms.append(np.zeros(nbytes, np.uint8))
        return (len(self.rooms) - 1, nbytes), self.rooms[-1]

    def fetch(self, ticket):
        assert len(self.rooms[ticket[0]]) == ticket[1]
        return self.rooms[ticket[0]].data


@pytest.fixture
def post():
    return Post()


@pytest.fixture
def registry():
    return Registry()


def from_process(source, *, puts=(), messages=()):
    out = Outgoing()
    for put in puts:
        out.add_put(put)
    for message in messages:
        out.add_message(message)
    return source, out.parcel()


def flat(registration, start, *values):
    return registration.slot, start, np.array(values).tobytes()


def test_puts_are_written_in_the_order_in_which_they_come(registry, post):
    x = np.zeros(4, int)
    slot = registry.allocate(x, memoryview(b""))
    incoming = [
        from_process(0, puts=[flat(slot, 0, 1, 1, 1), flat(slot, 1, 2)]),
        from_process(2, puts=[flat(slot, 2, 3, 3)]),
    ]
    write_puts(registry, incoming, post.fetch)
    assert x.tolist() == [1, 2, 3, 3]


@pytest.mark.parametrize(
    "make",
    [
        lambda: np.zeros((2, 3), int),
        lambda: np.zeros((2, 3), int, order="F"),
        lambda: np.zeros((4, 6), int)[::2, ::2],
        lambda: np.zeros((2, 3), int)[::-1, ::-1],
    ],
    ids=["C", "F", "gaps", "backwards"],
)
def test_a_stretch_is_in_c_order_whatever_the_strides(registry, post, make):
    x = make()
    slot = registry.allocate(x, memoryview(b""))
    write_puts(registry, [from_process(0, puts=[flat(slot, 2, 7, 8)])], post.fetch)
    assert x.tolist() == [[0, 0, 7], [8, 0, 0]]


def test_an_index_is_assigned(registry, post):
    x = np.zeros((3, 3), int)
    slot = registry.allocate(x, memoryview(b"")).slot
    values = np.array([1, 2])
    put = (slot, ((None, 2, None), -1), values.shape, values.tobytes())
    write_puts(registry, [from_process(0, puts=[put])], post.fetch)
    assert x.tolist() == [[0, 0, 1], [0, 0, 2], [0, 0, 0]]


def test_a_payload_that_was_staged_is_fetched(registry, post):
    x = np.zeros(3, int)
    slot = registry.allocate(x, memoryview(b"")).slot
    ticket, room = post.stage(24)
    room.view(int)[:] = [4, 5, 6]
    write_puts(registry, [from_process(0, puts=[(slot, 0, ticket)])], post.fetch)
    assert x.tolist() == [4, 5, 6]


@pytest.mark.parametrize("size", [3, 1000])
def test_sources_are_copied_when_they_are_read(registry, post, size):
    x = np.arange(size)
    slot = registry.allocate(x, memoryview(b"")).slot
    replies = read_sources(registry, [(slot, 1, 2, 16)], post.stage, post.fetch)
    x[:] = -1
    mine = np.zeros(2, int)
    write_gets([Get(5, mine, None, x.dtype, 16)], {5: replies}, post.fetch)
    assert mine.tolist() == [1, 2]


def test_destinations_are_written_in_program_order_from_whomever(registry, post):
    mine = np.zeros(2, int)
    replies = {pid: [np.array([pid, pid]).tobytes()] * 2 for pid in (0, 1)}
    order = [1, 0, 0, 1]
    gets = [Get(pid, mine, None, mine.dtype, 16) for pid in order]
    write_gets(gets, replies, post.fetch)
    assert mine.tolist() == [1, 1]


def test_messages_become_readable_in_the_order_in_which_they_come(post):
    wires = [encode(number, None, post.stage) for number in range(4)]
    queue = Queue()
    queue.fill(
        messages_of([from_process(1, messages=wires[:2]), from_process(4, messages=wires[2:])])
    )
    read = [queue.take() for _ in range(len(queue))]
    assert [(source, decode(wire, post.fetch)) for source, wire in read] == [
        (1, 0),
        (1, 1),
        (4, 2),
        (4, 3),
    ]
    assert len(queue) == 0


def test_a_filled_queue_forgets_what_was_unread(post):
    queue = Queue()
    queue.fill(messages_of([from_process(0, messages=[encode(1, None, post.stage)])]))
    queue.fill([])
    assert (len(queue), queue.peek(), queue.nbytes()) == (0, None, 0)


def test_puts_and_messages_count_for_an_oblivious_sync_and_gets_do_not():
    out = Outgoing()
    assert out.count() == 0
    out.add_put((0, 0, b"12345678"))
    out.add_get((0, 0, 1, 8))
    out.add_message(encode(b"123", None, Post().stage))
    assert out.count() == 2
    assert parcel_bytes(out.parcel()) == (8 + 3, 8)
