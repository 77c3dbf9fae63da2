"""How a process allocates the memory of its arrays.

The C library of Linux gives memory back to the system as soon as some of it is free at the end of
the heap, and takes memory for a large array from the system alone. Each operation of numpy on large
arrays has a new array for its result, so that a loop of them asks the system for the same memory
again and again: every page of it costs a page fault, which takes longer than to compute what the
page holds. A process of a run keeps such memory, and uses it for later arrays. The C library gives
back only what is behind all that is in use, so that one array there keeps everything before it.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys

ALONE_BYTES = 32 << 20
"""Arrays from this size on have memory of their own, which goes back to the system: a larger number
is refused by the C library."""
KEPT_BYTES = 128 << 20
"""How much freed memory a process keeps at most, at the end of the heap."""
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""The numbers of both settings in malloc.h."""
_CHOSEN_BY_USER = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")
"""Variables by which a user of the C library sets this: then nothing is changed."""


@functools.cache
def keep_freed_memory() -> None:
    """Let this process keep the memory of arrays that are freed, for those to come.

    Nothing is done with another C library than that of GNU, and where the environment has settings
    for it.
    """
    if sys.platform != "linux" or any(name in os.environ for name in _CHOSEN_BY_USER):
        return
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        set_option(_MMAP_THRESHOLD, ALONE_BYTES)
        set_option(_TRIM_THRESHOLD, KEPT_BYTES)
