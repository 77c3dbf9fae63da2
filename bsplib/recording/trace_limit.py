"""Writes a trace that is short enough to be read."""

from __future__ import annotations

from pathlib import Path

from bsplib.recording.collect import first_half
from bsplib.recording.records import Run, Trace
from bsplib.recording.trace import write_trace
from bsplib.recording.trace_document import TraceTooLongError


def write_fitting(
    target: Path, earlier: tuple[Run, ...], run: Run, scratch: Path | None = None
) -> tuple[Run, str]:
    """Write a trace; leave out the end of its last run if the trace is too long to be read.

    Args:
        target: the file.
        earlier: the runs before the last one.
        run: the last run.
        scratch: as for :func:`bsplib.recording.trace.write_trace`.

    Returns:
        The last run as it was written, and a text about what was left out of it.

    Raises:
        TooLongError: the trace is too long even with no record of the last run.
        OSError: the file cannot be written.
    """
    left_out = ""
    while True:
        try:
            write_trace(target, Trace((*earlier, run)), scratch=scratch)
        except TraceTooLongError as error:
            if len(run.records) == 0:
                raise
            left_out = f"the end of the run was left out, since {str(error).rstrip('.')}"
            run = first_half(run)
            run.meta.setdefault("error", left_out)
        else:
            return run, left_out
