"""What a backend owes the machine: to start processes, and to let them exchange data.

The primitives, their argument checks and the order of delivery stand once,
above this line. A backend supplies

* a function that does some work in ``nprocs`` processes and reports how each of them
  ended, registered with what else is known of the backend
  (:mod:`bsplib.backends.launching`), and
* a :class:`Port` for each process in each group, through which parcels travel.

What travels is described in :mod:`bsplib.backends.parcels`. A small payload is carried
along as bytes. A large one is **staged** for its receiver: :meth:`Port.stage` gives room
and a ticket, and the receiver exchanges the ticket for the payload with :meth:`Port.fetch`
or :meth:`Port.land`. A backend without shared memory moves the payload in between.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bsplib.backends.members import Members
from bsplib.backends.parcels import Parcel, SmallPut, Ticket

Room = NDArray[np.uint8]
"""Bytes that a payload is written to."""

Arrived = tuple[int, Parcel]
"""A parcel that has come, after the pid of its source."""

Arrivals = tuple[list[int], list[Arrived], list[Any] | None]
"""What an exchange brought: the note of every process, by pid; parcels for this process,
in order of source; what each process announced to all, by pid, or None where nobody
announced anything."""


class Carrier(Protocol):
    """What moves payloads between the processes of a group."""

    def stage(self, nbytes: int, to: int) -> tuple[Ticket, Room]:
        """Return room for a payload of this superstep; see :meth:`Port.stage`."""

    def lend(self, values: NDArray[Any], to: int) -> Ticket | None:
        """Stage values without a copy; see :meth:`Port.lend`."""

    def fetch(self, ticket: Ticket) -> memoryview:
        """Return a payload; see :meth:`Port.fetch`."""

    def land(self, ticket: Ticket, room: memoryview) -> None:
        """Write a payload where it belongs; see :meth:`Port.land`."""


class VirtualClock(Protocol):
    """The clock of a process whose time is virtual: it runs between primitives only."""

    empty_ns: int
    """What the clock measures, in ns, between two primitives with nothing in between."""

    def now(self) -> int:
        """Return the virtual time in ns."""

    def pause(self) -> None:
        """Enter a primitive."""

    def resume(self) -> None:
        """Leave a primitive."""

    def settle(self) -> None:
        """Count all that was measured: the time is to be read."""

    def computing(self) -> AbstractContextManager[None]:
        """Run inside a primitive, while a function of the program does."""


class Stopped(BaseException):
    """The run is over because of another process; unwinds ``main``, seen by nobody.

    A port raises it where its process would wait for others.
    """


class LeftGroup(Protocol):
    """A group that a process has left while others may still be in it."""

    def let_go(self) -> bool:
        """Look for what came too late; return whether this process is done with the group.

        Raises:
            SyncMismatchError: a message came that nobody waited for.
        """


class Port(ABC):
    """One process's door to the other processes of one group."""

    pid: int
    """This process in the numbering of the group."""
    nprocs: int
    members: Members
    """Pids in the root group of the group's processes, by pid."""
    released: int
    """Latest arrival, in ns, among those the last :meth:`exchange` waited for; kept
    only where the meeting was given a stamp."""
    clock: VirtualClock | None = None
    """The clock of this process where its time is virtual."""

    def now(self) -> int:
        """Return this process's time in ns."""
        return time.perf_counter_ns()

    def charge(self, seconds: float) -> None:  # noqa: B027  # not abstract: most do nothing
        """Advance virtual time by computation that was not done; real time does not change."""

    @abstractmethod
    def allocate(self, nbytes: int, *, zero: bool) -> memoryview:
        """Return memory that lives until :meth:`release`, 64-byte aligned, zeroed if asked."""

    @abstractmethod
    def release(self, memory: memoryview) -> None:
        """Take back what :meth:`allocate` gave out."""

    def shared_address_of(self, array: NDArray[Any]) -> int | None:  # noqa: ARG002  # none is, by default
        """Return where an array lies for every process; None if only this one can reach it."""
        return None

    def reach(self, pid: int, shared_address: int, nbytes: int) -> memoryview | None:  # noqa: ARG002
        """Return memory of a process, by an address that it announced.

        Returns:
            None where this process cannot reach it: the other one is on another host.
        """
        return None

    def is_settled(self, pid: int) -> bool:  # noqa: ARG002  # nobody is, by default
        """Tell whether a process has done with the superstep before this one.

        True only where all ended that superstep together: memory of the process that
        may be written at any time in this superstep can be written now.
        """
        return False

    @abstractmethod
    def stage(self, nbytes: int, to: int) -> tuple[Ticket, Room]:
        """Return room for a payload of this superstep, to be filled before it ends.

        Args:
            nbytes: size of the payload.
            to: receiving pid, which alone will fetch it; this process may be it.
        """

    def stage_message(self, nbytes: int, to: int) -> tuple[Ticket, Room]:
        """Do as :meth:`stage`, for what is fetched after the end of the superstep, too."""
        return self.stage(nbytes, to)

    def lend(self, values: NDArray[Any], to: int) -> Ticket | None:  # noqa: ARG002
        """Stage values that stay as they are until this superstep has ended, without a copy.

        Args:
            values: contiguous, in C order.
            to: as for :meth:`stage`.

        Returns:
            The ticket; None where the backend cannot send straight from foreign memory, or
            where a receiver may still read after this process has gone on.
        """
        return None

    @abstractmethod
    def fetch(self, ticket: Ticket) -> memoryview:
        """Return the payload of a parcel; valid until this process's next sync."""

    def land(self, ticket: Ticket, room: memoryview) -> None:
        """Write the payload of a parcel into contiguous memory of this process.

        A backend that receives payloads can receive it there, without a copy in between.

        Args:
            ticket: of the payload.
            room: bytes, as many as the payload has.
        """
        room[:] = self.fetch(ticket)

    @abstractmethod
    def exchange(
        self, parcels: Mapping[int, Parcel], note: int, common: Any = None, stamp: int = 0
    ) -> Arrivals | None:
        """Post this process's parcels, wait for all processes of the group.

        Args:
            parcels: by receiving pid; none for this process itself.
            note: small number, below 128, that every process gets to see.
            common: announcement for all processes, in plain values; None for none.
            stamp: time of arrival in ns, 0 where nobody records.

        Returns:
            What came; None where all notes were the same and nobody posted anything.

        A superstep may take several meetings; :meth:`end_superstep` ends it.
        """

    def sync_empty(self, note: int) -> Arrivals | list[SmallPut] | None:
        """End a superstep in which this process transfers nothing; else as :meth:`sync_one_put`."""
        return self.sync_one_put(note, 0)

    def sync_one_put(
        self, note: int, stamp: int, to: int = 0, small_put: SmallPut | None = None
    ) -> Arrivals | list[SmallPut] | None:
        """End a superstep in which this process transfers nothing or one small put.

        Args:
            note: as for :meth:`exchange`.
            stamp: likewise.
            to: receiving pid, not this process.
            small_put: the put.

        Returns:
            What came; as a list of small puts if that is all. None where nothing came and all
            notes were the same: then it has done :meth:`end_superstep`, too.
        """
        parcels = {} if small_put is None else {to: small_put.parcel()}
        arrivals = self.exchange(parcels, note, None, stamp)
        if arrivals is None:
            self.end_superstep()
        return arrivals

    @abstractmethod
    def exchange_oblivious(
        self, parcels: Mapping[int, tuple[int, Parcel]], expected: int, stamp: int = 0
    ) -> list[Arrived]:
        """Post parcels, wait until ``expected`` messages are there for this process.

        Args:
            parcels: by receiving pid, with the number of messages in each.
            expected: messages to wait for from other processes.
            stamp: as for :meth:`exchange`.

        Raises:
            SyncMismatchError: more have come, or so many can never come.
        """

    @abstractmethod
    def end_superstep(self) -> None:
        """Begin the next superstep: staged payloads now belong to their receivers."""

    @abstractmethod
    def split(self, ordinal: int, index: int, pids: Sequence[int]) -> Port:
        """Open the port of a sub-group without communication.

        Args:
            ordinal: which partition or split of this group it is, counted over the run.
            index: which sub-group of it.
            pids: its processes in the numbering of this group; this one is among them.
        """

    @abstractmethod
    def close(self) -> None:
        """Leave the group for good."""
