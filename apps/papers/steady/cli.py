"""The command line: ``python -m bsplib.apps.steady --help``."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bsplib.apps.command import Programs
from bsplib.apps.papers.steady.grain import grains
from bsplib.apps.papers.steady.maps import METRICS, draw_map, parse_axis, parse_point, save_map
from bsplib.apps.papers.steady.measure import PredictedProgram, seconds
from bsplib.apps.papers.steady.measure import measure as measured
from bsplib.apps.papers.steady.model import (
    ALGORITHMS,
    SteadySetting,
    amdahl,
    best_processors,
    gustafson,
    merge_sort_table,
    numbers,
    on_one,
)
from bsplib.apps.papers.steady.programs import SPLITS
from bsplib.apps.progress import drawn
from bsplib.command_options import OutputFile, force_option
from bsplib.profiler import format as fmt
from bsplib.profiler import plotting

_PIXELS = 256
"""Columns and rows of the fractal that is run."""
_SIZES = [10_000 * 2**k for k in range(15)]


@click.group(cls=Programs)
def cli() -> None:
    """Steady-state timing models, after Shi."""


@contextmanager
def _one_sentence() -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise click.ClickException(str(error)) from None


_DEFAULTS = ", ".join(f"{field.name}={field.default:g}" for field in fields(SteadySetting))


def _setting_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--at``; the command gets every variable of the model by its name."""

    @functools.wraps(command)
    def with_values(at: tuple[str, ...], **more: Any) -> Any:
        with _one_sentence():
            values = numbers(SteadySetting()) | parse_point(at)
        return command(**more, **values)

    return click.option(
        "--at",
        multiple=True,
        metavar="NAME=VALUE,...",
        help=f"Values of the model's variables.  [default: {_DEFAULTS}]",
    )(with_values)


_ALGORITHM = click.argument("algorithm", type=click.Choice(list(ALGORITHMS)))


@cli.command()
def tables() -> None:
    """Print Tables 1 to 3: a sequential sort by its size, disk and processor."""
    console = Console()
    for title, columns, rows in _tables():
        table = Table(title=Text(title), title_justify="left", box=SIMPLE_HEAD)
        for column in ("n", *columns):
            table.add_column(column, justify="right")
        for n, row in zip(_SIZES, rows, strict=True):
            table.add_row(f"{n:,}", *(f"{value:,.2f}" for value in row))
        console.print(table)


def _tables() -> list[tuple[str, list[str], list[list[float]]]]:
    """Return title, columns and rows of each table, in seconds."""
    first = [list(row) for row in merge_sort_table(_SIZES, 5.2e6, 2.5e6)]
    disks, processors = (2.5, 3, 5, 10, 20), (5.2, 10, 20, 50)
    by_disk = [merge_sort_table(_SIZES, 5.2e6, b * 1e6) for b in disks]
    by_processor = [merge_sort_table(_SIZES, w * 1e6, 2.5e6) for w in processors]
    return [
        ("Table 1: W = 5.2 MIPS, B = 2.5 MB/s", ["processor s", "disk s", "time s"], first),
        ("Table 2: by disk", [f"{b:g} MB/s" for b in disks], _wholes(by_disk)),
        ("Table 3: by processor", [f"{w:g} MIPS" for w in processors], _wholes(by_processor)),
    ]


def _wholes(columns: list[list[tuple[float, float, float]]]) -> list[list[float]]:
    return [[row[2] for row in rows] for rows in zip(*columns, strict=True)]


@cli.command()
@_ALGORITHM
@_setting_options
def predict(algorithm: str, **values: float) -> None:
    """Print the times, the speedup and the efficiency of ALGORITHM, and its best P."""
    with _one_sentence():
        setting, chosen = SteadySetting(**values), ALGORITHMS[algorithm]
        one, many = chosen.sequential(setting), chosen.parallel(setting)
        speedup = chosen.speedup(setting)
        best, best_speedup = best_processors(chosen, setting)
    click.echo(f"{chosen.title}, by {chosen.source}:")
    click.echo(f"  sequential {fmt.seconds(one.seconds(setting))}")
    click.echo(
        f"  parallel   {fmt.seconds(many.seconds(setting))}: computation "
        f"{fmt.seconds(many.steps / setting.W)}, disk {fmt.seconds(many.disk_bytes / setting.B)}, "
        f"communication {fmt.seconds(many.comm_bytes / setting.u)}"
    )
    click.echo(f"  speedup {speedup:.3g}, efficiency {speedup / setting.P:.3f}")
    click.echo(f"  the greatest speedup up to P = 4096 is {best_speedup:.4g}, at P = {best}")
    if chosen.compact:
        click.echo("  search space compact: no speedup above P without a lack of memory or disk")
    elif speedup > setting.P:
        click.echo(f"  superlinear: {chosen.steps_saved(setting):.3g} steps fewer in all")


@cli.command("map")
@_ALGORITHM
@click.option("--across", "x", default="W=1e6:1e9", show_default=True, metavar="NAME=A:B")
@click.option("--up", "y", default="u=1e6:1e9", show_default=True, metavar="NAME=A:B")
@click.option("--metric", default="speedup", show_default=True, type=click.Choice(METRICS))
@click.option("--plot", required=True, type=OutputFile())
@force_option
@_setting_options
def what_if(
    algorithm: str, x: str, y: str, metric: str, plot: Path, force: bool, **values: float
) -> None:
    """Draw speedup or efficiency of ALGORITHM over two of n, P, W, u, B, c and d."""
    with _one_sentence():
        plotting.check_target(plot, force=force)
        axes = parse_axis(x), parse_axis(y)
        drawn_map = draw_map(ALGORITHMS[algorithm], SteadySetting(**values), *axes, metric)
        named = {axis.name for axis in axes}
        others = [f"{name} = {value:g}" for name, value in values.items() if name not in named]
        title = f"{ALGORITHMS[algorithm].title}: {', '.join(others)}"
        save_map(plot, title, drawn_map, force=force)
    least, most = drawn_map.values.min(), drawn_map.values.max()
    click.echo(f"{metric} from {least:.3g} to {most:.3g}, drawn in {plot}")


@cli.command()
@click.option(
    *("--columns", "x"),
    default=1024,
    show_default=True,
    type=click.IntRange(1),
)
@click.option(
    *("--rows", "y"),
    default=1024,
    show_default=True,
    type=click.IntRange(1),
)
@click.option(
    *("-n", "--nprocs"),
    default=16,
    show_default=True,
    type=click.IntRange(1),
)
@click.option("--measure", "runs", is_flag=True, help="Also run each with 2 processes here.")
def grain(x: int, y: int, nprocs: int, runs: bool) -> None:
    """Print the bytes that a fractal has to communicate, by the grain of its pieces."""
    for found in grains(x, y, nprocs):
        click.echo(
            f"by {found.name:<7}{found.pieces:>12,.0f} pieces: "
            f"{fmt.size(found.distribution_bytes):>8} to distribute, "
            f"{fmt.size(found.result_bytes):>8} of results"
        )
    if runs:
        for split in SPLITS:
            took = seconds("fractal", _PIXELS, 2, 5, split=split)
            click.echo(f"{_PIXELS} x {_PIXELS} by {split:<7}{fmt.seconds(took):>10} on 2 processes")


@cli.command()
def laws() -> None:
    """Print the paper's example of Amdahl's and Gustafson's laws."""
    p, fraction = 10, 0.6
    one = on_one(fraction, p)
    click.echo(f"On {p} processors {fraction:.0%} of the time is sequential.")
    click.echo(f"Gustafson: speedup {gustafson(fraction, p):.1f}")
    click.echo(f"Amdahl with {fraction:g}, which is not its fraction: {amdahl(fraction, p):.1f}")
    click.echo(f"Amdahl with {one:.2f}, that of the time on one: {amdahl(one, p):.1f}")


@cli.command()
@click.option("-n", "--nprocs", default=2, show_default=True, type=click.IntRange(2))
@click.option("--repeats", default=5, show_default=True, type=click.IntRange(1))
@click.argument("names", nargs=-1, type=click.Choice(list(ALGORITHMS)))
def measure(nprocs: int, repeats: int, names: tuple[str, ...]) -> None:
    """Run the programs NAMES (default: all six) here, beside the times of their models.

    W and u are calibrated by runs of a smaller size; a model then predicts the greater one.
    """
    chosen = names or tuple(ALGORITHMS)
    done = iter(range(1, len(chosen) + 1))
    with _one_sentence(), drawn("running") as told:
        rows = measured(
            chosen, nprocs, repeats=repeats, advance=lambda: told(next(done) / len(chosen))
        )
    console = Console()
    console.print(_calibrated_table(rows))
    console.print(_times_table(rows, nprocs))
    click.echo("err. is (here - model) / here. u holds all that bytes cost beside computation.")
    click.echo("An empty round is T_sync of equation 2.3: without it, u has to hold rounds, too.")
    if any(math.isinf(row.u) for row in rows):
        click.echo("too fast: the small parallel run took no longer than W allows its computation;")
        click.echo("W is too low then, by other work during the sequential run or by its cache.")


def _calibrated_table(rows: Sequence[PredictedProgram]) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for title in ("program", "W, steps/s", "u, MB/s", "empty round"):
        table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        network = "too fast" if math.isinf(row.u) else f"{row.u / 1e6:.3g}"
        table.add_row(row.name, f"{row.W:.2g}", network, fmt.seconds(row.round_s))
    return table


def _times_table(rows: Sequence[PredictedProgram], nprocs: int) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for title in ("\nprogram", "\nn", "p = 1\nhere", "\nmodel", "\nerr."):
        table.add_column(title, justify="right", no_wrap=True)
    for title in (f"p = {nprocs}\nhere", "\nmodel", "\nerr.", "no\nrounds"):
        table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            *(row.name, str(row.n)),
            *map(fmt.seconds, (row.alone_s, row.alone_predicted_s)),
            f"{row.alone_error_percent:+.0f}%",
            *map(fmt.seconds, (row.parallel_s, row.parallel_predicted_s)),
            f"{row.error_percent:+.0f}%",
            f"{row.unsynced_error_percent:+.0f}%",
        )
    return table
