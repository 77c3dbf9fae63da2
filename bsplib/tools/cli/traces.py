"""The trace that a command reads, and the run of it that is meant."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bsplib.backends.members import named
from bsplib.visible import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bsplib.console import Console
    from bsplib.recording.records import Trace

LONG_BYTES = 10**8
"""Size of a file that takes so long that progress is shown: about a second."""


def read(file: Path, *, shows_errors: bool = False) -> Trace:
    """Return the trace in a file; of a long file, show the progress on the terminal.

    Args:
        file: the trace.
        shows_errors: what the command prints has the errors of the runs, and so needs no warning
            that processes are missing.

    Raises:
        TraceError: the file is no trace, or cannot be read.
    """
    trace = _read(file)
    if not shows_errors:
        for number, run in enumerate(trace.runs, 1):
            if run.absent:
                click.echo(
                    f"Warning: {visible(file.name)}, run {number}: the records of "
                    f"{named(run.absent)} are missing, and count as 0 in all figures",
                    err=True,
                )
    return trace


def _read(file: Path) -> Trace:
    from bsplib.recording.trace import read_trace  # noqa: PLC0415  # imported late

    if (terminal := _terminal(file)) is None:
        return read_trace(file)
    from rich.progress import Progress  # noqa: PLC0415

    with Progress(console=terminal, transient=True) as progress:
        bar = progress.add_task(f"reading {_named(file)}", total=1.0)
        return read_trace(file, progress=lambda part: progress.update(bar, completed=part))


@contextmanager
def summing_up(file: Path) -> Iterator[None]:
    """Show that a command is at work with a long trace, until it has something to print."""
    if (terminal := _terminal(file)) is None:
        yield
        return
    with terminal.status(f"summing up the records of {_named(file)}"):
        yield


def _named(file: Path) -> str:
    """Return the name of a file in the markup of rich."""
    from rich.markup import escape  # noqa: PLC0415  # imported late

    return escape(visible(file.name))


def _terminal(file: Path) -> Console | None:
    """Return standard error if it is a terminal and a file takes long; otherwise None."""
    from bsplib.console import Console  # noqa: PLC0415  # imported late

    try:
        is_long = file.stat().st_size >= LONG_BYTES
    except OSError:  # the reader says why
        return None
    console = Console(stderr=True)
    return console if is_long and console.is_terminal else None


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
