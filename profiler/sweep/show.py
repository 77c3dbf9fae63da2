"""A sweep on the terminal: what moves, the table of all values, and which value is best."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from bsplib.profiler import format as fmt
from bsplib.profiler.sweep.points import METRICS, Centre, Costs, added
from bsplib.profiler.sweep.verdict import NEAR, Judgement, Move, judge, moves

if TYPE_CHECKING:
    from bsplib.console import Console
    from bsplib.profiler.sweep.points import Key, Sweep

_SHOWN = 6
"""Most values of which a table has a column each."""
_UNEVEN = 1.05
"""A cost centre whose max/avg never exceeds this is left out of the tables of balance."""


def print_sweep(sweep: Sweep, console: Console) -> None:
    """Print what moves as the parameter grows, all values, and last which of them is best."""
    verdict = judge(sweep.samples())
    keys = sweep.series(verdict.best)
    series = [sweep.costs(key) for key in keys]
    found = moves(series)
    name = sweep.parameters[sweep.place]
    if len(keys) > 1:
        for line in sentences(name, found):
            console.print(Text(line))
    console.print(_values(sweep, found))
    if len(keys) > 1:
        console.print(_centres(sweep, verdict.best))
    console.print(_machines(sweep))
    console.print(Text(conclusion(sweep, verdict), style="bold"))


def sentences(name: str, found: Sequence[Move]) -> Iterator[str]:
    """Yield what moves, the balance of h first."""
    words = {"h": "the h-relation of", "comp": "the computation of"}
    for each in found:
        if each.quantity == "seconds":
            what = "takes longer" if each.change > 0 else "takes less time"
            change = f"{fmt.seconds(each.first)} to {fmt.seconds(each.last)}"
            yield f"with a greater {name} {each.centre} {what}: {change}"
        else:
            what = "less even" if each.change > 0 else "more even"
            yield (
                f"with a greater {name} {words[each.quantity]} {each.centre} gets {what}: "
                f"max/avg {each.first:.2f} to {each.last:.2f}"
            )
    if not found:
        yield f"no cost centre steadily rises or falls as {name} grows"


def moving(found: Sequence[Move], metric: str) -> Centre | None:
    """Return the cost centre whose balance moves."""
    return next((each.centre for each in found if each.quantity == metric), None)


def balance(costs: dict[Centre, Costs], metric: str, centre: Centre | None) -> float:
    """Return max/avg of a cost centre, or of the whole run."""
    one = added(costs.values()) if centre is None else costs.get(centre, Costs())
    return one.ratio(metric)


def _values(sweep: Sweep, found: Sequence[Move]) -> Table:
    """Return a table of all combinations: balance, time, and what theory says."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    centres = {metric: moving(found, metric) for metric in METRICS}
    heads = [f"\n{name}" for name in sweep.parameters]
    for metric, centre in centres.items():
        of = "whole run" if centre is None else fmt.shortened(centre.function, 16)
        heads.append(f"{metric} max/avg\n{of}")
    samples = sweep.samples()
    one = all(min(times) == max(times) for times in samples.values())
    heads += ["\ntime"] if one else ["time\nmedian", "\nleast", "\ngreatest"]
    theory = list(dict.fromkeys(title for each in sweep.theory.values() for title in each))
    heads += [f"theory\n{fmt.visible(title)}" for title in theory]
    rows = []
    for key, times in samples.items():
        costs = sweep.costs(key)
        even = [f"{balance(costs, metric, centre):.2f}" for metric, centre in centres.items()]
        amounts = [median(times)] if one else [median(times), min(times), max(times)]
        said = [_theory(sweep.theory.get(key, {}).get(title, "")) for title in theory]
        rows.append([*(f"{v:g}" for v in key), *even, *map(fmt.seconds, amounts), *said])
    for head, cells in zip(heads, zip(*rows, strict=True), strict=True):
        table.add_column(Text(head), justify="right", min_width=max(map(len, cells)))
    for row in rows:
        table.add_row(*row)
    return table


def _theory(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else fmt.visible(str(value))


def _centres(sweep: Sweep, best: Key) -> Table:
    """Return a table of the time and the balance of each cost centre, with a column a value."""
    keys = _spread(sweep.series(best), best)
    name = sweep.parameters[sweep.place]
    others = [
        f"{other} = {value:g}"
        for at, (other, value) in enumerate(zip(sweep.parameters, best, strict=True))
        if at != sweep.place
    ]
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column(Text(", ".join(["by cost centre", *others])), overflow="fold")
    for key in keys:
        table.add_column(Text(f"{name} = {key[sweep.place]:g}"), justify="right")
    series = [sweep.costs(key) for key in keys]
    centres = list(dict.fromkeys(centre for each in series for centre in each))
    totals = [added(each.values()) for each in series]

    def rows(
        title: str, text: Callable[[Costs], str], shown: Callable[[Costs, Costs], bool]
    ) -> None:
        kept = [
            (centre, row)
            for centre in centres
            for row in [[each.get(centre, Costs()) for each in series]]
            if any(map(shown, row, totals))
        ]
        if kept:
            table.add_row(Text(title, style="bold"))
        for centre, row in kept:
            table.add_row(Text(f"  {centre}"), *map(text, row))

    rows("time", lambda c: fmt.seconds(c.seconds), lambda c, all_: c.seconds > NEAR * all_.seconds)
    for metric, title in zip(METRICS, ("h, max/avg", "computation, max/avg"), strict=True):
        rows(
            title,
            lambda c, m=metric: f"{c.ratio(m):.2f}",  # type: ignore[misc]
            lambda c, all_, m=metric: (  # type: ignore[misc]
                c.maximum(m) > NEAR * all_.maximum(m) and c.ratio(m) > _UNEVEN
            ),
        )
    return table


def _spread(keys: Sequence[Key], best: Key) -> list[Key]:
    """Return at most some combinations: the first, the last, the best, and some between."""
    if len(keys) <= _SHOWN:
        return list(keys)
    step = (len(keys) - 1) / (_SHOWN - 2)
    return sorted({best, *(keys[round(step * number)] for number in range(_SHOWN - 1))})


def _machines(sweep: Sweep) -> Table:
    """Return a table of what is best on the Machines that come with bsplib."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("on another\nMachine")
    for title in (f"best\n{', '.join(sweep.parameters)}", "\ntime"):
        table.add_column(title, justify="right")
    table.add_column("\nnot told from it", overflow="fold")
    for machine in sweep.points[0].elsewhere:
        found = judge(sweep.samples(machine))
        best = _short(found.best), fmt.seconds(found.medians[found.best])
        alike = "; ".join(map(_short, found.alike))
        table.add_row(Text(machine), *best, "all" if not found.others else alike)
    return table


def _short(key: Key) -> str:
    return ", ".join(f"{value:g}" for value in key)


def conclusion(sweep: Sweep, verdict: Judgement) -> str:
    """Return which value is best, what is not told from it, and what the others cost."""
    names = " and ".join(sweep.parameters)
    best = sweep.named(verdict.best)
    took = fmt.seconds(verdict.medians[verdict.best])
    if len(verdict.medians) == 1:
        return f"{best} takes {took}; with one value nothing can be compared."
    others = verdict.others
    if not others:
        return (
            f"No {names} is best: the times of all overlap with those of {best}, or are within "
            f"{NEAR:.0%} ({took})."
        )
    told = [key for key in verdict.medians if key not in (verdict.best, *verdict.alike)]
    whose = f"{sweep.named(told[0])} takes" if len(told) == 1 else "The others take"
    least, most = others[0], others[-1]
    shown = [f"{1 + each:.3g}" if most > 1 else f"{each:.0%}" for each in (least, most)]
    cost = " to ".join(dict.fromkeys(shown)) + (" times as long" if most > 1 else " longer")
    alike = "; ".join(map(sweep.named, verdict.alike))
    text = f"Best: {best}, {took}."
    text += f" Not told from it: {alike}." * bool(alike) + f" {whose} {cost}."
    place = sweep.place
    ends = {key[place] for key in sweep.keys}
    if len(sweep.parameters) == 1 and verdict.best[place] in (min(ends), max(ends)):
        text += " It is the end of the range: there may be a better one outside."
    return text
