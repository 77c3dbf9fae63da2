"""How the input of a program is divided among processes."""

from __future__ import annotations


def cut(size: int, pid: int, nprocs: int) -> slice:
    """Return which of ``size`` elements are process ``pid``'s: blocks, equal but for one."""
    return slice(size * pid // nprocs, size * (pid + 1) // nprocs)
