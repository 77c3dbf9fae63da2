"""A plot of a predicted program: the times of its cost centres over the number of processes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bsplib.profiler import format as fmt
from bsplib.profiler import plotting
from bsplib.profiler.predict.planning import words
from bsplib.profiler.predict.values import PROCESSES

if TYPE_CHECKING:
    from bsplib.profiler.predict.prediction import Scaling

_MOST_CURVES = 8


def plot_scaling(found: Scaling, path: str | Path, *, force: bool = False) -> None:
    """Draw the total time and those of the greatest cost centres into a file.

    Raises:
        ValueError: the file cannot be written, its suffix names no format, or it exists and
            ``force`` is not given.
        MissingExtraError: matplotlib is not installed.
    """
    path = Path(path)
    plotting.check_target(path, force=force)
    model = found.predictions[0].model
    counts = [each.point[PROCESSES] for each in found.predictions]
    figure = plotting.new_figure(7.5, 5)
    axes = figure.subplots()
    totals = [each.total.total_s for each in found.predictions]
    axes.plot(counts, totals, color="black", linewidth=2.5, label="total")
    greatest = {
        leaf: max(each.nodes[leaf].total_s / each.total.total_s for each in found.predictions)
        for leaf in model.leaves()
    }
    leaves = sorted(greatest, key=lambda leaf: -greatest[leaf])[:_MOST_CURVES]
    for leaf in leaves:
        times = [each.nodes[leaf].total_s for each in found.predictions]
        if any(times):
            label = plotting.plain(fmt.label(model.nodes[leaf]))
            axes.plot(counts, times, linewidth=1.2, label=label)
    if found.roll_off is not None:
        axes.axvline(found.roll_off, color="grey", linestyle=":", label=f"p = {found.roll_off}")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_ylim(bottom=max(min(totals) * 1e-4, 1e-12))
    axes.yaxis.set_major_formatter(lambda value, _: fmt.seconds(value))
    axes.set_xlabel("processes")
    axes.legend(fontsize="small")
    first = found.predictions[0]
    at = {name: value for name, value in first.point.items() if name != PROCESSES}
    title = f"{model.program} at {words([at])}, on {first.prices.machine.label}"
    axes.set_title(plotting.plain(title), fontsize="medium", wrap=True)
    plotting.save(figure, path, force=force)
