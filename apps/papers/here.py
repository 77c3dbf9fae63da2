"""What is measured on this computer, beside what the papers print of theirs: a minute or two.

Nothing here is the same in two runs. Other work on the computer, and more processes than cores,
make times longer.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from apps.fourier.experiment import T3E, TABLE_3, tell
from apps.msteps.measure import compare, compare_sorts, constants
from apps.msteps.patterns import measure_network
from apps.papers.items import CALL_ERRORS, CHITTOR, GONZALEZ, RODA, SHI, Item
from apps.speedup.laws import fit_parts
from apps.speedup.overheads import measure as overheads
from apps.steady.measure import measure as steady
from apps.steady.programs import PROGRAMS

PARTS = 4
_COUNTS = (1, 2, 4, 8, 16)
_VALUES = 1 << 18
_RELATIONS = (1 << 14, 1 << 16, 1 << 18, 1 << 20)


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
        yield Item(CHITTOR, table, what, printed, ours, why, "apps.speedup.overheads")


def _msteps() -> Iterator[Item]:
    """Roda et al. 1999, Figures 9 to 12: errors of the predictions, p = 2 to 16."""
    network = measure_network(_RELATIONS)
    network = replace(network, L=max(network.L, 0.0))
    counts = _COUNTS[1:]
    found = {
        "Figure 11": compare(_VALUES, counts, constants(_VALUES), network),
        "Figure 12": compare_sorts(_VALUES, counts, network),
    }
    for figure, rows in found.items():
        ours = ", ".join(f"{row.error_percent:.0f}%" for row in rows)
        program = "transform" if figure == "Figure 11" else "sort"
        what = f"error of the {program} at p = 2, 4, 8, 16 here"
        why = "another computer; its model does not know that processes take turns on a core"
        yield Item(RODA, figure, what, "curves only", ours, why, "apps.msteps.measure")


def _steady() -> Iterator[Item]:
    """Shi, sections 3 to 7: errors of six programs at a size that no model has seen."""
    for row in steady(PROGRAMS, 2):
        what = f"error of {row.name}, n = {row.n:,}, p = 2 here"
        why = "print is lost; W and u are calibrated at a smaller size"
        yield Item(
            *(SHI, "sections 3 to 7", what, "lost", f"{row.error_percent:.0f}%", why),
            "apps.steady.measure",
        )


def _transforms() -> Iterator[Item]:
    """Yield Table 3 of Gonzalez et al. on virtual processors of a T3E, and here.

    The transform is eight times smaller than the paper's, and so are those that predict it.
    """
    small = tuple(2**power for power in range(10, 15))
    why = "computation is that of this computer; its caches hold the small transforms only"
    runs: tuple[tuple[str, tuple[int, ...], dict[str, Any]], ...] = (
        ("T3E on sim", tuple(TABLE_3), {"backend": "sim", "machine": T3E}),
        ("this computer", (1, 2), {"backend": "shm"}),
    )
    for where, procs, options in runs:
        for row in tell(procs, 2**18, small, **options).rows:
            ours = f"{row.seconds:.4g} s, {row.predicted:.4g} s, {row.error_percent:.1f}%"
            took, predicted = TABLE_3[row.nprocs]
            printed = f"{took} s, {predicted} s, {CALL_ERRORS[row.nprocs]}"
            what = f"time, prediction and error at P = {row.nprocs}, {where}"
            yield Item(GONZALEZ, "Table 3", what, printed, ours, why, "apps.fourier.experiment")
