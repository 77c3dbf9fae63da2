"""Measure, and show which goals are met: ``python -m benchmarks``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from benchmarks import mpi, results
from benchmarks.provenance import circumstances

NAMES = (
    *("primitives", "collectives", "waiting", "recording", "mpi4py_recorder", "start", "map"),
    *("programs", "pages", "sorts", "queries", "transforms", "predictions", "verdicts"),
)
"""Modules of :mod:`benchmarks.cases`, each with ``SECTIONS``, in the order of measurement."""
_WIDTH = 150


def sections_of(name: str) -> Any:
    """Return the sections of a module; none if a package that it needs is not installed."""
    try:
        return import_module(f"benchmarks.cases.{name}").SECTIONS
    except ModuleNotFoundError as error:
        click.echo(f"without {name}, which needs {error.name}: pip install -e '.[bench]'", err=True)
        return ()


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(NAMES))
@click.option("--only", default="", metavar="TEXT", help="Only sections with TEXT in their titles.")
@click.option("--quick", is_flag=True, help="Take only three turns, for rough figures.")
@click.option("--keep", is_flag=True, help="Keep the figures in results.json and in README.md.")
def main(names: tuple[str, ...], only: str, quick: bool, keep: bool) -> None:
    """Measure the cases of NAMES, all by default, and show the figures and the goals."""
    if mpi.absence():
        click.echo(mpi.absence(), err=True)
    every = [section for name in names or NAMES for section in sections_of(name)]
    chosen = [section for section in every if only.casefold() in section.title.casefold()]
    if not chosen:
        titles = "\n".join(section.title for section in every)
        raise click.UsageError(f"no section has {only!r} in its title; the titles are:\n{titles}")
    for section in chosen:
        before = results.read() if keep else {"circumstances": [], "sections": {}}
        where = circumstances()
        found = {section.title: section.measured(quick=quick)}
        show(found)
        if keep:  # after each section, so that none is lost when the rest is broken off
            results.write(results.merged(before, where, found))
    if keep:
        results.main([], standalone_mode=False)


def show(found: Mapping[str, Any]) -> None:
    """Show the figures of sections and their goals on the terminal."""
    console = Console(width=None if sys.stdout.isatty() else _WIDTH)
    for title, section in found.items():
        cases = Table("", f"one {section.get('unit')}", "quartiles", "least", title=escape(title))
        for name, case in section.get("cases", {}).items():
            took = {key: results.duration(value) for key, value in case["seconds"].items()}
            spread = f"{took['low']} to {took['high']}"
            cases.add_row(escape(name), took["median"], spread, took["least"])
        if cases.row_count:
            console.print(cases)
    goals = Table("", "at most", "reached", "met")
    numbered = {title: section | {"measured": 0} for title, section in found.items()}
    for row in results.rows({"sections": numbered}):
        if row.measured is not None:
            goals.add_row(
                escape(row.what), escape(row.goal), row.reached, results.VERDICTS[row.met]
            )
    if goals.row_count:
        console.print(goals)


if __name__ == "__main__":
    main(prog_name="python -m benchmarks")
