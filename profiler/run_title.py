"""What a run was, in a few lines of text for the head of an export."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bsplib.profiler import format as fmt
from bsplib.profiler.hosts import host_names

if TYPE_CHECKING:
    from bsplib.recording.records import Run

TITLE_COLUMNS = 100
"""The middle of a longer title, with long arguments, is left out; a longer sentence is broken."""


def title_lines(run: Run) -> list[str]:
    """Return the program with its arguments; then how, where and when it ran."""
    where = [f"host {host_names(run)}"] if run.meta.get("host") else []
    when = [f"started {fmt.said(run, 'started')}"] if run.meta.get("started") else []
    return [fmt.program(run, TITLE_COLUMNS), ", ".join([fmt.circumstances(run), *where, *when])]
