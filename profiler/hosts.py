"""The hosts of a run, the names of its processes with them, and its title in an export."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bsplib.profiler import format as fmt

if TYPE_CHECKING:
    from bsplib.profiler._arrays import Ints
    from bsplib.recording.records import Run


def hosts_of(run: Run) -> tuple[str, ...]:
    """Return the name of the host of each process, by pid.

    Returns:
        Names that are safe to show; empty where the trace does not name several hosts.
    """
    hosts = _named(run)
    return (
        tuple(fmt.visible(host[: fmt.MOST_COLUMNS]) for host in hosts)
        if len(set(hosts)) > 1
        else ()
    )


def host_numbers(run: Run) -> Ints | None:
    """Return a number for the host of each process, by pid; None if the trace names no hosts."""
    hosts = _named(run)
    if not hosts:
        return None
    return np.unique(hosts, return_inverse=True)[1].astype(np.int64)


def _named(run: Run) -> list[str]:
    """Return the hosts that the trace names by pid; empty if it names none, or not for all."""
    hosts = run.meta.get("hosts")
    if not isinstance(hosts, list) or len(hosts) != run.nprocs:
        return []
    return hosts if all(isinstance(host, str) for host in hosts) else []


def host_names(run: Run) -> str:
    """Return the host of a run, or its hosts: ``a``, ``a, b`` or ``12 hosts``."""
    hosts = hosts_of(run)
    return _listed(hosts) if hosts else fmt.said(run, "host")


def where(run: Run) -> str:
    """Return on which hosts a run was, and how far their clocks may be apart.

    Returns:
        Such as ``on 2 hosts (a, b) whose clocks agree within 12.0 µs``; empty where the trace
        does not name several hosts.
    """
    hosts = dict.fromkeys(hosts_of(run))
    if not hosts:
        return ""
    shown = f" ({', '.join(hosts)})" if len(hosts) <= fmt.MOST_NAMED else ""
    return f"on {len(hosts)} hosts{shown}{_agreement(run)}"


def _listed(hosts: Iterable[str]) -> str:
    names = list(dict.fromkeys(hosts))
    return ", ".join(names) if len(names) <= fmt.MOST_NAMED else f"{len(names)} hosts"


def _agreement(run: Run) -> str:
    bounds = run.meta.get("clock_bounds_s")
    values = list(bounds.values()) if isinstance(bounds, dict) else []
    numbers = [value for value in values if isinstance(value, int | float)]
    # Two hosts, each off by its bound from the clock of process 0, are apart by both.
    apart = max(0, sum(sorted(numbers)[-2:]))
    return f" whose clocks agree within {fmt.seconds(apart)}" if numbers else ""


def processes_named(run: Run, pids: Sequence[int]) -> str:
    """Return the names of some processes, such as ``processes 4 to 7 (node2)``.

    Args:
        run: the run; where it was on several hosts, those of the processes are named.
        pids: at least one, in rising order.
    """
    hosts = hosts_of(run)
    return (
        f"{_numbered(pids)} ({_listed(hosts[pid] for pid in pids)})" if hosts else _numbered(pids)
    )


def _numbered(pids: Sequence[int]) -> str:
    if len(pids) == 1:
        return f"process {pids[0]}"
    if list(pids) == list(range(pids[0], pids[-1] + 1)):
        return f"processes {pids[0]} to {pids[-1]}"
    shown = ", ".join(map(str, pids[: fmt.MOST_NAMED]))
    return f"processes {shown}" + (", ..." if len(pids) > fmt.MOST_NAMED else "")


TITLE_COLUMNS = 100
"""The middle of a longer title, with long arguments, is left out; a longer sentence is broken."""


def title_lines(run: Run) -> list[str]:
    """Return the program with its arguments; then how, where and when it ran."""
    where = [f"host {host_names(run)}"] if run.meta.get("host") else []
    when = [f"started {fmt.said(run, 'started')}"] if run.meta.get("started") else []
    return [fmt.program(run, TITLE_COLUMNS), ", ".join([fmt.circumstances(run), *where, *when])]
