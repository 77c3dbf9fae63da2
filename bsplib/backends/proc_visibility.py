"""Which processes can find each other in ``/proc``."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def same_system() -> bytes:
    """Return bytes that are equal in processes that can find each other in ``/proc``.

    They run in one system since the same start, and number processes alike. The bytes are empty
    where the system cannot share memory in this way.
    """
    if not hasattr(os, "memfd_create"):
        return b""
    with contextlib.suppress(OSError):
        space = os.stat("/proc/self/ns/pid")
        boot = Path("/proc/sys/kernel/random/boot_id").read_bytes()
        return b"%b %d %d %d" % (boot.strip(), space.st_dev, space.st_ino, os.getuid())
    return b""
