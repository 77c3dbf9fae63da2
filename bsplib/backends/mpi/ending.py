"""How a job of ranks is ended, and when: at the deadline of a run, each says where it is before."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import NoReturn

from bsplib.backends.members import Whereabouts

STATUS = 124
"""Exit status of a job whose time is over, as that of the command ``timeout``."""
_PASS_ON_S = 0.1
"""Seconds for a launcher to pass on the last printed lines, before it learns that the job ends."""
_SPEAK_S = 0.5
"""Seconds for all ranks to say where they are."""
_DUMP_S = 0.25
"""Seconds for the thread of a rank to run; if C code keeps it from that, Python's fault handler
says where the rank is, which needs no lock."""


@contextlib.contextmanager
def ended_after(
    seconds: float | None, rank: int, whereabouts: Callable[[], Whereabouts]
) -> Iterator[None]:
    """End the job where the block takes longer than some seconds.

    Args:
        seconds: None: it may take any time.
        rank: this process.
        whereabouts: returns where this process is, in any thread.
    """
    if seconds is None:
        yield
        return
    is_done = threading.Event()

    def watch() -> None:
        if is_done.wait(seconds):
            return
        faulthandler.cancel_dump_traceback_later()
        _, superstep, line, doing = whereabouts()
        text = (
            f"bsplib: run: the program took longer than timeout={seconds:g} seconds; process "
            f"{rank} is in superstep {superstep}{f' at {line}' if line else ''}, {doing}\n"
        )
        with contextlib.suppress(OSError):
            os.write(2, text.encode(errors="backslashreplace"))
        time.sleep(_SPEAK_S if rank == 0 else 3 * _SPEAK_S)
        end_job("", STATUS)

    faulthandler.dump_traceback_later(seconds + _DUMP_S, file=2)
    threading.Thread(target=watch, name="bsp-deadline", daemon=True).start()
    try:
        yield
    finally:
        is_done.set()
        faulthandler.cancel_dump_traceback_later()


def end_job(text: str, status: int = 1) -> NoReturn:
    """Print a text, and end all ranks with an exit status."""
    from mpi4py import MPI  # noqa: PLC0415  # it has started

    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, OSError, ValueError):  # there is none
            stream.flush()
    with contextlib.suppress(OSError):
        os.write(2, text.encode(errors="backslashreplace"))
    time.sleep(_PASS_ON_S)
    MPI.COMM_WORLD.Abort(status)
    os._exit(status)
