"""Sending messages, and reading those that have come."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

from bsplib.errors import (
    BspError,
    MessageError,
)
from bsplib.primitives.remote import RemoteAccess
from bsplib.transfers import messages


class Mailbox(RemoteAccess):
    """The messages of one process in a group."""

    def send(self, pid: int, payload: Any, tag: Any = None) -> None:
        """Send a message that process ``pid`` can read in the next superstep.

        The payload is copied before the call returns.

        Args:
            pid: receiving process, ``0 <= pid < nprocs``; may be this one.
            payload: array (shape and dtype are kept), bytes, or any picklable object.
            tag: small picklable object; bytes of the size that :meth:`set_tagsize`
                set, where it did. None stands for the tag of size 0.

        Raises:
            ProcessRangeError: ``pid`` is no process of this group.
            MessageError: the payload or the tag cannot be pickled, or the tag has
                another size.
            OverlapError: with ``check=True``, the payload is read before a get has filled it.
            OutOfSharedMemoryError: there is no room for the copy of the payload.
            PartitionError: the group cannot be used now.

        Cost: the payload's bytes to h_out here and to h_in on ``pid``; a tag is free.
        Source: Hill et al. 1998, bsp_send.
        """
        if self._unusable is not None:
            self._check_usable()
        if pid.__class__ is not int or not 0 <= pid < self._nprocs:
            pid = self._check_pid(pid, "send")
        if self._tag_size is not None:
            tag = self._check_tag(tag)
        try:
            if self._watch is not None:
                payload = self._watch.source(payload, "send")
            head, content = messages.encode(payload, tag, self._port.stage_message, pid)
        except BspError as error:
            self._fail(error)
        self._out[pid].add_message(head, content)

    def qsize(self) -> tuple[int, int]:
        """Return how many messages are left to read, and the bytes of their payloads.

        Returns:
            Both as (messages, bytes).

        Raises:
            PartitionError: the group cannot be used now.

        Cost: nothing.
        Source: Hill et al. 1998, bsp_qsize.
        """
        if self._unusable is not None:
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
        if self._unusable is not None:
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
        if self._unusable is not None:
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
        if self._unusable is not None:
            self._check_usable()
        if not len(self._queue):
            return None
        _, head, content = self._queue.take()
        payload = messages.decode(head, content, self._port.fetch, copy=False)
        return messages.decode_tag(head), payload

    def messages(self) -> Iterator[tuple[int, Any, Any]]:
        """Take the messages one after the other, as (source, tag, payload).

        They come in the order (source, program); each payload is the caller's own. A
        message is taken when the iteration reaches it: the others stay in the queue.

        Raises:
            PartitionError: the group cannot be used now.

        Cost: nothing beyond what sending cost; one copy of each payload.
        Source: Hill et al. 1998, bsp_get_tag and bsp_move.
        """
        self._check_usable()
        while len(self._queue):
            yield self._read()

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

    def _read(self) -> tuple[int, Any, Any]:
        source, head, content = self._queue.take()
        payload = messages.decode(head, content, self._port.fetch)
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
        if type(tag) is messages.CollectiveTag:
            return tag  # of a collective: no program sees it
        if tag is None and self._tag_size == 0:
            return b""
        if not isinstance(tag, bytes) or len(tag) != self._tag_size:
            raise self._error(
                MessageError, f"send: tags are bytes of length {self._tag_size}, not {tag!r}"
            )
        return tag
