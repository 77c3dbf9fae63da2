"""The way to a trace for programs and notebooks."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from bsplib.recording.trace import read_trace

if TYPE_CHECKING:
    from bsplib.profiler.profile import Profile


def load(file: str | os.PathLike[str], *, library: bool = False) -> Profile:
    """Read the trace of a program.

    Args:
        file: trace file, as ``bsplib.run(main, profile=file)`` and ``bsp run --profile`` write it.
        library: also show the functions of bsplib, such as a collective, as nodes.

    Returns:
        The profile, with one entry in ``runs`` for each run of the program.

    Raises:
        TraceError: the file is no trace, or cannot be read.

    >>> import bsplib, tempfile
    >>> def main(bsp):
    ...     bsp.charge(3e-3 if bsp.pid == 2 else 1e-3)  # process 2 is the slowest
    ...     bsp.sync()
    >>> folder = tempfile.TemporaryDirectory()
    >>> results = bsplib.run(main, nprocs=4, backend="sim", profile=f"{folder.name}/run.bsp")
    >>> profile = bsplib.load(f"{folder.name}/run.bsp")
    >>> (run,) = profile.runs
    >>> run.nprocs
    4
    >>> round(run.book().main.loss_s, 6)  # three processes wait for 2 ms: 1.5 ms on average
    0.0015
    >>> folder.cleanup()
    """
    from bsplib.profiler.profile import Profile  # noqa: PLC0415  # a run needs no profiler

    return Profile(read_trace(file), os.path.basename(file), library=library)
