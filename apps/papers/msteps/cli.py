"""The command line: ``python -m bsplib.apps.msteps --help``."""

from __future__ import annotations

import os

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bsplib.apps.command import Programs
from bsplib.apps.papers.msteps.measure import compare, compare_sorts, sort_constants
from bsplib.apps.papers.msteps.model import (
    CONSTANTS,
    ERRORS,
    MPI,
    PVM,
    VALUES,
    actual_of,
    fft_time,
    psrs_time,
)
from bsplib.profiler import format as fmt

_COUNTS = (2, 4, 8, 16)


@click.group(cls=Programs)
def cli() -> None:
    """A Fourier transform and a sort predicted by M-steps, after Roda et al. 1999."""


@cli.command("fft")
def fft_command() -> None:
    """Print the times of equations 15 to 17 on the platforms of Tables 1 and 3."""
    table = Table(title=Text(f"The transform of {VALUES:,} values"), title_justify="left")
    table.box, table.padding = SIMPLE_HEAD, (0, 1, 0, 0)
    table.add_column("platform", no_wrap=True)
    for nprocs in (1, *_COUNTS):
        table.add_column(f"p = {nprocs}", justify="right", no_wrap=True)
    for name, network in PVM.items():
        times = [fft_time(VALUES, p, CONSTANTS[name], network) for p in (1, *_COUNTS)]
        table.add_row(name, *map(fmt.seconds, times))
    Console().print(table)
    for name, error in ERRORS.items():
        model = fft_time(VALUES, 8, CONSTANTS[name], PVM[name])
        actual = fmt.seconds(actual_of(model, error))
        click.echo(
            f"{name}, p = 8: the printed error of {error:.2f}% belongs to {actual} of actual time"
        )


@cli.command("sort")
@click.option(
    "--log2-size",
    "size",
    default=20,
    show_default=True,
    type=click.IntRange(9, 24),
    help="log2 N.",
)
def sort_command(size: int) -> None:
    """Print the times of equations 19 to 25 on the networks of Tables 1 and 2.

    The paper prints no constants of the sort. They are measured in one process here, so that only
    the networks are those of the tables.
    """
    n = 1 << size
    table = Table(title=Text(f"The sort of {n:,} integers"), title_justify="left")
    table.box, table.padding = SIMPLE_HEAD, (0, 1, 0, 0)
    table.add_column("network", no_wrap=True)
    for nprocs in _COUNTS:
        table.add_column(f"p = {nprocs}", justify="right", no_wrap=True)
    own = {p: sort_constants(n, p, 1) for p in _COUNTS}
    for kind, networks in (("PVM", PVM), ("MPI", MPI)):
        for name, network in networks.items():
            times = [psrs_time(n, p, own[p], network)[-1] for p in _COUNTS]
            shown = [fmt.seconds(time) if time > 0 else "below 0" for time in times]
            table.add_row(f"{name}, {kind}", *shown)
    Console().print(table)
    click.echo("Where L is fitted below zero, seven times L may outweigh a short time.")


@cli.command()
@click.option(
    "--log2-size",
    "size",
    default=18,
    show_default=True,
    type=click.IntRange(5, 24),
    help="log2 N.",
)
@click.option(
    "-n",
    "--nprocs",
    "procs",
    default=_COUNTS,
    show_default=True,
    multiple=True,
    type=click.IntRange(2),
    help="Numbers of processes, powers of two.",
)
@click.option("--repeats", default=25, show_default=True, type=click.IntRange(1))
def measure(size: int, procs: tuple[int, ...], repeats: int) -> None:
    """Predict the transform and the sort on this computer, and measure them.

    D, F, R, B and I are measured without communication, g and L by the patterns of section 3, all
    with as many processes as run at the same time: nothing of either program is used to predict
    it. The last column has the error if constants of one process are taken.
    """
    n = 1 << size
    try:
        found = {
            "Transform, equations 15 to 18:": compare(n, (1, *procs), repeats),
            "Sort, equations 18 to 25:": compare_sorts(n, procs, repeats),
        }
    except ValueError as error:
        raise click.ClickException(str(error)) from None
    for title, rows in found.items():
        click.echo(title)
        for row in rows:
            click.echo(
                f"  p = {row.nprocs:>3}: predicted {fmt.seconds(row.model_s):>8}, measured "
                f"{fmt.seconds(row.actual_s):>8}, error {row.error_percent:+4.0f}%, "
                f"{row.alone_error_percent:+4.0f}%"
            )
    cores = len(os.sched_getaffinity(0))
    if max(procs) > cores:
        click.echo(
            f"More processes than the {cores} cores take turns: so do those that measure the"
        )
        click.echo("constants; a constant of one process knows of none.")
    load = os.getloadavg()[0]
    if load > cores + 1:
        click.echo(f"The computer has {cores} cores and a load of {load:.0f}: what was measured")
        click.echo("includes waiting for a core, and no error can be read from it.")
