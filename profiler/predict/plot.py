"""Plots of a fitted formula over its variables, and of a predicted program over p."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bsplib.profiler import format as fmt
from bsplib.profiler import plotting
from bsplib.profiler.predict.planning import words
from bsplib.profiler.predict.terms import processes_of
from bsplib.profiler.predict.values import PROCESSES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bsplib.profiler.predict.prediction import Scaling
    from bsplib.profiler.predict.times import TimingModel

_CURVES = 8
_BEYOND = 4.0
"""Where the curves end, as a multiple of the greatest value."""


def plot_model(model: TimingModel, path: str | Path, *, force: bool = False) -> None:
    """Draw the measurements, the formula and its 90% band into a file.

    Raises:
        ValueError: the file cannot be written, its suffix names no format, or it exists and
            ``force`` is not given.
        MissingExtraError: matplotlib is not installed.
    """
    path = Path(path)
    plotting.check_target(path, force=force)
    varied = [name for name in model.timings.varied if name in model.fit.formula.variables]
    if not varied:
        raise plotting.PlotError(
            "plot: the time depends on no variable, so there is nothing to draw"
        )
    processes = processes_of(varied)
    figure = plotting.new_figure(6.5 * len(varied), 5)
    for axes, over in zip(np.atleast_1d(figure.subplots(1, len(varied))), varied, strict=True):
        others = [name for name in varied if name != over]
        by = processes if processes in others else next(iter(others), None)
        _draw(axes, model, over, by)
    figure.suptitle(plotting.plain(_title(model)), fontsize="medium", wrap=True)
    plotting.save(figure, path, force=force)


def _title(model: TimingModel) -> str:
    return f"{model.timings.time} = {model.fit.formula.text}"


def _draw(axes: Axes, model: TimingModel, over: str, by: str | None) -> None:
    """Draw the times over a variable; other variables are at their middle values."""
    values, times = model.timings.values, model.timings.times
    column = values[over]
    geometric = bool(column.min() > 0)
    space = np.geomspace if geometric else np.linspace
    line = space(column.min(), column.max() * _BEYOND, 100)
    middle = {
        name: float(np.sort(each)[len(each) // 2])
        for name, each in values.items()
        if name in model.fit.formula.variables
    }
    curves = [None] if by is None else _some(np.unique(values[by]))
    for value in curves:
        at = middle | {over: line} | ({} if by is None or value is None else {by: value})
        predicted = model.predict({name: np.broadcast_to(v, line.shape) for name, v in at.items()})
        (curve,) = axes.plot(line, predicted.times, linewidth=1)
        axes.fill_between(
            line, predicted.low, predicted.high, color=curve.get_color(), alpha=0.15, linewidth=0
        )
        here = np.ones(len(times), bool) if value is None or by is None else values[by] == value
        label = "measured" if by is None or value is None else f"{by} = {value:g}"
        axes.plot(
            column[here], times[here], "o", color=curve.get_color(), label=plotting.plain(label)
        )
    axes.axvline(float(column.max()), color="grey", linewidth=0.8, linestyle=":")
    if geometric:
        axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(plotting.plain(over))
    axes.set_ylabel(plotting.plain(model.timings.time))
    axes.set_title("90% band")
    axes.legend(fontsize=8)
    axes.grid(visible=True, alpha=0.3)


def _some(values: np.ndarray) -> list[float]:
    if len(values) <= _CURVES:
        return [float(value) for value in values]
    chosen = np.linspace(0, len(values) - 1, _CURVES).round().astype(int)
    return [float(values[number]) for number in chosen]


# -- a program over the number of processes -------------------------------------------------------


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
    leaves = sorted(greatest, key=lambda leaf: -greatest[leaf])[:_CURVES]
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
