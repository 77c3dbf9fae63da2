"""What is measured on this computer, beside what the papers print of theirs: a minute or two.

Nothing here is the same in two runs. Other work on the computer, and more processes than cores,
make times longer.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from bsplib.apps.fourier.experiment import T3E, tell
from bsplib.apps.fourier.published import TABLE_3
from bsplib.apps.papers.entries import CHITTOR, GONZALEZ, RODA, SHI, Item
from bsplib.apps.papers.msteps.measure import ModelledTime, compare, compare_sorts
from bsplib.apps.papers.speedup.laws import fit_parts
from bsplib.apps.papers.speedup.overheads import measure as overheads
from bsplib.apps.papers.steady.measure import SIZES
from bsplib.apps.papers.steady.measure import measure as steady
from bsplib.apps.papers.steady.programs import PROGRAMS
from bsplib.apps.spans import waiting
from bsplib.backends.table import own_cores

PARTS = 4
_COUNTS = (1, 2, 4, 8, 16)
_VALUES = 1 << 18
_KEYS = 1 << 20


def here(advance: Callable[[], object] = lambda: None) -> Iterator[Item]:
    """Measure, and yield the results.

    Args:
        advance: is called after each of ``PARTS``.
    """
    for part in (_overheads, _msteps, _steady, _transforms):
        for item in part():
            yield replace(item, differs=f"{item.differs}{_crowd()}")
        advance()


def _crowd() -> str:
    """Return a remark if other work keeps the cores busy."""
    load, cores = os.getloadavg()[0], len(os.sched_getaffinity(0))
    if load <= cores + 1:
        return ""
    return f"; a load of {load:.0f} on {cores} cores, from which no error can be read"


def _overheads() -> Iterator[Item]:
    """Chittor 1995, Tables 1 and 2: lines through the times of P = 1 to 16."""
    found = overheads(_COUNTS)
    for table, what, printed, times in (
        ("Table 1", "creation of processes here", "9.00 P + 6.8 units", "creation_s"),
        ("Table 2", "barrier here", "20.08 P + 0.8 units", "barrier_s"),
    ):
        line = fit_parts({each.nprocs: getattr(each, times) for each in found})
        ours = f"{1e3 * line.each:.3f} P + {1e3 * line.start:.3f} ms"
        why = (
            "another computer; both grow with P, and with more processes than cores they take turns"
        )
        yield Item(CHITTOR, table, what, printed, ours, why, "bsplib.apps.papers.speedup.overheads")


def _msteps() -> Iterator[Item]:
    """Roda et al. 1999, Figures 11 and 12: errors of the predictions, p = 1 to 16."""
    place = "bsplib.apps.papers.msteps.measure"
    for row in compare(_VALUES, _COUNTS):
        why = "curves in print; one process only divides and transforms: D and F"
        if row.nprocs > 1:
            why = (
                "curves in print; R, the greatest part, is measured with halves that both are in "
                "memory of process 0; in the program one of them comes from another process"
            )
        what = f"error of the transform at p = {row.nprocs} here"
        yield Item(RODA, "Figure 11", what, "curves only", *_with_turns(row, why), place)
    for row in compare_sorts(_KEYS, _COUNTS[1:]):
        why = (
            "curves in print; g is the mean of patterns, and blocks go one way, as in ping-pong, "
            "which takes longer; process 0 also copies its own block, for which there is no term"
        )
        what = f"error of the sort at p = {row.nprocs} here"
        yield Item(RODA, "Figure 12", what, "curves only", *_with_turns(row, why), place)


def _with_turns(row: ModelledTime, why: str) -> tuple[str, str]:
    """Return the error and what differs; where processes take turns, the error without, too."""
    cores = own_cores()
    if row.nprocs <= cores:
        return f"{row.error_percent:+.0f}%", why
    ours = (
        f"{row.alone_error_percent:+.0f}%; {row.error_percent:+.0f}% corrected: constants measured "
        f"with {row.nprocs} at once"
    )
    return ours, (
        f"{row.nprocs} processes take turns on {cores} cores, and the constants of one process, as "
        "in the model, know nothing of it"
    )


def _steady() -> Iterator[Item]:
    """Shi, sections 3 to 7: errors of six programs at a size that no model has seen."""
    for row in steady(PROGRAMS, 2):
        lacks = ""
        if abs(row.unsynced_error_percent - row.error_percent) >= _MATTERS:
            lacks = f"; {row.unsynced_error_percent:+.0f}% without T_sync"
        ours = f"p = 1: {row.alone_error_percent:+.0f}%, p = 2: {row.error_percent:+.0f}%{lacks}"
        yield Item(
            SHI,
            "sections 3 to 7",
            f"error of {row.name}, n = {row.n:,} here",
            "lost",
            ours,
            f"print is lost; calibrated at n = {SIZES[row.name][0]:,}; {_STEADY[row.name]}",
            "bsplib.apps.papers.steady.measure",
        )


_MATTERS = 5
"""Percent by which a prediction without empty rounds differs at least, to be printed."""
_STEADY = {
    "sort": "passes over more keys than the cache of a core holds take longer than those inside "
    "of it, and of more keys there are more such passes",
    "slow-sort": "all comparisons are in blocks that the cache holds, so that W keeps its value",
    "fractal": "all pixels are in blocks that the cache holds, so that W keeps its value; u holds "
    "the difference of the columns of both processes, too",
    "monte-carlo": "random numbers take nearly all of the time; u is small, since it holds the "
    "copies of process 0 between slices",
    "matrices": "the product of larger matrices takes less time for a step",
    "elimination": "in each of n - 1 rounds processes wait for each other: T_sync of equation 2.3 "
    "is measured by an empty problem",
}
"""Why the predictions differ from what is measured, where they do."""


def _transforms() -> Iterator[Item]:
    """Yield Table 3 of Gonzalez et al. on virtual processors of a T3E, and here.

    The transform has half as many values as in the paper. Those that predict it have enough
    values that a part of them exceeds the cache of a core, as it was on the T3E.
    """
    why = (
        "fitted to N = 2^14 to 2^18, on both sides of a cache of 2 MB, for N = 2^20; what a value "
        "takes grows outside of it, and so does the error if only N up to 2^14 are measured"
    )
    virtual = f"{why}; on sim all processors share one cache of this computer"
    runs: tuple[tuple[str, tuple[int, ...], str, dict[str, Any]], ...] = (
        ("T3E on sim", tuple(TABLE_3), virtual, {"backend": "sim", "machine": T3E}),
        ("this computer", (1, 2), why, {"backend": "shm", "wait": waiting(2)}),
    )
    for where, procs, text, options in runs:
        for row in tell(procs, _TRANSFORM, _SMALL, **options).rows:
            ours = f"{row.seconds:.4g} s, {row.predicted:.4g} s, {row.error_percent:.1f}%"
            took, predicted, error = TABLE_3[row.nprocs]
            printed = f"{took} s, {predicted} s, {error}"
            what = f"time, prediction and error at P = {row.nprocs}, {where}"
            yield Item(
                GONZALEZ, "Table 3", what, printed, ours, text, "bsplib.apps.fourier.experiment"
            )


_TRANSFORM = 2**20
_SMALL = tuple(2**power for power in range(14, 19))
