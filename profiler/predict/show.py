"""A learnt program, and what it predicts, on the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from bsplib.profiler import format as fmt
from bsplib.profiler.predict.planning import number, run_to_make, words
from bsplib.profiler.predict.values import PROCESSES
from bsplib.visible import visible

if TYPE_CHECKING:
    from bsplib.console import Console
    from bsplib.profiler.predict.prediction import RunPrediction, Scaling
    from bsplib.profiler.predict.program import (
        BoundedValue,
        ChainModel,
        Learned,
        Point,
        ProgramModel,
    )

_SHOWN = ("supersteps", "h", "comp")
_GIVEN = "given after its name"
"""What a Machine has as the source of a figure that the command line gave."""


def show_model(model: ProgramModel, console: Console, points: Sequence[Point] = ()) -> None:
    """Print the laws of all cost centres, what is not known, and values at some points.

    Args:
        model: the model.
        console: where to print.
        points: points at which the values of each cost centre are printed.
    """
    console.print(Text(_head(model), style="bold"), soft_wrap=True)
    console.print(_laws(model))
    for line in _notes(model):
        console.print(Text(visible(line)), soft_wrap=True)
    for point in points:
        console.print(Text(f"\nAt {words([point])}:", style="bold"))
        console.print(_values(model, point))


def _head(model: ProgramModel) -> str:
    ranges = []
    for name, values in model.measured.items():
        known = sorted(set(values))
        origin = f" ({model.origins[name]})" if name in model.origins else ""
        shown = ", ".join(map(number, known[:8])) + (" ..." if len(known) > 8 else "")
        ranges.append(f"{name} = {shown}{origin}")
    return visible(f"{model.program}, from {fmt.counted(model.runs, 'run')}: {'; '.join(ranges)}")


def _laws(model: ProgramModel) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for title in ("cost centre", "supersteps", "h in bytes", "computation in s"):
        table.add_column(title, overflow="fold")
    for chains in model.leaves().values():
        for each in chains:
            name = _label(model, each, alone=len(chains) == 1)
            table.add_row(name, *(_law(each.learned[quantity]) for quantity in _SHOWN))
    return table


def _label(model: ProgramModel, each: ChainModel, *, alone: bool) -> str:
    """Return the name of a cost centre, with what tells its call chains apart."""
    text = fmt.label(model.nodes[each.chain[-1]])
    if alone:
        return text
    callers = [model.nodes[node].name for node in each.chain[1:-1]]
    return f"{text} in {' > '.join(visible(name) for name in callers[-3:])}" if callers else text


def _law(learned: Learned) -> Text:
    if learned.fit is None or learned.laws:
        return Text(visible(learned.text))
    return Text(f"{visible(learned.text)} (+- {learned.fit.noise:.0%})")


def _notes(model: ProgramModel) -> Iterator[str]:
    for name, values in model.measured.items():
        if len(set(values)) == 1:
            yield f"{name} is {values[0]:g} in all runs: what depends on it is not known."
        elif len(set(values)) == 2:
            yield (
                f"{name} has two values in the runs: no law that depends on it is found from "
                "fewer than three."
            )
    open_ = [
        fmt.label(model.nodes[each.chain[-1]])
        for each in model.chains
        if any(
            len({law.at(_twice(model)) for law in each.learned[name].laws}) > 1
            for name in ("supersteps", "h")
        )
    ]
    if open_:
        yield f"Several laws hold for the runs and differ beyond them: {', '.join(open_)}."


def _twice(model: ProgramModel) -> Point:
    return {name: 2 * value for name, value in model.largest.items()}


def _values(model: ProgramModel, point: Point) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("cost centre", overflow="fold")
    for title in ("supersteps", "h in bytes", "computation"):
        table.add_column(title, justify="right")
    for leaf, chains in model.leaves().items():
        found = [each.at(point) for each in chains]
        texts = [_value([each[name] for each in found], name) for name in _SHOWN]
        table.add_row(fmt.label(model.nodes[leaf]), *texts)
    return table


def _value(values: Sequence[BoundedValue], name: str) -> str:
    if any(each.why for each in values):
        return "not known"
    sums = [
        sum(each.value for each in values),
        sum(each.low for each in values),
        sum(each.high for each in values),
    ]
    texts = [fmt.seconds(each) if name == "comp" else f"{each:,.0f}" for each in sums]
    return texts[0] if texts[1] == texts[2] else f"{texts[0]} ({texts[1]} to {texts[2]})"


# -- predictions --------------------------------------------------------------------------------


def show_prediction(prediction: RunPrediction, found: Scaling, console: Console) -> None:
    """Print a predicted run: its time, what narrows the band, its nodes, other numbers of p."""
    for line in _summary(prediction, found):
        console.print(Text(visible(line)), soft_wrap=True)
    console.print(_nodes(prediction))
    console.print(_processes(found))
    for leaf, why in prediction.refused.items():
        name = fmt.label(prediction.model.nodes[leaf])
        console.print(Text(visible(f"Not counted: {name}: {why}.")), soft_wrap=True)


def _summary(prediction: RunPrediction, found: Scaling) -> Iterator[str]:
    model, machine = prediction.model, prediction.prices.machine
    at = words([prediction.point])
    least = "at least " if prediction.refused else ""
    worst = max(model.leaves(), key=lambda leaf: prediction.nodes[leaf].total_s)
    yield (
        f"{model.program} at {at} on {machine.label}: {least}"
        f"{fmt.seconds(prediction.total.total_s)}{band(prediction)}; most of it "
        f"{fmt.label(model.nodes[worst])}"
    )
    if (short := prediction.too_short_s) is not None:
        longer = {**model.largest}
        for name in model.variables:
            longer[name] *= 2.0 ** math.ceil(math.log2(max(model.least_s / short, 1)))
        arguments = " ".join(f"{name}={number(value)}" for name, value in longer.items())
        yield (
            f"too short to tell: these runs take at most {fmt.seconds(short)}, make ones of "
            f"{fmt.seconds(model.least_s)}: bsp run with {arguments}"
        )
    elif (run := run_to_make(prediction)) is not None:
        yield f"this run would narrow it most: {words([run])}"
    yield from _assumed(prediction)
    if (speedup := found.speedup(prediction)) is not None:
        yield f"speedup over one process: {speedup:.3g}"
    if found.roll_off is not None and found.cause is not None:
        cause = fmt.label(model.nodes[found.cause])
        yield f"roll-off: more than {found.roll_off} processes no longer help, because of {cause}"
    names = [fmt.label(model.nodes[node]) for node in prediction.critical_path]
    yield f"critical path: {' > '.join(names)}"


def band(prediction: RunPrediction) -> str:
    """Return the limits of a predicted time as text."""
    if not math.isfinite(prediction.high_s):
        return ""
    return f" ({fmt.seconds(prediction.low_s)} to {fmt.seconds(prediction.high_s)})"


def _assumed(prediction: RunPrediction) -> Iterator[str]:
    prices, machine = prediction.prices, prediction.prices.machine
    units = {"speed": "flop/s", "g": "s/byte", "l": "s"}
    given = [
        f"{figure} = {getattr(machine, figure):g} {units[figure]}"
        for figure, source in machine.sources.items()
        if source == _GIVEN and figure in units
    ]
    if prices.assumption:
        yield f"assumed: {prices.assumption}"
    if given:
        yield f"assumed: {', '.join(given)}"
    count = int(prediction.point[PROCESSES])
    ratio = prices.ratio_at(count)
    if ratio != 1:
        cores = machine.all_cores or machine.cores
        shares = prices.slowdowns and count > (cores or count)
        why = f"{count} processes share {cores} cores: " if shares else ""
        yield f"assumed: {why}computation takes {ratio:.3g} times as long as recorded"
    if machine.measured and count > machine.measured[-1].p:
        on = "" if machine.cores is None else f" on {fmt.counted(machine.cores, 'core')}"
        yield (
            f"assumed: what a probe measured goes on to {count} processes: {machine.label} was "
            f"probed with at most {machine.measured[-1].p}{on}, and bsp machine new FILE.toml "
            "describes another computer"
        )
    if not (machine.measured or machine.g or machine.l):
        yield "assumed: communication takes no time on this Machine; --machine names another one"


def _nodes(prediction: RunPrediction) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("function or cost centre", overflow="fold")
    for title in ("total", "computation", "g h", "l"):
        table.add_column(title, justify="right", no_wrap=True)
    model = prediction.model
    for path, seconds in prediction.paths.items():
        parts = (seconds.total_s, seconds.comp_s, seconds.comm_s, seconds.sync_s)
        name = "  " * (len(path) - 1) + fmt.label(model.nodes[path[-1]])
        table.add_row(Text(name), *map(fmt.seconds, parts))
    return table


def _processes(found: Scaling) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("p", justify="right")
    for title in ("time", "speedup"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("most of it", overflow="fold")
    for each in found.predictions:
        speedup = found.speedup(each)
        worst = max(each.model.leaves(), key=lambda leaf: each.nodes[leaf].total_s)
        name = fmt.label(each.model.nodes[worst])
        time = ("" if not each.refused else "at least ") + fmt.seconds(each.total.total_s)
        table.add_row(
            number(each.point[PROCESSES]), time, "" if speedup is None else f"{speedup:.3g}", name
        )
    return table
