"""Ctrl-backslash in the terminal of ``bsp run``: print where the processes are."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence

from bsplib.backends import asking
from bsplib.backends.members import named
from bsplib.backends.whereabouts import Whereabouts
from bsplib.running.cut_short import table

_STANDARD_ERROR = 2
_WAITS = "waiting"
_ENDED = "has ended"


def answer_questions() -> None:
    """Print where the processes of a run are when this process gets SIGQUIT; it goes on."""
    asking.install(_print)


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
