"""Counters of the processor and of the system, for the blocks of a program.

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
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from bsplib.errors import UsageError
from bsplib.experiments.blocks import ExperimentBlock

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


def usable(text: str, *, virtual: bool) -> tuple[str, ...]:
    """Return the counters of a text that work here; print which do not, and why.

    Args:
        text: names of ``COUNTERS``, with commas.
        virtual: whether the program runs on virtual processors.

    Raises:
        UsageError: there is no such counter, or virtual processors cannot have any.
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in COUNTERS:
            raise UsageError(f"--counters: there is no {name!r}; choose from {', '.join(COUNTERS)}")
    if names and virtual:
        raise UsageError("--counters: virtual processors share the counters of one thread")
    against = {name: reason for name in names if (reason := reason_against(name))}
    for name, reason in against.items():
        print(f"--counters: {name} is not counted: {reason}", file=sys.stderr)
    return tuple(name for name in names if name not in against)


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
    flags = 0 if name == "context-switches" else _USER_ONLY  # the kernel switches, and no user
    attribute = ctypes.create_string_buffer(_BYTES)
    struct.pack_into("=IIQQQQQ", attribute, 0, kind, _BYTES, event, 0, 0, _WITH_TIMES, flags)
    library = ctypes.CDLL(None, use_errno=True)
    descriptor: int = library.syscall(number, attribute, 0, -1, -1, 1 << 3)  # closed by exec
    if descriptor < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return descriptor


_names: list[str] = []
"""What is counted in this process."""
_opened: dict[tuple[int, int, str], int] = {}
"""Descriptors by process, thread and name: a child has none of its parent's."""


def choose(names: Sequence[str]) -> None:
    """Choose what is counted from now on, in this process and in those that it forks.

    Args:
        names: of ``COUNTERS``; one that cannot be opened is left out.
    """
    _names[:] = names


def _read() -> dict[str, float]:
    """Return what was counted so far in this thread, by name."""
    found = {}
    for name in _names:
        key = os.getpid(), threading.get_ident(), name
        try:
            if key not in _opened:
                _opened[key] = _open(name)
        except OSError:  # the caller was told by reason_against
            continue
        value, enabled, counted = struct.unpack("QQQ", os.read(_opened[key], 24))
        # Where there are more events than counters, they take turns.
        found[name] = value * (enabled / counted if counted else 0.0)
    return found


@contextmanager
def counting(block: ExperimentBlock) -> Iterator[None]:
    """Count what happens in a block, beside its time."""
    before = _read()
    with block:
        yield
    after = _read()
    block.counted.update({name: after[name] - value for name, value in before.items()})
