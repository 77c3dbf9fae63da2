"""What one process knows of a group: all its private attributes, and its errors.

Every other class that a group is made of inherits from :class:`GroupState`, and keeps
no attribute of its own. Only a recorder adds some (:mod:`bsplib.recording.recorded_group`).
"""

from __future__ import annotations

import operator
import threading
from collections import defaultdict
from dataclasses import dataclass
from typing import Any, NoReturn

from bsplib import call_site
from bsplib.backends.base import Port
from bsplib.errors import BspError, PartitionError, ProcessRangeError, UsageError
from bsplib.machine import Machine
from bsplib.transfers import messages
from bsplib.transfers.delivery import PendingGet
from bsplib.transfers.irregular import UncheckedWords
from bsplib.transfers.lane import Lane
from bsplib.transfers.outgoing import Early, Outgoing
from bsplib.transfers.registry import Registration, Registry
from bsplib.transfers.target import Target
from bsplib.transfers.watch import Quarantine, Watch


@dataclass(frozen=True)
class Terms:
    """What holds for all groups of a run in one process."""

    began_ns: int
    """When the barrier before ``main`` was passed."""
    machine: Machine
    check: bool = False


class GroupState:
    """The state of a group in one of its processes, and the checks that read it.

    Args:
        port: the process's connection to the others of the group.
        terms: of the run.
        parent: the group that this one is a sub-group of; None for the whole run.
    """

    def __init__(self, port: Port, terms: Terms, parent: GroupState | None = None) -> None:
        # These attributes never change.
        self._pid = port.pid
        """This process; copied from the port, as reading it there takes longer."""
        self._nprocs = port.nprocs
        """Number of processes of the group; copied from the port, too."""
        self._port = port
        """The connection to the other processes, which the backend has made."""
        self._terms = terms
        """What holds for the whole run."""
        self._parent = parent
        """The group that was partitioned or split into this one; None for the whole run."""
        self._thread = threading.get_ident()
        """The thread that runs ``main``: no other may use the group."""
        self._watch = self._new_watch() if terms.check else None
        """What ``check=True`` observes; None without it. Changed by every transfer."""
        self._is_plain = not terms.check
        """A sync may take the short way; a recorder sets it to False, as ``check`` does."""

        # What the primitives of a superstep collect, and what its end empties.
        self._out = defaultdict[int, Outgoing](Outgoing)
        """What waits for the end of the superstep, by receiving pid. Filled by puts, gets
        and sends, emptied at the end."""
        self._early: dict[int, Early] = {}
        """Counts of what hpput and hpget have done already, by pid. Filled by them; a new
        dictionary after each superstep that used it."""
        self._gets: list[PendingGet] = []
        """Where the values of gets go, in program order. Filled by gets, emptied when the
        superstep's end has served them."""
        self._unresolved: list[Target | UncheckedWords] = []
        """Transfers that can be checked at the superstep's end only, since they name arrays
        made in this superstep. Filled by puts and gets, emptied at the end."""

        # What lasts from superstep to superstep.
        self._superstep = 0
        """Number of the superstep. Only the end of a superstep raises it."""
        self._registry = Registry()
        """The registered arrays. Changed by push_reg, pop_reg and allocations; what the
        others have to know takes effect at the next global sync."""
        self._changes = self._registry.changes
        """The registry's own list of what it will announce at the next global sync."""
        self._lanes: dict[tuple[int, int], Lane] = {}
        """The checked way to an array on another process, by that pid and the array's id():
        registered arrays are alive. The first put or get opens one; all are dropped where
        registrations change and where the group is suspended."""
        self._queue = messages.Queue()
        """Messages that can be read. Each end of a superstep fills it, reading empties it."""
        self._tag_size: int | None = None
        """Bytes of every tag; None where tags are free. Set at a global sync."""
        self._next_tag_size: int | None = None
        """Bytes of every tag from the next global sync on. Set by set_tagsize."""

        # Sub-groups, and whether the group can be used.
        self._inner: GroupState | None = None
        """The sub-group that is open. Set by partition and split, cleared by done."""
        self._partitions = 0
        """How often the group was partitioned or split so far."""
        self._unusable: str | None = None
        """Why the group cannot be used at present; None where it can. Set by
        :meth:`_suspend`, cleared by :meth:`_resume`."""
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
            self._lanes.clear()  # a lane does not ask whether the group can be used

    def _resume(self) -> None:
        """Let the program use the group again."""
        if not self._ended:
            self._unusable = None

    def _check_usable(self) -> None:
        if self._unusable is not None:
            raise self._error(
                PartitionError,
                f"{call_site.operation()}: this group cannot be used: {self._unusable}",
            )
        if threading.get_ident() != self._thread:
            raise self._error(
                UsageError,
                f"{call_site.operation()}: this is not the thread that runs main, and a group "
                f"belongs to that thread; hand values to it, and let it communicate",
            )

    def _check_not_ended(self) -> None:
        if self._ended:
            self._check_usable()

    def _check_pid(self, pid: Any, operation: str) -> int:
        try:
            number = int(operator.index(pid))
        except TypeError:
            raise self._error(
                ProcessRangeError, f"{operation}: {pid!r} is no process; a pid is an integer"
            ) from None
        if not 0 <= number < self._nprocs:
            raise self._error(
                ProcessRangeError,
                f"{operation}: there is no process {number} among {self._nprocs} (0 to "
                f"{self._nprocs - 1})",
            )
        return number

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
