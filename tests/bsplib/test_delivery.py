"""What the end of a superstep does to the memory of one process, without any process."""

from __future__ import annotations

import marshal

import numpy as np
import pytest

from bsplib.backends.parcels import (
    Gets,
    IndexPut,
    Parcel,
    StretchGet,
    StretchPut,
    WordsPut,
    traffic_of,
)
from bsplib.core.queue import Queue
from bsplib.transfers.delivery import (
    PendingGet,
    messages_of,
    read_sources,
    write_gets,
    write_puts,
)
from bsplib.transfers.messages import decode, encode
from bsplib.transfers.outgoing import Outgoing
from bsplib.transfers.registry import Registry

HERE = 0
"""The process that reads and writes."""


class Post:
    """Staged payloads, as a backend keeps them."""

    receives_in_place = True

    def __init__(self):
        self.rooms = []
        self.landed = []
        self.received = []

    def receive(self, landings):
        self.received += landings

    def stage(self, nbytes, to):
        self.rooms.append(np.zeros(nbytes, np.uint8))
        return (to, len(self.rooms) - 1, nbytes), self.rooms[-1]

    def fetch(self, ticket):
        _, number, nbytes = ticket
        assert len(self.rooms[number]) == nbytes
        return self.rooms[number].data

    def land(self, ticket, room):
        room[:] = self.fetch(ticket)
        self.landed.append(ticket)


@pytest.fixture
def post():
    return Post()


@pytest.fixture
def registry():
    return Registry()


def from_process(source, *, puts=(), messages=()):
    out = Outgoing()
    for put, payload in puts:
        out.add_put(put, payload)
    for message in messages:
        out.add_message(*message)
    return source, out.parcel()


def flat(registration, start, *values):
    return StretchPut(registration.slot, start), np.array(values).tobytes()


def test_puts_are_written_in_the_order_in_which_they_come(registry, post):
    x = np.zeros(4, int)
    slot = registry.allocate(x, memoryview(b""))
    incoming = [
        from_process(0, puts=[flat(slot, 0, 1, 1, 1), flat(slot, 1, 2)]),
        from_process(2, puts=[flat(slot, 2, 3, 3)]),
    ]
    write_puts(registry, incoming, post)
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
    write_puts(registry, [from_process(0, puts=[flat(slot, 2, 7, 8)])], post)
    assert x.tolist() == [[0, 0, 7], [8, 0, 0]]


def test_an_index_is_assigned(registry, post):
    x = np.zeros((3, 3), int)
    slot = registry.allocate(x, memoryview(b"")).slot
    values = np.array([1, 2])
    put = IndexPut(slot, ((None, 2, None), -1), values.shape)
    write_puts(registry, [from_process(0, puts=[(put, values.tobytes())])], post)
    assert x.tolist() == [[0, 0, 1], [0, 0, 2], [0, 0, 0]]


def test_a_payload_that_was_staged_lands_in_its_destination(registry, post):
    x = np.zeros(3, int)
    slot = registry.allocate(x, memoryview(b"")).slot
    ticket, room = post.stage(24, HERE)
    room.view(int)[:] = [4, 5, 6]
    write_puts(registry, [from_process(0, puts=[(StretchPut(slot, 0), ticket)])], post)
    assert x.tolist() == [4, 5, 6]
    assert post.landed == [ticket]


def test_a_payload_for_an_array_with_gaps_is_fetched_and_rearranged(registry, post):
    x = np.zeros(6, int)
    slot = registry.allocate(x[::2], memoryview(b"")).slot
    ticket, room = post.stage(24, HERE)
    room.view(int)[:] = [4, 5, 6]
    write_puts(registry, [from_process(0, puts=[(StretchPut(slot, 0), ticket)])], post)
    assert x.tolist() == [4, 0, 5, 0, 6, 0]
    assert post.landed == []


@pytest.mark.parametrize("size", [3, 1000])
def test_sources_are_copied_when_they_are_read(registry, post, size):
    x = np.arange(size)
    slot = registry.allocate(x, memoryview(b"")).slot
    replies = read_sources(registry, Gets([slot], [1], [16]), post, 5)
    x[:] = -1
    mine = np.zeros(2, int)
    write_gets([PendingGet(5, mine, None, x.dtype, 16)], {5: replies}, post)
    assert mine.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("make", "lands"),
    [
        (lambda: np.zeros((2, 1000), int), True),
        (lambda: np.zeros((2, 2000), int)[:, ::2], False),
        (lambda: np.zeros((2, 1000), float), False),
    ],
    ids=["contiguous", "gaps", "another dtype"],
)
def test_a_large_reply_lands_in_its_destination_if_nothing_has_to_be_rearranged(post, make, lands):
    ticket, room = post.stage(16000, HERE)
    room.view(int)[:] = np.arange(2000)
    mine = make()
    write_gets([PendingGet(5, mine, None, np.dtype(int), 16000)], {5: [ticket]}, post)
    assert mine.reshape(-1).tolist() == list(range(2000))
    assert (post.landed == [ticket]) == lands


def test_destinations_are_written_in_program_order_from_whomever(registry, post):
    mine = np.zeros(2, int)
    replies = {pid: [np.array([pid, pid]).tobytes()] * 2 for pid in (0, 1)}
    order = [1, 0, 0, 1]
    gets = [PendingGet(pid, mine, None, mine.dtype, 16) for pid in order]
    write_gets(gets, replies, post)
    assert mine.tolist() == [1, 1]


def test_messages_become_readable_in_the_order_in_which_they_come(post):
    sent = [encode(number, None, post.stage, HERE) for number in range(4)]
    queue = Queue()
    queue.fill(
        messages_of([from_process(1, messages=sent[:2]), from_process(4, messages=sent[2:])])
    )
    read = [queue.take() for _ in range(len(queue))]
    assert [(source, decode(head, content, post.fetch)) for source, head, content in read] == [
        (1, 0),
        (1, 1),
        (4, 2),
        (4, 3),
    ]
    assert len(queue) == 0


def test_a_filled_queue_forgets_what_was_unread(post):
    queue = Queue()
    queue.fill(messages_of([from_process(0, messages=[encode(1, None, post.stage, HERE)])]))
    queue.fill([])
    assert (len(queue), queue.peek(), queue.nbytes()) == (0, None, 0)


def test_puts_and_messages_count_for_an_oblivious_sync_and_gets_do_not():
    out = Outgoing()
    assert out.count() == 0
    out.add_put(StretchPut(0, 0), b"12345678")
    out.add_get(StretchGet(0, 0, 8))
    out.add_message(*encode(b"123", None, Post().stage, HERE))
    assert out.count() == 2
    assert traffic_of(out.parcel()) == (8 + 3, 8)


def test_puts_of_all_kinds_keep_their_order_whatever_they_are_kept_in(registry, post):
    x = np.zeros(4, int)
    slot = registry.allocate(x, memoryview(b"")).slot
    out = Outgoing()
    one, words = np.array([1]).tobytes(), [np.array([n]).tobytes() for n in range(9)]
    out.add_put(StretchPut(slot, 0), np.array([7, 7, 7, 7]).tobytes())
    out.add_put(IndexPut(slot, (2,), ()), one)
    for place, word in ((0, 2), (0, 3), (1, 4)):
        out.add_stretch(slot, place, words[word])
    out.add_put(StretchPut(slot, 1), words[5])
    out.add_words(WordsPut(slot, None, 1), np.array([3, 3]).tobytes(), words[6] + words[8])
    assert out.count() == 7
    for parcel in (
        out.parcel(),
        Parcel.of_plain(marshal.loads(marshal.dumps(out.parcel().plain()))),
    ):
        x[:] = 0
        write_puts(registry, [(0, parcel)], post)
        assert x.tolist() == [3, 5, 1, 8]


# -- where values may be received straight away ---------------------------------------------------


def staged(post, *values):
    ticket, room = post.stage(8 * len(values), HERE)
    room.view(float)[:] = values
    return ticket


@pytest.mark.parametrize(
    ("first", "is_in_place"), [(0, False), (1, False), (2, True), (3, True), (8, True)]
)
def test_staged_puts_are_received_in_place_where_they_are_apart(post, registry, first, is_in_place):
    x = registry.push(np.zeros(10))
    registry.agree([registry.announcement()])
    puts = [
        (StretchPut(x.slot, 0), staged(post, 1, 2)),
        (StretchPut(x.slot, first), staged(post, 3, 4)),
    ]
    write_puts(registry, [from_process(1, puts=puts[:1]), from_process(2, puts=puts[1:])], post)
    assert [landing.ticket for landing in post.received] == (
        [ticket for _, ticket in puts] if is_in_place else []
    )
    assert x.array[first : first + 2].tolist() == [3, 4]


def test_nothing_is_received_in_place_under_a_small_put(post, registry):
    x = registry.push(np.zeros(10))
    registry.agree([registry.announcement()])
    puts = [
        (StretchPut(x.slot, 0), staged(post, 1, 2)),
        (StretchPut(x.slot, 1), np.ones(1).tobytes()),
    ]
    write_puts(registry, [from_process(1, puts=puts)], post)
    assert post.received == []
    assert x.array[:3].tolist() == [1, 1, 0]
