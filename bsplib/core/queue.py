"""The messages that a process can read, in the order in which they are read."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any, NamedTuple

Message = tuple[int, Any, Any]
"""A received message: the pid of its source, its head, and its content: bytes; a bytearray that
the payload may use; or a handle."""


class CollectiveTag(NamedTuple):
    """The tag of a message of a collective, which differs from every tag of a program.

    It is sent as a plain tuple, while a tuple that a program uses as a tag is pickled.
    """

    operation: str
    header: Any = None
    """What the receiver needs besides the payload, in plain values."""


class Queue:
    """The messages that arrived at the last sync, in the order (source, program)."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        """All of them, read or not."""
        self.next = 0
        """How many of them were read."""
        self.lasting = 0
        """How many of the last ones outlive the next superstep, if they are not read."""

    def fill(self, messages: list[Message]) -> None:
        """Replace all messages, read or not."""
        self.messages = messages
        self.next = self.lasting = 0

    def clear(self) -> bool:
        """Drop all messages, read or not, but those that last; return whether there are any."""
        count = min(self.lasting, len(self.messages) - self.next)
        self.fill(self.messages[-count:] if count else [])
        return count > 0

    def merge(self) -> None:
        """Put those that have lasted among those that came later, in the order of reading."""
        self.messages.sort(key=itemgetter(0))

    def __len__(self) -> int:
        return len(self.messages) - self.next

    def nbytes(self) -> int:
        """Return the bytes of all payloads that are not read yet."""
        return sum(_size_of(content) for _, _, content in self.messages[self.next :])

    def peek(self) -> Message | None:
        """Return the next message without removing it; None if there is none."""
        return self.messages[self.next] if len(self) else None

    def take(self) -> Message:
        """Return the next message and count it as read."""
        message = self.messages[self.next]
        self.next += 1
        return message

    def take_collective(self) -> list[Message]:
        """Remove and return the messages of collectives; keep those of the program."""
        left = self.messages[self.next :]
        taken = [message for message in left if _is_collective(message)]
        if taken:
            self.fill([message for message in left if not _is_collective(message)])
        return taken

    def take_left(self, fetch: Callable[[Any], Any]) -> list[Message]:
        """Remove and return the unread messages, with contents that stay valid after the sync.

        Args:
            fetch: returns the payload for a handle.
        """
        left = self.messages[self.next :]
        self.next = len(self.messages)
        return [
            (source, head, bytes(fetch(content)) if isinstance(content, tuple) else content)
            for source, head, content in left
        ]


def _size_of(content: Any) -> int:
    """Return the bytes of a payload, which may be a handle."""
    size: int = content[2] if isinstance(content, tuple) else len(content)
    return size


def _is_collective(message: Message) -> bool:
    """Tell whether a collective has sent a message: a program's tag is never a plain tuple."""
    return type(message[1][0]) is tuple
