"""Numbers for keys: equal keys get the same number, whatever the keys are.

A key is a word. A table of slots finds the number of a key that has come before: a slot has a
**tag** and a number. The tag is the key, mixed so that no two keys have the same tag.

The public class does its work by numpy in the interpreted build; the compiled one runs the
loops at the end of the file.

Source: Knuth, The Art of Computer Programming 3, section 6.4: open addressing, linear probing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

try:
    import cython
except ImportError:
    from bsplib.core import _no_cython as cython
if not cython.compiled:
    from bsplib.core.atomics import address_of, peek, poke, prepare, wrapped
prepare()

_FIRST_SLOTS = 1 << 13
"""Number of slots of the first table, which is small enough to stay in a cache."""
_GROWTH = 4
"""When half of the slots are used, a table with this many times as many slots replaces it."""
_MIXER = 0x5851F42D4C957F2D
"""Odd, with bits in no pattern. It differs from what decides on the owner of a row: keys of one
process would share a part of the table otherwise."""


class KeyNumbers:
    """The numbers of keys, from 0 on in the order in which the keys first come.

    Keys come in pieces: arrays of dtype uint64 of one dimension, in C order.
    """

    def __init__(self) -> None:
        self.count = 0
        """How many different keys have come."""
        self._known: dict[int, int] = {}  # of the interpreted build; the rest is of the other
        self._mask = _FIRST_SLOTS - 1
        self._table = np.zeros(2 * _FIRST_SLOTS if cython.compiled else 0, np.uint64)
        self._keys = np.empty(_FIRST_SLOTS >> 1 if cython.compiled else 0, np.uint64)
        self._state = np.zeros(2, np.uint64)

    def keys(self) -> Any:
        """Return all different keys, in the order of their numbers."""
        if not cython.compiled:
            return np.array(list(self._known), np.uint64)
        return self._keys[: self.count].copy()

    def number(self, keys: Any) -> Any:
        """Return the numbers of a piece of keys, of dtype int64; new keys get the next ones."""
        return self._numbers_of(keys, True)

    def find(self, keys: Any) -> Any:
        """Return the numbers of a piece of keys, of dtype int64; -1 of one that has not come."""
        return self._numbers_of(keys, False)

    def _numbers_of(self, keys: Any, is_new: bool) -> Any:
        """Do as :meth:`number` where keys may be new, otherwise as :meth:`find`."""
        if not cython.compiled:
            return self._by_numpy(keys, is_new)
        keys = np.ascontiguousarray(keys)
        rows = len(keys)
        numbers = np.empty(rows, np.int64)
        state = address_of(self._state)  # the next row, and how many numbers there are
        poke(state, 0)
        while True:
            _number(
                address_of(keys),
                rows,
                address_of(self._table),
                self._mask,
                address_of(self._keys),
                address_of(numbers),
                state,
                is_new,
            )
            self.count = peek(state + 8)
            if peek(state) == rows:
                return numbers
            self._grow()

    def _grow(self) -> None:
        """Make a larger table."""
        before = self._mask + 1
        slots = _GROWTH * before
        table = np.zeros(2 * slots, np.uint64)
        _move_slots(address_of(self._table), before, address_of(table), slots - 1)
        keys = np.empty(slots >> 1, np.uint64)
        keys[: len(self._keys)] = self._keys
        self._table, self._keys, self._mask = table, keys, slots - 1

    def _by_numpy(self, keys: NDArray[np.uint64], is_new: bool) -> NDArray[np.int64]:
        """Do as :meth:`_numbers_of`."""
        different, firsts, places = np.unique(keys, return_index=True, return_inverse=True)
        numbers = np.empty(len(different), np.int64)
        for place in np.argsort(firsts).tolist():
            key = int(different[place])
            if is_new and key not in self._known:
                self._known[key] = len(self._known)
            numbers[place] = self._known.get(key, -1)
        self.count = len(self._known)
        return numbers[places.reshape(-1)]


# -- loops over addresses -------------------------------------------------------------------------


def _number(  # addresses
    keys: int,
    rows: int,
    table: int,
    mask: int,
    known: int,
    numbers: int,
    state: int,
    is_new: bool,
) -> None:
    """Number rows until all are done, or until there is no slot for a new key.

    Args:
        keys: the rows.
        rows: how many.
        table: the slots; half of them are used at most.
        mask: number of slots, a power of 2, less 1.
        known: the different keys; has room for half as many as there are slots.
        numbers: of the rows.
        state: the row to begin at, and how many numbers there are.
        is_new: whether a key that has not come gets a number.
    """
    row, count = peek(state), peek(state + 8)
    end = table + 16 * mask
    while row < rows:
        tag = _mixed_word(peek(keys + 8 * row))
        slot = table + 16 * (tag & mask)
        number = peek(slot + 8)
        # Within the loop, since a call for each row would take a third of its time.
        while number and peek(slot) != tag:
            slot += 16
            if slot > end:
                slot = table
            number = peek(slot + 8)
        if not number and is_new:
            if count > mask >> 1:
                break
            poke(known + 8 * count, peek(keys + 8 * row))
            count += 1
            number = count
            poke(slot, tag)
            poke(slot + 8, number)
        poke(numbers + 8 * row, wrapped(number - 1))
        row += 1
    poke(state, row)
    poke(state + 8, count)


def _move_slots(table: int, slots: int, to: int, mask: int) -> None:
    """Enter the keys of a table into a larger one, which is empty."""
    for at in range(table, table + 16 * slots, 16):
        number = peek(at + 8)
        if number:
            tag = peek(at)
            slot = to + 16 * (tag & mask)
            while peek(slot + 8):
                slot += 16
                if slot > to + 16 * mask:
                    slot = to
            poke(slot, tag)
            poke(slot + 8, number)


def _mixed_word(value: int) -> int:
    """Mix the bits of a word: each changes about half of them. No two words give the same."""
    value = wrapped((value ^ (value >> 32)) * _MIXER)
    return value ^ (value >> 29)
