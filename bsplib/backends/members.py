"""The processes of a group, and words for them in errors."""

from __future__ import annotations

import operator
from collections.abc import Sequence

_LISTED = 8

Members = range | tuple[int, ...]
"""Pids in the root group of the processes of a group, by their pid in that group; a
range wherever they are evenly spaced, as :func:`as_members` makes it."""


def as_members(pids: Sequence[int]) -> Members:
    """Return pids in the one form in which equal members are equal."""
    if isinstance(pids, range):
        return pids if len(pids) > 1 else range(pids[0], pids[0] + 1)
    first, step = pids[0], pids[1] - pids[0] if len(pids) > 1 else 1
    if step:
        evenly = range(first, first + step * len(pids), step)
        if all(map(operator.eq, evenly, pids)):
            return evenly
    return tuple(pids)


def named(pids: Sequence[int]) -> str:
    """Return words for some processes, such as ``processes 0 to 3`` or ``process 5``.

    Args:
        pids: at least one; the words give them in rising order.
    """
    known = sorted(pids)
    first, last = known[0], known[-1]
    if len(known) == 1:
        return f"process {first}"
    if known == list(range(first, last + 1)):
        return f"processes {first} to {last}"
    if len(known) > _LISTED:
        return f"{len(known)} processes from {first} to {last}"
    return f"processes {', '.join(map(str, known))}"
