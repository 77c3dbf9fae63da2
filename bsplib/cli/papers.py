"""``bsp papers``: the numbers of the five papers, computed beside what they print."""

from __future__ import annotations

from pathlib import Path

import click

from bsplib.cli.options import TRACE
from bsplib.own_packages import prefer_own
from bsplib.recording.output_file import obstacle


@click.command("papers")
@click.option("--full", "everything", is_flag=True, help="Also measure this computer: minutes.")
@click.option("--html", type=TRACE, help="Write one page that needs no other file.")
@click.option("--json", "as_json", type=TRACE, help="Write a JSON document.")
@click.option("--markdown", type=TRACE, help="Write the page of the documentation.")
@click.option("--measured", type=TRACE, help="With --full: write what was measured, as CSV.")
def command(
    everything: bool,
    html: Path | None,
    as_json: Path | None,
    markdown: Path | None,
    measured: Path | None,
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
    for path in (html, as_json, markdown, measured):
        if path is not None and (reason := obstacle(path.absolute())):
            raise click.ClickException(f"papers: {reason}")
    prefer_own("apps")
    from apps.papers.session import run  # noqa: PLC0415  # imported late

    run(everything=everything, html=html, as_json=as_json, markdown=markdown, measured=measured)
