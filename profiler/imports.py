"""The part of the computation of a run in which processes imported modules.

That happens once in a process, and takes as long with little data as with much.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bsplib.recording.import_clock import is_import

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bsplib.profiler._arrays import Floats
    from bsplib.recording.records import Run


def imported_ns(run: Run) -> Floats:
    """Return the CPU time of the imports in each record; 0 where nothing was imported."""
    found, records = np.zeros(len(run.records)), run.records
    for pid, at_ns, cpu_ns in _imports(run):
        around = (records["pid"] == pid) & (records["start"] <= at_ns) & (at_ns < records["arrive"])
        places = np.flatnonzero(around)
        if len(places):  # a superstep of the parent is around that of a sub-group
            found[places[records["start"][places].argmax()]] += cpu_ns
    return found


def _imports(run: Run) -> Iterator[tuple[int, int, int]]:
    """Yield process, moment and CPU time of each import; nothing that is none."""
    told = run.meta.get("imports")
    for pid, imports in enumerate(told if isinstance(told, list) else ()):
        for each in imports if isinstance(imports, list) else ():
            if is_import(each):
                yield pid, *each
