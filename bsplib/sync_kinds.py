"""The ways in which a superstep ends."""

from __future__ import annotations

from enum import IntEnum


class Kind(IntEnum):
    """How a superstep ended."""

    SYNC = 0
    OBLSYNC = 1
    END = 2
    """Not at a sync, but at the end of ``main``."""
