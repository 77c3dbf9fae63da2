"""Sending messages, and reading those that have come."""

from __future__ import annotations

import marshal
import operator
from functools import partial
from typing import Any

import numpy as np

from bsplib.core.atomics import form_of
from bsplib.core.queue import CollectiveTag, Message
from bsplib.errors import MessageError
from bsplib.primitives.state import GroupState
from bsplib.transfers import messages

_QUICK_TAGS = (int, str, CollectiveTag)
"""Types of tags, besides None, that the engine takes."""


def send_slowly(bsp: GroupState, pid: Any, payload: Any, tag: Any) -> None:
    """Send any message, with every check there is."""
    bsp._check_usable("send")
    to = bsp._check_pid(pid, "send")
    if bsp._supersteps.tag_size is not None:
        tag = _check_tag(bsp, tag)
    if bsp._watch is not None:
        payload = bsp._watch.source(payload, "send")
    stage = partial(bsp._port.stage, message=True)
    head, content = messages.encode(payload, tag, stage, to, bsp._engine)
    encoded = marshal.dumps(head)
    if isinstance(content, tuple):
        bsp._engine.add_message(to, encoded, content[1], content[2])
    else:
        bsp._engine.add_message(to, encoded, content, len(content))
    if bsp._supersteps.tag_size is None and (tag is None or type(tag) in _QUICK_TAGS):
        _remember_head(bsp, payload, tag, encoded)


def _remember_head(bsp: GroupState, payload: Any, tag: Any, encoded: bytes) -> None:
    """Let the engine send messages with the same form and tag from now on."""
    if type(payload) is bytes:
        bsp._engine.remember_head(tag, encoded)
    elif type(payload) is np.ndarray and form_of(payload):
        bsp._engine.remember_head((form_of(payload), payload.shape, tag), encoded)


def qsize(bsp: GroupState) -> tuple[int, int]:
    """Return how many messages are left to read, and the bytes of their payloads.

    Returns:
        Both as (messages, bytes).

    Raises:
        PartitionError: the group cannot be used now.

    Cost: nothing.
    Source: Hill et al. 1998, bsp_qsize.
    """
    bsp._check_usable()
    queue = bsp._engine.queue
    return len(queue), queue.nbytes()


def get_tag(bsp: GroupState) -> Any:
    """Return the tag of the next message, and leave the message in the queue.

    Returns:
        The tag; None where no message is left, or where the message has no tag.

    Raises:
        PartitionError: the group cannot be used now.

    Cost: nothing.
    Source: Hill et al. 1998, bsp_get_tag.
    """
    bsp._check_usable()
    message = bsp._engine.queue.peek()
    return None if message is None else messages.decode_tag(message[1])


def move(bsp: GroupState) -> Any:
    """Take the next message; see :meth:`bsplib.core.calls.Calls.move`."""
    queue = bsp._engine.queue
    if not len(queue):
        raise bsp._error(MessageError, "move: there is no message left; ask qsize() first")
    _, head, content = queue.take()
    return _decode(bsp, head, content, keep=bsp._port.keep)


def hpmove(bsp: GroupState) -> tuple[Any, Any] | None:
    """Take the next message without a copy; see :meth:`bsplib.core.calls.Calls.hpmove`."""
    queue = bsp._engine.queue
    if not len(queue):
        return None
    _, head, content = queue.take()
    payload = _decode(bsp, head, content, copy=False)
    return messages.decode_tag(head), payload


def set_tagsize(bsp: GroupState, size: int) -> int | None:
    """Require every tag to be bytes of one length, from the next superstep on.

    Collective: every process calls it with the same size.

    Args:
        size: bytes of a tag, 0 or more.

    Returns:
        The size until now; None where tags are free.

    Raises:
        MessageError: ``size`` is no integer of 0 or more.
        PartitionError: the group cannot be used now.

    Cost: nothing here; an announcement to all at the next sync, which counts for no h.
    Source: Hill et al. 1998, bsp_set_tagsize.
    """
    bsp._check_usable()
    nbytes = _check_tag_size(bsp, size)
    bsp._registry.note("set_tagsize", nbytes)
    bsp._supersteps.next_tag_size = nbytes
    return bsp._supersteps.tag_size


def decode(bsp: GroupState, message: Message) -> tuple[int, Any, Any]:
    """Return a message as a program reads it."""
    source, head, content = message
    port = bsp._port
    payload = messages.decode(head, content, port.fetch, bsp._engine, keep=port.keep)
    return source, messages.decode_tag(head), payload


def _decode(bsp: GroupState, head: Any, content: Any, **how: Any) -> Any:
    return messages.decode(head, content, bsp._port.fetch, bsp._engine, **how)


def _check_tag_size(bsp: GroupState, size: int) -> int:
    try:
        nbytes = int(operator.index(size))
    except TypeError:
        nbytes = -1
    if nbytes < 0:
        raise bsp._error(
            MessageError,
            f"set_tagsize: a tag cannot have {size!r} bytes; say an integer, 0 or more",
        )
    return nbytes


def _check_tag(bsp: GroupState, tag: Any) -> Any:
    """Return the tag that travels, where tags have a size."""
    if type(tag) is CollectiveTag:
        return tag  # of a collective: no program sees it
    if tag is None and bsp._supersteps.tag_size == 0:
        return b""
    if not isinstance(tag, bytes) or len(tag) != bsp._supersteps.tag_size:
        raise bsp._error(
            MessageError, f"send: tags are bytes of length {bsp._supersteps.tag_size}, not {tag!r}"
        )
    return tag
