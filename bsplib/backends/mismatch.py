"""Errors of processes that do not end the same supersteps of a group in the same way.

Processes are named here by their pids in the whole run.
"""

from __future__ import annotations

from collections.abc import Sequence

from bsplib.backends.members import named
from bsplib.errors import SyncMismatchError

ENDED_BY_OBLSYNC = "has ended this superstep by oblsync"
ENDED_BY_SYNC = "has ended this superstep by sync or the end of main"
"""What a process has done that another one waits for in vain."""


def has_left(members: Sequence[int]) -> str:
    """Return text for errors: a process has left a sub-group."""
    return f"has left the sub-group of {named(members)}"


def is_outside(members: Sequence[int]) -> str:
    """Return text for errors: a process of a sub-group is at a sync of a group that contains it."""
    return f"is at a sync outside the sub-group of {named(members)}"


def waits_in_vain(operation: str, waiting: int, absent: int, why: str) -> SyncMismatchError:
    """Return the error of a process that waits for another one that will not come.

    Args:
        operation: in which it waits: ``sync`` or ``oblsync``.
        waiting: the process that waits.
        absent: the process that it waits for.
        why: what that process has done instead, by one of the texts above.
    """
    return SyncMismatchError(
        f"{operation}: process {waiting} waits for process {absent}, which {why}"
    )


def are_apart(ahead: int, pid: int, how: str = "another") -> SyncMismatchError:
    """Return the error of two processes that have met after different numbers of supersteps.

    Args:
        ahead: one of them.
        pid: the other one.
        how: at which sync ``ahead`` is, compared with ``pid``: ``another`` or ``a later``.
    """
    return SyncMismatchError(
        f"sync: process {ahead} is at {how} sync than process {pid}; one of them has ended a "
        f"superstep by oblsync"
    )
