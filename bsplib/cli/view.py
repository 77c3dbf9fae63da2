"""``bsp view``: the profile of a trace in the browser."""

from __future__ import annotations

from pathlib import Path

import click

from bsplib.cli.options import TRACE
from bsplib.cli.traces import read, summing_up


@click.command("view")
@click.option(
    "--html",
    type=TRACE,
    help="Write one page that works offline, with the program's source as far as it is here, "
    "and start no server.",
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Port of the server; 0: a free one."
)
@click.option("--browser/--no-browser", default=True, help="Whether to open a browser.")
@click.option("--library", is_flag=True, help="Show the functions of bsplib too.")
@click.option(
    "--compare",
    "before",
    type=TRACE,
    metavar="BEFORE",
    help="Show what changed since the runs in the trace BEFORE, too.",
)
@click.argument(
    "files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
def command(
    html: Path | None,
    port: int,
    browser: bool,
    library: bool,
    before: Path | None,
    files: tuple[Path, ...],
) -> None:
    """Show the shaded call graph of the trace FILE in the browser.

    Of several traces, the page shows the first, and the others can be chosen. If FILE is a
    folder, the traces in it (*.bsp) can be chosen in the page, also those that come there
    later.
    """
    import webui  # noqa: PLC0415  # imported late

    file, *others = files
    if others and (html is not None or any(path.is_dir() for path in files)):
        raise click.ClickException("--html and a folder take one FILE: leave out the others.")
    if file.is_dir():
        if html is not None or before is not None:
            raise click.ClickException(f"{file} is a folder: choose one of its traces.")
        if not any(file.glob("*.bsp")):
            raise click.ClickException(f"There is no trace (*.bsp) in the folder {file}.")
        webui.serve(folder=file, port=port, open_browser=browser, library=library)
        return
    paths = [*files, *(path for path in [before] if path is not None)]
    traces = [read(path) for path in paths]
    names = [str(path) for path in paths] if len(paths) > 1 else []
    if html is None:
        webui.serve(
            *traces,
            names=names,
            view="" if before is None else "compare",
            port=port,
            open_browser=browser,
            library=library,
        )
        return
    try:
        with summing_up(file):
            webui.write_html(traces[0], html, before=traces[1:], names=names, library=library)
    except OSError as error:
        raise click.ClickException(f"{html} cannot be written: {error.strerror}") from None
    click.echo(f"wrote {html}: open it in a browser")
