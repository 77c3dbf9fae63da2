"""Numbers for keys: equal keys get the same number, whatever the keys are.

A key is one word or several. A table of slots finds the number of a key that has come before: a
slot has a **tag** and a number. The tag is the key, mixed: of one word so that no two keys have the
same tag. Keys of several words with the same tag are compared word by word.

The public function does its work by numpy in the interpreted build; the compiled one runs the
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

_LEAST_SLOTS = 1 << 10
_FIRST_SLOTS = 1 << 15
"""Of a first table, which stays in a cache; one for more keys is made where it becomes full."""
_GROWTH = 8
_MIXER = 0x5851F42D4C957F2D
"""Odd, with bits in no pattern. It differs from what decides on the owner of a row: keys of one
process would share a part of the table otherwise."""


def number_keys(keys: Any) -> tuple[Any, Any]:
    """Number keys from 0 on, in the order in which they first come.

    Args:
        keys: array of dtype uint64 of two dimensions, in C order: a row is a key.

    Returns:
        For each number the row at which its key first comes, and for each row the number of its
        key; of dtype int64.
    """
    if not cython.compiled:
        return _number_by_numpy(keys)
    count, width = len(keys), keys.shape[1]
    numbers = np.empty(count, np.int64)
    firsts = np.empty(0, np.int64)
    slots = _FIRST_SLOTS
    while slots > _LEAST_SLOTS and slots > 2 * count:
        slots >>= 1
    table = np.zeros(0, np.uint64)
    state = np.zeros(2, np.uint64)  # the next row, and how many numbers there are
    while state[0] < count:
        larger = np.zeros(2 * slots, np.uint64)
        _move_slots(address_of(table), len(table) >> 1, address_of(larger), slots - 1)
        table = larger
        known = int(state[1])
        more = np.empty(slots >> 1, np.int64)
        more[:known] = firsts[:known]
        firsts = more
        _number(
            address_of(keys),
            width,
            count,
            address_of(table),
            slots - 1,
            address_of(firsts),
            address_of(numbers),
            address_of(state),
        )
        slots *= _GROWTH
    return firsts[: int(state[1])].copy(), numbers


def _number_by_numpy(keys: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Do as :func:`number_keys`."""
    fields = [(f"word {number}", np.uint64) for number in range(keys.shape[1])]
    whole = keys[:, 0] if len(fields) == 1 else keys.view(np.dtype(fields))[:, 0]
    _, first, number = np.unique(whole, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return first[order].astype(np.int64), rank[number.reshape(-1)]


# -- loops over addresses -------------------------------------------------------------------------


def _number(
    keys: int, width: int, count: int, table: int, mask: int, firsts: int, numbers: int, state: int
) -> None:
    """Number rows until all are done, or until half of the slots are used.

    Args:
        keys: the rows, each of ``width`` words.
        width: words of a key.
        count: number of rows.
        table: the slots.
        mask: number of slots, a power of 2, less 1.
        firsts: has room for half as many words as there are slots.
        numbers: of the rows.
        state: the row to begin at, and how many numbers there are.
    """
    row, known = peek(state), peek(state + 8)
    most = (mask + 1) >> 1
    while row < count:
        key = keys + 8 * width * row
        tag = _mixed(key, width)
        slot = table + 16 * (tag & mask)
        number = peek(slot + 8)
        while number:
            if peek(slot) == tag and (
                width == 1 or _same(keys + 8 * width * peek(firsts + 8 * number - 8), key, width)
            ):
                break
            slot += 16
            if slot > table + 16 * mask:
                slot = table
            number = peek(slot + 8)
        if not number:
            if known == most:
                break
            poke(firsts + 8 * known, row)
            known += 1
            number = known
            poke(slot, tag)
            poke(slot + 8, number)
        poke(numbers + 8 * row, number - 1)
        row += 1
    poke(state, row)
    poke(state + 8, known)


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


def _mixed(key: int, width: int) -> int:
    """Return the tag of a key: each bit of the key changes about half of its bits."""
    tag = _mixed_word(peek(key))
    for position in range(1, width):
        tag = _mixed_word(wrapped(tag + peek(key + 8 * position)))
    return tag


def _mixed_word(value: int) -> int:
    """Mix the bits of a word; no two words give the same."""
    value = wrapped((value ^ (value >> 32)) * _MIXER)
    return value ^ (value >> 29)


def _same(one: int, other: int, width: int) -> bool:
    """Tell whether two keys are equal."""
    position = 0
    while position < width and peek(one + 8 * position) == peek(other + 8 * position):
        position += 1
    return position == width
