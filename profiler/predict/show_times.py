"""A fitted formula on the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from bsplib.profiler.predict.planning import number
from bsplib.visible import visible

if TYPE_CHECKING:
    from bsplib.console import Console
    from bsplib.profiler.predict.times import Predicted, TimingModel


def show(model: TimingModel, console: Console, points: Sequence[Predicted] = ()) -> None:
    """Print a sentence for each point, the formula with its coefficients, and what is doubtful.

    Args:
        model: the formula.
        console: where to print.
        points: predictions.
    """

    def say(text: str, style: str = "") -> None:
        console.print(Text(visible(text), style=style))

    fitted, timings = model.fit, model.timings
    for each in points:
        for line in _sentences(model, each):
            say(line, "bold")
    say(f"{timings.time} = {fitted.formula.text}")
    for old, new in timings.renamed.items():
        say(f"{new} is the column {old!r}")
    for place in fitted.breaks:
        say(f"a coefficient changes where {place}")
    console.print(_terms(model))
    of = f" (the least of up to {timings.repeats} times at each)" if timings.repeats > 1 else ""
    say(f"misfit {fitted.misfit:.1%}, at most {fitted.worst:.1%}, of {len(timings)} points{of}")
    if fitted.doubt:
        say(f"Doubt: {fitted.doubt}.")
    for text in model.untried:
        say(f"Not tried: {text}.")


def _sentences(model: TimingModel, each: Predicted) -> Iterator[str]:
    """Yield a sentence for each row: the time, its band, and the term that is most of it."""
    fitted = model.fit
    columns, _ = fitted.formula.columns(each.values)
    parts = np.atleast_2d(columns) * fitted.coefficients
    names, factors = fitted.formula.parameters, fitted.formula.parts()
    for row, time in enumerate(each.times):
        at = ", ".join(f"{name} = {number(value[row])}" for name, value in each.values.items())
        greatest = int(np.argmax(np.broadcast_to(parts, (len(each.times), len(names)))[row]))
        name = names[greatest]
        yield (
            f"at {at}: {model.timings.time} = {time:.4g}, {each.low[row]:.3g} to "
            f"{each.high[row]:.3g} ({each.confidence:.0%}); most of it {factors.get(name, name)}"
        )


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
    factors = fitted.formula.parts()
    for place, name in enumerate(fitted.formula.parameters):
        value, deviation = fitted.coefficients[place], fitted.covariance[place, place] ** 0.5
        part = value * columns[0, place] / model.timings.times[largest]
        cells = (
            name,
            Text(visible(factors.get(name, ""))),
            f"{value:.4g}",
            f"{deviation:.2g}",
            f"{part:.0%}",
        )
        table.add_row(*cells)
    return table
