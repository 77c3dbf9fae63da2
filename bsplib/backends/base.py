"""What a backend provides: it starts processes, and lets them exchange data.

The primitives, their argument checks and the order of delivery are the same for all
backends and stand above them. A backend provides

* a function that runs some work in ``nprocs`` processes and reports how each of them
  ended (:mod:`bsplib.backends.launching`), and
* a :class:`Port` for each process in each group, by which entries travel
  (:mod:`bsplib.core.entries`).

A small payload is part of its entry. A large one is **staged** for its receiver:
:meth:`Port.stage` returns memory for it and a handle, and the receiver exchanges
the handle for the payload with :meth:`Port.fetch`. A backend without shared memory sends the
payload in between.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from bsplib.backends.members import Members
from bsplib.core.clock import Clock
from bsplib.core.entries import Block, PrivateMemory
from bsplib.core.meeting import Meeting
from bsplib.errors import OutOfSharedMemoryError

ALIGNMENT = 64
"""Of the memory of an array, in bytes: no two arrays share a cache line."""
AFTER_ALL = 1 << 62
"""Stands for a superstep that comes after all others."""

Found = TypeVar("Found")

Buffer = NDArray[np.uint8]
"""Memory for a payload, as bytes."""

Handle = tuple[int, int, int]
"""Stands for a payload that was staged: the pid of the process that staged it, the number that says
where it lies, which only the backend understands, and its size in bytes."""

Payload = bytes | Handle
"""Values that are transferred: the bytes themselves, or the handle of the staged values."""

Sent = bytes | memoryview
"""The entries of one process for another one, one after the other."""

Arrived = tuple[int, Sent]
"""The pid of a process, and its entries for this one."""

Arrivals = tuple[list[int], list[Arrived]]
"""What an exchange brought: the flags of every process, by pid, and entries for this process."""


class Stopped(BaseException):
    """Another process has failed, so that the run ends. It unwinds ``main`` and is not reported.

    A port raises it where its process would wait for others.
    """


class LeftGroup(Protocol):
    """A group that a process has left while others may still be in it."""

    def try_to_release(self) -> bool:
        """Look at posts that came late; give the group's resources back once all have come.

        Returns:
            Whether the group is released.

        Raises:
            SyncMismatchError: a late post has a message that this process did not wait for.
        """


class Alignment(NamedTuple):
    """The clock of a process, compared with that of process 0."""

    host: str
    """Name of the host of the process."""
    offset_ns: int
    """Is added to a time of this process for that of process 0."""
    bound_ns: int
    """Greatest possible error of the offset."""


class Port(ABC):
    """The connection of one process to the other processes of one group.

    Args:
        pid: this process in the numbering of the group.
        members: pids in the root group of the group's processes, by pid.
        meeting: the meetings of the group, by which supersteps end.
        staging: what the core tells by ``end_superstep`` that a superstep with staged values ends,
            and asks itself for memory where all processes share it: ``reserve(nbytes,
            message=False)`` returns the byte at which a value can be staged. None: this port.
    """

    def __init__(self, pid: int, members: Members, meeting: Meeting, staging: Any = None) -> None:
        self.pid = pid
        self.nprocs = len(members)
        self.members = members
        self.meeting = meeting
        self.staging = self if staging is None else staging

    clock: Clock | None = None
    """The clock of this process where its time is virtual."""
    now: Callable[[], int] = time.perf_counter_ns
    """Returns this process's time in ns."""

    def align_clocks(self, *, again: bool) -> Alignment | None:  # noqa: ARG002  # there is nothing to align
        """Compare the clocks of all processes of a run, which call it together.

        From then on, a stamp of another process is converted when it comes: so
        :attr:`released` is a time of this process's clock.

        Args:
            again: measure the clocks although they have been measured before.

        Returns:
            None where all processes of a run read one clock anyway.

        Raises:
            Stopped: another process has failed.
        """
        return None

    def in_turn(self) -> None:  # noqa: B027  # not abstract: real processes come when they come
        """Wait, in virtual time, until no other process can do anything at an earlier time."""

    def send_buffer_memory(self) -> Callable[[int], Block]:
        """Return the function that allocates memory for send buffers of this process.

        Where the processes of the group share memory, all can read it.
        """
        return PrivateMemory().allocate

    def allocate(self, nbytes: int, *, zero: bool) -> memoryview:  # noqa: ARG002  # always zeroed
        """Return memory that lives until :meth:`release`, 64-byte aligned, zeroed if asked."""
        try:
            memory = np.zeros(nbytes + ALIGNMENT, np.uint8)
        except (MemoryError, ValueError):  # of more bytes than a dimension can have
            raise OutOfSharedMemoryError(
                f"memory is full: {nbytes} bytes more are needed, which the system does not give; "
                f"use smaller arrays or fewer processes on a computer"
            ) from None
        start = -memory.ctypes.data % ALIGNMENT
        return memory[start : start + nbytes].data

    def release(self, memory: memoryview) -> None:  # noqa: B027  # freed with the last array that shows it
        """Take back what :meth:`allocate` gave out."""

    def shared_address_of(self, array: NDArray[Any]) -> int | None:  # noqa: ARG002  # without shared memory there is none
        """Return the address of an array for all processes; None if only this one can reach it."""
        return None

    def reach(self, pid: int, shared_address: int, nbytes: int) -> memoryview | None:  # noqa: ARG002
        """Return memory of a process, by an address that it announced.

        Returns:
            None where this process cannot reach it: the other one is on another host.
        """
        return None

    @abstractmethod
    def stage(self, nbytes: int, to: int, *, message: bool = False) -> tuple[Handle, Buffer]:
        """Return memory for a payload of this superstep, to be filled before it ends.

        Args:
            nbytes: size of the payload.
            to: pid of the only process that will fetch it, which may be this one; -1 where several
                do, which is asked for only where all of them share memory.
            message: it is fetched after the end of the superstep, too.
        """

    def stage_values(self, values: NDArray[Any], to: int) -> int:
        """Stage the values of an array; return the number that says where they are."""
        (_, where, _), memory = self.stage(values.nbytes, to)
        np.copyto(memory.view(values.dtype).reshape(values.shape), values)
        return where

    @abstractmethod
    def fetch(self, handle: Handle) -> memoryview:
        """Return a staged payload; valid until this process's next sync."""

    def keep(self, handle: Handle) -> Buffer | None:  # noqa: ARG002  # without shared memory there is none
        """Return the payload of a message as memory that belongs to this process from now on.

        It is called at most once for a payload, in the superstep in which it can be fetched.

        Returns:
            Memory that no other process uses as long as it, or an array in it, is referred to; None
            where the payload has to be copied.
        """
        return None

    @abstractmethod
    def exchange_oblivious(
        self, entries: Mapping[int, tuple[int, Sent]], expected: int, stamp: int = 0
    ) -> list[Arrived]:
        """Post entries, and wait until ``expected`` messages have come for this process.

        Args:
            entries: by receiving pid, with the number of messages that they count for.
            expected: messages to wait for from other processes.
            stamp: time of arrival in ns, 0 where the run is not recorded.

        Raises:
            SyncMismatchError: more have come, or fewer have come and no more can come.
        """

    def once(self, find: Callable[[], Found]) -> Found:
        """Return what a function finds in the posts of all processes, the same for each of them.

        All processes of the group call it after the same meeting. Where they share an interpreter,
        only the first of them looks: p processes that look at p posts each would take p squared.
        """
        return find()

    @abstractmethod
    def end_superstep(self) -> None:
        """Begin the next superstep: staged payloads now belong to their receivers."""

    @abstractmethod
    def split(self, ordinal: int, index: int, pids: Sequence[int]) -> Port:
        """Open the port of a sub-group without communication.

        Args:
            ordinal: number of the partition or split among those of this group.
            index: number of the sub-group in that partition.
            pids: its processes in the numbering of this group; this one is among them.
        """

    @abstractmethod
    def close(self) -> None:
        """Leave the group for good."""
