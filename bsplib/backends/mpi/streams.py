"""The standard streams of a rank, whose text goes to the driver beside MPI.

mpiexec would pass on what a rank writes, too, but in pieces that may end in the middle of a
line, and after the run has ended. So only what C code and further processes write goes
through mpiexec.
"""

from __future__ import annotations

import io
import os
import sys
from typing import Any, TextIO

from bsplib.backends.mpi import control
from bsplib.backends.mpi.messages import Message, Stream


class _Sent(io.RawIOBase):
    """Bytes that are sent to the driver.

    Args:
        up: the connection to it.
        descriptor: 1 or 2: that of the stream.
    """

    def __init__(self, up: Stream, descriptor: int) -> None:
        self._up = up
        self._descriptor = descriptor
        self._owner = os.getpid()

    def write(self, data: Any, /) -> int:
        """Send bytes; a process that the rank has forked writes them itself."""
        content = bytes(data)
        if os.getpid() != self._owner:
            return os.write(self._descriptor, content)
        self._up.put(control.OUTPUT, bytes([self._descriptor]), content)
        self._up.flush_all()
        return len(content)

    def writable(self) -> bool:
        """Tell that it can be written to."""
        return True

    def fileno(self) -> int:
        """Return the descriptor, for further processes that write to it."""
        return self._descriptor


def send_streams(up: Stream) -> None:
    """Send what this process prints from now on to the driver."""
    sys.stdout, sys.stderr = sent_streams(up)


def sent_streams(up: Stream) -> tuple[TextIO, TextIO]:
    """Return an output and an error stream whose text goes to the driver."""
    return _text(up, 1), _text(up, 2)


def _text(up: Stream, descriptor: int) -> TextIO:
    stream = io.BufferedWriter(_Sent(up, descriptor))
    return io.TextIOWrapper(stream, "utf-8", "backslashreplace", line_buffering=True)


def show(output: Message, out: TextIO | None, err: TextIO | None) -> None:
    """In the driver: write what a rank has printed to one of two streams."""
    stream = err if output.content[0] == 2 else out
    if stream is not None:
        stream.write(output.content[1:].decode(errors="backslashreplace"))
        stream.flush()
