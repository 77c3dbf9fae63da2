"""A complete fit, as on the command line: read, fit, print, draw, save."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bsplib.console import Console
from bsplib.extras import need
from bsplib.output_file import TRACE, write_text
from bsplib.profiler import plotting
from bsplib.profiler.predict.experiments import pick, read_experiments
from bsplib.profiler.predict.files import read_fitted, read_timings, write_timings
from bsplib.profiler.predict.fit import CONFIDENCE
from bsplib.profiler.predict.show_times import show
from bsplib.profiler.predict.table import Timings, TimingsError
from bsplib.profiler.predict.times import fit_timings
from bsplib.visible import visible


def fit_and_print(  # noqa: PLR0913  # the options of the command
    paths: Sequence[Path],
    *,
    formula: str | None = None,
    region: str | None = None,
    by: Sequence[str] = (),
    time: str | None = None,
    of_repeats: str = "least",
    plot: Path | None = None,
    model_out: Path | None = None,
    export: Path | None = None,
    force: bool = False,
    **asked: Any,
) -> None:
    """Fit a formula to a table of times, or to the times of a block, and print what it predicts.

    Args:
        paths: a table, as for :func:`bsplib.profiler.predict.read_timings`, what ``model_out``
            had of one, or traces.
        formula: the formula; None: that of the block, or its terms are chosen.
        region: of a file of Extra-P, or the block of ``bsp.experiment`` in traces.
        by: the variables.
        time: the column with the times.
        of_repeats: as for :func:`bsplib.profiler.predict.read_timings`.
        plot: file for a figure.
        model_out: file for everything as JSON; ``-`` is the standard output, on which nothing
            else is then printed.
        export: file for the table of times, in a format of Extra-P.
        force: replace files that exist.
        **asked: as for :func:`_fit_table`.

    Raises:
        UsageError: the table or the formula cannot be used, or a file cannot be written.
    """
    need("scipy")
    names = [name.strip() for text in by for name in text.split(",")] or None
    reading = {"by": names, "of_repeats": of_repeats}
    if plot is not None:
        plotting.check_target(plot, force=force)
    if TRACE.is_at(paths[0]):
        one = pick(read_experiments(paths, time=time or "time", **reading), region)  # type: ignore[arg-type]
        table, formula = one.timings, formula or one.formula
    elif (fitted := read_fitted(paths[0])) is not None:
        table, own, negative = fitted
        formula, asked["negative"] = formula or own, asked.get("negative") or negative
    elif len(paths) > 1:
        raise TimingsError(f"{paths[1]}: one table of times is learned from, and not several")
    else:
        table = read_timings(paths[0], time, region=region, **reading)  # type: ignore[arg-type]
    _fit_table(table, formula, plot, model_out, force=force, **asked)
    if export is not None:
        write_timings(table, export, force=force)


def _fit_table(  # noqa: PLR0913  # as above
    timings: Timings,
    formula: str | None,
    plot: Path | None,
    model_out: Path | None,
    *,
    at: Sequence[Mapping[str, float]] = (),
    confidence: float = CONFIDENCE,
    processes: str | None = None,
    negative: bool = False,
    divide: str | None = None,
    force: bool = False,
) -> None:
    """Fit a formula to a table, print the result, and write what else is asked for."""
    model = fit_timings(timings, formula, processes=processes, negative=negative, divide=divide)
    points = [model.predict(point, confidence=confidence) for point in at]
    if model_out is not None:
        named = {f"point {number}": point for number, point in enumerate(points, 1)}
        text = json.dumps(model.as_json(named), indent=1) + "\n"
        if model_out == Path("-"):
            print(text, end="")
            return
        try:
            write_text(model_out, text, force=force)
        except OSError as error:
            reason = error.strerror or error
            raise TimingsError(f"{model_out} cannot be written: {reason}") from None
    console = Console()
    show(model, console, points)
    if plot is not None:
        model.plot(plot, force=force)
        console.print(f"drawn in {visible(str(plot))}", highlight=False)
