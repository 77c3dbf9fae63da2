"""A complete fit, as on the command line: read, fit, print, draw, save."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.text import Text

from bsplib.console import Console
from bsplib.extras import need
from bsplib.output_file import write_text
from bsplib.profiler import plotting
from bsplib.profiler.predict.experiments import pick, read_experiments
from bsplib.profiler.predict.files import read_timings, write_timings
from bsplib.profiler.predict.fit import CONFIDENCE
from bsplib.profiler.predict.show_times import show
from bsplib.profiler.predict.table import Timings, TimingsError
from bsplib.profiler.predict.times import fit_timings
from bsplib.visible import visible


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
    divide: str | None = None,
    **reading: Any,
) -> None:
    """Fit a formula to a table of times, and print the result.

    Args:
        path: the table, as for :func:`bsplib.profiler.predict.read_timings`.
        formula: the formula; None: its terms are chosen.
        outputs: what else to make.
        at: points to predict.
        confidence: of the bands of predictions.
        processes: the variable that is the number of processes.
        negative: whether coefficients of the formula may be negative.
        divide: the quantity at some value of which coefficients may change.
        **reading: further arguments of :func:`bsplib.profiler.predict.read_timings`.

    Raises:
        UsageError: the table or the formula cannot be used, or a file cannot be written.
    """
    need("scipy")
    asked = _Asked(outputs, at, confidence, processes, negative, divide)
    _fit_table(read_timings(path, **reading), formula, asked)


def fit_experiment_and_print(  # noqa: PLR0913  # the options of the command
    paths: Sequence[Path],
    name: str,
    formula: str | None,
    outputs: Outputs,
    *,
    at: Sequence[Mapping[str, float]] = (),
    confidence: float = CONFIDENCE,
    processes: str | None = None,
    negative: bool = False,
    divide: str | None = None,
    **reading: Any,
) -> None:
    """Fit the formula of a block to what it took in traces, and print the result.

    Args:
        paths: the traces.
        name: of the block.
        formula: another formula than that of the program.
        outputs: what else to make.
        at: points to predict.
        confidence: of the bands of predictions.
        processes: the variable that is the number of processes.
        negative: whether coefficients of the formula may be negative.
        divide: the quantity at some value of which coefficients may change.
        **reading: further arguments of :func:`bsplib.profiler.predict.read_experiments`.

    Raises:
        UsageError: a file or a formula cannot be used, or a file cannot be written.
    """
    need("scipy")
    one = pick(read_experiments(paths, **reading), name)
    asked = _Asked(outputs, at, confidence, processes, negative, divide)
    _fit_table(one.timings, formula or one.formula, asked, f"experiment {visible(one.name)}")


@dataclass(frozen=True)
class _Asked:
    """What to make of a table."""

    outputs: Outputs
    at: Sequence[Mapping[str, float]]
    confidence: float
    processes: str | None
    negative: bool
    divide: str | None


def _fit_table(
    timings: Timings, formula: str | None, asked: _Asked, title: str | None = None
) -> None:
    """Fit a formula to a table, print the result, and write what else is asked for."""
    outputs = asked.outputs
    try:
        if outputs.plot is not None:
            plotting.check_target(outputs.plot, force=outputs.force)
        model = fit_timings(
            timings,
            formula,
            processes=asked.processes,
            negative=asked.negative,
            divide=asked.divide,
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
