"""The job of a run for each of its ranks: a shared array is brought to one rank of each host."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping
from pathlib import Path

from bsplib.backends.launching import Carrier, Work


def system_key() -> str:
    """Return text that is equal in two processes only if one can open the files of the other.

    They run in one system since the same start, for one user, and see each other's numbers.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        space = os.stat("/proc/self/ns/pid")
    except OSError:
        return f"{socket.gethostname()} {os.getpid()}"  # it shares with no other process
    return f"{socket.gethostname()} {boot} {space.st_dev} {space.st_ino} {os.getuid()}"


class Jobs:
    """Makes the job of each rank.

    Args:
        work: what the ranks do.
        systems: the :func:`system_key` of each rank.
        os_pid: returns the number of a rank in its system.
    """

    def __init__(
        self, work: Work, systems: Mapping[int, str], os_pid: Callable[[int], int]
    ) -> None:
        self._work = work
        self._systems = systems
        self._os_pid = os_pid
        self._here = work.job()
        self._carriers: dict[str, Carrier] = {}
        self._others: dict[str, bytes] = {}
        """By system, the job of ranks that are brought nothing."""

    def of(self, rank: int) -> bytes:
        """Return the job of a rank."""
        system = self._systems[rank]
        if not self._work.has_shared or system == system_key():
            return self._here
        carrier = self._carriers.get(system)
        if carrier is None:
            self._carriers[system] = carrier = Carrier(self._os_pid(rank), brings=True)
            return self._work.job(carrier)
        if system not in self._others:
            self._others[system] = self._work.job(carrier._replace(brings=False))
        return self._others[system]
