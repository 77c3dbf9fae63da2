"""``bsp report``: the profile of a trace on the terminal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from bsplib.tools.cli.options import (
    TRACE,
    Metric,
    Whole,
    library_option,
    on_machine_option,
    option,
    run_option,
    speed_option,
)
from bsplib.tools.cli.traces import position_of, read, summing_up

_SORTS = ("loss", "time", "comp", "comm", "idle", "h", "supersteps", "name", "tree")
_ROWS = 40


class _Order(click.Choice[str]):
    """Type of the option that names an order of rows."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the order; that by cost has another name."""
        if value == "cost":
            self.fail("the order cost is called time now: what is booked at a node", param, ctx)
        return super().convert(value, param, ctx)


@click.command("report")
@option("--sort", type=_Order(_SORTS), default="loss", help="Order of rows.")
@option(
    "--top",
    type=Whole(0),
    help=f"Rows to show; 0 shows all.  [default: {_ROWS}; all with --json]",
)
@option("--depth", type=Whole(0), help="Show nodes up to N calls below main.")
@option("--node", metavar="NAME", help="Show this node with its callers and callees.")
@option(
    "--metric",
    type=Metric(),
    default="loss",
    help="Loss, or another critical path to mark.",
)
@on_machine_option
@speed_option
@run_option
@library_option
@option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
@click.argument("file", type=TRACE)
def command(file: Path, top: int | None, as_json: bool, **given: Any) -> None:
    """Print what a run lost and where, and its call graph as a table.

    FILE is a trace. First come at most five sentences: how many seconds the processes
    waited, for whom, and where. Then there is a row for each function and cost centre, a
    line of the program that ended a superstep.

    Time is the part of the elapsed time that is booked at a line, on average over the
    processes: what was done there, and what others wait for it. Loss is what of it a
    balanced run would not have. Both add up. Other numbers are max (avg% | min%) over all
    processes: the sum over supersteps of the greatest value, and average and least one in
    percent of it.

    The rows with * are on the critical path: from main, always to the node with the
    greatest loss. Other paths are sync (number of supersteps), and comp (computation),
    comm (communication), idle (idle time) or h (h-relation) followed by -abs (the
    maximum), -imb (absolute imbalance), -rel (relative imbalance) or -weighted (both
    imbalances multiplied).

    --sort comp, comm, idle and h order by the greatest maximum, tree by calls. NAME of
    a node is its name, a part of it, or FILE:LINE. NAME of a Machine is one that comes
    with bsplib, or a .toml file as bsp machine probe writes it.

    \b
    Examples:
      bsp report sort.bsp
      bsp report --metric comp-imb --top 10 sort.bsp
      bsp report --node merge sort.bsp
      bsp report --machine ibm-sp2-pvm --speed 0.01x sort.bsp
    """
    from bsplib.profiler.profile import Profile  # noqa: PLC0415  # imported late
    from bsplib.profiler.report import RowChoice, print_report  # noqa: PLC0415
    from bsplib.profiler.report.document import document  # noqa: PLC0415

    trace = read(file, shows_errors=True)
    position = position_of(trace, given["number"])
    runs = Profile(trace, file.name, library=given["library"]).runs
    runs = runs if position is None else runs[position : position + 1]
    machine, speed = given["machine"], given["speed"]
    if speed is not None and machine is None:
        raise click.BadParameter("it needs --machine", param_hint="--speed")
    with summing_up(file):
        if machine is not None:
            runs = tuple(run.on(machine, speed=speed) for run in runs)
        for run in runs:
            run.book()
    rows = (None if as_json else _ROWS) if top is None else top or None
    choice = RowChoice(given["sort"], rows, given["depth"])
    asked: dict[str, Any] = {"path": given["metric"], "choice": choice, "node": given["node"]}
    if as_json:
        click.echo(json.dumps(document(runs, **asked), indent=1))
    else:
        print_report(runs, **asked)
