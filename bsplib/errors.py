"""Everything that bsplib raises, as one tree.

::

    BspError
    ├── UsageError               a call is wrong, on the process that made it
    │   ├── ArgumentError        an argument is of a kind that means nothing there
    │   ├── ProcessRangeError    no such process in this group
    │   ├── RegistrationError    the array is not registered, or not there
    │   ├── PlaceError           what was written names no place
    │   ├── ShapeError           a size is negative
    │   ├── BoundsError          the transfer would leave the array
    │   ├── OverlapError         check=True found transfers that overlap, or early changes
    │   ├── DtypeError           the values do not fit the array's dtype
    │   ├── MessageError         a payload, a tag or an empty queue
    │   ├── PartitionError       ends that make no groups, or a closed or open group
    │   └── PendingTransferError a group ends with transfers that nothing delivers
    ├── SyncMismatchError        processes disagree on what ends the superstep
    ├── AbortError               a process called abort
    ├── ProcessDiedError         a process exited or was killed
    ├── RunTimeoutError          the run took longer than its timeout
    ├── OutOfSharedMemoryError   /dev/shm cannot hold what the program asks for
    ├── StartError               the system does not allow so many processes or files
    └── TraceError               a file is no trace, or not a complete one

    UserWarning
    ├── CheckWarning             check=True found something legal that is hardly meant
    └── TraceWarning             a run went well, and its recording did not

Every class takes its message alone, so that an error crosses process borders by
pickle unharmed; ``pid`` and ``superstep`` are set where they are known.
"""

from __future__ import annotations


class BspError(Exception):
    """What every error of bsplib is."""

    pid: int | None = None
    """Process of the root group that raised it."""
    superstep: int | None = None
    """Superstep of the root group in which it was raised."""


class UsageError(BspError):
    """A primitive was called wrongly; raised on the process that called it."""


class ArgumentError(UsageError, TypeError):
    """``main`` or another argument is of a kind that means nothing there."""


class ProcessRangeError(UsageError, IndexError):
    """A pid is not one of 0 .. nprocs - 1."""


class RegistrationError(UsageError, LookupError):
    """An array is not registered, is not yet, or has no counterpart there."""


class PlaceError(UsageError, TypeError):
    """A destination or source is no view, offset or index that names a place."""


class ShapeError(UsageError, ValueError):
    """An array is asked for that has a negative size."""


class BoundsError(UsageError, IndexError):
    """A transfer would reach outside the array on the other process."""


class OverlapError(UsageError, RuntimeError):
    """With ``check=True``: transfers overlap, or an array was changed too early."""


class DtypeError(UsageError, TypeError):
    """Values cannot be cast to the dtype of the array that receives them."""


class MessageError(UsageError, ValueError):
    """A payload cannot be sent, a tag has a wrong size, or there is no message."""


class PartitionError(UsageError, ValueError):
    """Partition ends make no groups, or a group is used while it may not be."""


class PendingTransferError(UsageError, RuntimeError):
    """A group or the program ends while transfers wait for a sync."""


class SyncMismatchError(BspError):
    """The processes of a group do not end, or register, the same thing."""


class AbortError(BspError):
    """A process called ``bsp.abort``."""


class ProcessDiedError(BspError):
    """A process exited or was killed before its ``main`` returned."""


class RunTimeoutError(BspError, TimeoutError):
    """A run took longer than ``timeout``; the text says where every process was."""


class OutOfSharedMemoryError(BspError, MemoryError):
    """The shared memory of this machine cannot hold what the run needs."""


class StartError(BspError, OSError):
    """The system does not allow the processes or the files that a run needs."""


class CheckWarning(UserWarning):
    """With ``check=True``: something legal that is hardly meant, such as unread messages."""


class TraceError(BspError, ValueError):
    """A file is not a trace, is damaged, or comes from another version."""


class TraceWarning(UserWarning):
    """The records of a run were lost, or a part of them; its results are there."""
