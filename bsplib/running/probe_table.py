"""The result of a probe, as a table on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from bsplib.running.probe import ROUNDS, Probed, probe

if TYPE_CHECKING:
    from bsplib.machine import Machine


def probe_with_progress(nprocs: int, name: str, backend: str) -> Probed:
    """Do as :func:`probe`, and show a progress bar on standard error."""
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        console=Console(stderr=True),
        auto_refresh=False,  # no thread: processes are forked from this one
        transient=True,
    ) as progress:
        bar = progress.add_task(f"measuring with {nprocs} processes", total=ROUNDS)

        def advance() -> None:
            progress.advance(bar)
            progress.refresh()

        return probe(nprocs, name, backend=backend, progress=advance)


def table(probed: Probed) -> Group:
    """Return the parameters of a Machine that was measured, as a table."""
    machine = probed.machine
    rows = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    rows.add_column("pattern" if machine.patterns else "level")
    for title in ("g, ns a byte", f"g, ns a word of {machine.word_bytes}", "L, µs", "misfit"):
        rows.add_column(title, justify="right")
    for pattern, fit in probed.fits.items():
        g_ns = fit.g * 1e9
        word_ns = g_ns * machine.word_bytes
        misfit = f"{100 * fit.misfit:.0f}%"
        rows.add_row(pattern, f"{g_ns:.3g}", f"{word_ns:.3g}", f"{fit.l * 1e6:.3g}", misfit)
    return Group(Text(_head(machine)), rows)


def _head(machine: Machine) -> str:
    latency = "fitted below zero" if machine.l is None or machine.l < 0 else f"{machine.l:.3g} s"
    figures = f"speed {machine.speed:.3g} flop/s, g {machine.g:.3g} s a byte, l {latency}"
    return f"{machine.label}: {figures}"
