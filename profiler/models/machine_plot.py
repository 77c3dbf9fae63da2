"""A probed Machine as a figure: g of each pattern by processes, and times by size.

Source: Roda et al. 1999, Figures 2 to 6, of which the left part is one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bsplib.machine import PATTERNS
from bsplib.machine.probing.probe import fit_line
from bsplib.profiler import format as fmt
from bsplib.profiler import plotting

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

    from bsplib.machine import Machine
    from bsplib.machine.measured import Measured

_MARKS = dict(zip(PATTERNS, "osD^v*", strict=True))


def plot_machine(machine: Machine, path: Path, *, force: bool = False) -> None:
    """Save a figure of what a probe measured.

    Args:
        machine: with ``measured``, as ``bsp machine probe`` returns it.
        path: file whose suffix names a format of matplotlib.
        force: replace a file that exists.

    Raises:
        ValueError: the Machine was not measured with several processes, or the file cannot be
            written.
        MissingExtraError: matplotlib is not installed.
    """
    entries = [entry for entry in machine.measured if entry.patterns]
    if not entries:
        raise plotting.PlotError(
            f"plot: {machine.label} has no times of patterns; bsp machine probe does"
        )
    plotting.check_target(path, force=force)
    figure = plotting.new_figure(11, 4.5)
    figure.suptitle(plotting.plain(machine.name))
    left, right = figure.subplots(1, 2)
    _plot_g(left, entries, machine.word_bytes)
    chosen = next((entry for entry in entries if entry.p == machine.p), entries[-1])
    _plot_times(right, chosen)
    plotting.save(figure, path, force=force)


def g_by_processes(entries: Sequence[Measured], pattern: str) -> dict[int, float]:
    """Return g of a pattern in seconds a byte, by number of processes: a line's slope."""
    found = {}
    for entry in entries:
        if (curve := entry.patterns.get(pattern)) is not None:
            line = fit_line(np.array(curve.nbytes, float), np.array(curve.seconds))
            found[entry.p] = line.g
    return found


def _plot_g(axes: Axes, entries: Sequence[Measured], word_bytes: int) -> None:
    for pattern in PATTERNS:
        if found := g_by_processes(entries, pattern):
            values = [g * word_bytes * 1e9 for g in found.values()]
            axes.plot(list(found), values, marker=_MARKS[pattern], label=pattern)
    axes.set_xlabel("processes")
    axes.set_ylabel(f"g, ns a word of {word_bytes} bytes")
    axes.set_xticks([entry.p for entry in entries])
    axes.set_ylim(bottom=0)
    axes.legend(fontsize="small")


def _plot_times(axes: Axes, entry: Measured) -> None:
    for pattern, curve in entry.patterns.items():
        axes.plot(curve.nbytes, curve.seconds, marker=_MARKS[pattern], markersize=4, label=pattern)
    axes.axhline(entry.empty, linestyle=":", color="grey", label="empty sync")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda value, _: fmt.seconds(value))
    axes.set_xlabel(f"bytes of the h-relation, {entry.p} processes")
    axes.set_ylabel("time of a superstep")
    axes.legend(fontsize="small")
