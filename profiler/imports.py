"""The part of the computation of a run in which processes imported modules.

That happens once in a process, and takes as long with little data as with much.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.recording.import_clock import is_import

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from bsplib.recording.records import Run


class Imported(NamedTuple):
    """The imports in the computation of each record; 0 where nothing was imported or is known."""

    ns: NDArray[np.float64]
    """CPU time."""
    faults: NDArray[np.float64]
    """Page faults without input."""


def imported(run: Run) -> Imported:
    """Return the imports in the computation of each record."""
    found = Imported(*np.zeros((2, len(run.records))))
    records = run.records
    for pid, at_ns, cpu_ns, faults in _imports(run):
        around = (records["pid"] == pid) & (records["start"] <= at_ns) & (at_ns < records["arrive"])
        places = np.flatnonzero(around)
        if len(places):  # a superstep of the parent is around that of a sub-group
            place = places[records["start"][places].argmax()]
            found.ns[place] += cpu_ns
            found.faults[place] += faults
    return found


def _imports(run: Run) -> Iterator[tuple[int, int, int, int]]:
    """Yield process, moment, CPU time and faults of each import; nothing that is none."""
    told = run.meta.get("imports")
    for pid, imports in enumerate(told if isinstance(told, list) else ()):
        for each in imports if isinstance(imports, list) else ():
            if is_import(each):
                yield pid, *each
