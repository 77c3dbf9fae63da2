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

from bsplib.backends.shm.control import (
    CALLER_ASLEEP,
    REPORT,
    REPORT_BYTES,
    REPORT_SIZE,
    REPORTED,
    WORD,
)
from bsplib.backends.shm.fences import STORES_IN_ORDER, Fences, full_fence
from bsplib.backends.shm.segment import Segment

_LENGTH = Struct("!Q")
_AT_ONCE = 1 << 14
"""Bytes of a message that is copied behind its length, to be written by one call."""
_READ = 1 << 16
"""Most bytes that are asked for when the length of a message is not known yet."""
_MOST = 1 << 20
"""Most bytes that are asked for at a time."""


def framed(message: bytes) -> bytes:
    """Return a message with its length."""
    return _LENGTH.pack(len(message)) + message


def parts_of(message: bytes) -> tuple[bytes, ...]:
    """Return what has to be written to send a message: a small one is copied, in one part."""
    if len(message) <= _AT_ONCE:
        return (framed(message),)
    return _LENGTH.pack(len(message)), message


class Channel:
    """One end of a pipe in both directions.

    Args:
        pipe: this end; it must not be used in another way.
    """

    def __init__(self, pipe: Connection) -> None:
        self.sent = 0
        """How many messages were sent."""
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
        self.sent += 1
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

    def _read(self, most: int = _READ) -> bytes:
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
            data = self._read(min(missing, _MOST))
            message.write(data)
            missing -= len(data)
        return message.getvalue()

    def close(self) -> None:
        """Close this end."""
        self._pipe.close()


# -- small reports of the processes of a pool, which wake the caller only once in a run -----------
# A report that comes through a pipe wakes the caller. On a computer with fewer cores than processes
# it then takes a core from a process that has not ended its run, once for each process. So a
# process leaves a small report in its control words, and the last one of them wakes the caller if
# it sleeps. The caller finds all reports there.


LOOK = b"look"
"""Sent through the pipe when all have ended a run: the caller finds what they have left. Two
processes may send it for one run, so that the caller reads one of them late. It is no pickle."""


class Reports:
    """The small reports of all processes of a pool.

    Args:
        segment: shared memory of the run.
        nprocs: number of processes.
    """

    def __init__(self, segment: Segment, nprocs: int) -> None:
        self._segment = segment
        self._starts = [segment.control_start(pid) // WORD for pid in range(nprocs)]

    def leave(self, pid: int, number: int, report: bytes, fences: Fences) -> bool:
        """Note that this process has ended a run, and leave its report; called once in a run.

        Args:
            pid: this process.
            number: of the run, from 1.
            report: at most :data:`~bsplib.backends.shm.control.REPORT_BYTES` bytes; empty if
                it goes through the pipe.
            fences: of this process.

        Returns:
            Whether the caller has to be woken: all processes have ended the run, and it sleeps.
            It may be True in several processes that end the run at the same moment.
        """
        control, start = self._segment.control, self._starts[pid]
        begin = (start + REPORT) * WORD
        self._segment.buffer[begin : begin + len(report)] = report
        control[start + REPORT_SIZE] = len(report)
        fences.order()  # release: the report, before REPORTED
        control[start + REPORTED] = number
        fences.full()  # REPORTED, before the looks at that of others and at CALLER_ASLEEP
        return control[CALLER_ASLEEP] == 1 and self.are_all_left(number)

    def are_all_left(self, number: int) -> bool:
        """Tell whether all processes have ended a run."""
        control = self._segment.control
        for start in self._starts:  # noqa: SIM110  # a generator takes twice the time
            if control[start + REPORTED] != number:
                return False
        return True

    def begin_sleep(self) -> None:
        """In the caller: note that it sleeps from now on; it has to look at reports once more."""
        self._segment.control[CALLER_ASLEEP] = 1
        full_fence()  # CALLER_ASLEEP, before the looks at REPORTED

    def end_sleep(self) -> None:
        """In the caller: note that it is awake."""
        self._segment.control[CALLER_ASLEEP] = 0

    def find(self, pid: int, number: int) -> bytes:
        """Return the report that a process has left in a run; empty if there is none."""
        control, start = self._segment.control, self._starts[pid]
        if control[start + REPORTED] != number:
            return b""
        if not STORES_IN_ORDER:
            full_fence()  # acquire: REPORTED, before the report
        begin = (start + REPORT) * WORD
        return bytes(self._segment.buffer[begin : begin + control[start + REPORT_SIZE]])


def is_small(report: bytes) -> bool:
    """Tell whether a report can be left."""
    return len(report) <= REPORT_BYTES
