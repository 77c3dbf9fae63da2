"""A plot of a tuning: the trade-off, and the costs on the Machine of the runs and on others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from profiler import plotting
from profiler.tune.table import centres_named

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes

    from profiler.tune.best import Verdict
    from profiler.tune.parameter import Parameter
    from profiler.tune.sweep import Point
    from profiler.tune.trade import Trade

_MANY_TIMES = 10
"""Ratio of costs above which the axis is logarithmic."""
_METRICS = {"h": ("h-relation", "tab:blue"), "comp": ("computation", "tab:orange")}


def plot_tuning(
    path: Path,
    parameter: Parameter,
    points: Sequence[Point],
    trade: Trade,
    verdicts: Sequence[Verdict],
) -> None:
    """Draw a tuning into a file.

    Raises:
        ValueError: the file cannot be written.

    Source: Jarvis et al. 2002, Figures 7 and 8, for all values of the parameter.
    """
    figure = plotting.new_figure(16, 5.2)
    first, second, third = figure.subplots(1, 3)
    _draw_trade(first, points, trade)
    _draw_costs(second, parameter, points, trade, verdicts[0])
    _draw_machines(third, parameter, verdicts)
    run = points[0].run
    figure.suptitle(
        f"{plotting.plain(str(run.meta.get('program', '')))}: {parameter.name} on {run.nprocs} "
        f"processes, backend {plotting.plain(str(run.meta.get('backend', 'unknown')))}, Machine "
        f"{plotting.plain(points[0].machine.name)}"
    )
    plotting.save(figure, path)


def _draw_trade(axes: Axes, points: Sequence[Point], trade: Trade) -> None:
    """Draw the imbalance of the centres that gain over the cost of the centres that pay."""
    pays = trade.pays or tuple(trade.costs)
    cost = [costs.seconds for costs in trade.of(pays)]
    found = {metric: centres for metric, centres in trade.evened.items() if centres}
    for metric, centres in (found or {"h": tuple(trade.costs)}).items():
        name, colour = _METRICS[metric]
        balance = [costs.imbalance(metric) for costs in trade.of(centres)]
        whose = _named(centres) if found else "the whole run"
        axes.plot(cost, balance, "o-", color=colour, label=f"{name} of {whose}")
        for point, x, y in zip(points, cost, balance, strict=True):
            label = axes.annotate(str(point.value), (x, y), (4, 4), textcoords="offset points")
            label.set(fontsize=8, color=colour)
    axes.axhline(1, color="grey", linewidth=0.8)
    if min(cost) > 0:
        plotting.scale_seconds(axes)
    axes.set_xlabel(f"cost of {_named(trade.pays) if trade.pays else 'the whole run'}")
    axes.set_ylabel("imbalance, maximum / average")
    axes.set_title("the trade-off" if trade.pays and found else "no trade-off was found")
    axes.legend()
    axes.grid(visible=True, alpha=0.3)


def _named(centres: Sequence[object]) -> str:
    text = centres_named(centres)  # type: ignore[arg-type]
    return text if len(text) <= 45 else f"{text[:42]}..."


def _draw_costs(
    axes: Axes, parameter: Parameter, points: Sequence[Point], trade: Trade, verdict: Verdict
) -> None:
    """Draw the seconds of each side of the trade-off over the values, stacked."""
    parts = {
        "cost more": trade.pays,
        "become more balanced": trade.gains,
        "the rest": trade.rest,
    }
    shown = {name: centres for name, centres in parts.items() if centres}
    heights = [[costs.seconds for costs in trade.of(centres)] for centres in shown.values()]
    colours = dict(zip(parts, ("tab:red", "tab:green", "lightgrey"), strict=True))
    axes.stackplot(
        trade.values, heights, labels=list(shown), colors=[colours[name] for name in shown]
    )
    measured = [point.measured_s for point in points]
    axes.plot(trade.values, measured, "k.--", linewidth=1, label="measured")
    if verdict.totals_s:
        axes.axvline(verdict.best, color="black", linewidth=1, label=f"best: {verdict.best}")
    _scale(axes, parameter)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("seconds, w + g h + l")
    axes.set_title("on the Machine of the runs")
    axes.legend()


def _draw_machines(axes: Axes, parameter: Parameter, verdicts: Sequence[Verdict]) -> None:
    """Draw the cost over the values on every Machine, divided by its least cost."""
    for verdict in verdicts:
        if verdict.totals_s and verdict.best_s > 0:
            relative = [total / verdict.best_s for total in verdict.totals_s]
            name = f"{plotting.plain(verdict.name)}: best {verdict.best}"
            (line,) = axes.plot(verdict.values, relative, ".-", linewidth=1, label=name)
            axes.plot(verdict.best, 1, "o", color=line.get_color())
    _scale(axes, parameter)
    axes.set_ylabel("cost / cost of the best value")
    if axes.get_ylim()[1] > _MANY_TIMES:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_title("on all known Machines")
    axes.legend(fontsize=8)
    axes.grid(visible=True, alpha=0.3)


def _scale(axes: Axes, parameter: Parameter) -> None:
    axes.set_xlabel(parameter.name)
    if parameter.geometric:
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
