"""The result of a probe, as a table on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
from rich.table import Table
from rich.text import Text

from bsplib.backends import table as backends
from bsplib.console import Console
from bsplib.machine.probing.probe import BUDGET_S, ROUNDS, Probed, counts_of, probe
from bsplib.running.options import BackendName

if TYPE_CHECKING:
    from collections.abc import Callable

    from bsplib.machine import Machine
    from bsplib.machine.measured import Curve, Measured


def probe_with_progress(nprocs: int | None, name: str, backend: BackendName) -> Probed:
    """Do as :func:`probe`, and show a progress bar on standard error.

    Args:
        nprocs: as for :func:`counts_of`.
        name: name of the Machine.
        backend: as for :func:`probe`.
    """
    counts = counts_of(nprocs)
    chosen = nprocs or max(2, backends.own_cores())
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        console=Console(stderr=True),
        auto_refresh=False,  # no thread: processes are forked from this one
        transient=True,
        disable=backends.own_rank() > 0,
    ) as progress:
        text = ", ".join(map(str, counts))
        bar = progress.add_task(f"measuring with {text} processes", total=1.0)

        def advance(part: float) -> None:
            progress.update(bar, completed=part)
            progress.refresh()

        return probe(
            chosen,
            name,
            counts=counts,
            backend=backend,
            rounds=ROUNDS,
            budget_s=BUDGET_S,
            progress=advance,
        )


def table(probed: Probed) -> Group:
    """Return the parameters of a Machine that was measured, as tables."""
    machine = probed.machine
    parts: list[Text | Table] = [Text(_head(machine)), _lines(probed)]
    if machine.measured:
        parts += [Text("what prices supersteps, by number of processes:"), _measured(machine)]
        parts.append(Text(_meaning(machine)))
    if probed.doubt:
        parts.append(Text(probed.doubt))
    return Group(*parts)


def _lines(probed: Probed) -> Table:
    """Return g and L of each pattern or level."""
    machine = probed.machine
    rows = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    rows.add_column("pattern" if machine.patterns else "level")
    word = f"g, ns a word of {machine.word_bytes}"
    for title in ("g, ns a byte", word, "L, µs", "misfit of g h + L"):
        rows.add_column(title, justify="right")
    for pattern, fit in probed.fits.items():
        g_ns = fit.g * 1e9
        word_ns = g_ns * machine.word_bytes
        misfit = f"{100 * fit.misfit:.0f}%"
        rows.add_row(pattern, f"{g_ns:.3g}", f"{word_ns:.3g}", f"{fit.l * 1e6:.3g}", misfit)
    return rows


_COLUMNS: dict[str, Callable[[Measured], str]] = {
    "empty": lambda it: _time(it.empty),
    "a put": lambda it: _time(it.call),
    "1 MiB": lambda it: _at(it.patterns.get("exchange")),
    "start": lambda it: _time(it.start),
    "slower": lambda it: f"{it.slowdown:.2f}",
    "spread": lambda it: _percent(it.spread),
}
_MEANING = (
    "empty: a superstep without communication; a put: each further one of 8 B; 1 MiB: exchanged "
    "in pairs; start: of a run that does nothing; slower: computation, compared with one process "
    "alone; spread: mean difference of two halves of the rounds."
)


def _measured(machine: Machine) -> Table:
    """Return what was measured with each number of processes."""
    rows = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), caption_justify="left")
    for title in ("p", *_COLUMNS):
        rows.add_column(title, justify="right", no_wrap=True)
    for entry in machine.measured:
        shared = machine.cores is not None and entry.p > machine.cores
        rows.add_row(
            f"{entry.p}{'*' if shared else ''}", *(text(entry) for text in _COLUMNS.values())
        )
    return rows


def _meaning(machine: Machine) -> str:
    """Return what the columns mean."""
    if machine.cores is None or all(entry.p <= machine.cores for entry in machine.measured):
        return _MEANING
    return f"* processes share {machine.cores} cores. {_MEANING}"


def _at(curve: Curve | None) -> str:
    return "" if curve is None else _time(float(curve.at(2**20)))


def _time(seconds: float | None) -> str:
    if seconds is None:
        return ""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g}{unit}"
    return f"{seconds * 1e9:.3g}ns"


def _percent(part: float | None) -> str:
    return "" if part is None else f"{100 * part:.0f}%"


def _head(machine: Machine) -> str:
    latency = "fitted below zero" if machine.l is None or machine.l < 0 else f"{machine.l:.3g} s"
    figures = f"speed {machine.speed:.3g} flop/s, g {machine.g:.3g} s a byte, l {latency}"
    return f"{machine.label}: {figures}"
