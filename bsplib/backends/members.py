"""The processes of a group, where they are, and how errors name them."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from bsplib import call_site
from bsplib.errors import SyncMismatchError

LISTED = 8
"""How many things of one kind an error lists."""

Members = range | tuple[int, ...]
"""Pids in the root group of the processes of a group, by their pid in that group; a
range if they are evenly spaced. :func:`as_members` makes them."""


def as_members(pids: Sequence[int]) -> Members:
    """Return pids as a range or a tuple, so that the same pids always compare equal."""
    if isinstance(pids, range):
        return pids if len(pids) > 1 else range(pids[0], pids[0] + 1)
    first, step = pids[0], pids[1] - pids[0] if len(pids) > 1 else 1
    if step:
        evenly = range(first, first + step * len(pids), step)
        if all(map(operator.eq, evenly, pids)):
            return evenly
    return tuple(pids)


def named(pids: Sequence[int]) -> str:
    """Return text that names processes, such as ``processes 0 to 3`` or ``process 5``.

    Args:
        pids: at least one; the text has them in increasing order.
    """
    known = sorted(pids)
    first, last = known[0], known[-1]
    if len(known) == 1:
        return f"process {first}"
    if known == list(range(first, last + 1)):
        return f"processes {first} to {last}"
    if len(known) > LISTED:
        return f"{len(known)} processes from {first} to {last}"
    return f"processes {', '.join(map(str, known))}"


# -- where processes are, for the errors after a timeout and after Ctrl-C -------------------------


Stack = Sequence[tuple[str, int, str]]
"""File, line and function of each frame, the innermost first."""


class Whereabouts(NamedTuple):
    """Where a process is."""

    pid: int
    superstep: int
    line: str
    """File and line of the innermost frame of the program; empty if it is not known."""
    doing: str
    """What it does there: whether it waits or computes."""


def from_stack(pid: int, superstep: int, stack: Stack, *, waits: bool = False) -> Whereabouts:
    """Return where a process is, from its stack; ``waits`` as for :func:`call_site.activity`."""
    doing = call_site.activity(stack, waits=waits)
    return Whereabouts(pid, superstep, call_site.line_in(stack), doing)


# -- errors of processes that do not end the same supersteps of a group in the same way -----------
# Processes are named here by their pids in the whole run.


class Standing(Protocol):
    """What a process knows of the others of its group, of which it waits for one."""

    @property
    def pid(self) -> int:
        """This process, in the group."""

    @property
    def members(self) -> Members:
        """The processes of the group."""

    @property
    def parent(self) -> Standing | None:
        """The group of which this is a sub-group; None for the root group."""

    def has_left(self, pid: int) -> bool:
        """Tell whether a process, by its pid in this group, has left it."""

    def has_ended(self, process: int, *ways: str) -> bool:
        """Tell whether a process, by its pid in the whole run, has ended the present superstep.

        Args:
            process: it has come to the end of the superstep in which this process is.
            ways: of ``sync`` and ``oblsync``; one of them is enough.
        """


def waits_in_vain(group: Standing, operation: str, pid: int) -> SyncMismatchError | None:
    """Return the error of waiting for a process that will not come; None if it may come.

    Args:
        group: in which this process waits.
        operation: in which it waits: ``sync`` or ``oblsync``.
        pid: the other process, in the group.
    """
    absent, below, above = group.members[pid], group, group.parent
    if operation == "sync" and group.has_ended(absent, "oblsync"):
        why = "has ended this superstep by oblsync"
    elif operation == "oblsync" and group.has_ended(absent, "sync"):
        why = "has ended this superstep by sync or the end of main"
    elif group.has_left(pid):
        why = f"has left the sub-group of {named(group.members)}"
    else:
        while above is not None and not above.has_ended(absent, "sync", "oblsync"):
            below, above = above, above.parent
        if above is None:
            return None
        why = f"is at a sync outside the sub-group of {named(below.members)}"
    waiting = group.members[group.pid]
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
