"""The command line: ``python -m bsplib.apps.speedup --help``."""

from __future__ import annotations

from itertools import count

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bsplib.apps.command import Programs
from bsplib.apps.papers.speedup.laws import all_laws, fit_parts
from bsplib.apps.papers.speedup.overheads import BARRIER, CREATION
from bsplib.apps.papers.speedup.overheads import measure as overheads_of
from bsplib.apps.papers.speedup.runs import time_of, times
from bsplib.apps.papers.speedup.terms import TERMS, characterise, roll_off
from bsplib.apps.progress import drawn
from bsplib.profiler import format as fmt

_REGION_N = tuple(2**k for k in range(3, 10))
_REGION_P = tuple(2**k for k in range(5))
"""The characterisation region of equation 14."""


@click.group(cls=Programs)
def cli() -> None:
    """Speedup predicted from small experiments, after Chittor 1995."""


@cli.command()
@click.option(
    "--log2-size",
    "size",
    default=13,
    show_default=True,
    type=click.IntRange(3, 16),
    help="log2 N.",
)
@click.option(
    "--log2-nprocs",
    "most",
    default=8,
    show_default=True,
    type=click.IntRange(1, 9),
    help="log2 of the greatest P.",
)
def predict(size: int, most: int) -> None:
    """Characterise a bitonic sort on virtual processors, and predict and run a greater one.

    The region has N from 8 to 512 and P from 1 to 16. Nothing outside it is used to predict.
    """
    n, counts = 1 << size, [1 << k for k in range(min(most, size) + 1)]
    parts = _REGION_P
    runs = count(1)
    total = sum(p <= m for m in _REGION_N for p in _REGION_P) + len(parts) + len(counts)
    with drawn("running") as told:

        def advance() -> None:
            told(next(runs) / total)

        region = times(_REGION_N, _REGION_P, advance)
        sequential = {}
        for p in parts:
            sequential[p] = time_of(0, p)
            advance()
        actual = {}
        for p in counts:
            actual[p] = time_of(n, p)
            advance()
    found, law = characterise(region), fit_parts(sequential)
    pairs = zip(found.coefficients, TERMS, strict=True)
    click.echo("T = " + " ".join(f"{coefficient:+.4g} {term}" for coefficient, term in pairs))
    table = Table(title=Text(f"Speedup of {n:,} keys"), title_justify="left", box=SIMPLE_HEAD)
    laws = {p: all_laws(law, sequential[1], actual[1], n, p) for p in counts}
    for title in ("P", "run", "predicted", *(name.replace(" + ", "\n+ ") for name in laws[1])):
        table.add_column(title, justify="right", no_wrap=True)
    for p in counts:
        cells = (actual[1] / actual[p], found.speedup(n, p), *laws[p].values())
        table.add_row(str(p), *(f"{value:.2f}" for value in cells))
    Console().print(table)
    predicted = roll_off({p: found.time(n, p) for p in counts})
    simple = roll_off({p: law.time(actual[1], p) for p in counts})
    click.echo(
        f"Least time at P = {roll_off(actual)}; predicted {predicted}; Seq(P) + Par(N)/P: {simple}."
    )
    share = sum(region.values()) / sum(actual.values())
    click.echo(f"The experiments take {share:.1%} of the time of the runs that they predict.")


@cli.command()
@click.option(
    "-n",
    "--nprocs",
    "procs",
    default=(1, 2, 4, 8, 16),
    show_default=True,
    multiple=True,
    type=click.IntRange(1, 512),
)
@click.option("--repeats", default=5, show_default=True, type=click.IntRange(1))
def overheads(procs: tuple[int, ...], repeats: int) -> None:
    """Measure the creation of processes and a barrier here, beside Tables 1 and 2 of the paper."""
    table = Table(title=Text("Against the number of processes"), title_justify="left")
    table.box = SIMPLE_HEAD
    for title in ("\nP", "creation\nhere", "\nMulti", "barrier\nhere", "\nMulti"):
        table.add_column(title, justify="right", no_wrap=True)
    for found in overheads_of(procs, repeats):
        p = found.nprocs
        printed = [str(units[p]) if p in units else "" for units in (CREATION, BARRIER)]
        here = fmt.seconds(found.creation_s), fmt.seconds(found.barrier_s)
        table.add_row(str(p), here[0], printed[0], here[1], printed[1])
    Console().print(table)
    click.echo(
        "Multi: units of her simulator. With more processes than cores here they take turns."
    )
