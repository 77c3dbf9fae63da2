"""``bsp report``: the profile of a trace on the terminal."""

from __future__ import annotations

from pathlib import Path

import click

from bsplib.cli.options import TRACE, run_option
from bsplib.cli.traces import position_of, read


@click.command("report")
@click.option("--path", default="h-imb", show_default=True, help="Critical path to mark.")
@run_option
@click.option("--library", is_flag=True, help="Show the functions of bsplib too.")
@click.argument("file", type=TRACE)
def command(path: str, number: int | None, library: bool, file: Path) -> None:
    """Print the call graph of the trace FILE as a table.

    Costs are shown as max (avg% | min%) over all processes of the run. The critical
    paths are sync (number of supersteps), and comp (computation), comm
    (communication), idle (idle time) or h (h-relation) followed by -abs (absolute
    cost), -imb (absolute imbalance), -rel (relative imbalance) or -weighted (both
    imbalances multiplied).
    """
    from profiler.critical import PATHS  # noqa: PLC0415  # imported late
    from profiler.report import print_report  # noqa: PLC0415

    if path not in PATHS:
        raise click.BadParameter(
            f"{path!r} is no critical path; choose one of {', '.join(PATHS)}", param_hint="--path"
        )
    trace = read(file)
    print_report(trace, run=position_of(trace, number), path=path, library=library)
