"""How long processes waited for threads of their own, such as those of a library for matrices.

That is a part of useful computation: the process computes, though its main thread does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bsplib.profiler import format as fmt
from bsplib.profiler.kinds import LEAST_TOLD
from bsplib.profiler.survey import elapsed_s

if TYPE_CHECKING:
    from bsplib.recording.records import Run


def own_threads_s(run: Run) -> float | None:
    """Return the seconds that all processes waited for threads of their own; None if not known."""
    waited = run.meta.get("own_threads_ns")
    if not isinstance(waited, list) or not all(type(each) is int for each in waited):
        return None
    return sum(waited) / 1e9


def own_threads_sentence(run: Run) -> str:
    """Return the sentence about such waiting; empty where there is little, or it is not known."""
    waited_s, whole_s = own_threads_s(run), run.nprocs * elapsed_s(run)
    if not waited_s or waited_s < LEAST_TOLD * whole_s:
        return ""
    processes = fmt.processes(run.nprocs)
    return (
        f"{fmt.seconds(waited_s)} of {fmt.seconds(whole_s)} of {processes} "
        f"({100 * waited_s / whole_s:.0f}%) passed in waiting for own threads, which is "
        "computation."
    )
