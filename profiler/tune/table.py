"""A tuning on the terminal: the trade-off for each value, and the best values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from profiler import format as fmt
from profiler.tune.best import NEAR, measured

if TYPE_CHECKING:
    from profiler.tune.best import Verdict
    from profiler.tune.sweep import Point
    from profiler.tune.trade import Centre, Costs, Trade


def print_tuning(
    name: str,
    points: Sequence[Point],
    trade: Trade,
    verdicts: Sequence[Verdict],
    console: Console,
) -> None:
    """Print the trade-off of a parameter, and its best values.

    Args:
        name: name of the parameter.
        points: the runs.
        trade: the trade-off that was found in them.
        verdicts: the costs on all Machines; first that of the runs.
        console: where to print.
    """
    for line in _sentences(name, trade):
        console.print(Text(line))
    console.print(_trade_table(name, points, trade))
    console.print(_verdict_table(name, points, verdicts))
    for line in [*_remarks(verdicts), conclusion(name, verdicts[0])]:
        console.print(Text(line))


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


def _columns(trade: Trade) -> dict[str, list[str]]:
    """Return the columns of both sides of the trade-off, as far as they have centres."""
    columns: dict[str, list[str]] = {}
    if trade.pays:
        pays = trade.of(trade.pays)
        columns["cost more\nh"] = [fmt.size(costs.h.maximum) for costs in pays]
        columns["\npriced"] = [fmt.seconds(costs.seconds) for costs in pays]
    title = "more balanced\n"
    for metric, what in (("h", "h"), ("comp", "computation")):
        if trade.evened[metric]:
            gains = trade.of(trade.evened[metric])
            columns[title + what] = [_balance(costs, metric) for costs in gains]
            title = "\n"
    return columns


def _balance(costs: Costs, metric: str) -> str:
    return fmt.balance(getattr(costs, metric))


def _verdict_table(name: str, points: Sequence[Point], verdicts: Sequence[Verdict]) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("\nMachine")
    for title in (f"best\n{name}", "\nwhole run"):
        table.add_column(title, justify="right")
    table.add_column(f"equally good\n(within {NEAR:.0%})")
    for verdict in [*verdicts, measured(points)]:
        if verdict.totals_s:
            mark = " (of the runs)" if verdict is verdicts[0] else ""
            near = ", ".join(map(str, verdict.near))
            best = (str(verdict.best), fmt.seconds(verdict.best_s), near)
            table.add_row(Text(verdict.name + mark), *best)
    return table


def _remarks(verdicts: Sequence[Verdict]) -> list[str]:
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


def conclusion(name: str, verdict: Verdict) -> str:
    """Return a sentence that names the best value on a Machine."""
    equal = f" (equally good: {', '.join(map(str, verdict.near))})" if verdict.near else ""
    end = ""
    if len(verdict.values) > 1 and verdict.best in (verdict.values[0], verdict.values[-1]):
        end = "; this is an end of the range, and there may be a better value outside it"
    return f"Best on {verdict.name}: {name} = {verdict.best}{equal}{end}"


def centres_named(centres: Sequence[Centre]) -> str:
    """Return the names of the functions of some cost centres, each once."""
    return ", ".join(dict.fromkeys(centre.function for centre in centres))
