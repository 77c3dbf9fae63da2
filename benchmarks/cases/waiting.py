"""How soon processes go on when the last of them comes to a meeting, after a wait.

The last process computes for a time before each sync, and the others wait for it. A case gives the
median, or the value that 90 % of the meetings do not exceed, of the time from its coming to the end
of the meeting in all processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial

from benchmarks import programs
from benchmarks.cases.primitives import sampler
from benchmarks.measure import Case, Section

_SECONDS = 0.1
"""About so long is a sample."""
_LEAST = 20
"""Meetings of a sample."""


def _cases(wait_ms: float, stack: ExitStack) -> Sequence[Case]:
    """Measure a sync to which the last process comes late."""
    count = max(round(_SECONDS / (wait_ms / 1e3)), _LEAST)
    late = partial(sampler(stack, 2), programs.late_syncs, count, wait_ms / 1e3)
    return [
        Case(f"sync, {name}", partial(late, quantile))
        for quantile, name in ((0.5, "median"), (0.9, "90 %"))
    ]


SECTIONS = tuple(
    Section(f"The last of 2 processes {wait_ms} ms late", "end of a sync", partial(_cases, wait_ms))
    for wait_ms in (1, 5)
)
