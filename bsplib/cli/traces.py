"""The trace that a command reads, and the run of it that is meant."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from bsplib.recording.records import Trace


def read(file: Path) -> Trace:
    """Return the trace in a file.

    Raises:
        TraceError: the file is no trace, or cannot be read.
    """
    from bsplib.recording.trace import read_trace  # noqa: PLC0415  # imported late

    return read_trace(file)


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
