"""Messages between processes: how payloads travel, and the queue they arrive in.

Arrays keep shape and dtype, bytes stay bytes, anything else is pickled with the
arrays inside it out of band. What is small travels in the parcel, what is large
waits where it was staged until it is read.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsplib.backends.base import Payload, Ticket
from bsplib.errors import MessageError
from bsplib.transfers.guard import GuardedArray, readable
from bsplib.transfers.registry import DtypeCode, decode_dtype, encode_dtype

INLINE = 1024
"""Bytes up to which a payload travels inside its parcel."""

Stage = Callable[[int], tuple[Ticket, NDArray[np.uint8]]]
Fetch = Callable[[Ticket], memoryview]

_PLAIN = {type(None), bool, int, float, str, bytes}

WireMessage = tuple[Any, bool, tuple[Any, ...] | None, Sequence[Payload]]
"""Tag, whether it is pickled, what the payloads are, the payloads."""

_BYTES = ("bytes",)
_PICKLE = ("pickle",)


class CollectiveTag(NamedTuple):
    """The tag of a message that a collective sends, apart from every tag of a program.

    It travels as a plain tuple; a program's own tuples travel pickled.
    """

    operation: str
    header: Any = None
    """What the receiver needs to know, in plain values."""


Message = tuple[int, WireMessage]
"""A message as it waits to be read: source, and what it sent."""


def size_of(payload: Payload) -> int:
    """Return the bytes of a payload."""
    return len(payload) if isinstance(payload, bytes) else payload[1]


def pack(values: NDArray[Any], stage: Stage) -> Payload:
    """Copy an array's elements in C order onto their way."""
    if values.nbytes <= INLINE:
        return values.tobytes()
    ticket, room = stage(values.nbytes)
    np.copyto(room.view(values.dtype).reshape(values.shape), values)
    return ticket


def unpack(payload: Payload, fetch: Fetch) -> bytes | memoryview:
    """Return the bytes of a payload."""
    return payload if isinstance(payload, bytes) else fetch(payload)


def encode(payload: Any, tag: Any, stage: Stage) -> WireMessage:
    """Copy a message onto its way.

    Raises:
        MessageError: the payload or the tag cannot be pickled.
    """
    wire_tag, pickled = (tag, False) if type(tag) in _PLAIN else _encode_tag(tag)
    if type(payload) is bytes:
        return wire_tag, pickled, _BYTES, (_pack_bytes(payload, stage),)
    if type(payload) is np.ndarray and not payload.dtype.hasobject:
        return wire_tag, pickled, _form(payload.shape, payload.dtype), (pack(payload, stage),)
    if _is_number(payload):
        return wire_tag, pickled, _form(None, payload.dtype), (payload.tobytes(),)
    if type(payload) is GuardedArray:
        return encode(readable(payload), tag, stage)
    buffers: list[pickle.PickleBuffer] = []
    head = _pickle("payload", payload, buffers.append)
    parts: list[bytes | memoryview] = [head, *(buffer.raw() for buffer in buffers)]
    return wire_tag, pickled, _PICKLE, [_pack_bytes(part, stage) for part in parts]


@lru_cache(maxsize=256)
def _form(shape: tuple[int, ...] | None, dtype: np.dtype[Any]) -> tuple[Any, ...]:
    """Return what is to be known of an array: the same object each time, which travels once."""
    return shape, encode_dtype(dtype)


def is_plain(payload: Any) -> bool:
    """Tell whether a payload travels as its bytes alone, without a pickle."""
    if type(payload) in (np.ndarray, GuardedArray):
        return not payload.dtype.hasobject
    return type(payload) is bytes or _is_number(payload)


def _is_number(payload: Any) -> bool:
    number = isinstance(payload, (np.number, np.bool_))
    return number and type(payload) is payload.dtype.type


def _encode_tag(tag: Any) -> tuple[Any, bool]:
    if type(tag) is CollectiveTag:
        return tuple(tag), False
    return _pickle("tag", tag, None), True


def _pickle(
    what: str, value: Any, take_buffer: Callable[[pickle.PickleBuffer], Any] | None
) -> bytes:
    try:
        return pickle.dumps(value, 5, buffer_callback=take_buffer)
    except Exception as error:
        raise MessageError(
            f"send: a {what} of type {type(value).__name__} cannot be pickled: {error}"
        ) from error


def _pack_bytes(data: bytes | memoryview, stage: Stage) -> Payload:
    if len(data) <= INLINE:
        return bytes(data)  # itself, if it is bytes
    ticket, room = stage(len(data))
    room[:] = np.frombuffer(data, np.uint8)
    return ticket


def decode_tag(wire: WireMessage) -> Any:
    """Return the tag of a message."""
    return pickle.loads(wire[0]) if wire[1] else wire[0]  # from a process of the same run


def decode(wire: WireMessage, fetch: Fetch, *, copy: bool = True) -> Any:
    """Return the payload of a message; without ``copy`` arrays and bytes are views."""
    form, parts = wire[2], wire[3]
    first = unpack(parts[0], fetch)
    if form == _BYTES:
        return bytes(first) if copy else memoryview(first)
    if form == _PICKLE:
        # Arrays inside are built upon these buffers, and may be written by their reader.
        buffers = [bytearray(unpack(part, fetch)) for part in parts[1:]]
        return pickle.loads(first, buffers=buffers)
    assert form is not None
    shape, dtype = form
    if shape is None:
        return _array(first, (), dtype, copy=False)[()]
    return _array(first, shape, dtype, copy=copy)


def _array(
    data: bytes | memoryview, shape: tuple[int, ...], dtype: DtypeCode, *, copy: bool
) -> NDArray[Any]:
    if copy and type(data) is bytes:  # small: the copy is a buffer of its own
        return np.ndarray(shape, decode_dtype(dtype), bytearray(data))
    values = np.ndarray(shape, decode_dtype(dtype), buffer=data)
    return values.copy() if copy else values


def payload_bytes(wire: WireMessage) -> int:
    """Return the bytes of a message's payload, without its tag."""
    return sum(map(size_of, wire[3]))


class Queue:
    """The messages that arrived at the last sync, in the order (source, program)."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        """All of them, read or not."""
        self._next = 0

    def fill(self, messages: list[Message]) -> None:
        """Replace what is there, read or not."""
        self.messages = messages
        self._next = 0

    def __len__(self) -> int:
        return len(self.messages) - self._next

    def nbytes(self) -> int:
        """Return the bytes of all payloads not read yet."""
        return sum(payload_bytes(wire) for _, wire in self.messages[self._next :])

    def peek(self) -> Message | None:
        """Return the next message and leave it there; None if there is none."""
        return self.messages[self._next] if len(self) else None

    def take(self) -> Message:
        """Return the next message and count it as read."""
        message = self.messages[self._next]
        self._next += 1
        return message

    def take_collective(self) -> list[Message]:
        """Take what collectives sent out of the queue, and leave what the program sent."""
        left = self.messages[self._next :]
        taken = [message for message in left if _is_collective(message)]
        if taken:
            self.fill([message for message in left if not _is_collective(message)])
        return taken

    def take_left(self, fetch: Fetch) -> list[Message]:
        """Take what is left to read, in a form that outlives the next sync."""
        left = self.messages[self._next :]
        self._next = len(self.messages)
        return [
            (source, (*wire[:3], [bytes(unpack(part, fetch)) for part in wire[3]]))
            for source, wire in left
        ]


def _is_collective(message: Message) -> bool:
    return type(message[1][0]) is tuple
