"""A tuning on the terminal: the trade-off for each value, and the best values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bsplib.profiler import format as fmt
from bsplib.profiler.tune.best import NEAR

if TYPE_CHECKING:
    from bsplib.profiler.tune.best import TuneVerdict
    from bsplib.profiler.tune.seeds import SeedSpread
    from bsplib.profiler.tune.sweep import Point
    from bsplib.profiler.tune.trade import Centre, Costs, Trade
    from bsplib.profiler.tune.tuning import Tuning

MORE_BALANCED = "what becomes more balanced"
_WHAT = {"h": "h-relation", "comp": "computation"}


def print_tuning(tuning: Tuning, console: Console) -> None:
    """Print the trade-off of a parameter, what differs over the seeds, and its best values."""
    name, verdicts = tuning.name, tuning.verdicts
    for line in _sentences(name, tuning.trade):
        console.print(Text(line))
    if tuning.spread.seeds > 1:
        console.print(Text("With the first seed:"))
    console.print(_trade_table(name, tuning.points, tuning.trade))
    if tuning.spread.seeds > 1:
        console.print(_spread_table(name, tuning))
        console.print(Text(_doubt(name, tuning.spread)))
    console.print(_verdict_table(name, tuning.measured, verdicts))
    for line in [*_remarks(verdicts), *_about_theory(tuning), conclusion(name, verdicts[0])]:
        console.print(Text(line))
    if tuning.disagrees:
        console.print(Text(disagreement(name, verdicts[0], tuning.measured)))


def _sentences(name: str, trade: Trade) -> list[str]:
    """Return lines that name the cost centres on both sides of the trade-off."""
    sides = {
        "cost more": trade.pays,
        "have a more balanced h-relation": trade.evened["h"],
        "have a more balanced computation": trade.evened["comp"],
    }
    lines = []
    for what, centres in sides.items():
        if centres:
            lines += [f"With a greater {name} these {what}:", *(f"  {each}" for each in centres)]
    return lines or [f"No cost centre clearly costs more or becomes more balanced as {name} grows."]


def _trade_table(name: str, points: Sequence[Point], trade: Trade) -> Table:
    """Return a table with one row for each value; balance is (avg% | min%) of the maximum."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    columns = {
        f"\n{name}": [str(point.value) for point in points],
        **_columns(trade),
        "whole run\npriced": [fmt.seconds(point.total_s) for point in points],
        "\nmeasured": [fmt.seconds(point.measured_s) for point in points],
    }
    for title in columns:
        table.add_column(title, justify="right", no_wrap=True)
    for cells in zip(*columns.values(), strict=True):
        table.add_row(*cells)
    return table


def _spread_table(name: str, tuning: Tuning) -> Table:
    """Return a table of the imbalance and of the cost over the seeds."""
    spread = tuning.spread
    title = f"Over {spread.seeds} seeds, {MORE_BALANCED}: {_WHAT[spread.metric]}"
    table = Table(title=Text(title), title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column(f"\n{name}", justify="right", no_wrap=True)
    for head in ("max/avg\nleast", "\nmedian", "\ngreatest", "whole run\nleast", "\ngreatest"):
        table.add_column(head, justify="right", no_wrap=True)
    for value, balance, total in zip(spread.values, spread.imbalance, spread.total_s, strict=True):
        cells = (f"{each:.2f}" for each in balance)
        table.add_row(str(value), *cells, *map(fmt.seconds, (total.least, total.greatest)))
    return table


def _doubt(name: str, spread: SeedSpread) -> str:
    """Return a sentence about values that one seed cannot tell from their neighbours."""
    if not spread.unclear:
        return f"Each {name} differs more from its neighbours than its seeds from each other."
    return (
        f"For {name} = {', '.join(map(str, spread.unclear))} the seeds are further apart than the "
        "medians of the values beside it: one seed cannot tell these apart."
    )


def _about_theory(tuning: Tuning) -> list[str]:
    if tuning.theory is None:
        return []
    values = tuning.trade.values
    where = "" if values[0] <= tuning.theory <= values[-1] else ", which is outside the range"
    return [f"Theory demands {tuning.name} = {tuning.theory}{where}."]


def disagreement(name: str, model: TuneVerdict, took: TuneVerdict) -> str:
    """Return a sentence about a model and a measurement that choose different values."""
    slower = took.totals_s[took.values.index(model.best)] / took.best_s - 1
    return (
        f"Measurement and model disagree: the measured times choose {name} = {took.best}, the "
        f"model {model.best}, with which the runs took {slower:.0%} longer. Its Machine is "
        "not this computer, or has changed: measure it by bsp probe."
    )


def _columns(trade: Trade) -> dict[str, list[str]]:
    """Return the columns of both sides of the trade-off, as far as they have centres."""
    columns: dict[str, list[str]] = {}
    if trade.pays:
        pays = trade.of(trade.pays)
        columns["cost more\nh"] = [fmt.size(costs.h.maximum) for costs in pays]
        columns["\npriced"] = [fmt.seconds(costs.seconds) for costs in pays]
    title = "more even, %\n"
    for metric, what in (("h", "h"), ("comp", "comp")):
        if trade.evened[metric]:
            gains = trade.of(trade.evened[metric])
            columns[title + what] = [_balance(costs, metric) for costs in gains]
            title = "\n"
    return columns


def _balance(costs: Costs, metric: str) -> str:
    """Return average and minimum in percent of the maximum."""
    return "{} | {}".format(*getattr(costs, metric).percentages())


def _verdict_table(name: str, took: TuneVerdict, verdicts: Sequence[TuneVerdict]) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("\nMachine")
    for title in (f"best\n{name}", "\nwhole run"):
        table.add_column(title, justify="right")
    table.add_column(f"equally good\n(within {NEAR:.0%})")
    for verdict in [*verdicts, took]:
        if verdict.totals_s:
            mark = " (of the runs)" if verdict is verdicts[0] else ""
            near = ", ".join(map(str, verdict.near))
            best = (str(verdict.best), fmt.seconds(verdict.best_s), near)
            table.add_row(Text(verdict.name + mark), *best)
    return table


def _remarks(verdicts: Sequence[TuneVerdict]) -> list[str]:
    """Return remarks about Machines whose figures are incomplete."""
    remarks = []
    gaps = [verdict.name for verdict in verdicts if not verdict.totals_s]
    if gaps:
        remarks.append(
            f"Not priced, because l is not known: {', '.join(gaps)}; give it, as in "
            f"--machine {gaps[0]}:l=1e-5"
        )
    unknown = [verdict.name for verdict in verdicts if verdict.totals_s and verdict.ratio is None]
    if unknown:
        remarks.append(f"Computation as measured, because no speed is known: {', '.join(unknown)}")
    small = [verdict.name for verdict in verdicts if verdict.too_small]
    if small:
        remarks.append(f"Fewer processes than the runs had: {', '.join(small)}")
    return remarks


def conclusion(name: str, verdict: TuneVerdict) -> str:
    """Return a sentence that names the best value on a Machine."""
    equal = f" (equally good: {', '.join(map(str, verdict.near))})" if verdict.near else ""
    end = ""
    if len(verdict.values) > 1 and verdict.best in (verdict.values[0], verdict.values[-1]):
        end = "; this is an end of the range, and there may be a better value outside it"
    return f"Best on {verdict.name}: {name} = {verdict.best}{equal}{end}"


def centres_named(centres: Sequence[Centre]) -> str:
    """Return the names of the functions of some cost centres, each once."""
    return ", ".join(dict.fromkeys(centre.function for centre in centres))
