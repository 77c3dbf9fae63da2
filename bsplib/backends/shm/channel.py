"""Messages between the caller of a run and one of its processes, through a pipe.

A message is its length, as eight bytes, and its bytes. A small one is written, and mostly read,
by one system call, where a ``Connection`` of multiprocessing takes two calls to read it and
some ten functions of Python.
"""

from __future__ import annotations

import os
import select
from io import BytesIO
from multiprocessing.connection import Connection
from struct import Struct

_LENGTH = Struct("!Q")
_PIECE = 1 << 16
"""Most bytes that are read at a time. What is shorter is copied behind its length, to be written by
one call."""


def parts_of(message: bytes) -> tuple[bytes, ...]:
    """Return what has to be written to send a message: a small one is copied, in one part."""
    if len(message) <= _PIECE:
        return (_LENGTH.pack(len(message)) + message,)
    return _LENGTH.pack(len(message)), message


class Channel:
    """One end of a pipe in both directions.

    Args:
        pipe: this end; it must not be used in another way.
    """

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._descriptor = pipe.fileno()
        self._rest = b""  # of what was read: the beginning of the next message
        self._look = select.poll()
        self._look.register(self._descriptor, select.POLLIN)

    def fileno(self) -> int:
        """Return the file descriptor of the pipe."""
        return self._descriptor

    def send(self, message: bytes) -> None:
        """Send a message.

        Raises:
            OSError: the other end is closed.
        """
        for part in parts_of(message):
            self.write(part)

    def write(self, data: bytes) -> None:
        """Write bytes: a message with its length, or a part of it."""
        written = os.write(self._descriptor, data)
        if written < len(data):
            rest = memoryview(data)
            while written < len(data):
                written += os.write(self._descriptor, rest[written:])

    def receive(self) -> bytes:
        """Wait for a message and return it.

        Raises:
            EOFError: the other end was closed before the message was complete.
            OSError: the same, or this end is closed.
        """
        data = self._rest or self._read()
        while len(data) < _LENGTH.size:
            data += self._read()
        end = _LENGTH.size + _LENGTH.unpack_from(data)[0]
        if len(data) < end:
            self._rest = b""
            return self._complete(data, end)
        self._rest = data[end:]
        return data[_LENGTH.size : end]

    def has_come(self) -> bool:
        """Tell whether a message, or the end, has come."""
        return bool(self._rest or self._look.poll(0))

    def _read(self, most: int = _PIECE) -> bytes:
        data = os.read(self._descriptor, most)
        if not data:
            raise EOFError
        return data

    def _complete(self, begun: bytes, end: int) -> bytes:
        """Read the rest of a message of which the length and some bytes have been read."""
        message = BytesIO()
        message.write(memoryview(begun)[_LENGTH.size :])
        missing = end - len(begun)
        while missing:
            data = self._read(min(missing, _PIECE))
            message.write(data)
            missing -= len(data)
        return message.getvalue()

    def close(self) -> None:
        """Close this end."""
        self._pipe.close()
