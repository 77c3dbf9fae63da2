"""A fitted formula on the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from bsplib.experiments.formula import Formula, read_formula
from bsplib.profiler.models.band import CONFIDENCE
from bsplib.visible import visible

if TYPE_CHECKING:
    from rich.console import Console

    from bsplib.profiler.models.fit import FitSegment
    from bsplib.profiler.timings.model import Predicted, TimingModel

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
    for line in (*_changes(model), *_quality(model)):
        console.print(Text(visible(line)), soft_wrap=True)
    shown = points or _beyond(model, confidence)
    if shown:
        console.print(_predictions(model, shown))
    for line in _remarks(model):
        console.print(Text(visible(line)), soft_wrap=True)


def _head(model: TimingModel) -> Iterator[str]:
    yield f"{model.timings.time} = {model.fit.formula.text}"
    if model.choice is not None:
        yield (
            f"chosen among {model.choice.considered} formulas by "
            f"{_folds(model.choice.folds)} the largest"
        )
    for old, new in model.timings.renamed.items():
        yield f"{new} is the column {old!r}"


def _terms(model: TimingModel) -> Table:
    """Return a table of the coefficients, with the part of each at the largest measurement."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("parameter")
    table.add_column("of")
    quantity = _quantity_name(model)
    for segment in model.fit.segments:
        title = _range(segment, quantity)
        table.add_column(title or "coefficient", justify="right")
        table.add_column("+-", justify="right")
    largest = int(np.argmax(model.timings.times))
    table.add_column("part of the\nlongest time", justify="right")
    at = {name: float(column[largest]) for name, column in model.timings.values.items()}
    columns, _ = model.fit.formula.columns(at)
    segment = model.fit.segments[int(model.fit.segment_of(at)[0])]
    for number, (name, text) in enumerate(_factors(model.fit.formula)):
        intervals = {each.low: each for each in model.fit.intervals[name]}
        cells = []
        for each in model.fit.segments:
            own = intervals.get(each.low)
            cells += ["same", ""] if own is None else [f"{own.value:.4g}", f"{own.error:.2g}"]
        part = segment.coefficients[name] * columns[0, number] / model.timings.times[largest]
        table.add_row(name, Text(visible(text)), *cells, f"{part:.0%}")
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


def _changes(model: TimingModel) -> Iterator[str]:
    """Say which coefficients change at a boundary, where others do not."""
    intervals = model.fit.intervals
    changing = [name for name, own in intervals.items() if len(own) > 1]
    if 0 < len(changing) < len(intervals):
        fixed = [name for name in intervals if name not in changing]
        yield (
            f"{_listed(changing)} {'changes' if len(changing) == 1 else 'change'} with "
            f"{_quantity_name(model)}; {_listed(fixed)} {'has' if len(fixed) == 1 else 'have'} one "
            f"value"
        )


def _listed(names: Sequence[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def _quantity_name(model: TimingModel) -> str:
    divided = model.fit.divided_by
    return "" if divided is None else divided.text.rpartition("*")[0][1:-1]


def _range(segment: FitSegment, quantity: str) -> str:
    if math.isfinite(segment.high):
        low = f"{segment.low:g} < " if math.isfinite(segment.low) else ""
        return f"{low}{quantity} <= {segment.high:g}"
    return f"{quantity} > {segment.low:g}" if math.isfinite(segment.low) else ""


def _quality(model: TimingModel) -> Iterator[str]:
    band, timings = model.band, model.timings
    worst = max(segment.worst for segment in model.fit.segments)
    yield (
        f"misfit {band.noise:.1%}, at most {worst:.1%}, of {len(timings)} points"
        + (f" (the least of up to {timings.repeats} times at each)" if timings.repeats > 1 else "")
    )
    if len(band.errors):
        mean, greatest = (math.expm1(value) for value in (band.errors.mean(), band.errors.max()))
        yield (
            f"tried: {_counted(len(band.errors), 'prediction')} from "
            f"{_counted(band.regions, 'smaller region')} "
            f"{'was' if len(band.errors) == 1 else 'were'} off by {_percent(mean)} in the mean, "
            f"at most {_percent(greatest)}"
        )


def _percent(value: float) -> str:
    return f"{value:.1%}" if value < 1 else f"a factor of {1 + value:.3g}"


def _beyond(model: TimingModel, confidence: float) -> list[Predicted]:
    if not model.variables:
        return []
    return [model.predict(model.beyond(factor), confidence=confidence) for factor in _FACTORS]


def _predictions(model: TimingModel, points: Sequence[Predicted]) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    names = list(dict.fromkeys(name for each in points for name in each.values))
    for name in names:
        table.add_column(name, justify="right")
    table.add_column(f"predicted {visible(model.timings.time)}", justify="right")
    suffix = "" if model.band.is_calibrated else "\n(not calibrated)"
    table.add_column(f"{points[0].confidence:.0%} between{suffix}", justify="right", no_wrap=True)
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
    if model.missing is not None:
        lacks, before, after = model.missing.terms, model.missing.error, model.missing.error_with
        yield (
            f"It may lack {' and '.join(lacks)}: with {'these terms' if lacks[1:] else 'it'}, "
            f"predictions from smaller regions are off by {_percent(math.expm1(after))} instead of "
            f"{_percent(math.expm1(before))}. Try --formula {model.missing.formula!r}"
        )
    yield from _rivals(model)
    for text in model.untried:
        yield f"Not tried: {text}."


def _rivals(model: TimingModel) -> Iterator[str]:
    """Yield what formulas predict that are nearly as good, at a point beyond the measurements."""
    rivals = model.choice.rivals if model.choice else ()
    point = model.beyond(_FACTORS[1])
    between = model.rivals_at(point) if rivals and point else None
    if between is None:
        return
    at = ", ".join(f"{name} = {value:g}" for name, value in point.items())
    own = float(model.predict(point).times[0])
    low, high = min(own, *between), max(own, *between)
    if high <= _ALIKE * low:
        yield (
            f"{len(rivals)} other formula{'s fit' if rivals[1:] else ' fits'} about as well. "
            f"At {at} the best of all predict {_between(low, high)}: it hardly matters which one "
            "is right."
        )
    else:
        yield (
            f"The measurements do not tell this formula from {_others(len(rivals))}"
            f"{rivals[0].formula}; at {at} {'they predict' if rivals[1:] else 'it predicts'} "
            f"{_between(*between)}."
        )


def _others(count: int) -> str:
    return f"{count} others, such as " if count > 1 else "one other, "


def _between(low: float, high: float) -> str:
    first, last = f"{low:.4g}", f"{high:.4g}"
    return first if first == last else f"{first} to {last}"


def _folds(count: int) -> str:
    return "one fold that leaves out" if count == 1 else f"{count} folds that leave out"


def _counted(count: int, of: str) -> str:
    return f"{count} {of}" if count == 1 else f"{count} {of}s"
