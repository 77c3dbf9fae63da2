"""``bsp compare``: what changed between two recorded runs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bsplib.cli.options import TRACE
from bsplib.cli.traces import read
from bsplib.errors import UsageError
from bsplib.machine import load_machine
from bsplib.visible import visible

if TYPE_CHECKING:
    from profiler.compare.limits import Limit
    from profiler.compare.traces import RunPair

_SORTS = ("time", "loss", "h", "supersteps", "balance", "cost", "comp", "comm", "idle", "name")


@click.command("compare")
@click.option(
    "--run",
    "chosen",
    metavar="N[:M]",
    help="Number of the run in both traces, from 1, or of the run in each.  "
    "[default: all in order, or the last of each where the traces have unequally many]",
)
@click.option(
    "--sort",
    default="time",
    show_default=True,
    type=click.Choice(_SORTS),
    help="Quantity by whose change the rows are sorted.",
)
@click.option(
    "--top",
    default=20,
    show_default=True,
    type=click.IntRange(0),
    help="Number of functions and cost centres to show; 0: all.",
)
@click.option(
    "--fail-on",
    "limits",
    metavar="LIMITS",
    help="Exit with status 1 if a limit is violated; see above.",
)
@click.option(
    "--machine",
    metavar="NAME",
    help="Machine by which the losses of both runs are priced.  [default: that of each run]",
)
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON.")
@click.option("--library", is_flag=True, help="Show the functions of bsplib too.")
@click.argument("before", type=TRACE)
@click.argument("after", type=TRACE)
def command(  # noqa: PLR0913, PLR0917  # each is an option
    chosen: str | None,
    sort: str,
    top: int,
    limits: str | None,
    machine: str | None,
    as_json: bool,
    library: bool,
    before: Path,
    after: Path,
) -> None:
    """Compare the runs in the traces BEFORE and AFTER, by function and cost centre.

    Functions are the same if their qualified names and the names of their files are; cost
    centres, if they are in the same function, call the same and follow in the same order.
    So an edit that moves lines does not hide what changed. The runs may have other
    numbers of processes, input or Machines; the output says so.

    LIMITS, for a build server, are separated by commas, as in h>+1%,supersteps>+0. With a
    sign a limit is a change, without one a value: loss>+2ms, time>+5%, balance<90%.
    The quantities are time, loss, h, supersteps, balance, cost, comp, comm and idle. A
    limit is about the whole run; h>+0@solve is about the function solve, h>+0@cg.py:12
    about a cost centre, and h>+0@* about each. The exit status is 1 if a limit is
    violated, and 2 if LIMITS cannot be understood.
    """
    from profiler.compare.traces import compare_traces  # noqa: PLC0415  # imported late

    wanted = _parsed(limits)
    there = None if machine is None else load_machine(machine)
    pairs = compare_traces(read(before), read(after), chosen=chosen, machine=there, library=library)
    if as_json:
        _print_json(pairs)
    else:
        _print_tables(pairs, sort, top)
    if _violated(pairs, wanted):
        sys.exit(1)


def _parsed(text: str | None) -> list[Limit]:
    from profiler.compare.limits import parse  # noqa: PLC0415  # imported late

    try:
        return [] if text is None else parse(text)
    except UsageError as error:
        raise _wrong_limit(error) from None


def _wrong_limit(error: UsageError) -> click.BadParameter:
    return click.BadParameter(visible(str(error)), param_hint="--fail-on")


def _print_json(pairs: list[RunPair]) -> None:
    from profiler.compare.data import as_data  # noqa: PLC0415  # imported late

    runs = [
        {"run_before": before, "run_after": after, **as_data(comparison)}
        for before, after, comparison in pairs
    ]
    click.echo(json.dumps({"runs": runs}, indent=1))


def _print_tables(pairs: list[RunPair], sort: str, top: int) -> None:
    from profiler.compare.report import print_comparison  # noqa: PLC0415  # imported late

    for before, after, comparison in pairs:
        other = "" if before == after else f" before, run {after} after"
        title = "" if len(pairs) == before == after == 1 else f"run {before}{other}"
        print_comparison(comparison, title=title, sort=sort, top=top)


def _violated(pairs: list[RunPair], limits: list[Limit]) -> bool:
    """Print a sentence for each node that violates a limit; tell whether there is one."""
    from profiler.compare.limits import violations  # noqa: PLC0415  # imported late

    try:
        found = [it for pair in pairs for it in violations(pair.comparison, limits)]
    except UsageError as error:
        raise _wrong_limit(error) from None
    for violation in found:
        click.echo(f"{violation}.", err=True)
    return bool(found)
