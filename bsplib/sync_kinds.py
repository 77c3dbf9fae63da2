"""The ways in which a superstep ends, and the note in which processes tell each other."""

from __future__ import annotations

from enum import IntEnum


class Kind(IntEnum):
    """How a superstep ended."""

    SYNC = 0
    OBLSYNC = 1
    END = 2
    """Not at a sync, but at the end of ``main``."""


KIND_BITS = 3
"""The bits of a **note** in which its :class:`Kind` stands. A note is a number below 128 that
every process sends all others at the end of a superstep."""
HAS_GET = 4
"""In a note: the process gets something."""
UNRESOLVED = 8
"""In a note: the process has transfers that can be checked only now."""
HAS_ASKS = 16
"""In a note: another process has to answer one of these gets."""
HAS_NOTICE = 32
"""In a note: the process announces something to all."""
