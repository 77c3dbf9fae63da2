"""Calls of the Linux kernel for which Python 3.11 has no function."""

from __future__ import annotations

import ctypes
import os
import signal
from pathlib import Path

_LIBC = ctypes.CDLL(None, use_errno=True)
_SET_DEATH_SIGNAL = 1
_FLAGS = {
    "time": 0x00000080,
    "mnt": 0x00020000,
    "uts": 0x04000000,
    "ipc": 0x08000000,
    "pid": 0x20000000,
    "net": 0x40000000,
}
"""Kinds of namespaces, by their names in ``/proc/PID/ns``."""

BIND = 0x1000
PRIVATE_EVERYWHERE = 0x40000 | 0x4000
"""Mounts of this namespace are not seen in others, and the other way round."""


def leave(*kinds: str) -> None:
    """Create namespaces for this process; those of kind pid and time are for its children.

    Raises:
        OSError: the kernel does not have them, or this process may not create them.
    """
    flags = sum(_FLAGS[kind] for kind in kinds)
    _check(_LIBC.unshare(flags), f"a namespace cannot be created ({', '.join(kinds)})")


def enter(namespace: Path) -> None:
    """Enter a namespace, which is a file of ``/proc/PID/ns``.

    Raises:
        OSError: this process may not, or has several threads.
    """
    descriptor = os.open(namespace, os.O_RDONLY | os.O_CLOEXEC)
    try:
        flag = _FLAGS[namespace.name.removesuffix("_for_children")]
        _check(_LIBC.setns(descriptor, flag), f"{namespace} cannot be entered")
    finally:
        os.close(descriptor)


def mount(source: str, target: str, kind: str = "", flags: int = 0) -> None:
    """Mount a file system, or a file on another one.

    Raises:
        OSError: the kernel refuses it.
    """
    done = _LIBC.mount(source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), None)
    _check(done, f"{source} cannot be mounted on {target}")


def end_with_parent() -> None:
    """Have this process killed when the thread that forked it ends, however it ends."""
    kill = ctypes.c_ulong(signal.SIGKILL)
    _check(_LIBC.prctl(_SET_DEATH_SIGNAL, kill, 0, 0, 0), "prctl(PR_SET_PDEATHSIG) failed")


def _check(status: int, sentence: str) -> None:
    if status:
        number = ctypes.get_errno()
        raise OSError(number, f"{sentence}: {os.strerror(number)}")
