"""Output of a crossover: a table, sentences and a plot."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bsplib.apps.broadcast.crossover import BroadcastSample, Crossover, costs
from bsplib.profiler import format as fmt
from bsplib.profiler import plotting


def print_crossover(found: Crossover, console: Console) -> None:
    """Print all sizes in a table, and the crossover below it."""
    machine = found.machine
    console.print(
        Text(
            f"{found.nprocs} processes, Machine {machine.label}: g = {machine.g:.3g} s/byte, "
            f"l = {machine.need('l'):.3g} s"
        )
    )
    console.print(_table(found))
    console.print("Two stages are faster")
    for line in sentences(found):
        console.print(Text(f"  {line}"))


def _table(found: Crossover) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("size", justify="right")
    for title in ("measured:\none stage", "\ntwo stages", "predicted:\none stage", "\ntwo stages"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("faster")
    for sample in found.samples:
        predicted = costs(found.machine, found.nprocs, sample.nbytes)
        seconds = (sample.one_s, sample.two_s, *predicted)
        times = [fmt.seconds(value) for value in seconds]
        table.add_row(fmt.size(sample.nbytes), *times, _faster(sample, predicted))
    return table


def _faster(sample: BroadcastSample, predicted: tuple[float, float]) -> str:
    measured = "two" if sample.two_s < sample.one_s else "one"
    expected = "two" if predicted[1] < predicted[0] else "one"
    return measured if measured == expected else f"{measured}, not {expected}"


def sentences(found: Crossover) -> list[str]:
    """Return sentences with the size from which two stages are faster, predicted and measured."""
    exact = found.predicted
    rule = "in + out" if found.machine.h == "sum" else "max(in, out)"
    lines = [
        f"equation 8, n > l / (p g - 2 g): from {fmt.size(found.equation_8)} on",
        f"with p - 1 and h = {rule}: "
        + (f"from {fmt.size(exact)} on" if exact < math.inf else "never"),
    ]
    if found.fitted is not None:
        g, latency = found.fitted
        there = latency / (g * (found.nprocs - 2))
        lines.append(
            f"equation 8, g = {g:.3g} and l = {latency:.3g} as fitted: from {fmt.size(there)} on"
        )
    return [*lines, f"measured: {_measured(found)}"]


def _measured(found: Crossover) -> str:
    if found.measured is None:
        return (
            f"at no measured size; one stage was not slower at {fmt.size(found.samples[-1].nbytes)}"
        )
    below, first = found.measured
    if below == 0:
        return f"at all measured sizes, from {fmt.size(first)} on"
    assert found.interpolated is not None  # there are two sizes
    return (
        f"from {fmt.size(found.interpolated)} on, between {fmt.size(below)} and {fmt.size(first)}"
    )


def plot_crossover(found: Crossover, path: Path, *, force: bool = False) -> None:
    """Draw measured and predicted times over sizes, with the crossovers.

    Raises:
        ValueError: the file cannot be written.
    """
    figure = plotting.new_figure(8, 5.5)
    axes = figure.add_subplot()
    sizes = np.array([sample.nbytes for sample in found.samples])
    predicted = [costs(found.machine, found.nprocs, size) for size in sizes.tolist()]
    for stages, colour in ((0, "tab:red"), (1, "tab:blue")):
        name = ("one stage", "two stages")[stages]
        seconds = [(sample.one_s, sample.two_s)[stages] for sample in found.samples]
        axes.plot(sizes, seconds, "o-", color=colour, label=f"{name}, measured")
        model = [cost[stages] for cost in predicted]
        axes.plot(sizes, model, "--", color=colour, label=f"{name}, predicted")
    for place, style, text in (
        (found.equation_8, ":", "equation 8"),
        (found.interpolated, "-", "measured"),
    ):
        if place is not None and place < math.inf:
            label = f"crossover, {text}: {fmt.size(place)}"
            axes.axvline(place, color="black", linestyle=style, linewidth=1, label=label)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: fmt.size(value))
    axes.set_xlabel("size of the broadcast value")
    axes.set_ylabel("seconds of a broadcast")
    axes.set_title(f"Broadcasts to {found.nprocs} processes, {found.machine.label}")
    axes.grid(visible=True, which="major", alpha=0.3)
    axes.legend()
    plotting.save(figure, path, force=force)
