"""A tuning on the terminal: the trade-off for each value, and the best values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bsplib.profiler import format as fmt
from bsplib.profiler.tune.balance import EXACT_TO
from bsplib.profiler.tune.best import NEAR

if TYPE_CHECKING:
    from bsplib.profiler.tune.balance import Balance
    from bsplib.profiler.tune.best import Advice, TuneVerdict
    from bsplib.profiler.tune.outcome import Tuning
    from bsplib.profiler.tune.seeds import SeedBand, SeedSpread
    from bsplib.profiler.tune.sweep import Point
    from bsplib.profiler.tune.trade_off import Centre, Costs, Trade

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
    if tuning.balance is not None:
        print_balance(name, tuning.balance, tuning.spread.seeds, console)
    console.print(_verdict_table(name, tuning.measured, verdicts))
    for line in [*_remarks(verdicts), *_about_theory(tuning), *recommendation(tuning)]:
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
    what = MORE_BALANCED if spread.found else "the balance of all cost centres"
    title = f"Over {spread.seeds} seeds, {what}: {_WHAT[spread.metric]}"
    table = Table(title=Text(title), title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column(f"\n{name}", justify="right", no_wrap=True)
    for head in ("max/avg\nleast", "\nmedian", "\ngreatest", "whole run\nleast", "\ngreatest"):
        table.add_column(head, justify="right", no_wrap=True)
    for value, balance, total in zip(spread.values, spread.imbalance, spread.total_s, strict=True):
        cells = (f"{each:.2f}" for each in balance)
        table.add_row(str(value), *cells, *map(fmt.seconds, (total.least, total.greatest)))
    return table


def _doubt(name: str, spread: SeedSpread) -> str:
    """Return a sentence about values of which the balance overlaps that of their neighbours."""
    if len(spread.values) < 2:  # neighbours
        return f"There is one {name}, so that nothing can be compared."
    if not spread.unclear:
        return f"The max/avg of each {name} overlaps with that of no value beside it."
    if len(spread.unclear) == len(spread.values):
        return f"The max/avg of each {name} overlaps with that of a value beside it."
    return (
        f"For {name} = {', '.join(map(str, spread.unclear))} max/avg overlaps with that of a value "
        "beside it: one seed cannot tell these apart."
    )


def _about_theory(tuning: Tuning) -> list[str]:
    if tuning.theory is None:
        return []
    values = tuning.trade.values
    where = "" if values[0] <= tuning.theory <= values[-1] else ", which is outside the range"
    said = f"Theory demands {tuning.name} = {tuning.theory}{where}"
    return [f"{said}: {tuning.means}." if tuning.means else f"{said}."]


def recommendation(tuning: Tuning) -> list[str]:
    """Return a sentence that names a value with its doubt, or says why there is none."""
    name, verdict = tuning.name, tuning.verdicts[0]
    if tuning.balance is not None and tuning.balance.helpless:
        return [f"No {name} helps: {tuning.balance.helpless}."]
    if not verdict.totals_s:
        return []
    return [conclusion(name, verdict, tuning.advice)]


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


def conclusion(name: str, verdict: TuneVerdict, advice: Advice | None = None) -> str:
    """Return a sentence that names the best value on a Machine, and its doubt."""
    equal = f" (equally good: {', '.join(map(str, verdict.near))})" if verdict.near else ""
    if advice is not None and advice.is_open:
        return (
            f"These values cannot be told apart on {verdict.name}: the costs of all "
            f"{_overlap(advice)} those of {name} = {advice.best}."
        )
    if advice is not None and advice.seeds > 1:
        equal = f", the cheapest with {advice.wins} of {advice.seeds} seeds"
        if advice.alike:
            equal += f" (not told from it: {', '.join(map(str, advice.alike))})"
    end = ""
    if len(verdict.values) > 1 and verdict.best in (verdict.values[0], verdict.values[-1]):
        end = "; this is an end of the range, and there may be a better value outside it"
    return f"Best on {verdict.name}: {name} = {verdict.best}{equal}{end}"


def _overlap(advice: Advice) -> str:
    return "overlap over the seeds with" if advice.seeds > 1 else f"are within {NEAR:.0%} of"


def print_balance(name: str, balance: Balance, seeds: int, console: Console) -> None:
    """Print what the order statistics of splitters predict beside what was measured."""
    how = (
        f"the scatter of the run with {name} = {balance.values[0]}"
        if balance.fitted
        else "the samples that the program draws"
    )
    title = f"Bytes received in {balance.where}, max/avg: predicted from {how}, and measured"
    table = Table(title=Text(title), title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column(f"\n{name}", justify="right", no_wrap=True)
    for head in ("predicted\nmedian", "90% of\ndraws", "measured\nmedian", "\nseeds"):
        table.add_column(head, justify="right", no_wrap=True)
    for value, *bands in zip(balance.values, balance.predicted, balance.measured, strict=True):
        cells = (text for band in bands for text in _median_and_range(band))
        table.add_row(str(value), *cells)
    console.print(table)
    over = f" over {seeds} seeds" if seeds > 1 else ""
    console.print(
        Text(
            f"Of {fmt.counted(len(balance.values), 'measured median')}{over} {balance.inside} "
            f"{'is' if balance.inside == 1 else 'are'} in the predicted range, give or take "
            f"{EXACT_TO}; it is for distinct keys."
        )
    )
    console.print(_elsewhere(name, balance))


def _median_and_range(band: SeedBand) -> tuple[str, str]:
    return f"{band.median:.2f}", f"{band.least:.2f} to {band.greatest:.2f}"


def _elsewhere(name: str, balance: Balance) -> Table:
    """Return a table of the predicted medians with other numbers of processes."""
    title = Text("The same predicted for other numbers of processes, median")
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column(name, justify="right", no_wrap=True)
    for number, _ in balance.elsewhere:
        table.add_column(f"p = {number}", justify="right", no_wrap=True)
    for place, value in enumerate(balance.values):
        medians = (medians[place] for _, medians in balance.elsewhere)
        table.add_row(str(value), *(f"{each:.2f}" for each in medians))
    return table


def centres_named(centres: Sequence[Centre]) -> str:
    """Return the names of the functions of some cost centres, each once."""
    return ", ".join(dict.fromkeys(centre.function for centre in centres))
