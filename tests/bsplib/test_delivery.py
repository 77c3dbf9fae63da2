"""What the end of a superstep does to the memory of one process, without any process."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from bsplib.core.atomics import address_of, bytes_at, copy, write_bytes
from bsplib.core.entries import (
    Arrivals,
    PrivateMemory,
    SendBuffer,
    add_amounts,
    by_receiver,
    calls_between,
    entries_at,
    entries_between,
    index_bytes,
)
from bsplib.core.kinds import (
    ASK,
    INDICES_SHIFT,
    KIND_SHIFT,
    MESSAGE,
    NOTICE,
    PLACED,
    PUT,
    REPLY,
    STAGED_ASK,
    STAGED_MESSAGE,
    STAGED_PLACED,
    STAGED_PUT,
    STAGED_REPLY,
    STRIDED,
)
from bsplib.core.meeting import Meeting
from bsplib.core.queue import Queue
from bsplib.errors import BoundsError
from bsplib.transfers.arrival_checks import check_arrivals
from bsplib.transfers.delivery import (
    PendingGet,
    parts_of,
    read_source,
    write_gaps,
    write_placed,
    write_strided,
)
from bsplib.transfers.descriptions import (
    ContiguousGet,
    ContiguousPut,
    ElementsGet,
    ElementsPut,
    IndexGet,
    IndexPut,
    packed,
    unpacked,
)
from bsplib.transfers.direct_receipt import is_put, landings_of_gets, landings_of_puts
from bsplib.transfers.irregular import encode_op
from bsplib.transfers.registry import Registry, agreement_of

SHAPES = {
    "C": lambda: np.zeros((2, 3), int),
    "F": lambda: np.zeros((2, 3), int, order="F"),
    "gaps": lambda: np.zeros((4, 6), int)[::2, ::2],
    "backwards": lambda: np.zeros((2, 3), int)[::-1, ::-1],
}
WITH_STRIDES = pytest.mark.parametrize("make", SHAPES.values(), ids=SHAPES)


@pytest.fixture
def registry():
    return Registry()


def data_of(*values):
    return np.array(values).view(np.uint8)


def words(indices, *values):
    """Return the data of an entry that begins with indices, as a sender lays them out."""
    memory = np.zeros(index_bytes(len(indices)) + 8 * len(values), np.uint8)
    memory[: 8 * len(indices)] = data_of(*indices)
    memory[index_bytes(len(indices)) :] = data_of(*values)
    return memory


# -- puts -----------------------------------------------------------------------------------------


@WITH_STRIDES
def test_a_contiguous_part_is_in_c_order_whatever_the_strides(registry, make):
    x = make()
    registration = registry.allocate(x, memoryview(b""))
    write_gaps(registration, 2, data_of(7, 8))
    assert x.tolist() == [[0, 0, 7], [8, 0, 0]]


@WITH_STRIDES
def test_a_described_contiguous_part_is_written_as_any_other(registry, make):
    x = make()
    slot = registry.allocate(x, memoryview(b"")).slot
    write_placed(registry, packed(ContiguousPut(slot, 2)), 0, data_of(7, 8))
    assert x.tolist() == [[0, 0, 7], [8, 0, 0]]


@WITH_STRIDES
def test_a_strided_view_is_in_c_order_whatever_the_strides(registry, make):
    x = make()
    registration = registry.allocate(x, memoryview(b""))
    column = np.array([8, 8, 1, 2, 24])  # blocks of 8 bytes from byte 8 on, 2 of them, 24 apart
    write_strided(registration, column.tobytes(), data_of(7, 8))
    assert x.tolist() == [[0, 7, 0], [0, 8, 0]]


def test_an_index_is_assigned(registry):
    x = np.zeros((3, 3), int)
    slot = registry.allocate(x, memoryview(b"")).slot
    put = IndexPut(slot, ((None, 2, None), -1), (2,))
    write_placed(registry, packed(put), 0, data_of(1, 2))
    assert x.tolist() == [[0, 0, 1], [0, 0, 2], [0, 0, 0]]


@pytest.mark.parametrize(("op", "after"), [(None, [0, 6, 0, 4]), (np.add, [0, 11, 0, 4])])
def test_words_are_written_or_combined_in_their_order(registry, op, after):
    x = np.zeros(4, int)
    slot = registry.allocate(x, memoryview(b"")).slot
    put = ElementsPut(slot, encode_op("put_at", op, x.dtype))
    write_placed(registry, packed(put), 3, words([1, 3, 1], 5, 4, 6))
    assert x.tolist() == after


@pytest.mark.parametrize("number", [1, 2, 3])
def test_values_are_found_behind_any_number_of_indices(number):
    indices = [*range(5, 5 + number)]
    where, values = parts_of(number, words(indices, *[-1] * number))
    assert where.tolist() == indices
    assert np.frombuffer(values, int).tolist() == [-1] * number


# -- gets -----------------------------------------------------------------------------------------


def read(registry, get, indices=b""):
    memory = np.zeros(get.nbytes, np.uint8)
    read_source(registry, get, indices, memory)
    return memory


@WITH_STRIDES
def test_sources_are_copied_in_c_order_when_they_are_read(registry, make):
    x = make()
    x[...] = np.arange(6).reshape(2, 3)
    slot = registry.allocate(x, memoryview(b"")).slot
    contiguous = read(registry, ContiguousGet(slot, 2, 16))
    column = read(registry, IndexGet(slot, ((None, None, None), 1), 16))
    single = read(registry, ElementsGet(slot, 24), data_of(5, 0, 5))
    x[...] = -1
    assert [each.view(int).tolist() for each in (contiguous, column, single)] == [
        [2, 3],
        [1, 4],
        [5, 0, 5],
    ]


@pytest.mark.parametrize(
    ("make", "takes_bytes"),
    [
        (lambda: np.zeros((2, 3), int), True),
        (lambda: np.zeros((2, 6), int)[:, ::2], False),
        (lambda: np.zeros((2, 3), float), False),
    ],
    ids=["contiguous", "gaps", "another dtype"],
)
def test_an_answer_is_written_into_any_destination(make, takes_bytes):
    mine = make()
    get = PendingGet(5, mine, None, np.dtype(int))
    assert get.takes_bytes() == takes_bytes
    get.write(data_of(*range(6)))
    assert mine.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_answers_are_written_only_where_single_words_were_asked_for():
    mine = np.zeros(4, int)
    get = PendingGet(5, mine, None, mine.dtype, positions=np.array([3, 1]))
    assert not get.takes_bytes()
    get.write(data_of(7, 8))
    assert mine.tolist() == [0, 8, 0, 7]


# -- descriptions, and what is counted ------------------------------------------------------------

SELECTION = ((None, 2, None), -1)


@pytest.mark.parametrize("site", [None, ("put", "a.py:3")], ids=["no site", "site"])
@pytest.mark.parametrize(
    "what",
    [
        ContiguousPut(0, 3),
        IndexPut(0, SELECTION, (2,)),
        ElementsPut(0, b"op"),
        ContiguousGet(0, 3, 8),
        IndexGet(0, SELECTION, 16),
        ElementsGet(0, 3),
    ],
    ids=lambda what: type(what).__name__,
)
def test_a_description_comes_back_as_it_was(what, site):
    found = unpacked(packed(what, site))
    assert found == (what, site)
    assert type(found[0]) is type(what)


def test_descriptions_that_are_equal_as_tuples_are_not_taken_for_each_other():
    assert ContiguousPut(0, 3) == ElementsGet(0, 3)
    assert type(unpacked(packed(ContiguousPut(0, 3)))[0]) is ContiguousPut
    assert type(unpacked(packed(ElementsGet(0, 3)))[0]) is ElementsGet


def add(send_buffer, to, kind, description, indices, data):
    """Add an entry with a description; data are an array, or the bytes of staged values."""
    nbytes = data if isinstance(data, int) else len(data)
    inside = np.zeros(1, int).view(np.uint8) if isinstance(data, int) else data
    padded = len(description) + 7 & ~7
    first = indices << INDICES_SHIFT | len(description)
    at = send_buffer.reserve(to, kind << KIND_SHIFT | nbytes, first, padded + len(inside))
    write_bytes(at, description)
    copy(at + padded, address_of(inside), len(inside))


def test_puts_and_messages_count_for_an_oblivious_sync_and_nothing_else_does():
    send_buffer = SendBuffer(0, 2, PrivateMemory().allocate)
    contiguous, message = packed(ContiguousPut(0, 0)), np.frombuffer(b"123", np.uint8)
    add(send_buffer, 1, PLACED, contiguous, 0, data_of(1))
    add(send_buffer, 1, PLACED, packed(ElementsPut(0, None)), 3, words([1, 2, 3], 4, 5, 6))
    add(send_buffer, 1, ASK, packed(ElementsGet(0, 16)), 2, words([1, 2]))
    add(send_buffer, 1, REPLY, b"", 0, data_of(1))
    add(send_buffer, 1, NOTICE, b"", 0, data_of(1))
    add(send_buffer, 1, MESSAGE, b"a head of any length", 0, message)
    add(send_buffer, 1, STAGED_PLACED, contiguous, 0, 4000)
    add(send_buffer, 1, STAGED_MESSAGE, b"head", 0, 5000)
    add(send_buffer, 0, MESSAGE, b"head", 0, message)
    send_buffer.unfold()
    sent = np.frombuffer(by_receiver(Meeting(), send_buffer.complete(0), 2)[1], np.uint8)
    ends = address_of(sent), address_of(sent) + len(sent)
    assert calls_between(*ends) == 5
    amounts = np.zeros(2, np.uint64)
    add_amounts(*ends, amounts)
    assert amounts.tolist() == [3 + 5000 + 8 + 4000 + 3 * 8, 5]
    kinds = [kind for kind, *_ in entries_between(*ends)]
    assert kinds == [PLACED, PLACED, ASK, REPLY, NOTICE, MESSAGE, STAGED_PLACED, STAGED_MESSAGE]


DISTANCES = (0, 1, 8, 31, 32, 63, 4095)
"""From a source to a target modulo 4096: between some of these, processors copy in another way."""


def part_before(target, distance, nbytes):
    """Return an array of values that begins ``distance`` bytes before an address modulo 4096."""
    memory = np.arange(nbytes + 4096).astype(np.uint8)
    first = (target - distance - address_of(memory)) % 4096
    return memory[first : first + nbytes]


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("nbytes", [2049, 8193, 70_001])
def test_a_send_buffer_takes_data_from_any_address(nbytes, distance):
    send_buffer, place = SendBuffer(0, 2, PrivateMemory().allocate), 0
    for _ in range(3):  # the place is another one the second time: there is a larger block
        data = part_before(place, distance, nbytes)
        send_buffer.describe(1, MESSAGE, b"head", 0, data)
        send_buffer.unfold()
        [entry] = entries_at(Meeting(), send_buffer.first_byte(1))
        place = entry[5]
        assert bytes_at(place, nbytes) == data.tobytes()
        send_buffer.clear()
    assert (place - address_of(data)) % 4096 == distance


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("nbytes", [2049, 8193, 70_001])
def test_a_put_is_written_to_any_address(nbytes, distance):
    entry = np.zeros(2 + nbytes // 8 + 1, np.uint64)
    entry[0] = PUT << KIND_SHIFT | nbytes
    data = entry[2:].view(np.uint8)[:nbytes]
    data[:] = np.arange(nbytes).astype(np.uint8)
    there = np.zeros(nbytes + 8192, np.uint8)
    first = (address_of(data) + distance - address_of(there)) % 4096 + 1024
    entry[1] = first - 1024
    arrivals = Arrivals(0, 1, Meeting(), None, 0)
    arrivals.define(0, address_of(there) + 1024)
    arrivals.apply(0, address_of(entry), address_of(entry) + entry.nbytes)
    assert (there[first : first + nbytes] == data).all()
    assert not there[:first].any()
    assert not there[first + nbytes :].any()


def test_puts_are_told_from_all_other_records():
    kinds = {PUT, STAGED_PUT, STRIDED, PLACED, STAGED_PLACED}
    others = {MESSAGE, STAGED_MESSAGE, ASK, STAGED_ASK, REPLY, STAGED_REPLY, NOTICE}
    assert {kind for kind in kinds | others if is_put(kind)} == kinds


def test_a_cleared_queue_forgets_what_was_unread():
    queue = Queue()
    queue.fill([(source, ("tag", False, ("bytes",)), b"12") for source in (1, 4)])
    assert [queue.take()[0], len(queue), queue.nbytes()] == [1, 1, 2]
    queue.clear()
    assert (len(queue), queue.peek(), queue.nbytes()) == (0, None, 0)


# -- where values may be received straight away ---------------------------------------------------

WHERE = itertools.count(1000)


def put(slot, first, count, *, staged=True):
    """Return the entry of a put, as it comes."""
    kind = STAGED_PUT if staged else PUT
    return kind, slot, 8 * first, b"", 0, next(WHERE), 8 * count


def landed(registry, *incoming):
    """Return the handles of the values that may be received in place, and the places."""
    landings = landings_of_puts(registry, [*enumerate(incoming, 1)])
    return [(each.handle, np.frombuffer(each.memory, np.uint8)) for each in landings]


@pytest.fixture
def x(registry):
    registration = registry.push(np.zeros(10))
    registry.agree(agreement_of([registry.announcement()]))
    return registration


@pytest.mark.parametrize(
    ("first", "is_in_place"), [(0, False), (1, False), (2, True), (3, True), (8, True)]
)
def test_staged_puts_are_received_in_place_where_they_are_apart(registry, x, first, is_in_place):
    puts = [put(x.slot, 0, 2), put(x.slot, first, 2)]
    found = landed(registry, puts[:1], puts[1:])
    handles = [(source, each[5], 16) for source, each in enumerate(puts, 1)]
    assert [handle for handle, _ in found] == (handles if is_in_place else [])
    for (_, memory), begin in zip(found, (0, first), strict=False):
        assert address_of(memory) == x.address + 8 * begin
        assert len(memory) == 16


def test_nothing_is_received_in_place_under_a_small_put(registry, x):
    assert landed(registry, [put(x.slot, 0, 2), put(x.slot, 1, 1, staged=False)]) == []
    assert len(landed(registry, [put(x.slot, 0, 2), put(x.slot, 2, 1, staged=False)])) == 1


@pytest.mark.parametrize("kind", [STRIDED, PLACED, STAGED_PLACED])
def test_nothing_is_received_in_place_beside_puts_of_other_kinds(registry, x, kind):
    other = kind, x.slot, 40, packed(ContiguousPut(x.slot, 5)), 0, 0, 8
    assert landed(registry, [put(x.slot, 0, 2)], [other]) == []


def test_messages_do_not_keep_puts_from_being_received_in_place(registry, x):
    message = STAGED_MESSAGE, 0, 0, b"head", 0, 0, 5000
    assert len(landed(registry, [message, put(x.slot, 0, 2)])) == 1


def test_nothing_lands_in_an_array_with_gaps(registry):
    memory = np.zeros(20)
    gaps = registry.push(memory[::2])
    registry.agree(agreement_of([registry.announcement()]))
    assert landed(registry, [put(gaps.slot, 0, 2)]) == []


@pytest.mark.parametrize(("second", "lands"), [(slice(2, 4), True), (slice(1, 3), False)])
def test_answers_are_received_in_place_where_destinations_are_apart(second, lands):
    mine = np.zeros(4, int)
    gets = [PendingGet(1, mine[part], None, mine.dtype) for part in (slice(2), second)]
    handles = [(1, 7, 16), None]
    found = landings_of_gets(zip(gets, handles, strict=True), [])
    assert [each.handle for each in found] == ([handles[0]] if lands else [])


@pytest.mark.parametrize(("read", "lands"), [(slice(2, 4), True), (slice(1, 3), False)])
def test_answers_are_not_received_in_place_where_this_process_has_read_other_values(read, lands):
    mine = np.zeros(4, int)
    answer = PendingGet(1, mine[:2], None, mine.dtype), (1, 7, 16)
    assert bool(landings_of_gets([answer], [mine[read]])) == lands


def test_an_answer_is_not_received_in_place_where_it_has_to_be_rearranged():
    get = PendingGet(1, np.zeros(4, int)[::2], None, np.dtype(int))
    assert landings_of_gets([(get, (1, 7, 16))], []) == []


# -- puts that nobody could check before ----------------------------------------------------------


def data_in_records(values):
    return lambda _source, _record: values


@pytest.mark.parametrize(
    ("what", "indices", "values", "misfit"),
    [
        (ContiguousPut(0, 3), [], (1, 2), "2 elements at offset 3"),
        (IndexPut(0, (5,), ()), [], (1,), r"values of shape \(\) at \(5,\)"),
        (ElementsPut(0, None), [0, 4], (1, 2), "index 4"),
    ],
    ids=["contiguous", "index", "words"],
)
def test_a_put_that_would_leave_an_array_made_here_is_refused(
    registry, what, indices, values, misfit
):
    registration = registry.allocate(np.zeros(4, int), memoryview(b""))
    described = packed(what._replace(slot=registration.slot))
    data = words(indices, *values)
    entry = PLACED, 0, 0, described, len(indices), 0, len(data)
    with pytest.raises(BoundsError, match=f"put: {misfit} from process 2 lie outside"):
        check_arrivals(registry, 2, [entry], data_in_records(data))
    registry.agree(agreement_of([registry.announcement()]))  # from now on senders know the array
    check_arrivals(registry, 2, [entry], data_in_records(data))
