from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bsplib.backends.shm.heap import ALIGNMENT, Heap, word_behind
from bsplib.core.atomics import store
from bsplib.errors import OutOfSharedMemoryError
from tests.drawn import examples

START, STOP = 4096, 4096 + (1 << 24)


class Memory:
    """A segment that only remembers which bytes may be touched."""

    def __init__(self, limit=1 << 40):
        self.reserved_up_to = START
        self.left = limit
        self._bytes = np.zeros(STOP, np.uint8)

    def reserve(self, start, nbytes):
        assert start == self.reserved_up_to  # without gaps and never twice
        if nbytes > self.left:
            raise OutOfSharedMemoryError("full")
        self.left -= nbytes
        self.reserved_up_to = start + nbytes

    def address_of(self, start):
        return self._bytes.ctypes.data + start


@pytest.fixture
def memory():
    return Memory()


@pytest.fixture
def heap(memory):
    return Heap(memory, [(START, STOP)])


def test_a_block_beyond_all_addresses_is_an_error_with_numbers(heap):
    heap.allocate(64)
    with pytest.raises(OutOfSharedMemoryError, match=f"full: {1 << 24} bytes more are needed"):
        heap.allocate(1 << 24)
    assert heap.allocate((1 << 24) - 64)[1]


@examples(100)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3000)), max_size=80))
def test_blocks_never_overlap_and_nothing_is_lost(steps):
    memory = Memory()
    heap = Heap(memory, [(START, STOP)])
    blocks, given_out = {}, set()
    for allocates, number in steps:
        if allocates or not blocks:
            start, zero = heap.allocate(number)
            stop = start + max(number, 1)
            assert START <= start < stop <= memory.reserved_up_to
            assert all(stop <= other or start >= end for other, end in blocks.items())
            lines = set(range(start // ALIGNMENT, -(-stop // ALIGNMENT)))
            assert not zero or not lines & given_out
            given_out |= lines
            blocks[start] = stop
        else:
            start = sorted(blocks)[number % len(blocks)]
            del blocks[start]
            heap.release(start)
    for start in blocks:
        heap.release(start)
    top = max(given_out, default=START // ALIGNMENT - 1) + 1
    whole = top * ALIGNMENT - START
    if whole:
        assert heap.allocate(whole) == (START, False)  # all of it is one free range again


# -- windows ------------------------------------------------------------------------------------

CHUNK = 1 << 20
WINDOWS = [(START + ((1 << n) - 1) * CHUNK, START + ((2 << n) - 1) * CHUNK) for n in range(6)]


class Windows:
    """A segment that remembers up to where each window may be touched."""

    def __init__(self):
        self.reserved = {start: start for start, _ in WINDOWS}

    def reserve(self, start, nbytes):
        window = max(first for first in self.reserved if first <= start)
        assert start == self.reserved[window]
        assert start + nbytes <= dict(WINDOWS)[window]
        self.reserved[window] = start + nbytes


@pytest.fixture
def heap_of_windows():
    return Heap(Windows(), WINDOWS)


def window_of(start):
    return max(number for number, (first, _) in enumerate(WINDOWS) if first <= start)


def test_a_block_lies_in_the_first_window_that_holds_all_of_it(heap_of_windows):
    sizes = [CHUNK, CHUNK + 1, 3 * CHUNK, 64, 17 * CHUNK]
    assert [window_of(heap_of_windows.allocate(size)[0]) for size in sizes] == [0, 1, 2, 1, 5]


@examples(100)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5 * CHUNK)), max_size=60))
def test_no_block_crosses_the_border_of_a_window_or_overlaps_another(steps):
    heap = Heap(Windows(), WINDOWS)
    blocks = {}
    for allocates, number in steps:
        if allocates or not blocks:
            try:
                start, _ = heap.allocate(number)
            except OutOfSharedMemoryError:
                continue
            stop = start + max(number, 1)
            assert stop <= WINDOWS[window_of(start)][1]
            assert all(stop <= other or start >= end for other, end in blocks.items())
            blocks[start] = stop
        else:
            start = sorted(blocks)[number % len(blocks)]
            del blocks[start]
            heap.release(start)


# -- blocks of one superstep after the other ------------------------------------------------------


def in_turn(heap, supersteps):
    """Give the blocks of each superstep back when those of the next one have been taken."""
    before = []
    for sizes in supersteps:
        blocks = [heap.allocate(size)[0] for size in sizes]
        yield
        for start in before:
            heap.release(start)
        before = blocks


@pytest.mark.parametrize("more", [(), (1_500_000,)])
def test_payloads_that_grow_by_little_need_no_new_memory_again_and_again(heap, memory, more):
    supersteps = [[size + 2000 * number for size in (2_000_000, *more)] for number in range(40)]
    reserved = [memory.reserved_up_to for _ in in_turn(heap, supersteps)]
    assert len(set(reserved)) <= 6
    assert reserved[-1] - START < 3.1 * sum(supersteps[-1])


def test_the_last_block_is_extended_by_a_larger_one_that_is_not_known_to_be_zero(heap):
    start, is_zero = heap.allocate(1000)
    assert is_zero
    heap.release(start)
    assert heap.allocate(2000) == (start, False)
    assert heap.allocate(1000)[1]


@pytest.mark.parametrize("clears", [False, True])
def test_a_block_that_its_receiver_keeps_is_used_again_only_after_that(heap, memory, clears):
    starts = [heap.lend(100) for _ in range(4)]
    words = [word_behind(memory.address_of(start), 100) for start in starts]
    for word in words[1::2]:
        store(word, 1)
    if clears:
        heap.clear()
    for start in () if clears else starts:
        heap.release(start)
    assert [heap.lend(100), heap.lend(100)] == starts[::2]
    store(words[1], 0)
    assert heap.lend(100) == starts[1]
    assert heap.lend(100) > starts[3]


def test_the_word_behind_a_payload_lies_in_its_block_and_overlaps_nothing(heap, memory):
    for nbytes in range(1, 130):
        start, byte = heap.lend(nbytes), memory.address_of(0)
        word = word_behind(memory.address_of(start), nbytes) - byte
        assert start + nbytes <= word
        assert word % 8 == 0
        assert word + 8 <= heap.allocate(1)[0]
