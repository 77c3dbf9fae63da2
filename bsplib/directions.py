"""The directions in which a payload is transferred."""

from __future__ import annotations

from enum import IntEnum
from typing import Any


class Direction(IntEnum):
    """The direction in which the payload of a traffic row was transferred."""

    OUT = 0
    """From the process that called the primitive to its partner: put, send and their kin."""
    IN = 1
    """From the partner to the process that called the primitive: get."""


def is_out(directions: Any) -> Any:
    """Tell for an array of directions whether the process that called sent the payload."""
    return directions == Direction.OUT
