"""How soon processes go on when the last of them comes to a meeting, after a wait.

The last process computes for a time before each sync, and the others wait for it. A case gives the
median, or the value that 90 % of the meetings do not exceed, of the time from its coming to the end
of the meeting in all processes. The peers are the barriers of both MPIs.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial

from benchmarks import programs
from benchmarks.cases.primitives import sampler
from benchmarks.measure import Case, Section
from benchmarks.mpi import started

_SECONDS = 0.1
"""About so long is a sample."""
_LEAST, _MOST = 20, 200
"""Meetings of a sample."""


def _cases(nprocs: int, wait_ms: float, stack: ExitStack) -> Sequence[Case]:
    """Compare a sync to which the last process comes late with a barrier."""
    count = round(min(max(_SECONDS / (wait_ms / 1e3), _LEAST), _MOST))
    ours, theirs = sampler(stack, nprocs), list(started(stack, nprocs))
    cases = []
    for quantile, name in ((0.5, "median"), (0.9, "90 %")):
        what = {"count": count, "late_s": wait_ms / 1e3, "quantile": quantile}
        for title, sample in theirs:
            cases.append(
                Case(f"{title}, Barrier, {name}", partial(sample, "late_barriers", **what))
            )
        cases.append(Case(f"sync, {name}", partial(ours, programs.late_syncs, **what)))
    return cases


SECTIONS = tuple(
    Section(
        f"The last of {nprocs} processes {wait_ms:g} ms late",
        "end of a sync",
        partial(_cases, nprocs, wait_ms),
    )
    for nprocs, waits_ms in ((2, (0.01, 0.2, 1, 5)), (3, (0.2, 5)))
    for wait_ms in waits_ms
)
