"""Texts for costs, names, hosts and titles; all functions are pure."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import numpy as np

from bsplib.profiler.survey import elapsed_s, waiting_ns
from bsplib.visible import visible as visible  # noqa: PLC0414  # part of this module, for its users

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bsplib.profiler._arrays import Ints
    from bsplib.profiler.callgraph import Node, Summary
    from bsplib.recording.records import Run


TIME_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
MOST_COLUMNS = 60
"""Of longer names and conditions the middle is left out."""
MOST_NAMED = 4
"""Of more hosts, processes or nodes not all are named."""
SIZE_UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def seconds(value_s: float) -> str:
    """Return a time with three digits, such as ``1.35 ms``; from 1000 s on in whole seconds."""
    found = _in_units(value_s, TIME_UNITS)
    return found or (f"{_short(value_s * 1e9)} ns" if value_s else "0 s")


def size(value_bytes: float) -> str:
    """Return a number of bytes, such as ``812 B`` or ``1.35 MB`` (1 MB is 10**6 bytes)."""
    return _in_units(value_bytes, SIZE_UNITS) or f"{value_bytes:.0f} B"


def _in_units(value: float, units: Iterable[tuple[float, str]]) -> str:
    """Return a value in the first unit of which it has one or more; empty if there is none."""
    fitting = (each for each in units if _three_digits(value) >= each[0])
    return next((f"{_short(value / scale)} {unit}" for scale, unit in fitting), "")


def amount(value: float, metric: str) -> str:
    """Return a value of a metric with its unit: a size for ``h``, otherwise a time."""
    return size(value) if metric == "h" else seconds(value)


def balance(summary: Summary) -> str:
    """Return average and minimum in percent of the maximum, such as ``(54% | 21%)``."""
    average, minimum = summary.percentages()
    return f"({average}% | {minimum}%)"


def summary(value: Summary, metric: str) -> str:
    """Return maximum and balance, such as ``1.35 ms (54% | 21%)``; ``0 s`` without balance."""
    maximum = amount(value.maximum, metric)
    return f"{maximum} {balance(value)}" if value.maximum else maximum


def label(node: Node) -> str:
    """Return the name of a node, with the kind of its sync if that is not ``sync``."""
    kind = f" ({node.sync})" if node.sync not in ("", "sync") else ""
    return visible(node.name + kind)


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun, such as ``1 superstep`` or ``12 supersteps``."""
    return f"{number} {noun}" if number == 1 else f"{number} {plural or noun + 's'}"


def processes(number: int) -> str:
    """Return a number of processes, such as ``1 process`` or ``4 processes``."""
    return counted(number, "process", "processes")


def shortened(text: str, columns: int) -> str:
    """Return a text in at most ``columns`` columns; of a longer one the middle is left out.

    Both ends of a name identify it best. Wide letters, such as Chinese ones, take two columns.
    """
    from rich.cells import cell_len, set_cell_size  # noqa: PLC0415  # few profiles are printed

    if cell_len(text) <= columns:
        return text
    tail = (columns - 1) // 2
    head, end = set_cell_size(text, columns - 1 - tail), set_cell_size(text[::-1], tail)[::-1]
    return f"{head.rstrip()}…{end.lstrip()}"


def said(run: Run, key: str) -> str:
    """Return an entry of the metadata of a run in a form that is safe to show."""
    return visible(str(run.meta.get(key, "unknown")))


def program(run: Run, most: int = MOST_COLUMNS) -> str:
    """Return the program of a run with its arguments, in at most ``most`` columns."""
    arguments = run.meta.get("arguments")
    words = [said(run, "program")]
    if isinstance(arguments, list):
        words += [visible(shlex.quote(str(argument))) for argument in arguments]
    line = " ".join(words)
    return shortened(line, most)


def title(run: Run, number: int) -> str:
    """Return what a run is, on one line: program, processes, backend, time."""
    return f"run {number}: {program(run)}, {circumstances(run)}"


def circumstances(run: Run) -> str:
    """Return how a run was made, on one line: processes, backend, time."""
    parts = [
        processes(run.nprocs),
        f"backend {said(run, 'backend')}",
        seconds(elapsed_s(run)),
        state(run),
    ]
    return ", ".join(parts)


def state(run: Run) -> str:
    """Return whether a run is complete, and otherwise why not."""
    return "complete" if run.complete else f"not complete: {said(run, 'error')}"


def waiting(run: Run) -> str:
    """Return how long the processes of a run waited for a core; empty if that is not known."""
    waited_ns = waiting_ns(run)
    if waited_ns is None:
        return ""
    cores = run.meta.get("cores")
    where = f" on {cores} core{'s' * (cores != 1)}" if isinstance(cores, int) else ""
    who = processes(run.nprocs)
    return f"waiting for a core: {seconds(waited_ns / 1e9)} of {who}{where}"


def seconds_per_byte(g: float) -> str:
    """Return a time with three digits, also where it is far below a nanosecond."""
    return f"{g * 1e9:.3g} ns" if 0 < g < 1e-10 else seconds(g)


def _three_digits(value: float) -> float:
    """Round to three digits, before the unit is chosen: 999.7 µs is 1.00 ms, not 1000 µs."""
    return float(f"{value:.3g}")


def _short(number: float) -> str:
    """Return a number with three digits, or with all its digits before the point."""
    decimals = 2 if _three_digits(number) < 10 else 1 if _three_digits(number) < 100 else 0
    return f"{number:.{decimals}f}"


# -- hosts, the names of processes with them, and titles -------------------------------------------


def hosts_of(run: Run) -> tuple[str, ...]:
    """Return the name of the host of each process, by pid.

    Returns:
        Names that are safe to show; empty where the trace does not name several hosts.
    """
    hosts = _named(run)
    return tuple(visible(host[:MOST_COLUMNS]) for host in hosts) if len(set(hosts)) > 1 else ()


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
    return _listed(hosts) if hosts else said(run, "host")


def where(run: Run) -> str:
    """Return on which hosts a run was, and how far their clocks may be apart.

    Returns:
        Such as ``on 2 hosts (a, b) whose clocks agree within 12.0 µs``; empty where the trace
        does not name several hosts.
    """
    hosts = dict.fromkeys(hosts_of(run))
    if not hosts:
        return ""
    shown = f" ({', '.join(hosts)})" if len(hosts) <= MOST_NAMED else ""
    return f"on {len(hosts)} hosts{shown}{_agreement(run)}"


def _listed(hosts: Iterable[str]) -> str:
    names = list(dict.fromkeys(hosts))
    return ", ".join(names) if len(names) <= MOST_NAMED else f"{len(names)} hosts"


def _agreement(run: Run) -> str:
    bounds = run.meta.get("clock_bounds_s")
    values = list(bounds.values()) if isinstance(bounds, dict) else []
    numbers = [value for value in values if isinstance(value, int | float)]
    # Two hosts, each off by its bound from the clock of process 0, are apart by both.
    apart = max(0, sum(sorted(numbers)[-2:]))
    return f" whose clocks agree within {seconds(apart)}" if numbers else ""


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
    shown = ", ".join(map(str, pids[:MOST_NAMED]))
    return f"processes {shown}" + (", ..." if len(pids) > MOST_NAMED else "")


TITLE_COLUMNS = 100
"""The middle of a longer title, with long arguments, is left out; a longer sentence is broken."""


def title_lines(run: Run) -> list[str]:
    """Return the program with its arguments; then how, where and when it ran."""
    where = [f"host {host_names(run)}"] if run.meta.get("host") else []
    when = [f"started {said(run, 'started')}"] if run.meta.get("started") else []
    return [program(run, TITLE_COLUMNS), ", ".join([circumstances(run), *where, *when])]
