"""``bsp papers``: the numbers of the five papers, computed beside what they print."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import click

from bsplib.backends import table as backends
from bsplib.command_options import OutputFile, force_option
from bsplib.errors import UsageError
from bsplib.experiments.grid import combinations, read_counts, read_setting
from bsplib.machine import Machine
from bsplib.output_file import PAGE
from bsplib.running.failures import show_error
from bsplib.tools.cli import Listing
from bsplib.tools.cli.options import backend_option, machine_option, option, values
from bsplib.tools.cli.run import enter, put_first
from bsplib.visible import as_command


@click.group("papers", cls=Listing, invoke_without_command=True)
@option("--html", type=OutputFile(PAGE), help="Write one page that needs no other file.")
@option("-o", "--out", "as_json", type=OutputFile(), help="Write a JSON document.")
@option("--markdown", type=OutputFile(), help="Write the page of the documentation.")
@option(
    "--seeds",
    type=OutputFile(),
    help="Only run the SQL paper's stages with ten seeds, and write what they do, as CSV: minutes.",
)
@force_option
@click.pass_context
def command(context: click.Context, /, seeds: Path | None, **files: Any) -> None:
    """Compute numbers of five papers, and print them beside those in print.

    Most are computed from constants that the papers print, the others from runs on virtual
    processors: less than a minute. The pages also list every equation, table, figure and system
    of the papers with where it lives here.

    \b
    Examples:
      bsp papers
      bsp papers --html papers.html
      bsp papers call -n 2 program.py
    """
    if context.invoked_subcommand is not None:
        return
    if seeds is not None and any(files[name] for name in ("html", "as_json", "markdown")):
        raise click.UsageError("papers: --seeds makes runs and writes one file; leave others out")
    from bsplib.apps.papers.session import run  # noqa: PLC0415  # imported late

    run(seeds=seeds, **files)


@command.command("call", context_settings={"allow_interspersed_args": False})
@option("-n", "--nprocs", "procs", metavar="VALUES", help="As in 4 or 1:16:x2.")
@option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUES",
    help="Values for the parameter NAME of main, as in N=1024:65536:x4, or for {NAME} in REST.",
)
@option("--counters", metavar="NAMES", help="As in instructions,page-faults.")
@backend_option
@machine_option
@option("-o", "--out", type=Path, help="Data file to add to.  [default: FILE.call.jsonl]")
@option("--at", multiple=True, type=values, help="As in N=2^20,P=64.")
@option("--time", default="time", metavar="NAME", help="Fit time, h (bytes) or a counter.")
@option("--formula", metavar="FORMULA", help="Fit another formula than the program's.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.argument("rest", nargs=-1, type=click.UNPROCESSED)
def call(  # noqa: PLR0913, PLR0917  # each is an option
    procs: str | None,
    settings: tuple[str, ...],
    counters: str | None,
    backend: str | None,
    machine: Machine | None,
    out: Path | None,
    at: list[dict[str, float]],
    time: str,
    formula: str | None,
    file: str,
    rest: tuple[str, ...],
) -> None:
    """Measure the blocks that comments mark, and fit the formulas that these give.

    FILE is a program with comments, which plain Python ignores: "#cll f f[0] + f[1]*N" before the
    statements of a block, and "#cll end f" after them. It gets REST as its command line; what its
    blocks take is added to a data file. Or FILE and REST are such data files: then the formula of
    each block is fitted, and --at predicts.

    \b
    Examples:
      bsp papers call -n 1:4:x2 --set N=1024:65536:x4 program.py
      bsp papers call --at N=2^20,P=16 program.call.jsonl
    """
    from bsplib.apps.papers.call import datafile, session  # noqa: PLC0415  # imported late
    from bsplib.apps.papers.call.counters import usable  # noqa: PLC0415  # as above

    if datafile.DATA.is_at(file):
        paths = [Path(each) for each in (file, *rest)]
        session.print_fits(paths, at, time, formula)
        return
    target = (out or Path(f"{Path(file).stem}.call.jsonl")).absolute()
    counts: tuple[int | None, ...] = read_counts("--nprocs", procs) if procs else (None,)
    is_virtual = backend is not None and backends.find(backend).is_virtual
    counted = usable(counters or "", virtual=is_virtual)
    where = {"backend": backend, "machine": machine}
    put_first(Path(file).absolute().parent)
    enter(backend, max((count for count in counts if count is not None), default=None))
    names: dict[str, None] = {}
    for each in combinations(dict(map(read_setting, settings))):
        for nprocs in counts:
            try:
                found = session.run(file, rest, each, counted=counted, nprocs=nprocs, **where)
            except (Exception, KeyboardInterrupt, SystemExit) as error:  # the script may raise any
                if isinstance(error, UsageError) and error.pid is None:
                    raise
                sys.exit(backends.end_by(error, partial(show_error, error, file)))
            if not backends.own_rank():
                datafile.append(target, found)
            names |= dict.fromkeys(each.name for each in found)
    if not names:
        raise UsageError(f"{file} measured nothing: mark a block by #cll comments")
    if backends.own_rank():
        return
    told = as_command("bsp", "papers", "call", target.name if out is None else out)
    click.echo(f"experiments {', '.join(names)} added to {target.name}: {told}")
