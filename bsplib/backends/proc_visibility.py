"""Which processes run in one system, and can find each other in ``/proc``."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def same_system() -> bytes:
    """Return bytes that are equal in processes that can find each other in ``/proc``.

    They run in one system since the same start, for one user, and number processes alike. The
    bytes are empty where the system cannot share memory in this way.
    """
    known = same_namespace("pid") if hasattr(os, "memfd_create") else b""
    return known and b"%b %d" % (known, os.getuid())


def system_key() -> bytes:
    """Return bytes that are equal in two processes only if one can open the files of the other."""
    return same_system() or f"{platform.node()} {os.getpid()}".encode()


def same_namespace(kind: str) -> bytes:
    """Return bytes that are equal in processes of one namespace of a system since its last start.

    Args:
        kind: of the namespace, as in ``/proc/self/ns``.

    Returns:
        Nothing where the system does not tell.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_bytes().strip()
        space = os.stat(f"/proc/self/ns/{kind}")
    except OSError:
        return b""
    return b"%b %d %d" % (boot, space.st_dev, space.st_ino)
