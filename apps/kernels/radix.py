"""Sorts numbers of eight bytes by their digits, where numpy has no vector instructions to sort by.

The bits of a number are turned into a **key**, an unsigned word with the same order. A digit is a
byte of a key. Keys that are too many for a cache are distributed by their first digit, and those
of each byte by the next one. Where they are few enough, they are distributed by all digits that
are left, the last one first: each time the order of the time before stays where bytes are equal.
So the time depends on the number of keys, and little on the keys.

The public function does its work by numpy in the interpreted build; the compiled one runs the
loops at the end of the file.

Source: Knuth, The Art of Computer Programming 3, section 5.2.5; McIlroy, Bostic and McIlroy,
Engineering radix sort, Computing Systems 6, 1993.
"""

from __future__ import annotations

from typing import Any

import numpy as np

try:
    import cython
except ImportError:
    from bsplib.core import _no_cython as cython
if not cython.compiled:
    from bsplib.core.atomics import address_of, copy, peek, poke, prepare
prepare()

_UNSIGNED, _SIGNED, _FLOAT = 0, 1, 2
_KINDS = {"uint64": _UNSIGNED, "int64": _SIGNED, "float64": _FLOAT}
_SIGN = 1 << 63
_ALL = (1 << 64) - 1
_INFINITY = 0x7FF << 52
"""Bits of a float. Those of a number that is none are more, without the sign."""
_TABLE = 256 * 8
"""Bytes of the counts for one digit."""
_FIRST = 7
"""Number of the first digit; the last one has the number 0."""
_MANY = 1 << 16
"""More keys than these are distributed by their first digit: they do not stay in a cache."""
_FEW = 40
"""Greatest number of keys that are sorted by insertion."""


def can_sort(dtype: Any) -> bool:
    """Tell whether numbers of a dtype can be sorted here."""
    return dtype.isnative and dtype.name in _KINDS


def sort_numbers(numbers: Any, out: Any) -> None:
    """Sort numbers as numpy does, numbers that are none last.

    Args:
        numbers: array in one dimension, in C order, of a dtype that can be sorted; not changed,
            unless it is ``out``.
        out: another one of the same dtype and length, or the same.
    """
    if not cython.compiled:
        out[...] = numbers
        out.sort()
        return
    count, kind = len(numbers), _KINDS[numbers.dtype.name]
    room = np.empty(count, np.uint64)
    tables = np.empty(256 * (_FIRST + 1), np.uint64)
    _read(address_of(numbers), address_of(out), count, kind)
    _sort(address_of(out), address_of(room), count, _FIRST, False, address_of(tables))
    _write(address_of(out), count, kind)


# -- loops over addresses -------------------------------------------------------------------------


def _sort(source: int, other: int, count: int, digit: int, to_other: bool, tables: int) -> None:
    """Sort keys that are equal before a digit.

    Args:
        source: the keys.
        other: memory of the same length, which is used.
        count: how many keys.
        digit: the first one that may differ; below 0 if none does.
        to_other: the result has to be in the other memory, and not in that of the keys.
        tables: memory for counts of this digit and all behind it.
    """
    if count <= _FEW or digit < 0:
        _insert(source, count)
        if to_other:
            copy(other, source, 8 * count)
    elif count <= _MANY:
        _sort_few(source, other, count, digit, to_other, tables)
    else:
        _sort_many(source, other, count, digit, to_other, tables)


def _sort_many(
    source: int, other: int, count: int, digit: int, to_other: bool, tables: int
) -> None:
    """Do as :func:`_sort`, by the first digit first."""
    table = tables + _TABLE * digit
    _clear(table, table + _TABLE)
    for at in range(source, source + 8 * count, 8):
        entry = table + 8 * (peek(at) >> 8 * digit & 255)
        poke(entry, peek(entry) + 1)
    if not _differs(table, count):
        _sort(source, other, count, digit - 1, to_other, tables)
        return
    _distribute(source, other, count, table, 8 * digit)
    begin = other
    for entry in range(table, table + _TABLE, 8):
        end = peek(entry)
        if end > begin:
            place = source + begin - other
            _sort(begin, place, (end - begin) >> 3, digit - 1, not to_other, tables)
            begin = end


def _sort_few(source: int, other: int, count: int, digit: int, to_other: bool, tables: int) -> None:
    """Do as :func:`_sort`, by the last digit first."""
    _clear(tables, tables + _TABLE * (digit + 1))
    for at in range(source, source + 8 * count, 8):
        key = peek(at)
        for number in range(digit + 1):
            entry = tables + _TABLE * number + 8 * (key & 255)
            poke(entry, peek(entry) + 1)
            key >>= 8
    is_there = not to_other
    for number in range(digit + 1):
        table = tables + _TABLE * number
        if _differs(table, count):
            _distribute(source, other, count, table, 8 * number)
            source, other = other, source
            is_there = not is_there
    if not is_there:
        copy(other, source, 8 * count)


def _insert(source: int, count: int) -> None:
    """Sort a few keys where they are; all may be equal, then they may be many."""
    for at in range(source + 8, source + 8 * count, 8):
        key, place = peek(at), at
        while place > source and peek(place - 8) > key:
            poke(place, peek(place - 8))
            place -= 8
        poke(place, key)


def _clear(begin: int, end: int) -> None:
    """Set the words from an address to another one to 0."""
    for at in range(begin, end, 8):
        poke(at, 0)


def _differs(table: int, count: int) -> bool:
    """Tell whether keys have more than one byte at the digit that was counted."""
    for entry in range(table, table + _TABLE, 8):  # noqa: SIM110  # in C, it is a loop
        if peek(entry) == count:
            return False
    return True


def _distribute(source: int, to: int, count: int, table: int, shift: int) -> None:
    """Move keys to their places by one digit.

    Args:
        source: the keys.
        to: other memory of the same length.
        count: how many keys.
        table: how often each byte comes; afterwards the address behind its last key.
        shift: bits behind the digit.
    """
    place = to
    for entry in range(table, table + _TABLE, 8):
        many = peek(entry)
        poke(entry, place)
        place += 8 * many
    for at in range(source, source + 8 * count, 8):
        key = peek(at)
        entry = table + 8 * (key >> shift & 255)
        place = peek(entry)
        poke(entry, place + 8)
        poke(place, key)


def _read(numbers: int, keys: int, count: int, kind: int) -> None:
    """Write the keys of numbers; a float that is no number gets one behind infinity."""
    for at in range(0, 8 * count, 8):
        bits = peek(numbers + at)
        if kind == _SIGNED:
            bits ^= _SIGN
        elif kind == _FLOAT:
            if bits & _SIGN and bits & (_SIGN - 1) <= _INFINITY:
                bits ^= _ALL
            else:
                bits |= _SIGN
        poke(keys + at, bits)


def _write(keys: int, count: int, kind: int) -> None:
    """Replace keys by their numbers."""
    if kind == _UNSIGNED:
        return
    for at in range(keys, keys + 8 * count, 8):
        key = peek(at)
        poke(at, key ^ _SIGN if kind == _SIGNED or key & _SIGN else key ^ _ALL)
