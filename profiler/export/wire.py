"""The wire format of Protocol Buffers, as far as it is needed to write messages.

Source: Protocol Buffers, Encoding: varints (wire type 0) and length-delimited fields (2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_VARINT, _DELIMITED = 0, 2


def number(field: int, value: int) -> bytes:
    """Return a field with an integer, ``0 <= value < 2**63``; nothing for 0, the default."""
    return _varint(field << 3 | _VARINT) + _varint(value) if value else b""


def message(field: int, content: bytes) -> bytes:
    """Return a field with the fields of another message."""
    return _varint(field << 3 | _DELIMITED) + _varint(len(content)) + content


def text(field: int, content: str) -> bytes:
    """Return a field with a text, in UTF-8."""
    return message(field, content.encode())


def packed(field: int, values: Iterable[int]) -> bytes:
    """Return a repeated field of integers."""
    return message(field, b"".join(map(_varint, values)))


def _varint(value: int) -> bytes:
    """Return a number in groups of seven bits, the lowest first."""
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)
