"""A complete tuning, as on the command line: run, compare, print, draw."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from bsplib.console import Console
from bsplib.errors import UsageError
from bsplib.profiler import plotting
from bsplib.profiler.tune.app import TRACE_OPTION, App, find_app
from bsplib.profiler.tune.balance import find_balance
from bsplib.profiler.tune.best import advise, judge
from bsplib.profiler.tune.best import measured as measured_in
from bsplib.profiler.tune.outcome import Tuning
from bsplib.profiler.tune.parameter import Parameter, parse_parameter
from bsplib.profiler.tune.plot import plot_tuning
from bsplib.profiler.tune.seeds import (
    SEED,
    SEEDS,
    confirmed,
    find_spread,
    mean_verdicts,
    sweep_seeds,
)
from bsplib.profiler.tune.sweep import Point, SweepOptions
from bsplib.profiler.tune.table import print_tuning
from bsplib.profiler.tune.trade_off import find_trade

_MACHINE = "shared-memory"
"""Machine of virtual processors if none is named: on the ideal one h costs nothing."""
_REPEATS = 3
"""Runs with each value if there is one seed; with several seeds each is run once."""


def tune_and_print(
    app: str, text: str, *, plot: Path | None = None, force: bool = False, **options: Any
) -> None:
    """Tune a parameter of an application, print the result, and plot it if asked.

    Args:
        app: the application, as for :func:`bsplib.profiler.tune.find_app`.
        text: the parameter and its values, as for :func:`bsplib.profiler.tune.parse_parameter`.
        plot: file for the plot.
        force: replace the file of the plot if it exists.
        **options: the fields of :class:`bsplib.profiler.tune.Options`.

    Raises:
        UsageError: there is no such application, option or range, the application fails,
            or a file cannot be written.
    """
    parameter = parse_parameter(text)
    found = find_app(app)
    try:
        if plot is not None:
            plotting.check_target(plot, force=force)
        found.check(parameter)
        seeds = _number_of_seeds(found, parameter, options.pop("seeds", None))
        chosen = _chosen(options, seeds)
        found.check_takes([*chosen.given(), TRACE_OPTION])
        sweeps = _sweep_with_progress(found, parameter, chosen, seeds)
        tuning = _tuning(found, parameter, sweeps, options.get("arguments", ()))
        console = Console()
        print_tuning(tuning, console)
        if plot is not None:
            plot_tuning(plot, tuning, force=force)
            console.print(f"drawn in {plot}", highlight=False, soft_wrap=True)
    except ValueError as error:
        raise UsageError(f"tune: {error}") from None


def _tuning(
    app: App, parameter: Parameter, sweeps: list[list[Point]], arguments: tuple[str, ...]
) -> Tuning:
    """Compare all runs."""
    points = sweeps[0]
    trade = confirmed(find_trade(points), sweeps)
    return Tuning(
        parameter,
        points,
        trade,
        find_spread(sweeps, trade),
        mean_verdicts([judge(each) for each in sweeps]),
        mean_verdicts([[measured_in(each)] for each in sweeps])[0],
        app.demanded(parameter, arguments, points[0].run.nprocs),
        app.means.get(parameter.name, ""),
        advise(parameter.values, [[point.total_s for point in each] for each in sweeps]),
        advise(parameter.values, [[point.measured_s for point in each] for each in sweeps]),
        find_balance(sweeps, app.samples_between(parameter, arguments)),
    )


def _number_of_seeds(app: App, parameter: Parameter, seeds: int | None) -> int:
    can = app.has(SEED) and parameter.option != SEED
    if seeds is None:
        return SEEDS if can else 1
    if seeds > 1 and not can:
        raise UsageError(f"tune: {app.name} has no option {SEED}, and so only one seed")
    return seeds


def _chosen(options: dict[str, Any], seeds: int) -> SweepOptions:
    """Return the options, with a Machine on which an h-relation has a price."""
    chosen = dict(options)
    if chosen.get("repeats") is None:
        chosen["repeats"] = _REPEATS if seeds == 1 else 1
    if chosen.get("machine") is None and chosen.get("backend") == "sim":
        chosen["machine"] = _MACHINE
    return SweepOptions(**chosen)


def _sweep_with_progress(
    app: App, parameter: Parameter, options: SweepOptions, seeds: int
) -> list[list[Point]]:
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
        total = 1 + seeds * options.repeats * len(parameter.values)
        bar = progress.add_task(f"{app.name} {parameter.option}", total=total)
        progress.refresh()

        def advance() -> None:
            progress.advance(bar)
            progress.refresh()

        return sweep_seeds(app, parameter, options, seeds, advance)
