"""Time that the account cannot tell: for own threads, and what other virtual machines took.

How long processes waited for threads of their own, such as those of a library for matrices, is a
part of useful computation: the process computes, though its main thread does not.

What other virtual machines took of a run is the steal that ``/proc/stat`` counts. It is known for
the host of the caller only, summed over its cores. The system books it nowhere in a process: it may
lie in computation, or in what is blocked or not explained.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bsplib.profiler import format as fmt
from bsplib.profiler.kinds import LEAST_TOLD
from bsplib.profiler.survey import elapsed_s, is_virtual
from bsplib.recording.records import NOT_MEASURED

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


def steal_s(run: Run) -> float | None:
    """Return the seconds that the cores of the caller's host were taken; None if not known."""
    if run.steal_ns == NOT_MEASURED or is_virtual(run):
        return None
    return run.steal_ns / 1e9


def steal_sentence(run: Run) -> str:
    """Return the sentence about steal; empty where there is little, or it is not known."""
    stolen_s, cores, whole_s = steal_s(run), run.meta.get("cores"), elapsed_s(run)
    if not stolen_s or not isinstance(cores, int) or cores < 1:
        return ""
    share = stolen_s / (cores * whole_s) if whole_s else 1.0
    if share <= LEAST_TOLD:
        return ""
    of = fmt.counted(cores, "core")
    return (
        f"Other virtual machines took {fmt.seconds(stolen_s)} of {fmt.seconds(cores * whole_s)} of "
        f"{of} ({100 * share:.0f}%, steal): this is in computation, blocked or unexplained."
    )
