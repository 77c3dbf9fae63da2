"""The neighbours of a process in a ring."""

from __future__ import annotations

from bsplib import Group


def left(bsp: Group) -> int:
    return (bsp.pid - 1) % bsp.nprocs


def right(bsp: Group) -> int:
    return (bsp.pid + 1) % bsp.nprocs
