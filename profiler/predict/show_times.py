"""A fitted formula on the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from bsplib.experiments.formula import Formula, read_formula
from bsplib.profiler.predict.fit import CONFIDENCE
from bsplib.visible import visible

if TYPE_CHECKING:
    from bsplib.console import Console
    from bsplib.profiler.predict.times import Predicted, TimingModel

_FACTORS = (2, 4, 16)
_ALIKE = 1.02
"""Predictions whose ratio is at most this are as good as equal."""


def show(
    model: TimingModel,
    console: Console,
    points: Sequence[Predicted] = (),
    confidence: float = CONFIDENCE,
) -> None:
    """Print the formula, its coefficients, its misfit, what it predicts, and what was not tried.

    Args:
        model: the formula.
        console: where to print.
        points: predictions to print; default: some beyond the greatest measurements.
        confidence: of the bands of the default.
    """
    for line in _head(model):
        console.print(Text(visible(line)), soft_wrap=True)
    console.print(_terms(model))
    console.print(Text(visible(_quality(model))), soft_wrap=True)
    shown = points or [
        model.predict(model.beyond(factor), confidence=confidence)
        for factor in _FACTORS
        if model.variables
    ]
    if shown:
        console.print(_predictions(model, shown))
    for line in _remarks(model):
        console.print(Text(visible(line)), soft_wrap=True)


def _head(model: TimingModel) -> Iterator[str]:
    yield f"{model.timings.time} = {model.fit.formula.text}"
    for old, new in model.timings.renamed.items():
        yield f"{new} is the column {old!r}"
    for place in model.fit.breaks:
        yield f"a coefficient changes where {place}"


def _terms(model: TimingModel) -> Table:
    """Return a table of the coefficients, with the part of each at the longest time."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("parameter")
    table.add_column("of")
    table.add_column("coefficient", justify="right")
    table.add_column("+-", justify="right")
    table.add_column("part of the\nlongest time", justify="right")
    fitted, largest = model.fit, int(np.argmax(model.timings.times))
    at = {name: float(column[largest]) for name, column in model.timings.values.items()}
    columns, _ = fitted.formula.columns(at)
    for number, (name, text) in enumerate(_factors(fitted.formula)):
        value, deviation = fitted.coefficients[number], fitted.covariance[number, number] ** 0.5
        part = value * columns[0, number] / model.timings.times[largest]
        cells = (name, Text(visible(text)), f"{value:.4g}", f"{deviation:.2g}", f"{part:.0%}")
        table.add_row(*cells)
    return table


def _factors(formula: Formula) -> list[tuple[str, str]]:
    """Return the name of each parameter with the text of what it is multiplied by."""
    found = []
    for name in formula.parameters:
        part = next((each for each in formula.text.split(" + ") if name in each), "")
        factor = part.replace(f"{name}*", "", 1).replace(name, "1", 1)
        try:
            alone = set(read_formula(part).parameters) == {name}
        except ValueError:
            alone = False
        found.append((name, factor if alone else ""))
    return found


def _quality(model: TimingModel) -> str:
    repeats = model.timings.repeats
    return (
        f"misfit {model.fit.misfit:.1%}, at most {model.fit.worst:.1%}, "
        f"of {len(model.timings)} points"
        + (f" (the least of up to {repeats} times at each)" if repeats > 1 else "")
    )


def _predictions(model: TimingModel, points: Sequence[Predicted]) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    names = list(dict.fromkeys(name for each in points for name in each.values))
    for name in names:
        table.add_column(name, justify="right")
    table.add_column(f"predicted {visible(model.timings.time)}", justify="right")
    table.add_column(f"{points[0].confidence:.0%} between", justify="right", no_wrap=True)
    for each in points:
        for row, time in enumerate(each.times):
            values = [
                f"{each.values[name][row]:g}" if name in each.values else "" for name in names
            ]
            table.add_row(*values, f"{time:.4g}", f"{each.low[row]:.3g} .. {each.high[row]:.3g}")
    return table


def _remarks(model: TimingModel) -> Iterator[str]:
    if model.fit.doubt:
        yield f"Doubt: {model.fit.doubt}."
    point = model.beyond(_FACTORS[1])
    between = model.rivals_at(point) if point else None
    if between is not None and between[1] > _ALIKE * between[0]:
        at = ", ".join(f"{name} = {value:g}" for name, value in point.items())
        yield (
            f"The measurements do not tell this formula from others; at {at} they predict "
            f"{between[0]:.4g} to {between[1]:.4g}."
        )
    for text in model.untried:
        yield f"Not tried: {text}."
