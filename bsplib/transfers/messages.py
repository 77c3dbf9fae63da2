"""Messages between processes: how payloads are encoded.

Arrays keep shape and dtype, and bytes are sent as they are. Anything else is pickled, with
the buffers of arrays inside it beside the pickle. Small payloads are part of the entry;
large ones are staged, and stay there until the message is read.
"""

from __future__ import annotations

import marshal
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsplib.backends.base import Buffer, Handle, Payload
from bsplib.core.engine import Engine
from bsplib.core.entries import Entry
from bsplib.core.forms import (
    ARRAY,
    BYTES,
    FORM_OF_BYTES,
    NUMBER,
    PICKLE,
    DtypeCode,
    Form,
    decode_dtype,
    encode_dtype,
    form_of_array,
)
from bsplib.core.kinds import MESSAGE, STAGED_MESSAGE
from bsplib.core.queue import CollectiveTag
from bsplib.errors import MessageError
from bsplib.transfers.guard import GuardedArray, readable

INLINE = 1024
"""Bytes up to which a payload is part of its entry."""

MessageHead = tuple[Any, bool, Form]
"""Tag of a message, whether the tag is pickled, and the form of the payload."""

Stage = Callable[[int, int], tuple[Handle, Buffer]]
Fetch = Callable[[Handle], memoryview]
Keep = Callable[[Handle], Buffer | None]

_PLAIN = {type(None), bool, int, float, str, bytes}


def pack(values: NDArray[Any], stage: Stage, to: int) -> Payload:
    """Copy an array's elements in C order into a payload for a process."""
    if values.nbytes <= INLINE:
        return values.tobytes()
    handle, memory = stage(values.nbytes, to)
    np.copyto(memory.view(values.dtype).reshape(values.shape), values)
    return handle


def unpack(payload: Payload, fetch: Fetch) -> bytes | memoryview:
    """Return the bytes of a payload."""
    return payload if isinstance(payload, bytes) else fetch(payload)


def encode(
    payload: Any, tag: Any, stage: Stage, to: int, engine: Engine
) -> tuple[MessageHead, Payload]:
    """Return the head of a message to a process, and its content, copied.

    Raises:
        MessageError: the payload or the tag cannot be pickled.
    """
    wire_tag, pickled = (tag, False) if type(tag) in _PLAIN else _encode_tag(tag, engine)
    if type(payload) is bytes:
        return (wire_tag, pickled, FORM_OF_BYTES), _joined([payload], stage, to)
    if type(payload) is np.ndarray and not payload.dtype.hasobject:
        form = form_of_array(payload.shape, payload.dtype)
        return (wire_tag, pickled, form), pack(payload, stage, to)
    if _is_number(payload):
        form = NUMBER, encode_dtype(payload.dtype)
        return (wire_tag, pickled, form), payload.tobytes()
    if type(payload) is GuardedArray:
        return encode(readable(payload), tag, stage, to, engine)
    form, content = _encode_pickle(payload, stage, to, engine)
    return (wire_tag, pickled, form), content


def _encode_pickle(payload: Any, stage: Stage, to: int, engine: Engine) -> tuple[Form, Payload]:
    """Return a pickle and the buffers of the arrays inside it, one behind the other."""
    buffers: list[pickle.PickleBuffer] = []
    head = _pickle("payload", payload, engine, buffers.append)
    parts: list[bytes | memoryview] = [head, *(buffer.raw() for buffer in buffers)]
    return (PICKLE, *map(len, parts)), _joined(parts, stage, to)


def _joined(parts: Sequence[bytes | memoryview], stage: Stage, to: int) -> Payload:
    """Copy parts, one behind the other, into a payload for a process."""
    nbytes = sum(map(len, parts))
    if nbytes <= INLINE:
        return b"".join(parts)
    handle, memory = stage(nbytes, to)
    at = 0
    for part in parts:
        memory[at : at + len(part)] = np.frombuffer(part, np.uint8)
        at += len(part)
    return handle


def is_plain(payload: Any) -> bool:
    """Tell whether a payload is sent as its bytes, without a pickle."""
    if type(payload) in (np.ndarray, GuardedArray):
        return not payload.dtype.hasobject
    return type(payload) is bytes or _is_number(payload)


def _is_number(payload: Any) -> bool:
    number = isinstance(payload, (np.number, np.bool_))
    return number and type(payload) is payload.dtype.type


def _encode_tag(tag: Any, engine: Engine) -> tuple[Any, bool]:
    if type(tag) is CollectiveTag:
        return tuple(tag), False
    return _pickle("tag", tag, engine), True


def _pickle(
    what: str,
    value: Any,
    engine: Engine,
    take_buffer: Callable[[pickle.PickleBuffer], Any] | None = None,
) -> bytes:
    try:
        return engine.dumps(value, take_buffer)
    except Exception as error:
        raise MessageError(
            f"send: a {what} of type {type(value).__name__} cannot be pickled: {error}; send data, "
            f"such as arrays, numbers and text"
        ) from error


def is_of_collective(entry: Entry) -> bool:
    """Tell whether an entry is a message of a collective: a program's tag is no plain tuple."""
    return entry[0] in (MESSAGE, STAGED_MESSAGE) and type(marshal.loads(entry[3])[0]) is tuple


def decode_tag(head: MessageHead) -> Any:
    """Return the tag of a message."""
    return pickle.loads(head[0]) if head[1] else head[0]  # from a process of the same run


def decode(
    head: MessageHead,
    content: Payload | bytearray,
    fetch: Fetch,
    engine: Engine,
    *,
    copy: bool = True,
    keep: Keep | None = None,
) -> Any:
    """Return the payload of a message; without ``copy`` arrays and bytes are views.

    An array of a bytearray uses its memory: nothing else does. So does one whose payload ``keep``
    makes this process's own (:meth:`bsplib.backends.base.Port.keep`).
    """
    if keep is not None and head[2][0] == ARRAY and isinstance(content, tuple):
        kept = keep(content)
        if kept is not None:
            return np.ndarray(head[2][1], decode_dtype(head[2][2]), buffer=kept)
    data = content if isinstance(content, bytearray) else unpack(content, fetch)
    form = head[2]
    kind = form[0]
    if kind == ARRAY:
        return _array(data, form[1], form[2], copy=copy)
    if kind == BYTES:
        return bytes(data) if copy else memoryview(data)
    if kind == NUMBER:
        return _array(data, (), form[1], copy=False)[()]
    return _decode_pickle(memoryview(data), form[1:], engine)


def _decode_pickle(data: memoryview, sizes: tuple[int, ...], engine: Engine) -> Any:
    """Return the object of a pickle whose buffers follow it."""
    at, buffers = sizes[0], []
    for size in sizes[1:]:
        # An array inside uses this buffer, and the program may write into it.
        buffers.append(bytearray(data[at : at + size]))
        at += size
    return engine.loads(data[: sizes[0]], buffers)


def _array(
    data: bytes | bytearray | memoryview, shape: tuple[int, ...], dtype: DtypeCode, *, copy: bool
) -> NDArray[Any]:
    if copy and type(data) is bytes:  # a small payload: the copy has a buffer of its own
        return np.ndarray(shape, decode_dtype(dtype), bytearray(data))
    values = np.ndarray(shape, decode_dtype(dtype), buffer=data)
    return values.copy() if copy and type(data) is not bytearray else values
