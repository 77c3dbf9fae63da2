"""What one process knows of a group: all its attributes, and its errors.

A primitive is a function of :mod:`bsplib.primitives` whose first argument is the group, or a call
of :mod:`bsplib.core.calls` that goes on to the engine. None of them keeps an attribute elsewhere.
"""

from __future__ import annotations

import operator
import warnings
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar, cast

from bsplib import call_site
from bsplib.backends.base import Port, Stopped
from bsplib.core.calls import Calls
from bsplib.core.engine import Engine
from bsplib.core.entries import SendBuffer
from bsplib.core.life import CLOSED, OVER
from bsplib.core.values import Values
from bsplib.errors import (
    BspError,
    CheckWarning,
    PartitionError,
    ProcessRangeError,
    UsageError,
)
from bsplib.primitives.superstep import Supersteps
from bsplib.transfers.casting import as_array
from bsplib.transfers.messages import is_of_collective
from bsplib.transfers.place import Array
from bsplib.transfers.registry import Registry, no_process
from bsplib.visible import text_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bsplib.experiments.blocks import Passages
    from bsplib.machine import Machine
    from bsplib.transfers.checker import Checking
    from bsplib.transfers.watch import Watch


_Found = TypeVar("_Found")
_Call = TypeVar("_Call", bound=Callable[..., Any])


def typed_as(_other: _Call) -> Callable[[Callable[..., Any]], _Call]:
    """Give a function the types of another one, which has the same arguments and results."""
    return lambda function: cast("_Call", function)


Warn = Callable[..., None]
"""Warns of something at a line of a file; the arguments are those of ``warnings.warn_explicit``."""


class Terms(NamedTuple):
    """What holds for all groups of a run in one process."""

    began_ns: int
    """When the barrier before ``main`` was passed."""
    machine: Machine
    check: bool = False
    passages: Passages | None = None
    """Of the blocks of experiments; None where the run is not recorded."""
    warn: Warn = warnings.warn_explicit
    """Lets the caller of the run warn."""


class GroupState(Calls):
    """The state of a group in one of its processes, and the checks that read it.

    Args:
        port: the process's connection to the others of the group.
        terms: of the run.
        parent: the group that this one is a sub-group of; None for the whole run.
        recording: the ``GroupRecords`` of the group; None where nothing is recorded.
        place: of a sub-group: its number in the partition, and its processes in the parent.
    """

    def __init__(
        self,
        port: Port,
        terms: Terms,
        parent: GroupState | None = None,
        recording: Any = None,
        place: tuple[int, Sequence[int]] = (0, ()),
    ) -> None:
        self._port = port
        """The connection to the other processes, which the backend has made."""
        self._terms = terms
        """What holds for the whole run."""
        self._parent = parent
        """The group that was partitioned or split into this one; None for the whole run."""
        self._recording = recording
        """The records of the group; None where nothing is recorded."""
        self._place = place
        """With which the parent opens this sub-group again."""
        self._pid = port.pid
        """This process."""
        self._nprocs = port.nprocs
        """Number of processes of the group."""
        self._registry = Registry()
        """The registered arrays. Changed by push_reg, pop_reg and allocations; what the
        others have to know takes effect at the next global sync."""
        self._watch = self._new_watch() if terms.check else None
        """What ``check=True`` observes; None without it. Changed by every transfer."""
        self._supersteps = Supersteps(port, self._registry, self._watch)
        """Does what the engine leaves to it. Has the size of tags."""
        self._checking = self._new_checking()
        """Observes the engine for ``check=True``; None without it."""
        self._awaited: dict[int, weakref.ref[Array]] = {}
        """Results of gets by index, by their ``id()``. Filled and emptied by
        :class:`bsplib.primitives.remote.RemoteArray`."""
        self._awaited_in = 0
        """The superstep of these gets."""
        self._inner: GroupState | None = None
        """The sub-group that is open. Set by partition and split, cleared by done."""
        self._partitions = 0
        """How often the group was partitioned or split so far."""
        super().__init__(self._new_engine())
        self._values = Values(self._engine, port.clock)
        """Sends and takes the values of collectives."""

    def _new_watch(self) -> Watch:
        from bsplib.transfers.watch import Quarantine, Watch  # noqa: PLC0415  # for check=True only

        above = None if self._parent is None else self._parent._watch
        quarantine = Quarantine(self._port.release) if above is None else above.quarantine
        return Watch(self._error, self._warn, quarantine)

    def _new_checking(self) -> Checking | None:
        if self._watch is None:
            return None
        from bsplib.transfers.checker import Checking  # noqa: PLC0415  # as above

        return Checking(
            self._watch,
            self._registry,
            self._port,
            self._supersteps.data_of,
            self._fail_for_good,
        )

    def _new_engine(self) -> Engine:
        port, recording = self._port, self._recording
        buffer = SendBuffer(port.pid, port.nprocs, port.send_buffer_memory())
        others = (buffer, self._supersteps, self._terms.check)
        engine = Engine(port.pid, port.nprocs, port.meeting, *others)
        recorder = None if recording is None else recording.observer
        engine.observe(port.clock, recorder, self._checking)
        return engine

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

    def _check_usable(self, operation: str | None = None, engine: Engine | None = None) -> None:
        """Raise unless this thread can use the group now.

        Args:
            operation: the primitive that the program has called, if the caller knows it.
            engine: that of the group when it was open before; default: its engine.
        """
        engine = engine or self._engine
        if engine.is_usable():
            return
        operation = operation or call_site.operation()
        if engine.unusable is not None:
            raise self._error(
                PartitionError, f"{operation}: this group cannot be used: {engine.unusable}"
            )
        raise self._error(
            UsageError,
            f"{operation}: this is not the thread that runs main, and a group belongs to "
            f"that thread; hand values to it, and let it communicate",
        )

    def _check_not_over(self) -> None:
        if self._engine.life == OVER:
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

    # -- errors -------------------------------------------------------------------------------

    def _error(self, kind: type[BspError], text: str) -> BspError:
        """Return an error that says where it happened."""
        process = self._port.members[self._pid]
        place = call_site.line()
        superstep = self._engine.superstep
        error = kind(f"{text} [process {process}, superstep {superstep}, {place}]")
        error.pid, error.superstep = process, self._root_superstep()
        return error

    def _fail(self, error: BspError) -> NoReturn:
        """Raise an error from below as one that says where it happened."""
        if error.pid is not None:
            raise error
        raise self._error(type(error), str(error)) from error.__cause__

    def _fail_for_good(self, error: BaseException) -> NoReturn:
        """Raise what has left the end of a superstep: the group cannot be used any more."""
        self._close(error)
        if isinstance(error, BspError):
            self._fail(error)
        raise error

    def _close(self, error: BaseException) -> None:
        """End the life of the group, which an exception has left between two supersteps."""
        if isinstance(error, BspError):
            self._engine.suspend(CLOSED, f"it has failed ({error})")
        elif not isinstance(error, Stopped):  # which the next sync raises again
            what = f"{type(error).__name__}: {text_of(error)}".rstrip(": ")
            superstep = self._engine.superstep
            self._engine.suspend(CLOSED, f"its superstep {superstep} was interrupted by {what}")

    def _note_failure(self, error: BaseException) -> None:
        """Note that an exception leaves a collective; unless nothing of that was done, close."""
        engine = self._engine
        sent = (entry for pid in range(self._nprocs) for entry in engine.own_entries(pid))
        if engine.superstep != self._values.began or any(is_of_collective(entry) for entry in sent):
            self._close(error)

    def _root_superstep(self) -> int:
        group = self
        while group._parent is not None:
            group = group._parent
        return group._engine.superstep

    def _warn(self, text: str) -> None:
        """Warn of what is probably a mistake, at the line of the program that calls a primitive."""
        self._terms.warn(text, CheckWarning, *call_site.file_and_line())

    # -- what several primitives need -----------------------------------------------------------

    def _checked(self, find: Callable[..., _Found], *arguments: Any, **more: Any) -> _Found:
        """Return what a function of a layer below returns; its errors say where it happened."""
        try:
            return find(*arguments, **more)
        except BspError as error:
            self._fail(error)

    def _to_read(self, operation: str, values: Any) -> Any:
        """Return what a program passes on; under check raise if it is not there yet."""
        if self._watch is None:
            return values
        return self._checked(self._watch.source, values, operation)

    def _as_array(self, operation: str, values: Any) -> Array:
        """Return values as an array; raise if it is a masked one."""
        return self._checked(as_array, operation, values)
