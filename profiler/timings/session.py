"""A complete fit, as on the command line: read, fit, print, draw, save."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from bsplib.console import Console
from bsplib.extras import need
from bsplib.output_file import write_text
from bsplib.profiler import plotting
from bsplib.profiler.models.band import CONFIDENCE
from bsplib.profiler.timings.experiments import pick, read_experiments
from bsplib.profiler.timings.files import read_timings, write_timings
from bsplib.profiler.timings.model import fit_timings
from bsplib.profiler.timings.show import show
from bsplib.profiler.timings.table import Timings, TimingsError
from bsplib.visible import visible

if TYPE_CHECKING:
    from collections.abc import Callable

_PATIENCE_S = 1.0
"""What takes longer shows a progress bar."""


@dataclass(frozen=True)
class Outputs:
    """What is made of a fit besides the text."""

    plot: Path | None = None
    json: Path | None = None
    """``-`` is the standard output, on which nothing else is then printed."""
    export: Path | None = None
    """File for the table of times, in a format of Extra-P."""
    force: bool = False
    """Replace files that exist."""


def fit_and_print(
    path: Path,
    formula: str | None,
    outputs: Outputs,
    *,
    at: Sequence[Mapping[str, float]] = (),
    confidence: float = CONFIDENCE,
    processes: str | None = None,
    negative: bool = False,
    **reading: Any,
) -> None:
    """Fit a formula to a table of times, and print the result.

    Args:
        path: the table, as for :func:`bsplib.profiler.timings.read_timings`.
        formula: the formula; None: its terms are chosen.
        outputs: what else to make.
        at: points to predict.
        confidence: of the bands of predictions.
        processes: the variable that is the number of processes.
        negative: whether coefficients of the formula may be negative.
        **reading: further arguments of :func:`bsplib.profiler.timings.read_timings`.

    Raises:
        UsageError: the table or the formula cannot be used, or a file cannot be written.
    """
    need("scipy")
    asked = _Asked(outputs, at, confidence, processes, negative)
    _fit_table(read_timings(path, **reading), formula, asked)


def fit_experiments_and_print(
    paths: Sequence[Path],
    formula: str | None,
    outputs: Outputs,
    *,
    name: str | None = None,
    at: Sequence[Mapping[str, float]] = (),
    confidence: float = CONFIDENCE,
    processes: str | None = None,
    negative: bool = False,
    **reading: Any,
) -> None:
    """Fit the formulas of experiments to their data files, and print the results.

    Args:
        paths: the data files.
        formula: another formula than that of the program.
        outputs: what else to make; with several experiments nothing.
        name: the only experiment to fit.
        at: points to predict.
        confidence: of the bands of predictions.
        processes: the variable that is the number of processes.
        negative: whether coefficients of the formula may be negative.
        **reading: further arguments of :func:`bsplib.profiler.timings.read_experiments`.

    Raises:
        UsageError: a file or a formula cannot be used, or a file cannot be written.
    """
    need("scipy")
    found = read_experiments(paths, **reading)
    chosen = pick(found, name)
    if len(chosen) > 1 and (outputs != Outputs() or formula is not None):
        raise TimingsError(
            f"there are several experiments: choose one of {', '.join(found)} with --region"
        )
    asked = _Asked(outputs, at, confidence, processes, negative)
    for number, each in enumerate(chosen):
        title = "\n" * bool(number) + f"experiment {visible(each.name)}"
        _fit_table(each.timings, formula or each.formula, asked, title)


@dataclass(frozen=True)
class _Asked:
    """What to make of a table."""

    outputs: Outputs
    at: Sequence[Mapping[str, float]]
    confidence: float
    processes: str | None
    negative: bool


def _fit_table(
    timings: Timings, formula: str | None, asked: _Asked, title: str | None = None
) -> None:
    """Fit a formula to a table, print the result, and write what else is asked for."""
    outputs = asked.outputs
    try:
        if outputs.plot is not None:
            plotting.check_target(outputs.plot, force=outputs.force)
        with _progress() as on_trial:
            model = fit_timings(
                timings,
                formula,
                processes=asked.processes,
                negative=asked.negative,
                on_trial=on_trial,
            )
        points = [model.predict(point, confidence=asked.confidence) for point in asked.at]
        quiet = outputs.json == Path("-")
        console = Console(quiet=quiet)
        if title is not None:
            console.print(Text(title), soft_wrap=True)
        show(model, console, points, asked.confidence)
        if outputs.plot is not None:
            model.plot(outputs.plot, force=outputs.force)
            console.print(f"drawn in {visible(str(outputs.plot))}", highlight=False)
    except TimingsError:
        raise
    except ValueError as error:
        raise TimingsError(str(error)) from None
    if outputs.export is not None:
        write_timings(timings, outputs.export, force=outputs.force)
    if outputs.json is not None:
        named = {f"point {number}": point for number, point in enumerate(points, 1)}
        _write_json(model.as_json(named), outputs.json, force=outputs.force)


def _write_json(found: dict[str, Any], path: Path, *, force: bool) -> None:
    text = json.dumps(found, indent=1) + "\n"
    if path == Path("-"):
        print(text, end="")
        return
    try:
        write_text(path, text, force=force)
    except OSError as error:
        raise TimingsError(f"{path} cannot be written: {error.strerror or error}") from None


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    """Yield a function that shows a progress bar once the fit has taken a while."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    progress = Progress(*columns, console=console, transient=True, auto_refresh=False)
    bar = progress.add_task("trying predictions", total=None)
    began = time.monotonic()

    def on_trial(done: int, most: int) -> None:
        if console.is_terminal and time.monotonic() - began > _PATIENCE_S:
            progress.start()
            progress.update(bar, completed=done, total=most)
            progress.refresh()

    try:
        yield on_trial
    finally:
        if progress.live.is_started:  # otherwise it would print an empty line
            progress.stop()
