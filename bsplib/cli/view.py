"""``bsp view``: the profile of a trace in the browser."""

from __future__ import annotations

from pathlib import Path

import click

from bsplib.cli.options import TRACE
from bsplib.cli.traces import read


@click.command("view")
@click.option("--html", type=TRACE, help="Write one page that works offline, and start no server.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Port of the server; 0: a free one."
)
@click.option("--browser/--no-browser", default=True, help="Whether to open a browser.")
@click.option("--library", is_flag=True, help="Show the functions of bsplib too.")
@click.argument("file", type=TRACE)
def command(html: Path | None, port: int, browser: bool, library: bool, file: Path) -> None:
    """Show the shaded call graph of the trace FILE in the browser."""
    import webui  # noqa: PLC0415  # imported late

    trace = read(file)
    if html is None:
        webui.serve(trace, port=port, open_browser=browser, library=library)
        return
    try:
        webui.write_html(trace, html, library=library)
    except OSError as error:
        raise click.ClickException(f"{html} cannot be written: {error.strerror}") from None
    click.echo(f"wrote {html}: open it in a browser")
