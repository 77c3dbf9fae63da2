"""All errors and warnings of bsplib, as one tree.

::

    BspError
    ├── UsageError               a call is wrong, on the process that made it
    │   ├── ArgumentError        an argument has a type that is not allowed
    │   ├── ProcessRangeError    there is no such process in this group
    │   ├── RegistrationError    the array is not registered, here or on the other process
    │   ├── PlaceError           an argument does not name a place in an array
    │   ├── ShapeError           shapes do not fit, or a size is negative
    │   ├── BoundsError          the transfer would go beyond the end of the array
    │   ├── OverlapError         check=True found transfers that overlap, or early changes
    │   ├── DtypeError           the values do not fit the array's dtype
    │   ├── MessageError         a payload or tag cannot be sent, or the queue is empty
    │   ├── PartitionError       ends make no groups, or a group is used at the wrong time
    │   └── PendingTransferError a group ends before its transfers are delivered
    ├── SyncMismatchError        processes end the superstep in different ways
    ├── AbortError               a process called abort
    ├── ProcessDiedError         a process exited or was killed
    ├── RunTimeoutError          the run took longer than its timeout
    ├── OutOfSharedMemoryError   memory cannot hold what the program asks for
    ├── StartError               the system allows no more processes or files
    ├── MissingExtraError        a package that an extra installs is not there
    └── TraceError               a file is no trace, or not a complete one

    UserWarning
    ├── CheckWarning             check=True found something legal that is probably a mistake
    └── TraceWarning             a run succeeded, but its recording failed

The constructor of every class takes only the message, so that errors can be pickled and
sent from process to process; ``pid`` and ``superstep`` are set where they are known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "AbortError",
    "ArgumentError",
    "BoundsError",
    "BspError",
    "CheckWarning",
    "DtypeError",
    "MessageError",
    "MissingExtraError",
    "OutOfSharedMemoryError",
    "OverlapError",
    "PartitionError",
    "PendingTransferError",
    "PlaceError",
    "ProcessDiedError",
    "ProcessRangeError",
    "RegistrationError",
    "RunTimeoutError",
    "ShapeError",
    "StartError",
    "SyncMismatchError",
    "TraceError",
    "TraceWarning",
    "UsageError",
]


class BspError(Exception):
    """Base class of all errors of bsplib."""

    pid: int | None = None
    """Pid in the root group of the process that raised it."""
    superstep: int | None = None
    """Superstep of the root group in which it was raised."""


class UsageError(BspError):
    """A primitive was called wrongly; raised on the process that called it."""


class ArgumentError(UsageError, TypeError):
    """``main`` or another argument has a type that is not allowed."""


class ProcessRangeError(UsageError, IndexError):
    """A pid is not one of 0 .. nprocs - 1."""


class RegistrationError(UsageError, LookupError):
    """An array is not registered, not registered yet, or not on the other process."""


class PlaceError(UsageError, TypeError):
    """An argument does not name a place in a registered array, by view, offset or index."""


class ShapeError(UsageError, ValueError):
    """Shapes of values do not fit, or an array of a negative size is requested."""


class BoundsError(UsageError, IndexError):
    """A transfer would go beyond the end of the array on the other process."""


class OverlapError(UsageError, RuntimeError):
    """With ``check=True``: transfers overlap, or an array was changed too early."""


class DtypeError(UsageError, TypeError):
    """Values cannot be cast to the dtype of the array that receives them."""


class MessageError(UsageError, ValueError):
    """A payload cannot be sent, a tag has a wrong size, or there is no message."""


class PartitionError(UsageError, ValueError):
    """Partition ends make no groups, or a group is used while that is not allowed."""


class PendingTransferError(UsageError, RuntimeError):
    """A group or the program ends while transfers wait for a sync."""


class SyncMismatchError(BspError):
    """The processes of a group end a superstep differently, or register different arrays."""


class AbortError(BspError):
    """A process called ``bsp.abort``."""

    result: Any = None
    """What that process gave as ``result``."""


class ProcessDiedError(BspError):
    """A process exited or was killed before its ``main`` returned."""


class RunTimeoutError(BspError, TimeoutError):
    """A run took longer than ``timeout``; the text says where every process is."""


class OutOfSharedMemoryError(BspError, MemoryError):
    """The memory of this machine, mostly /dev/shm, cannot hold what the run needs."""


class StartError(BspError, OSError):
    """The system does not allow the processes or the files that a run needs."""


class MissingExtraError(BspError, ImportError):
    """A package is not installed that comes with an extra of bsplib; the text names both."""


class CheckWarning(UserWarning):
    """With ``check=True``: something legal that is probably a mistake, as unread messages.

    Each process says it once for each line, and the caller of the run warns: its filters and those
    of pytest count.
    """


class TraceError(BspError, ValueError):
    """A file is not a trace, is damaged, or comes from another version."""


class TraceWarning(UserWarning):
    """All or some records of a run were lost; its results are not affected."""
