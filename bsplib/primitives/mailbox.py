"""Sending messages, and reading those that have come."""

from __future__ import annotations

import marshal
import operator
from threading import get_ident
from typing import Any

import numpy as np

from bsplib.core.queue import CollectiveTag, Message
from bsplib.errors import (
    MessageError,
)
from bsplib.primitives.remote import RemoteAccess
from bsplib.transfers import messages

_QUICK_TAGS = (int, str, CollectiveTag)
"""Types of tags, besides None, that the core takes."""
_MOST_HEADS = 4096
"""Heads of messages that are remembered for the core."""


class Mailbox(RemoteAccess):
    """The messages of one process in a group."""

    def _send_slowly(self, pid: Any, payload: Any, tag: Any) -> None:
        """Send any message, with every check there is."""
        self._check_usable("send")
        to = self._check_pid(pid, "send")
        if self._tag_size is not None:
            tag = self._check_tag(tag)
        if self._watch is not None:
            payload = self._watch.source(payload, "send")
        head, content = messages.encode(payload, tag, self._port.stage_message, to)
        encoded = marshal.dumps(head)
        if isinstance(content, tuple):
            self._add_message(to, encoded, content[1], content[2])
        else:
            self._add_message(to, encoded, content, len(content))
        self._remember_head(payload, tag, encoded)

    def _remember_head(self, payload: Any, tag: Any, encoded: bytes) -> None:
        """Let the core send messages with the same form and tag from now on."""
        if self._tag_size is not None or not (tag is None or type(tag) in _QUICK_TAGS):
            return
        if type(payload) is bytes:
            key: Any = tag
        elif type(payload) is np.ndarray and _has_a_lasting_form(payload.dtype):
            key = id(payload.dtype), payload.shape, tag
        else:
            return
        if key in self._heads_out:
            return  # the message was too large for the core
        if len(self._heads_out) > _MOST_HEADS:
            self._heads_out.clear()
            self._dtypes_of_heads.clear()
        self._heads_out[key] = encoded
        if type(payload) is np.ndarray:
            self._dtypes_of_heads.append(payload.dtype)

    def qsize(self) -> tuple[int, int]:
        """Return how many messages are left to read, and the bytes of their payloads.

        Returns:
            Both as (messages, bytes).

        Raises:
            PartitionError: the group cannot be used now.

        Cost: nothing.
        Source: Hill et al. 1998, bsp_qsize.
        """
        if self._unusable is not None or get_ident() != self._thread:
            self._check_usable()
        return len(self._queue), self._queue.nbytes()

    def get_tag(self) -> Any:
        """Return the tag of the next message, and leave the message in the queue.

        Returns:
            The tag; None where no message is left, or where the message has no tag.

        Raises:
            PartitionError: the group cannot be used now.

        Cost: nothing.
        Source: Hill et al. 1998, bsp_get_tag.
        """
        if self._unusable is not None or get_ident() != self._thread:
            self._check_usable()
        message = self._queue.peek()
        return None if message is None else messages.decode_tag(message[1])

    def move(self) -> Any:
        """Take the next message and return its payload, which is the caller's own.

        Raises:
            MessageError: no message is left.
            PartitionError: the group cannot be used now.

        Cost: nothing beyond what sending cost; one copy of the payload.
        Source: Hill et al. 1998, bsp_move.
        """
        if self._unusable is not None or get_ident() != self._thread:
            self._check_usable()
        if not len(self._queue):
            raise self._error(MessageError, "move: there is no message left; ask qsize() first")
        _, head, content = self._queue.take()
        return messages.decode(head, content, self._port.fetch)

    def hpmove(self) -> tuple[Any, Any] | None:
        """Take the next message and return its tag and its payload without a copy.

        An array or bytes come as a view that is valid until the next sync; any other payload
        is the caller's own.

        Returns:
            (tag, payload); None where no message is left.

        Raises:
            PartitionError: the group cannot be used now.

        Cost: nothing.
        Source: Hill et al. 1998, bsp_hpmove.
        """
        if self._unusable is not None or get_ident() != self._thread:
            self._check_usable()
        if not len(self._queue):
            return None
        _, head, content = self._queue.take()
        payload = messages.decode(head, content, self._port.fetch, copy=False)
        return messages.decode_tag(head), payload

    def set_tagsize(self, size: int) -> int | None:
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
        self._check_usable()
        nbytes = self._check_tag_size(size)
        self._registry.note("set_tagsize", nbytes)
        self._next_tag_size = nbytes
        return self._tag_size

    def _decode(self, message: Message) -> tuple[int, Any, Any]:
        """Return a message as a program reads it."""
        source, head, content = message
        payload = messages.decode(head, content, self._port.fetch)
        if head[2][0] == "array" and not isinstance(content, tuple):
            self._dtypes[head[2][2]] = payload.dtype
        return source, messages.decode_tag(head), payload

    def _check_tag_size(self, size: int) -> int:
        try:
            nbytes = int(operator.index(size))
        except TypeError:
            nbytes = -1
        if nbytes < 0:
            raise self._error(
                MessageError,
                f"set_tagsize: a tag cannot have {size!r} bytes; say an integer, 0 or more",
            )
        return nbytes

    def _check_tag(self, tag: Any) -> Any:
        """Return the tag that travels, where tags have a size."""
        if type(tag) is CollectiveTag:
            return tag  # of a collective: no program sees it
        if tag is None and self._tag_size == 0:
            return b""
        if not isinstance(tag, bytes) or len(tag) != self._tag_size:
            raise self._error(
                MessageError, f"send: tags are bytes of length {self._tag_size}, not {tag!r}"
            )
        return tag


def _has_a_lasting_form(dtype: np.dtype[Any]) -> bool:
    """Tell whether all arrays of a dtype are sent as their bytes, and look the same there.

    Arrays of objects are pickled. The names of fields can be changed in place.
    """
    return dtype.names is None and not dtype.hasobject
