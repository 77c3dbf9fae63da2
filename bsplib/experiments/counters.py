"""Counters of the processor and of the system, for the blocks of experiments.

They exist on Linux, where the system allows them. A counter counts what the thread that runs
``main`` does outside of the kernel. Virtual machines and containers often have no counters of the
processor; those of the system (``page-faults``, ``context-switches``) are nearly always there.

Source: Gonzalez et al., section 3, where CALL uses the library PAPI; perf_event_open(2).
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys
from collections.abc import Sequence

_HARDWARE, _SOFTWARE = 0, 1
COUNTERS = {
    "instructions": (_HARDWARE, 1),
    "cycles": (_HARDWARE, 0),
    "cache-references": (_HARDWARE, 2),
    "cache-misses": (_HARDWARE, 3),
    "branches": (_HARDWARE, 4),
    "branch-misses": (_HARDWARE, 5),
    "page-faults": (_SOFTWARE, 2),
    "context-switches": (_SOFTWARE, 3),
}
"""Type and number of each event, as in linux/perf_event.h."""
_CALLS = {"x86_64": 298, "aarch64": 241}
"""Numbers of the system call, by machine."""
_BYTES = 112
"""Size of struct perf_event_attr, version 5."""
_WITH_TIMES = 3
"""The format of a value: with the times for which it was enabled and counted."""
_USER_ONLY = 1 << 5 | 1 << 6
"""Neither the kernel nor the hypervisor is counted."""


def reason_against(name: str) -> str:
    """Return why a counter does not work here; empty if it does."""
    try:
        os.close(_open(name))
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.EOPNOTSUPP, errno.ENODEV):
            return "this computer has no such counter, as many virtual machines"
        if error.errno in (errno.EACCES, errno.EPERM):
            return "the system does not allow it (sysctl kernel.perf_event_paranoid)"
        return error.strerror or str(error)
    return ""


def _open(name: str) -> int:
    """Return the descriptor of a counter of this thread.

    Raises:
        OSError: there is none.
    """
    number = _CALLS.get(platform.machine()) if sys.platform == "linux" else None
    if number is None:
        raise OSError(
            errno.ENOSYS, f"{sys.platform} on {platform.machine()} has no perf_event_open"
        )
    kind, event = COUNTERS[name]
    attribute = ctypes.create_string_buffer(_BYTES)
    struct.pack_into(
        "=IIQQQQQ", attribute, 0, kind, _BYTES, event, 0, 0, _WITH_TIMES, _user_only(name)
    )
    library = ctypes.CDLL(None, use_errno=True)
    descriptor: int = library.syscall(number, attribute, 0, -1, -1, 1 << 3)  # closed by exec
    if descriptor < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return descriptor


def _user_only(name: str) -> int:
    """Return the flags of a counter: the kernel does the switches, and no user does."""
    return 0 if name == "context-switches" else _USER_ONLY


class Counters:
    """The counters of the thread that makes them.

    Args:
        names: of ``COUNTERS``; one that cannot be opened is left out.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._open: dict[str, int] = {}
        for name in names:
            try:
                self._open[name] = _open(name)
            except OSError:  # the caller was told by reason_against
                continue

    def read(self) -> dict[str, float]:
        """Return what was counted so far, by name."""
        found = {}
        for name, descriptor in self._open.items():
            value, enabled, counted = struct.unpack("QQQ", os.read(descriptor, 24))
            # Where there are more events than counters, they take turns.
            found[name] = value * (enabled / counted if counted else 0.0)
        return found

    def close(self) -> None:
        """Close the counters."""
        while self._open:
            os.close(self._open.popitem()[1])
