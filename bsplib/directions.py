"""The directions in which a payload is transferred, and the ways in which it is."""

from __future__ import annotations

from enum import IntEnum
from typing import Any


class Direction(IntEnum):
    """The direction in which the payload of a traffic row was transferred."""

    OUT = 0
    """From the process that called the primitive to its partner, in a message that is read as it
    is. Earlier traces have OUT for all that is not IN."""
    IN = 1
    """From the partner to the process that called the primitive (get)."""
    OUT_BY_INDEX = 2
    """As OUT, of single elements by their indices (put_at)."""
    IN_BY_INDEX = 3
    """As IN, of single elements by their indices (get_at)."""
    OUT_PUT = 4
    """As OUT, in a put: copied by the caller, and by its partner."""
    OUT_AT_ONCE = 5
    """As OUT, in an hpput that has written into the array of the partner at its call."""
    OUT_COPIED = 6
    """As OUT, in a message of a collective, which the partner copies."""
    OUT_PICKLED = 7
    """As OUT, in a message of a Python object, or of a number of numpy: the bytes of its pickle.
    Those of arrays inside it are in a row of OUT, which may have no further message. A collective
    that pickles values sends them as bytes: its messages are in a row of OUT_COPIED, without bytes.
    """


def is_out(directions: Any) -> Any:
    """Tell for an array of directions whether the process that called sent the payload."""
    return (directions & 1 == Direction.OUT) | (directions >= Direction.OUT_PUT)
