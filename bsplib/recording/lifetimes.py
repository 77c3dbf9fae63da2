"""When a run began and ended, put together from what its caller and its processes noted.

Each process notes moments on its own clock, with the moment that is time 0 of its records on the
same clock. The caller notes moments on its clock, which is also that of the processes on its
host: by one of these its moments are converted. Where no process was on the caller's host, the
moments of the caller, and so the lifetime, are not known.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bsplib.errors import TraceError
from bsplib.recording.records import NOT_MEASURED, Host, Lifetime
from bsplib.recording.trace_document import lifetime_of as checked

_STAT = Path("/proc/stat")
_TICKS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
"""What the first line of /proc/stat has after its name; see proc(5)."""

Noted = Mapping[str, int]
"""What a process has noted by name, on its own clock in ns: one of ``NOTED``."""
NOTED = frozenset({"began", "started", "ready", "finished", "own_threads_ns"})
"""``began`` is time 0 of its records, ``own_threads_ns`` how long its computation has waited for
threads of its own; the others are as in a Lifetime."""


def stolen_ns() -> int:
    """Return for how long other virtual machines have had the cores of this host, over all cores.

    Returns:
        Nanoseconds, in steps of some ms; -1 if the system does not say.
    """
    try:
        with _STAT.open(encoding="ascii") as file:
            _, *ticks = file.readline().split()
        stolen = int(ticks[_TICKS.index("steal")])
    except (OSError, ValueError, IndexError):
        return NOT_MEASURED
    return stolen * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


@dataclass
class Caller:
    """What the caller has noted, on its own clock in ns."""

    is_virtual: bool
    """The clock of the records is virtual, on which the caller has no moments."""
    called: int = field(default_factory=time.perf_counter_ns)
    collected: int | None = None
    returned: int | None = None
    stolen_before: int = field(default_factory=stolen_ns)
    steal_ns: int = NOT_MEASURED

    def end(self, *, is_complete: bool) -> None:
        """Note that all results have come, or that the run failed."""
        if is_complete:
            self.collected = time.perf_counter_ns()
        stolen = stolen_ns()
        if not self.is_virtual and min(stolen, self.stolen_before) >= 0:
            self.steal_ns = max(stolen - self.stolen_before, 0)


def lifetime_of(
    noted: Sequence[Noted], hosts: Sequence[Host | None], caller: Caller | None
) -> Lifetime | None:
    """Return the lifetime of a run; None if it cannot be known.

    Args:
        noted: what each process noted, by pid.
        hosts: the host of each process; None where all are on that of the caller.
        caller: what the caller noted; None if it did not.
    """
    if caller is None:
        return None
    by_process = {
        name: [_relative(each, each.get(name)) for each in noted]
        for name in ("started", "ready", "finished")
    }
    if caller.is_virtual:
        last = max((time for time in by_process["finished"] if time is not None), default=0)
        of_caller: list[int | None] = [0, last, last]
        if caller.collected is None:
            of_caller[1:] = None, None
    else:
        near = _near(noted, hosts)
        if near is None:
            return None
        moments = caller.called, caller.collected, caller.returned
        of_caller = [_relative(near, moment) for moment in moments]
    by_caller = dict(zip(("called", "collected", "returned"), of_caller, strict=True))
    try:
        return checked({**by_process, **by_caller}, len(noted))
    except TraceError:  # those of damaged files need not be in order
        return None


def _relative(noted: Noted, moment: int | None) -> int | None:
    """Return a moment of the clock of a process on the clock of the records."""
    return None if moment is None or "began" not in noted else moment - noted["began"]


def _near(noted: Sequence[Noted], hosts: Sequence[Host | None]) -> Noted | None:
    """Return what a process on the caller's host has noted, if there is one."""
    here = platform.node()
    for each, host in zip(noted, hosts, strict=True):
        if "began" in each and (host is None or host.name == here):
            return each
    return None
