"""The command line: ``python -m bsplib.apps.paradigms --help``."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import click
import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bsplib.apps.command import ProgramRun, Programs, place_options
from bsplib.apps.paradigms import examples
from bsplib.apps.paradigms.examples import SHARES, TaskTimes
from bsplib.apps.paradigms.model import equal_shares, first_come, in_line
from bsplib.profiler import format as fmt

_REPEATS = 3


@click.group(cls=Programs)
def cli() -> None:
    """A farm and a pipeline of bulk synchronous processes, with programs that use them."""


@cli.command("farm")
@place_options
@click.option("--size", default=400, show_default=True, type=click.IntRange(2), help="Rows.")
def farm_command(place: ProgramRun, size: int) -> None:
    """Compute the Mandelbrot set by rows, as a farm and in equal shares, and compare.

    The times of all rows are measured in one process first. From them the times of every way
    to share them out are predicted; idle is the part of the time in which a process has no row.
    With --profile the farm is recorded.
    """
    costs = _times(lambda number: examples.row(size, number), range(size))
    table, nprocs = _table(f"{size} rows", ("", "predicted", "measured", "idle")), 0
    for how in SHARES:
        shown = place if how == "farm" else replace(place, profile=None)
        found = _fastest(shown, examples.fractal, size, how)
        nprocs = len(found)
        predicted = fmt.seconds(_predicted(how, costs, nprocs))
        table.add_row(how, predicted, fmt.seconds(found[0].took_s), _idle(found))
    Console().print(table)
    total, longest = fmt.seconds(sum(costs)), fmt.seconds(max(costs))
    click.echo(f"Computation of all rows: {total}, of the longest {longest}.")
    first = fmt.seconds(first_come(costs, nprocs))
    click.echo(f"If a row went to whichever process is free first, it would take {first}.")


@cli.command("pipeline")
@place_options
@click.option("--frames", default=60, show_default=True, type=click.IntRange(1))
@click.option("--size", default=256, show_default=True, type=click.IntRange(2), help="Pixels.")
@click.option(
    "--capacity", default=4, show_default=True, type=click.IntRange(1), help="Of a queue."
)
def pipeline_command(place: ProgramRun, frames: int, size: int, capacity: int) -> None:
    """Find the brightest place in the frames of a film by a pipeline of three stages.

    The times of the stages are measured in one process first, and the time of the pipeline is
    predicted from them by OBSP*. With fewer processes than stages neighbours share one.
    """
    stages = examples.film_stages(size)
    costs, items = [], list(range(frames))
    for work in stages:
        costs.append(_times(work, items))
        items = [work(item) for item in items]
    found = _fastest(place, examples.film, frames, size, capacity)
    if found[0].result != items:
        raise click.ClickException("the pipeline found other places than one process")
    links = _joined(costs, min(len(stages), len(found)))
    table = _table(f"{frames} frames of {size} by {size}", ("stage", "time of a frame"))
    for name, took in zip(("make", "smooth", "find"), costs, strict=True):
        table.add_row(name, fmt.seconds(float(np.mean(took))))
    Console().print(table)
    click.echo(f"One process: {fmt.seconds(sum(map(sum, costs)))}.")
    click.echo(
        f"{len(found)} processes: predicted {fmt.seconds(in_line(links, capacity=capacity))}, "
        f"measured {fmt.seconds(found[0].took_s)}."
    )


def predicted_farm(costs: list[float], nprocs: int) -> float:
    """Return the time of the farm on as many virtual processors, where communication is free."""
    place = ProgramRun(nprocs, "sim", "shared-memory:g=0,l=0", reports_times=False)
    took: float = place.run(examples.fractal, len(costs), "farm", costs)[0].took_s
    return took


def _predicted(how: str, costs: list[float], nprocs: int) -> float:
    if how == "farm":
        return predicted_farm(costs, nprocs)
    return equal_shares(costs, nprocs, in_turn=how == "in turn")


def _fastest(place: ProgramRun, main: Callable[..., TaskTimes], *args: Any) -> list[TaskTimes]:
    """Return the results of the fastest of a few runs: other work never makes one faster."""
    repeats = 1 if place.profile or place.backend == "sim" else _REPEATS
    runs = [place.run(main, *args) for _ in range(repeats)]
    return min(runs, key=lambda run: float(run[0].took_s))


def _times(work: Callable[[Any], Any], items: Iterable[Any]) -> list[float]:
    """Return the least time of each item of a few runs, in this process."""
    given = list(items)
    runs = []
    for _ in range(_REPEATS):
        took = []
        for item in given:
            began = time.perf_counter()
            work(item)
            took.append(time.perf_counter() - began)
        runs.append(took)
    return [min(each) for each in zip(*runs, strict=True)]


def _joined(costs: list[list[float]], links: int) -> list[list[float]]:
    """Return the times of neighbouring stages that share a process."""
    ends = [index * len(costs) // links for index in range(links + 1)]
    parts = [costs[first:last] for first, last in pairwise(ends)]
    return [[sum(each) for each in zip(*part, strict=True)] for part in parts]


def _idle(found: list[TaskTimes]) -> str:
    total = sum(each.took_s for each in found)
    return f"{1 - sum(each.busy_s for each in found) / total:.0%}"


def _table(title: str, columns: Iterable[str]) -> Table:
    table = Table(title=Text(title), title_justify="left", box=SIMPLE_HEAD)
    for name in columns:
        table.add_column(name, justify="right" if name not in ("", "stage") else "left")
    return table
