"""The trace that a command reads, and the run of it that is meant."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bsplib.backends.members import named
from bsplib.visible import visible

if TYPE_CHECKING:
    from bsplib.recording.records import Trace

LONG_BYTES = 10**8
"""Size of a file that takes so long that progress is shown: about a second."""


def read(file: Path, *, shows_errors: bool = False) -> Trace:
    """Return the trace in a file; while that takes long, say so on the terminal.

    Args:
        file: the trace.
        shows_errors: what the command prints has the errors of the runs, and so needs no warning
            that processes are missing.

    Raises:
        TraceError: the file is no trace, or cannot be read.
    """
    from bsplib.recording.trace import read_trace  # noqa: PLC0415  # imported late

    with _at_work("reading", file):
        trace = read_trace(file)
    if not shows_errors:
        for number, run in enumerate(trace.runs, 1):
            if run.absent:
                click.echo(
                    f"Warning: {visible(file.name)}, run {number}: the records of "
                    f"{named(run.absent)} are missing, and count as 0 in all figures",
                    err=True,
                )
    return trace


def summing_up(file: Path) -> AbstractContextManager[object]:
    """Show that a command is at work with a long trace, until it has something to print."""
    return _at_work("summing up the records of", file)


def _at_work(what: str, file: Path) -> AbstractContextManager[object]:
    """Say on standard error what is done, if that is a terminal and the file takes long."""
    try:
        if file.stat().st_size < LONG_BYTES:
            return nullcontext()
    except OSError:  # the reader says why
        return nullcontext()
    from rich.markup import escape  # noqa: PLC0415  # imported late

    from bsplib.console import Console  # noqa: PLC0415

    console = Console(stderr=True)
    if not console.is_terminal:
        return nullcontext()
    return console.status(f"{what} {escape(visible(file.name))}")


def position_of(trace: Trace, number: int | None) -> int | None:
    """Return the position of the run with a number, which counts from 1; None for all runs.

    Raises:
        click.BadParameter: the trace has no such run.
    """
    if number is None:
        return None
    if not 1 <= number <= len(trace.runs):
        raise click.BadParameter(
            f"there is no run {number}; the trace has runs 1 to {len(trace.runs)}",
            param_hint="--run",
        )
    return number - 1
