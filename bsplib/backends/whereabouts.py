"""Where the processes of a run are, for the errors after a timeout and after Ctrl-C."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bsplib import call_site

Stack = Sequence[tuple[str, int, str]]
"""File, line and function of each frame, the innermost first."""


class Whereabouts(NamedTuple):
    """Where a process is."""

    pid: int
    superstep: int
    line: str
    """File and line of the innermost frame of the program; empty if it is not known."""
    doing: str
    """What it does there: whether it waits or computes."""


def from_stack(pid: int, superstep: int, stack: Stack, *, waits: bool = False) -> Whereabouts:
    """Return where a process is, from its stack; ``waits`` as for :func:`call_site.activity`."""
    doing = call_site.activity(stack, waits=waits)
    return Whereabouts(pid, superstep, call_site.line_in(stack), doing)
