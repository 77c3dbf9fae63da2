"""``bsp export``: a profile in the format of another tool."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from bsplib.command_options import check_output, force_option, writing
from bsplib.output_file import PAGE, written_whole
from bsplib.tools.cli.options import (
    TRACE,
    Metric,
    Whole,
    on_machine_option,
    option,
    run_option,
    speed_option,
)
from bsplib.tools.cli.traces import position_of, read

if TYPE_CHECKING:
    from bsplib.recording.records import Trace

Format = Any
Request = Any
"""Types of the profiler, which nothing in bsplib imports before a command needs it."""

_PAGE = "html"
"""Name of the format that is a page of all runs."""


def _range(value: str) -> tuple[int, int]:
    """Return both numbers of a text such as 10:20."""
    first, _, last = value.partition(":")
    if not (first.isdecimal() and last.isdecimal() and int(first) <= int(last)):
        raise click.BadParameter(f"{value!r} is no range: give two numbers, as in 10:20")
    return int(first), int(last)


class _Export(click.Command):
    """A command whose help lists the formats; they are imported when the help is shown."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [
            (f"{form.name} ({form.ending})", f"{form.holds}; for {form.opened_by}")
            for form in _formats()
        ]
        with formatter.section("Formats"):
            formatter.write_dl(rows)
        super().format_epilog(ctx, formatter)


@click.command("export", cls=_Export)
@option("-o", "--out", required=True, type=TRACE, help="File to write; - for standard output.")
@force_option
@option("--format", "name", metavar="NAME", help="Format.  [default: by the ending of --out]")
@run_option
@option(
    "--metric",
    type=Metric(),
    help="What the shades of a picture stand for: loss, or a critical path such as comp-imb.  "
    "[default: loss]",
)
@option(
    "--top",
    type=Whole(0),
    help="Greatest number of nodes of a picture; 0: as many as can be drawn.",
)
@option(
    "--table",
    type=click.Choice(["nodes", "edges", "supersteps", "processes"]),
    help="Table to write as CSV.  [default: nodes]",
)
@option(
    "--supersteps",
    type=_range,
    metavar="A:B",
    help="Only these supersteps, counted from 0.  [default: all]",
)
@on_machine_option
@speed_option
@option("--library", is_flag=True, default=None, help="Show the functions of bsplib too.")
@click.argument("file", type=TRACE)
def command(file: Path, out: Path, name: str | None, force: bool, **options: Any) -> None:
    """Write the call graph of a trace as a picture, as a table or for another tool.

    FILE is a trace. The ending of the output file's name chooses the format. A picture of a
    large call graph shows the nodes that matter most and says what it leaves out. The
    metrics are loss (seconds lost to imbalance) and the critical paths of bsp report.

    \b
    Examples:
      bsp export sort.bsp --out sort.svg --metric comp-imb
      bsp export sort.bsp --out sort.csv --table supersteps
      bsp export sort.bsp --out sort.trace.json
    """
    from bsplib.profiler.export.table import check_options, find  # noqa: PLC0415  # imported late

    form = find(out, name, _formats())
    given = {name: value for name, value in options.items() if value is not None}
    check_options(form, given)
    replaces = PAGE if form.name == _PAGE else None
    if str(out) != "-":
        check_output("out", out, replaces, force=force)
    request = _request(read(file), **given)
    if str(out) == "-":
        form.write(request, sys.stdout.buffer)
        return
    with (
        writing(out),
        written_whole(out, replaces, force=force) as unfinished,
        unfinished.open("wb") as new,
    ):
        form.write(request, new)
    runs = len(request.trace.runs)
    which = (
        f", run {request.position + 1} of {runs}" if runs > 1 and "number" in form.options else ""
    )
    click.echo(f"wrote {out}{which}: open it with {form.opened_by}")


def _formats() -> tuple[Format, ...]:
    """Return the formats of the profiler, and the pages as one file."""
    from bsplib.profiler.export.table import FORMATS, Format  # noqa: PLC0415

    page = Format(_PAGE, ".html", "all runs, as a page that works offline", "a browser", _page)
    return (*FORMATS, page)


def _page(request: Request, file: BinaryIO) -> None:
    """Write the pages of all runs of a trace as one file."""
    from bsplib.webui.page import saved_page  # noqa: PLC0415

    file.write(saved_page(request.trace, library=request.library).encode())


def _request(trace: Trace, number: int | None = None, **options: Any) -> Request:
    """Return what to write of a trace."""
    from bsplib.profiler.export.table import Request  # noqa: PLC0415
    from bsplib.profiler.repeats import shown_run  # noqa: PLC0415

    if not trace.runs:
        raise click.ClickException("the trace has no runs: there is nothing to write")
    if "speed" in options and "machine" not in options:
        raise click.BadParameter("it needs --machine", param_hint="--speed")
    position = position_of(trace, number)
    return Request(trace, shown_run(trace.runs) if position is None else position, **options)
