"""What the end of a superstep does to the memory of one process, without any process."""

from __future__ import annotations

import numpy as np
import pytest

from bsplib.core.atomics import address_of, copy, write_bytes
from bsplib.core.entries import (
    PrivateMemory,
    SendBuffer,
    amounts_of,
    by_receiver,
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
    REPLY,
    STAGED_MESSAGE,
    STAGED_PLACED,
)
from bsplib.core.meeting import Meeting
from bsplib.errors import BoundsError
from bsplib.transfers.delivery import check_arrivals
from bsplib.transfers.descriptions import Contiguous, Selected, Single, packed
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
    contiguous, message = packed(Contiguous(0, 0, 1)), np.frombuffer(b"123", np.uint8)
    add(send_buffer, 1, PLACED, contiguous, 0, data_of(1))
    add(send_buffer, 1, PLACED, packed(Single(0)), 3, words([1, 2, 3], 4, 5, 6))
    add(send_buffer, 1, ASK, packed(Single(0)), 2, words([1, 2]))
    add(send_buffer, 1, REPLY, b"", 0, data_of(1))
    add(send_buffer, 1, NOTICE, b"", 0, data_of(1))
    add(send_buffer, 1, MESSAGE, b"a head of any length", 0, message)
    add(send_buffer, 1, STAGED_PLACED, contiguous, 0, 4000)
    add(send_buffer, 1, STAGED_MESSAGE, b"head", 0, 5000)
    add(send_buffer, 0, MESSAGE, b"head", 0, message)
    send_buffer.unfold()
    sent = np.frombuffer(by_receiver(Meeting(), send_buffer.complete(0), 2)[1], np.uint8)
    assert amounts_of(sent) == [3 + 5000 + 8 + 4000 + 3 * 8, 5]
    ends = address_of(sent), address_of(sent) + len(sent)
    kinds = [kind for kind, *_ in entries_between(*ends)]
    assert kinds == [PLACED, PLACED, ASK, REPLY, NOTICE, MESSAGE, STAGED_PLACED, STAGED_MESSAGE]


# -- puts that nobody could check before ----------------------------------------------------------


def data_in_records(values):
    return lambda _source, _record: values


@pytest.mark.parametrize(
    ("what", "indices", "values", "misfit"),
    [
        (Contiguous(0, 3, 2), [], (1, 2), "2 elements at offset 3"),
        (Selected(0, (5,), ()), [], (1,), r"values of shape \(\) at \(5,\)"),
        (Single(0), [0, 4], (1, 2), "index 4"),
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
