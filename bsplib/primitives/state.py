"""What one process knows of a group: all its private attributes, and its errors.

Every other class that a group is made of inherits from :class:`GroupState`, and keeps
no attribute of its own. Only a recorder adds some (:mod:`bsplib.recording.recorded_group`).
"""

from __future__ import annotations

import operator
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from threading import get_ident
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from bsplib import call_site
from bsplib.backends.base import Port
from bsplib.core.box import Box
from bsplib.core.lanes import Lane
from bsplib.core.records import Record
from bsplib.core.values import Values
from bsplib.errors import BspError, PartitionError, ProcessRangeError, UsageError
from bsplib.transfers.casting import as_array
from bsplib.transfers.order import no_process
from bsplib.transfers.place import Array, address
from bsplib.transfers.registry import Registration, Registry
from bsplib.transfers.watch import Quarantine, Watch

if TYPE_CHECKING:
    from bsplib.experiments.blocks import Samples
    from bsplib.machine import Machine


@dataclass(frozen=True)
class Terms:
    """What holds for all groups of a run in one process."""

    began_ns: int
    """When the barrier before ``main`` was passed."""
    machine: Machine
    check: bool = False
    samples: Samples | None = None
    """Where the blocks of experiments are measured; None if they are not."""


class GroupState(Values):
    """The state of a group in one of its processes, and the checks that read it.

    Args:
        port: the process's connection to the others of the group.
        terms: of the run.
        parent: the group that this one is a sub-group of; None for the whole run.
    """

    def __init__(self, port: Port, terms: Terms, parent: GroupState | None = None) -> None:
        super().__init__(port.pid, port.nprocs, port.meeting(), _box_of(port))
        self._clock = port.clock
        """The clock of this process where its time is virtual; it stands still in primitives."""
        self._timed = port.clock is not None
        """Calls of the core stop the clock, or count their time; a recorder sets it, too."""
        self._port = port
        """The connection to the other processes, which the backend has made."""
        self._terms = terms
        """What holds for the whole run."""
        self._parent = parent
        """The group that was partitioned or split into this one; None for the whole run."""
        self._watch = self._new_watch() if terms.check else None
        """What ``check=True`` observes; None without it. Changed by every transfer."""
        self._checked = terms.check
        """The run is checked: each record says where its call stands."""
        self._declare_values()
        self._declare_collected()
        self._declare_lasting()
        self._declare_use()

    def _declare_collected(self) -> None:
        """Set what primitives collect beside the records."""
        self._answers: Iterator[Record] = iter(())
        """Records that answer the gets of this superstep, in the order of the gets."""
        self._awaited: dict[int, weakref.ref[Array]] = {}
        """Results of gets by index, by their ``id()``. Filled and emptied by
        :mod:`bsplib.primitives.remote_array`."""
        self._awaited_in = 0
        """The superstep of these gets."""

    def _declare_lasting(self) -> None:
        """Set what lasts from superstep to superstep."""
        self._registry = Registry()
        """The registered arrays. Changed by push_reg, pop_reg and allocations; what the
        others have to know takes effect at the next global sync."""
        self._changes = self._registry.changes
        """The registry's own list of what it will announce at the next global sync."""
        self._dtypes_of_heads: list[Any] = []
        """Keeps dtypes alive whose ``id()`` is part of a key of remembered heads."""
        self._next_tag_size: int | None = None
        """Bytes of every tag from the next global sync on. Set by set_tagsize."""

    def _declare_use(self) -> None:
        """Set what decides whether the group can be used: sub-groups, and the end of the run."""
        self._inner: GroupState | None = None
        """The sub-group that is open. Set by partition and split, cleared by done."""
        self._partitions = 0
        """How often the group was partitioned or split so far."""
        self._ended = False
        """The run has ended, and the group stays suspended."""

    @property
    def pid(self) -> int:
        """This process, ``0 <= pid < nprocs``.

        Cost: nothing.
        Source: Hill et al. 1998, bsp_pid.
        """
        return self._pid

    @property
    def nprocs(self) -> int:
        """Number of processes of the group.

        Cost: nothing.
        Source: Hill et al. 1998, bsp_nprocs.
        """
        return self._nprocs

    @property
    def machine(self) -> Machine:
        """The Machine that prices the run.

        Cost: nothing.
        """
        return self._terms.machine

    # -- whether the group can be used --------------------------------------------------------

    def _suspend(self, reason: str) -> None:
        """Make every use of the group an error, for a reason, until it is resumed."""
        if not self._ended:
            self._unusable = reason
            self._forget_lanes()  # a lane does not ask whether the group can be used

    def _resume(self) -> None:
        """Let the program use the group again."""
        if not self._ended:
            self._unusable = None

    def _check_usable(self, operation: str | None = None) -> None:
        """Raise unless this thread can use the group now.

        Args:
            operation: the primitive that the program has called, if the caller knows it.
        """
        if self._unusable is None and get_ident() == self._thread:
            return
        operation = operation or call_site.operation()
        if self._unusable is not None:
            raise self._error(
                PartitionError, f"{operation}: this group cannot be used: {self._unusable}"
            )
        raise self._error(
            UsageError,
            f"{operation}: this is not the thread that runs main, and a group belongs to "
            f"that thread; hand values to it, and let it communicate",
        )

    def _check_not_ended(self) -> None:
        if self._ended:
            self._check_usable()

    def _check_pid(self, pid: Any, operation: str) -> int:
        try:
            number = int(operator.index(pid))
        except TypeError:
            raise self._error(ProcessRangeError, no_process(operation, pid)) from None
        if not 0 <= number < self._nprocs:
            raise self._error(
                ProcessRangeError,
                f"{operation}: there is no process {number} among {self._nprocs} (0 to "
                f"{self._nprocs - 1})",
            )
        return number

    # -- staged values ----------------------------------------------------------------------------

    def _stage_room(self, nbytes: int, to: int, is_message: bool) -> int:
        """Return the byte at which values can be staged; -1 where there is no memory."""
        stage = self._port.stage_message if is_message else self._port.stage
        try:
            (_, where, _), _ = stage(nbytes, to)
        except BspError:  # the call is checked, and tries again: its error names the line
            return -1
        return where

    def _stage(self, values: Any, nbytes: int, to: int) -> int:
        """Stage the values of a put; return where they are, -1 where there is no memory."""
        try:
            (_, where, _), room = self._port.stage(nbytes, to)
        except BspError:  # as above
            return -1
        np.copyto(room.view(values.dtype).reshape(values.shape), values)
        return where

    def _fetch(self, source: int, where: int, nbytes: int) -> memoryview:
        """Return what a process has staged."""
        return self._port.fetch((source, where, nbytes))

    def _find_there(self, lane: Lane, pid: int) -> int:
        """Find out, once, where the array of another process lies for this one; 1 if nowhere."""
        there = self._registry.at(lane.slot).extent_on(pid)
        found = 1
        if there is not None and there.shared_address is not None:
            room = self._port.reach(pid, there.shared_address, lane.sizes[pid])
            if room is not None:
                found = address(np.frombuffer(room, np.uint8))
        lane.addresses[pid] = found
        return found

    def _map_there(self, address: int, nbytes: int) -> None:
        """Map memory of another process, into which this one writes for the first time."""
        self._port.map_at_once(address, nbytes)

    # -- errors -------------------------------------------------------------------------------

    def _error(self, kind: type[BspError], text: str) -> BspError:
        """Return an error that says where it happened."""
        process = self._port.members[self._pid]
        place = call_site.line()
        error = kind(f"{text} [process {process}, superstep {self._superstep}, {place}]")
        error.pid, error.superstep = process, self._root_superstep()
        return error

    def _fail(self, error: BspError) -> NoReturn:
        """Raise an error from below as one that says where it happened."""
        if error.pid is not None:
            raise error
        raise self._error(type(error), str(error)) from error.__cause__

    def _fail_for_good(self, error: BspError) -> NoReturn:
        """Raise an error from the end of a superstep: the group cannot be used any more."""
        self._suspend(f"it has failed ({error})")
        self._fail(error)

    def _root_superstep(self) -> int:
        group = self
        while group._parent is not None:
            group = group._parent
        return group._superstep

    # -- what several primitives need -----------------------------------------------------------

    def _to_read(self, operation: str, values: Any) -> Any:
        """Return what a program passes on; under check raise if it is not there yet."""
        if self._watch is None:
            return values
        try:
            return self._watch.source(values, operation)
        except BspError as error:
            self._fail(error)

    def _as_array(self, operation: str, values: Any) -> Array:
        """Return values as an array; raise if it is a masked one."""
        try:
            return as_array(operation, values)
        except BspError as error:
            self._fail(error)

    def _new_watch(self) -> Watch:
        above = None if self._parent is None else self._parent._watch
        quarantine = Quarantine(self._port.release) if above is None else above.quarantine
        return Watch(self._error, quarantine)

    def _free(self, registrations: list[Registration]) -> None:
        """Give back the memory of arrays."""
        if self._watch is not None:
            self._watch.free(registrations)
            return
        for registration in registrations:
            assert registration.memory is not None  # or it would not be among them
            self._port.release(registration.memory)


def _box_of(port: Port) -> Box:
    """Return a box for records of this process."""
    return Box(port.pid, port.nprocs, port.box_memory())
