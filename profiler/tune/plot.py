"""A plot of a tuning: the trade-off, and the costs on the Machine of the runs and on others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bsplib.profiler import format as fmt
from bsplib.profiler import plotting
from bsplib.profiler.tune.table import centres_named

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes

    from bsplib.profiler.tune.outcome import Tuning

_MANY_TIMES = 10
"""Ratio of costs above which the axis is logarithmic."""
_METRICS = {"h": ("h-relation", "tab:blue"), "comp": ("computation", "tab:orange")}


def plot_tuning(path: Path, tuning: Tuning, *, force: bool = False) -> None:
    """Draw a tuning into a file.

    Raises:
        ValueError: the file cannot be written.

    Source: Jarvis et al. 2002, Figures 7 and 8, for all values of the parameter.
    """
    figure = plotting.new_figure(16, 5.2)
    first, second, third = figure.subplots(1, 3)
    _draw_balance(first, tuning)
    _draw_costs(second, tuning)
    _draw_machines(third, tuning)
    for axes in (first, second, third):
        _mark_theory(axes, tuning)
        axes.legend(fontsize=8)
    run = tuning.points[0].run
    figure.suptitle(
        f"{plotting.plain(str(run.meta.get('program', '')))}: {tuning.name} on {run.nprocs} "
        f"processes, backend {plotting.plain(str(run.meta.get('backend', 'unknown')))}, Machine "
        f"{plotting.plain(tuning.points[0].machine.name)}"
    )
    plotting.save(figure, path, force=force)


def _draw_balance(axes: Axes, tuning: Tuning) -> None:
    """Draw the imbalance of the centres that gain, with its band over the seeds."""
    trade, spread = tuning.trade, tuning.spread
    found = {metric: centres for metric, centres in trade.evened.items() if centres}
    for metric, centres in (found or {"h": tuple(trade.costs)}).items():
        name, colour = _METRICS[metric]
        whose = _named(centres) if found else "the whole run"
        label = f"{name} of {whose}"
        if metric == spread.metric and spread.seeds > 1:
            least, middle, greatest = zip(*spread.imbalance, strict=True)
            axes.fill_between(trade.values, least, greatest, color=colour, alpha=0.2)
            axes.plot(
                trade.values, middle, "o-", color=colour, label=f"{label}, {spread.seeds} seeds"
            )
            continue
        balance = [costs.imbalance(metric) for costs in trade.of(centres)]
        axes.plot(trade.values, balance, "o-", color=colour, label=label)
    axes.axhline(1, color="grey", linewidth=0.8)
    _scale(axes, tuning)
    axes.set_ylabel("imbalance, maximum / average")
    axes.set_title("what becomes more balanced" if found else "nothing becomes more balanced")
    axes.grid(visible=True, alpha=0.3)


def _mark_theory(axes: Axes, tuning: Tuning) -> None:
    """Draw a line at the value that theory demands, if it is in the range."""
    values = tuning.trade.values
    if tuning.theory is not None and values[0] <= tuning.theory <= values[-1]:
        label = f"theory: {tuning.theory}"
        axes.axvline(tuning.theory, color="tab:purple", linestyle=":", label=label)


def _named(centres: Sequence[object]) -> str:
    text = centres_named(centres)  # type: ignore[arg-type]
    return text if len(text) <= 45 else f"{text[:42]}..."


def _draw_costs(axes: Axes, tuning: Tuning) -> None:
    """Draw the seconds of each side of the trade-off over the values, stacked."""
    trade, verdict, spread = tuning.trade, tuning.verdicts[0], tuning.spread
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
    if spread.seeds > 1:
        least, _, greatest = zip(*spread.total_s, strict=True)
        axes.fill_between(trade.values, least, greatest, color="black", alpha=0.25)
    axes.plot(trade.values, tuning.measured.totals_s, "k.--", linewidth=1, label="measured")
    if verdict.totals_s:
        axes.axvline(verdict.best, color="black", linewidth=1, label=f"best: {verdict.best}")
    _scale(axes, tuning)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(lambda value, _: fmt.seconds(value))
    axes.set_ylabel("w + g h + l")
    axes.set_title("cost on the Machine of the runs")


def _draw_machines(axes: Axes, tuning: Tuning) -> None:
    """Draw the cost over the values on every Machine, divided by its least cost."""
    for verdict in tuning.verdicts:
        if verdict.totals_s and verdict.best_s > 0:
            relative = [total / verdict.best_s for total in verdict.totals_s]
            name = f"{plotting.plain(verdict.name)}: best {verdict.best}"
            (line,) = axes.plot(verdict.values, relative, ".-", linewidth=1, label=name)
            axes.plot(verdict.best, 1, "o", color=line.get_color())
    _scale(axes, tuning)
    axes.set_ylabel("cost / cost of the best value")
    if axes.get_ylim()[1] > _MANY_TIMES:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_title("on all known Machines")
    axes.grid(visible=True, alpha=0.3)


def _scale(axes: Axes, tuning: Tuning) -> None:
    parameter = tuning.parameter
    axes.set_xlabel(parameter.name)
    if parameter.geometric:
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
