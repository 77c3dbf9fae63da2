"""``bsp view``: the profile of a trace in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bsplib.command_options import OutputFile, force_option, writing
from bsplib.machine import Machine, load_machine
from bsplib.output_file import PAGE
from bsplib.tools.cli.options import (
    FOLDER,
    TRACE,
    MachineName,
    Metric,
    Point,
    Whole,
    library_option,
    option,
    values,
)
from bsplib.tools.cli.traces import read, summing_up


@click.command("view")
@option(
    "--html",
    type=OutputFile(PAGE),
    help="Write one page that works offline, with the program's source as far as it is here, "
    "and start no server.",
)
@force_option
@option(
    "--port",
    type=Whole(0, 65535),
    help="Port of the server.  [default: a free one]",
)
@option("--browser/--no-browser", default=True, help="Open a browser, or only print the address.")
@option(
    "--metric",
    type=Metric(),
    help="What the shades stand for at first: loss, or another critical path, such as h-imb.",
)
@library_option
@option(
    "--sources",
    type=FOLDER,
    metavar="FOLDER",
    help="Look for source files in this folder, too, by the ends of their names; show them even if "
    "the trace cannot tell whether they are those that ran.",
)
@option(
    "--compare",
    "before",
    type=TRACE,
    metavar="BEFORE",
    help="Show what changed since the runs in the trace BEFORE, too.",
)
@option(
    "--fit",
    "model",
    type=TRACE,
    metavar="MODEL",
    help="Show the call graph that a model predicts, which bsp predict --model-out wrote.",
)
@option(
    "--machine",
    "machines",
    type=MachineName(),
    multiple=True,
    help="Machine on which the page shows the run, too; may be repeated. A page that --html wrote "
    "has only these. With --fit: Machine to predict for.",
)
@option(
    "--at",
    type=values,
    multiple=True,
    help="With --fit: point at which the page opens, as in n=2^30,p=256; may be repeated, for more "
    "to choose from. A page that --html wrote has only these.",
)
@click.argument("files", metavar="FILE...", nargs=-1, type=click.Path(path_type=Path))
def command(files: tuple[Path, ...], html: Path | None, force: bool, **given: Any) -> None:
    """Show the shaded call graph of a trace in the browser.

    FILE is a trace. Of several traces, the page shows the first, and the others can be
    chosen. If FILE is a folder, the traces in it (*.bsp) can be chosen in the page,
    also those that come there later.

    With --fit, the page shows the call graph of a run that nobody made. Sliders choose the
    sizes and the number of processes, and the header the Machine. The boxes are shaded by the
    time that is lost on the way from the processes of the runs: the darkest one hurts first.

    \b
    Examples:
      bsp view sort.bsp
      bsp view --html sort.html sort.bsp
      bsp view --html sort.html --machine ibm-sp2-pvm sort.bsp
      bsp view --compare before.bsp after.bsp
      bsp view --metric h-imb sort.sweep
      bsp view --fit sort.json --at n=2^30,p=256
      bsp view --html sort.html --fit sort.json --at n=2^20,p=64 --at n=2^30,p=256
    """
    model, machines, before = given["model"], given["machines"], given["before"]
    served = {"port": given["port"] or 0, "open_browser": given["browser"]}
    if given["metric"] and (html is not None or model is not None):
        raise click.UsageError("--metric is for traces that are served")
    for name in machines:
        load_machine(name)  # so that a name that is wrong is said at once
    shown = {name: given[name] for name in ("library", "sources", "machines")}
    if model is not None:
        if files or before is not None or given["library"] or given["sources"] or len(machines) > 1:
            raise click.UsageError(
                "--fit takes no FILE, no --compare, --library and --sources, and one --machine"
            )
        there = load_machine(machines[0]) if machines else None
        _view_model(model, there, given["at"], html, served, force=force)
    elif given["at"]:
        raise click.UsageError("--at needs --fit")
    elif not files:
        raise click.UsageError("name a trace or a folder, or a model by --fit")
    else:
        served["metric"] = given["metric"] or ""
        _view_traces(files, before, html, served, shown, force=force)


def _view_traces(
    files: tuple[Path, ...],
    before: Path | None,
    html: Path | None,
    served: dict[str, Any],
    shown: dict[str, Any],
    *,
    force: bool,
) -> None:
    """Show the pages of traces, or save those of one."""
    from bsplib import webui  # noqa: PLC0415  # imported late

    file, *others = files
    if others and (html is not None or any(path.is_dir() for path in files)):
        raise click.ClickException("--html and a folder take one FILE: leave out the others.")
    if file.is_dir():
        if html is not None or before is not None:
            raise click.ClickException(f"{file} is a folder: choose one of its traces.")
        if not any(file.glob("*.bsp")):
            raise click.ClickException(f"There is no trace (*.bsp) in the folder {file}.")
        webui.serve(folder=file, **served, **shown)
        return
    paths = [*files, *(path for path in [before] if path is not None)]
    traces = [read(path, shows_errors=True) for path in paths]
    names = [str(path) for path in paths] if len(paths) > 1 else []
    if html is None:
        view = "" if before is None else "compare"
        webui.serve(*traces, names=names, view=view, **served, **shown)
        return
    with writing(html), summing_up(file):
        webui.write_html(traces[0], html, before=traces[1:], names=names, force=force, **shown)
    click.echo(f"wrote {html}: open it in a browser")


def _view_model(
    path: Path,
    machine: Machine | None,
    at: list[Point],
    html: Path | None,
    served: dict[str, Any],
    *,
    force: bool,
) -> None:
    """Show the page of a node model, or save it."""
    from bsplib import webui  # noqa: PLC0415  # imported late
    from bsplib.profiler.predict.document import read_model  # noqa: PLC0415

    shown = webui.ShownModel(read_model(path), machine, at)
    if html is None:
        webui.serve_model(shown, **served)
        return
    with writing(html):
        webui.write_model_html(shown, html, force=force)
    click.echo(f"wrote {html}: open it in a browser")
