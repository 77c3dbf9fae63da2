"""A process that ends with its parent."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_SET_PARENT_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG of <linux/prctl.h>."""


def end_with_parent(parent: int) -> None:
    """Let the system kill this process when its parent ends, where the system can.

    Args:
        parent: number of the parent; this process ends now if it has another one already.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
