"""``bsp compare``: what changed between two recorded runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from bsplib.tools.cli.options import (
    TRACE,
    LoadedMachine,
    Whole,
    library_option,
    option,
    speed_option,
)
from bsplib.tools.cli.traces import read, summing_up
from bsplib.visible import visible

_SORTS = ("time", "loss", "h", "supersteps", "balance", "elapsed", "comp", "comm", "idle", "name")


@click.command("compare")
@option(
    "--run",
    "chosen",
    metavar="N[:M]",
    help="Number of the run in both traces, from 1, or of the run in each.  "
    "[default: all in order; the last of each where the traces have unequally many]",
)
@option(
    "--sort",
    default="time",
    type=click.Choice(_SORTS),
    help="Quantity by whose change the rows are sorted.",
)
@option(
    "--top",
    default=20,
    type=Whole(0),
    help="Number of functions and cost centres to show; 0: all.",
)
@option(
    "--fail-on",
    "limits",
    metavar="LIMITS",
    help="Exit with status 1 if a limit is violated; see above.",
)
@option(
    "--machine",
    type=LoadedMachine(),
    help="Compare both runs as they would be on a Machine.  [default: as they were]",
)
@speed_option
@option("--json", "as_json", is_flag=True, help="Print the comparison as JSON.")
@library_option
@click.argument("before", type=TRACE)
@click.argument("after", type=TRACE)
def command(before: Path, after: Path, **options: Any) -> None:
    """Print what changed between two traces, by function and cost centre.

    BEFORE and AFTER are traces of one program. Functions are the same if their
    qualified names and the names of their files are; cost centres, if they are in the
    same function, call the same and follow in the same order. So an edit that moves
    lines does not hide what changed. The runs may have other numbers of processes,
    input or Machines; the output says so.

    LIMITS, for a build server, are separated by commas, as in h>+1%,supersteps>+0. With a
    sign a limit is a change, without one a value: loss>+2ms, time>+5%, balance<90%.
    The quantities are time, loss, h, supersteps, balance, elapsed, comp, comm, idle, and
    the parts of the account, such as latency. A limit is about the whole run; h>+0@solve
    is about the function solve, h>+0@cg.py:12 about a cost centre, and h>+0@* about each.
    The exit status is 1 if a limit is violated, and 2 if LIMITS cannot be understood.

    \b
    Examples:
      bsp compare before.bsp after.bsp
      bsp compare --run 1:2 sort.bsp sort.bsp
      bsp compare --fail-on 'h>+1%,supersteps>+0' before.bsp after.bsp
    """
    from bsplib.profiler.compare.limits import LimitError  # noqa: PLC0415  # imported late
    from bsplib.profiler.compare.report import compare_and_print  # noqa: PLC0415

    try:
        traces = read(before), read(after)
        with summing_up(after):
            kept = compare_and_print(*traces, **options)
    except LimitError as error:
        raise click.BadParameter(visible(str(error)), param_hint="--fail-on") from None
    if not kept:
        sys.exit(1)
