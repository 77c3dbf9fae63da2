"""What the end of a superstep does to the memory of one process, without any process."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from bsplib.core.atomics import address_of, copy, write_bytes
from bsplib.core.entries import (
    PrivateMemory,
    SendBuffer,
    add_amounts,
    by_receiver,
    calls_between,
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
    STAGED_MESSAGE,
    STAGED_PLACED,
    STAGED_PUT,
    STRIDED,
)
from bsplib.core.meeting import Meeting
from bsplib.errors import BoundsError
from bsplib.transfers.arrival_checks import check_arrivals
from bsplib.transfers.delivery import PendingGet
from bsplib.transfers.descriptions import ContiguousPut, ElementsGet, ElementsPut, IndexPut, packed
from bsplib.transfers.direct_receipt import landings_of_gets, landings_of_puts
from bsplib.transfers.registry import Registry, agreement_of


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


# -- what is counted -----------------------------------------------------------------------------


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
