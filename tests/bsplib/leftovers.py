"""What a run must not leave behind: processes, file descriptors, names in shared memory."""

from __future__ import annotations

import contextlib
import functools
import os
from pathlib import Path

from .phases import eventually


def shared_memory():
    """Names in /dev/shm; other programs of this machine come and go there."""
    return set(os.listdir("/dev/shm"))


def used_by_others(names):
    """Those of some names in /dev/shm that a process other than this one has mapped."""
    used = set()
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with contextlib.suppress(OSError):
            if maps.parent.name != str(os.getpid()):
                mapped = maps.read_text()
                used |= {name for name in names if f" /dev/shm/{name}\n" in mapped}
    return used


def nothing_stays_in_shared_memory(before):
    """Names that were not there before may be others', but then in use or soon gone."""
    left = shared_memory() - before

    def gone():
        left.intersection_update(shared_memory())
        return not left or not left - used_by_others(left)

    return eventually(gone)


def processes_where(field, value, *, zombies=True):
    """Pids of the processes of which a field of /proc/PID/stat has a value."""
    found = set()
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit():
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if fields[field] == str(value) and (zombies or fields[0] != "Z"):
                    found.add(int(entry.name))
    return found


children = functools.partial(processes_where, 1)
in_session = functools.partial(processes_where, 3, zombies=False)
"""Orphans that have ended are whoever's that adopted them."""
