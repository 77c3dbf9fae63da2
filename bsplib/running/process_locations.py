"""Where the processes of a run are: a table, errors that show it, and Ctrl-backslash."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence

from bsplib.backends import sigquit
from bsplib.backends.members import Whereabouts, named
from bsplib.errors import RunTimeoutError

_STANDARD_ERROR = 2
_WAITS = "waiting"
_ENDED = "has ended"


def answer_questions() -> None:
    """Print where the processes of a run are when this process gets SIGQUIT; it goes on."""
    sigquit.install(_print)


def _print(rows: Sequence[Whereabouts]) -> None:
    # Not through sys.stderr: the signal may have come while that writes.
    with contextlib.suppress(OSError):
        os.write(_STANDARD_ERROR, f"{text(rows)}\n".encode())


def text(rows: Sequence[Whereabouts]) -> str:
    """Return a table of where processes are, and a sentence that says which of them do not wait."""
    waiting = [row for row in rows if row.doing.startswith(_WAITS)]
    busy = [row.pid for row in rows if row not in waiting and row.doing != _ENDED]
    lines = [table(rows)]
    if waiting and busy:
        lines.append(f"Only {named(busy)} {'does' if len(busy) == 1 else 'do'} not wait.")
    elif waiting:
        lines.append("Every process that has not ended waits.")
    return "\n".join(lines)


# -- where the processes of a run are, as a table, and errors and notes that show it --------------


_HEADINGS = ("process", "superstep", "line", "")


def overdue(timeout: float, rows: Iterable[Whereabouts]) -> RunTimeoutError:
    """Return the error for a run that takes longer than it may."""
    return RunTimeoutError(
        f"run: the program took longer than timeout={timeout:g} seconds; its processes were here:\n"
        f"{table(rows)}"
    )


def interrupted(rows: Iterable[Whereabouts]) -> str:
    """Return a note for the interrupt that ends a run."""
    return f"The processes of the run were here:\n{table(rows)}"


def table(rows: Iterable[Whereabouts]) -> str:
    """Return a table of where processes are; those at the same line of the program share a row."""
    alike: dict[tuple[str, str, str], list[int]] = {}
    for pid, superstep, line, doing in sorted(rows):
        alike.setdefault((str(superstep), line, doing), []).append(pid)
    lines = [_HEADINGS, *((_ranges(pids), *row) for row, pids in alike.items())]
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEADINGS))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def _ranges(pids: Sequence[int]) -> str:
    """Return numbers in increasing order as text, such as ``0, 2-5``."""
    parts: list[list[int]] = []
    for pid in pids:
        if parts and parts[-1][-1] == pid - 1:
            parts[-1][1:] = [pid]
        else:
            parts.append([pid])
    return ", ".join("-".join(map(str, part)) for part in parts)
