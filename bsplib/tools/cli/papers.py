"""``bsp papers``: the numbers of the five papers, computed beside what they print."""

from __future__ import annotations

from pathlib import Path

import click

from bsplib.command_options import OutputFile, force_option
from bsplib.output_file import PAGE


@click.command("papers")
@click.option("--full", "everything", is_flag=True, help="Also measure this computer: minutes.")
@click.option("--html", type=OutputFile(PAGE), help="Write one page that needs no other file.")
@click.option(
    "-o",
    "--out",
    "as_json",
    type=OutputFile(),
    help="Write a JSON document.",
)
@click.option("--markdown", type=OutputFile(), help="Write the page of the documentation.")
@click.option("--measured", type=OutputFile(), help="With --full: write what was measured, as CSV.")
@click.option(
    "--seeds",
    type=OutputFile(),
    help="Only run the SQL paper's stages with ten seeds, and write what they do, as CSV: minutes.",
)
@force_option
def command(
    everything: bool,
    html: Path | None,
    as_json: Path | None,
    markdown: Path | None,
    measured: Path | None,
    seeds: Path | None,
    force: bool,
) -> None:
    r"""Compute numbers of five papers, and print them beside those in print.

    Most are computed from constants that the papers print, the others from runs on virtual
    processors: less than a minute. The pages also list every equation, table, figure and system
    of the papers with where it lives here.

    \b
    Examples:
      bsp papers
      bsp papers --full --html papers.html
    """
    if measured is not None and not everything:
        raise click.UsageError("papers: --measured writes what --full measures; add --full")
    if seeds is not None and (everything or html or as_json or markdown):
        raise click.UsageError("papers: --seeds makes runs and writes one file; leave others out")
    from bsplib.apps.papers.session import run  # noqa: PLC0415  # imported late

    run(
        everything=everything,
        html=html,
        as_json=as_json,
        markdown=markdown,
        measured=measured,
        seeds=seeds,
        force=force,
    )
