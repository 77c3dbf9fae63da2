"""Makes a trace of what the ranks of an mpi4py program have recorded.

The recorder does this at the end of the program, by ``python -m bsplib.record.join FOLDER OUT``.
Where the program was killed, the folder ``OUT.ranks`` is left, and ``bsp recover`` does it by hand.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from bsplib.errors import BspError, UsageError
from bsplib.output_file import TRACE, obstacle
from bsplib.record.events import remove_rank_files
from bsplib.record.joining.assembly import assembled
from bsplib.record.joining.ranks import read_calls
from bsplib.recording.collect import write_fitting
from bsplib.recording.records import Run, Trace

RANKS = ".ranks"
"""What is added to the name of a trace for the folder of its ranks."""


def join(folder: str | os.PathLike[str]) -> Trace:
    """Return the trace of the files of ranks in a folder.

    Args:
        folder: where each rank of a program has written its file.

    Returns:
        A trace of one run. Where ranks are absent, or their files end early, it has what is
        there, and its metadata names them.

    Raises:
        TraceError: there are no such files, or they are damaged.
    """
    return Trace((assembled(read_calls(Path(folder))),))


def join_into(folder: Path, out: Path) -> Run:
    """Write the trace of the files of ranks in a folder.

    Args:
        folder: as for :func:`join`.
        out: file for the trace; only a trace is replaced.

    Returns:
        The run as it was written.

    Raises:
        TraceError: as for :func:`join`.
        UsageError: the trace cannot be written there.
    """
    if reason := obstacle(out, TRACE):
        raise UsageError(f"record: {reason}")
    run = join(folder).runs[0]
    try:
        return write_fitting(out, (), run)[0]
    except OSError as error:
        raise UsageError(f"record: {out} cannot be written: {error.strerror}") from None


def recover(folder: Path, out: Path | None = None) -> tuple[Path, Run]:
    """Make the trace of ranks that were killed, and remove their files.

    Args:
        folder: as for :func:`join`.
        out: file for the trace; default: the one that the program was to be recorded in.

    Returns:
        The file, and the run as far as it was recorded.

    Raises:
        TraceError: as for :func:`join`.
        UsageError: the trace cannot be written there, or its name is not known.
    """
    if out is None:
        if folder.suffix != RANKS:
            raise UsageError(f"recover: {folder} does not end in {RANKS}; name the trace by --out")
        out = folder.with_suffix("")
        if out.exists():
            raise UsageError(f"recover: {out} exists already; give another file by --out")
    run = join_into(folder, out)
    remove_rank_files(folder)
    return out, run


def main(arguments: list[str]) -> int:
    """Join a folder into a trace; say what is wrong in one sentence."""
    folder, out = map(Path, arguments)
    try:
        run = join_into(folder, out)
    except BspError as error:
        sys.stderr.write(f"bsp: {error}\n")
        return 1
    if not run.complete:
        sys.stderr.write(f"bsp: {out} is not complete: {run.meta.get('error', '')}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
