"""Where the processes of a run are, in a table: for run(timeout=) and for Ctrl-C."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from bsplib import call_site
from bsplib.errors import RunTimeoutError

Stack = Sequence[tuple[str, int, str]]
"""File, line and function of each frame, the innermost first."""

_HEADINGS = ("process", "superstep", "line", "")


class Whereabouts(NamedTuple):
    """Where a process is."""

    pid: int
    superstep: int
    place: str
    """File and line of the user's frame; empty if it is not known."""
    doing: str
    """What it does there: whether it waits or computes."""


def from_stack(pid: int, superstep: int, stack: Stack) -> Whereabouts:
    """Return where a process is that has this stack."""
    return Whereabouts(pid, superstep, call_site.place_in(stack), call_site.activity(stack))


def table(rows: Iterable[Whereabouts]) -> str:
    """Return a table of where processes are; those at one place share a line."""
    alike: dict[tuple[str, str, str], list[int]] = {}
    for pid, superstep, place, doing in sorted(rows):
        alike.setdefault((str(superstep), place, doing), []).append(pid)
    lines = [_HEADINGS, *((_ranges(pids), *row) for row, pids in alike.items())]
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEADINGS))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def overdue(timeout: float, rows: Iterable[Whereabouts]) -> RunTimeoutError:
    """Return the error for a run that takes longer than it may."""
    return RunTimeoutError(
        f"run: the program took longer than timeout={timeout:g} seconds; its processes were here:\n"
        f"{table(rows)}"
    )


def interrupted(rows: Iterable[Whereabouts]) -> str:
    """Return a note for the interrupt that ends a run."""
    return f"The processes of the run were here:\n{table(rows)}"


def _ranges(pids: Sequence[int]) -> str:
    """Return rising numbers such as ``0, 2-5``."""
    parts: list[list[int]] = []
    for pid in pids:
        if parts and parts[-1][-1] == pid - 1:
            parts[-1][1:] = [pid]
        else:
            parts.append([pid])
    return ", ".join("-".join(map(str, part)) for part in parts)
