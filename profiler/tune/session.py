"""A complete tuning, as on the command line: run, compare, print, draw."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from bsplib.errors import UsageError
from profiler import plotting
from profiler.tune.app import App, find_app
from profiler.tune.best import judge
from profiler.tune.parameter import Parameter, parse_parameter
from profiler.tune.plot import plot_tuning
from profiler.tune.sweep import Options, Point, sweep
from profiler.tune.table import print_tuning
from profiler.tune.trade import find_trade


def tune_and_print(app: str, text: str, *, plot: Path | None = None, **options: Any) -> None:
    """Tune a parameter of an application, print the result, and plot it if asked.

    Args:
        app: the application, as for :func:`profiler.tune.find_app`.
        text: the parameter and its values, as for :func:`profiler.tune.parse_parameter`.
        plot: file for the plot.
        **options: the fields of :class:`profiler.tune.Options`.

    Raises:
        UsageError: there is no such application, option or range, the application fails,
            or a file cannot be written.
    """
    parameter = parse_parameter(text)
    found = find_app(app)
    try:
        if plot is not None:
            plotting.check_target(plot)
        found.check(parameter)
        points = _sweep_with_progress(found, parameter, Options(**options))
        trade, verdicts = find_trade(points), judge(points)
        console = Console()
        print_tuning(parameter.name, points, trade, verdicts, console)
        if plot is not None:
            plot_tuning(plot, parameter, points, trade, verdicts)
            console.print(f"drawn in {plot}", highlight=False, soft_wrap=True)
    except ValueError as error:
        raise UsageError(f"tune: {error}") from None


def _sweep_with_progress(app: App, parameter: Parameter, options: Options) -> list[Point]:
    console = Console(stderr=True)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        console=console,
        transient=True,
        auto_refresh=False,  # no thread, since processes are forked from this process
        disable=not console.is_terminal,
    ) as progress:
        total = 1 + options.repeats * len(parameter.values)
        bar = progress.add_task(f"{app.name} {parameter.option}", total=total)
        progress.refresh()

        def advance() -> None:
            progress.advance(bar)
            progress.refresh()

        return sweep(app, parameter, options, advance)
