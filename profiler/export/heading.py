"""What a run was, in a few lines of text for the head of an export."""

from __future__ import annotations

from typing import TYPE_CHECKING

from profiler import format as fmt
from profiler.costs import elapsed_s

if TYPE_CHECKING:
    from bsplib.recording.records import Run

TITLE_COLUMNS = 100
"""The middle of a longer title, with long arguments, is left out."""


def title_lines(run: Run) -> list[str]:
    """Return the program with its arguments; then processes, backend, time and date of a run."""
    arguments = run.meta.get("arguments")
    words = [run.meta.get("program", "a program"), *_listed(arguments)]
    title = " ".join(fmt.visible(str(word)) for word in words)
    return [fmt.shortened(title, TITLE_COLUMNS), ", ".join(_facts(run))]


def _facts(run: Run) -> list[str]:
    """Return what is known of a run; nothing is said of what was not recorded."""
    known = {
        "backend {}": run.meta.get("backend"),
        "host {}": run.meta.get("host"),
        "{}": fmt.seconds(elapsed_s(run)),
        "started {}": run.meta.get("started"),
        "not complete: {}": None if run.complete else run.meta.get("error", "no error recorded"),
    }
    facts = [text.format(fmt.visible(str(value))) for text, value in known.items() if value]
    return [fmt.counted(run.nprocs, "process", "processes"), *facts]


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []
