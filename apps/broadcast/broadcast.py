"""Broadcasting n values to p processes, in one stage and in two.

The program of Jarvis et al. (2002), Figure 3: ``main`` calls ``foo``, which
broadcasts in one stage, and ``bar``, which broadcasts in one stage and in two. Its call
graph shows how the cost of a shared function is divided among its callers.

Cost of a broadcast of n words, with h counted at the root (equations 6 and 7):

========= ========== ====================== =============================
stages    supersteps h                      balance of h (average, least)
========= ========== ====================== =============================
one       1          (p - 1) n              2/p, 1/(p - 1)
two       2          (p - 1) n/p each       the same, then 1, 1
========= ========== ====================== =============================

Two stages are faster where n > l / (p g - 2 g) (equation 8); ``--crossover`` measures this
size. For 16 processes the gain is printed beside the figure of the paper
(:mod:`bsplib.apps.broadcast.stages`).
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray
from rich.console import Console

import bsplib
from bsplib.apps.broadcast import crossover, stages
from bsplib.apps.broadcast.crossover_views import plot_crossover, print_crossover
from bsplib.apps.command import ProgramCommand, ProgramRun, place_options
from bsplib.command_options import OutputFile, force_option
from bsplib.profiler import plotting
from bsplib.visible import visible_lines

Values = NDArray[np.float64]


def bcast_onestage(bsp: bsplib.Group, values: Values) -> None:
    """Copy the values of process 0 to all others: 1 superstep, h = (p - 1) n."""
    if bsp.pid == 0:
        for pid in range(1, bsp.nprocs):
            bsp.put(pid, values, values)
    bsp.sync()


def bcast_twostage(bsp: bsplib.Group, values: Values) -> None:
    """Copy the values of process 0 to all others: 2 supersteps, h = (p - 1) n/p each."""
    ends = [len(values) * pid // bsp.nprocs for pid in range(bsp.nprocs + 1)]
    parts = [values[start:stop] for start, stop in pairwise(ends)]
    if bsp.pid == 0:
        for pid in range(1, bsp.nprocs):
            bsp.put(pid, parts[pid], parts[pid])
    bsp.sync()
    mine = parts[bsp.pid]
    for pid in range(bsp.nprocs):
        if pid != bsp.pid:
            bsp.put(pid, mine, mine)
    bsp.sync()


def foo(bsp: bsplib.Group, values: Values, onestage: int) -> None:
    """Broadcast in one stage."""
    for _ in range(onestage):
        bcast_onestage(bsp, values)


def bar(bsp: bsplib.Group, values: Values, onestage: int, twostage: int) -> None:
    """Broadcast in one stage, then in two."""
    for _ in range(onestage):
        bcast_onestage(bsp, values)
    for _ in range(twostage):
        bcast_twostage(bsp, values)


def main(bsp: bsplib.Group, size: int = 4096, onestage: int = 250, twostage: int = 500) -> Values:
    """Broadcast ``size`` values ``2 * onestage + twostage`` times.

    Args:
        bsp: the group.
        size: number of float64 values, at least 1.
        onestage: number of one-stage broadcasts in ``foo``, and in ``bar``.
        twostage: number of two-stage broadcasts in ``bar``.

    Returns:
        The values that arrived on this process; they equal :func:`reference`.

    Cost: ``2 * onestage + 2 * twostage`` supersteps.
    Source: Jarvis et al. 2002, sections 3.2 and 3.3, Figure 3.
    """
    values: Values = bsp.zeros(size)
    if bsp.pid == 0:
        values[:] = reference(size)
    foo(bsp, values, onestage)
    bar(bsp, values, onestage, twostage)
    return values.copy()


def reference(size: int) -> Values:
    """Return the values that every process has at the end."""
    return np.arange(size, dtype=np.float64)


@click.command(cls=ProgramCommand)
@click.option("--size", default=4096, show_default=True, type=click.IntRange(1), help="Values.")
@click.option(
    "--onestage",
    default=250,
    show_default=True,
    type=click.IntRange(0),
    help="Number of one-stage broadcasts in foo, and in bar.",
)
@click.option(
    "--twostage",
    default=500,
    show_default=True,
    type=click.IntRange(0),
    help="Number of two-stage broadcasts in bar.",
)
@click.option(
    "--crossover",
    "measures",
    is_flag=True,
    help="Measure the size from which two stages are faster, and compare it with the prediction.",
)
@click.option(
    "--plot",
    type=OutputFile(),
    help="With --crossover, draw the times into this file.",
)
@force_option
@place_options
def command(  # each is an option
    size: int,
    onestage: int,
    twostage: int,
    measures: bool,
    plot: Path | None,
    force: bool,
    place: ProgramRun,
) -> None:
    """Broadcast values to all processes, in one stage and in two."""
    if measures or plot is not None:
        _find_crossover(place, plot, force=force)
        return
    results = place.run(main, size, onestage, twostage)
    done = 2 * onestage + twostage
    wrong = [pid for pid, got in enumerate(results) if not np.array_equal(got, reference(size))]
    if wrong and done:
        raise click.ClickException(f"processes {wrong} did not get the values of process 0")
    click.echo(f"{done} broadcasts of {size} values reached {len(results)} processes")
    if len(results) == stages.NPROCS:  # as many as in the paper
        _compare_with_paper()


def _find_crossover(place: ProgramRun, plot: Path | None, *, force: bool) -> None:
    quiet = replace(place, reports_times=False)  # the times would be those of the measurement
    try:
        if plot is not None:
            plotting.check_target(plot, force=force)
        found = quiet.run(crossover.main, bcast_onestage, bcast_twostage, progress=True)[0]
        print_crossover(found, Console())
        if plot is not None:
            plot_crossover(found, plot, force=force)
        _compare_with_paper()
    except ValueError as error:
        raise click.ClickException(visible_lines(str(error))) from None
    if plot is not None:
        click.echo(f"drawn in {plot}")


def _compare_with_paper() -> None:
    for line in stages.sentences():
        click.echo(line)
