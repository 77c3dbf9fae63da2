"""A plot of a sweep: balance, time of the cost centres, and time on other Machines.

Source: Jarvis et al. 2002, Figures 7 and 8, for all values of the parameter.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from bsplib.profiler import format as fmt
from bsplib.profiler import plotting
from bsplib.profiler.sweep.points import METRICS, Costs
from bsplib.profiler.sweep.show import balance, moving
from bsplib.profiler.sweep.verdict import judge, moves

if TYPE_CHECKING:
    from pathlib import Path

    from bsplib.profiler.sweep.points import Sweep


def plot_sweep(path: Path, sweep: Sweep, *, force: bool = False) -> None:
    """Draw a sweep into a file.

    Raises:
        PlotError: the file cannot be written.
    """
    verdict = judge(sweep.samples())
    keys = sweep.series(verdict.best)
    values = [key[sweep.place] for key in keys]
    series = [sweep.costs(key) for key in keys]
    found = moves(series)
    figure = plotting.new_figure(16, 5.2)
    first, second, third = figure.subplots(1, 3)
    for metric, title in zip(METRICS, ("h-relation", "computation"), strict=True):
        centre = moving(found, metric)
        label = f"{title} of {'the whole run' if centre is None else centre.function}"
        ratios = [balance(costs, metric, centre) for costs in series]
        first.plot(values, ratios, "o-", label=plotting.plain(label))
    first.set_ylabel("maximum / average")
    centres = list(dict.fromkeys(centre for costs in series for centre in costs))
    heights = [[costs.get(centre, Costs()).seconds for costs in series] for centre in centres]
    second.stackplot(values, heights, labels=[plotting.plain(str(each)) for each in centres])
    times = [sweep.samples()[key] for key in keys]
    second.plot(values, list(map(median, times)), "k.-", linewidth=1, label="whole run")
    second.fill_between(values, [*map(min, times)], [*map(max, times)], color="k", alpha=0.2)
    second.axvline(verdict.best[sweep.place], color="k", linestyle=":")
    second.yaxis.set_major_formatter(lambda value, _: fmt.seconds(value))
    second.set_ylabel("time")
    for machine in sweep.points[0].elsewhere:
        medians = [median(sweep.samples(machine)[key]) for key in keys]
        third.plot(values, [each / min(medians) for each in medians], ".-", label=machine)
    third.set_ylabel("time / time of the best value")
    for axes in (first, second, third):
        axes.set_xlabel(sweep.parameters[sweep.place])
        if values[0] > 0 and values[-1] >= 8 * values[0]:
            axes.set_xscale("log", base=2)
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.grid(visible=True, alpha=0.3)
        axes.legend(fontsize=8)
    plotting.save(figure, path, force=force)
