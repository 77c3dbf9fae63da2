"""A node model, and what it predicts, on the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from bsplib.profiler import format as fmt
from bsplib.profiler.models.nodes.laws import EXACT, REFUSED, Law, Point, PredictedValue
from bsplib.profiler.models.nodes.memory import LARGER_ARRAYS, has_larger_arrays
from bsplib.profiler.models.nodes.opening import opening
from bsplib.profiler.models.nodes.settle import number, words
from bsplib.profiler.models.nodes.values import PROCESSES
from bsplib.visible import visible

if TYPE_CHECKING:
    from rich.console import Console

    from bsplib.profiler.models.nodes.model import ChainModel, NodeModel
    from bsplib.profiler.models.nodes.predicted import NodePrediction, Scaling

_MOST_ROWS = 12

_GIVEN = "given after its name"
"""What a Machine has as the source of a figure that the command line gave."""


def show_model(model: NodeModel, console: Console, points: Sequence[Point] = ()) -> None:
    """Print the laws of all cost centres, what is refused, and values at some points.

    Args:
        model: the model.
        console: where to print.
        points: points at which the values of each cost centre are printed.
    """
    console.print(Text(_head(model), style="bold"), soft_wrap=True)
    console.print(_laws(model))
    for line in _doubts(model):
        console.print(Text(visible(line)), soft_wrap=True)
    for point in points:
        console.print(Text(f"\nAt {words([point])}:", style="bold"))
        console.print(_values(model, point))


def _head(model: NodeModel) -> str:
    ranges = []
    for name, values in model.measured.items():
        known = sorted(set(values))
        origin = f" ({model.origins[name]})" if name in model.origins else ""
        shown = ", ".join(map(number, known[:8])) + (" ..." if len(known) > 8 else "")
        ranges.append(f"{name} = {shown}{origin}")
    runs = fmt.counted(model.runs, "run")
    return visible(f"{model.program}, from {runs}: {'; '.join(ranges)}")


def _laws(model: NodeModel) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("cost centre", overflow="fold")
    table.add_column("supersteps", overflow="fold")
    table.add_column("h in bytes", overflow="fold")
    table.add_column("computation in s", overflow="fold")
    for chains in model.leaves().values():
        for each in chains:
            name = _label(model, each, alone=len(chains) == 1)
            table.add_row(name, *(_law(each.law(q)) for q in ("supersteps", "h", "comp")))
    return table


def _label(model: NodeModel, each: ChainModel, *, alone: bool) -> str:
    """Return the name of a cost centre, with what tells its call chains apart."""
    text = fmt.label(model.nodes[each.chain[-1]])
    if alone:
        return text
    callers = [model.nodes[node].name for node in each.chain[1:-1]]
    return f"{text} in {' > '.join(visible(name) for name in callers[-3:])}" if callers else text


def _law(law: Law) -> Text:
    if law.kind == REFUSED:
        return Text("refused", style="red")
    if law.kind == EXACT:
        return Text(visible(law.text))
    off = math.expm1(law.reach.at(0.0))
    return Text(f"{visible(law.text)} (+- {off:.0%})")


def _doubts(model: NodeModel) -> Iterator[str]:
    refused = model.refused()
    for leaf, found in refused.items():
        name = fmt.label(model.nodes[leaf])
        for (quantity, state, why), runs in _grouped(found).items():
            settle = _settled(runs)
            yield f"{state}: {quantity} of {name}: {why}{settle}."
    for leaf, chains in model.leaves().items():
        for each in chains:
            law = each.law("h")
            if law.kind == EXACT and len(law.pieces) > 1 and leaf not in refused:
                yield _changes(model, each, law)
    yield from model.notes
    if not refused:
        yield "Every cost centre has a law."


def _settled(runs: Sequence[Point]) -> str:
    if not runs:
        return ""
    return f"; {'runs' if len(runs) > 1 else 'a run'} that would settle it: {words(runs)}"


def _grouped(found: Sequence[tuple[str, Law]]) -> dict[tuple[str, str, str], list[Point]]:
    """Return runs that would settle what is not known, by quantity, how much of it, and why."""
    grouped: dict[tuple[str, str, str], list[Point]] = {}
    for quantity, law in found:
        if law.inside:
            reason = ("Refused beyond the runs", law.inside)
        else:
            reason = ("Refused" if law.kind == REFUSED else "Open", law.why)
        runs = grouped.setdefault((quantity, *reason), [])
        runs += [point for point in law.settle if point not in runs]
    return grouped


def _changes(model: NodeModel, each: ChainModel, law: Law) -> str:
    where = law.pieces[1].where[0]
    those = "these runs" if len(law.settle) > 1 else "this run"
    settle = f"; {those} would tell more: {words(law.settle)}" if law.settle else ""
    return (
        f"{fmt.label(model.nodes[each.chain[-1]])} changes where {where.quantity} is between "
        f"{where.low:g} and {where.high:g}{settle}."
    )


def _values(model: NodeModel, point: Point) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("cost centre", overflow="fold")
    for title in ("supersteps", "h in bytes", "computation"):
        table.add_column(title, justify="right")
    for leaf, chains in model.leaves().items():
        found = [model.values(chains, q, point) for q in ("supersteps", "h", "comp")]
        texts = [_value(found[0], "d"), _value(found[1], "d"), _value(found[2], "s")]
        table.add_row(fmt.label(model.nodes[leaf]), *texts)
    return table


def _value(value: PredictedValue, kind: str) -> str:
    if not value.is_known:
        return "refused"
    return fmt.seconds(value.value) if kind == "s" else f"{value.value:,.0f}"


# -- predictions --------------------------------------------------------------------------------


def show_prediction(prediction: NodePrediction, found: Scaling, console: Console) -> None:
    """Print a predicted run: time, speedup, roll-off, critical path, and the nodes."""
    for line in _summary(prediction, found):
        console.print(Text(visible(line)), soft_wrap=True)
    console.print(_nodes(prediction))
    console.print(_processes(prediction, found))
    for leaf, value in prediction.refused.items():
        name = fmt.label(prediction.model.nodes[leaf])
        settle = _settled(value.settle)
        console.print(Text(visible(f"Not counted: {name}: {value.why}{settle}.")), soft_wrap=True)
    if has_larger_arrays(prediction.model, prediction.point):
        console.print(Text(LARGER_ARRAYS), soft_wrap=True)


def _summary(prediction: NodePrediction, found: Scaling) -> Iterator[str]:
    machine = prediction.prices.machine
    at = words([prediction.point])
    yield f"{prediction.model.program} at {at}, on {machine.label}"
    yield from opening(prediction)
    if prediction.prices.assumption:
        yield f"assumed: {prediction.prices.assumption}"
    if given := _assumptions(prediction):
        yield f"assumed: {', '.join(given)}"
    count = int(prediction.point[PROCESSES])
    ratio = prediction.prices.ratio_at(count)
    if ratio != 1:
        cores = machine.all_cores or machine.cores
        shares = prediction.prices.slowdowns and count > (cores or count)
        why = f"{count} processes share {cores} cores: " if shares else ""
        yield f"assumed: {why}computation takes {ratio:.3g} times as long as recorded"
    if not (machine.measured or machine.g or machine.l):
        yield "assumed: communication takes no time on this Machine; --machine names another one"
    total = prediction.total
    least = "at least " if prediction.refused else ""
    yield f"time: {least}{fmt.seconds(total.total_s)}{_band(prediction)}"
    if (outside := prediction.outside) is not None:
        low, high = fmt.seconds(outside.low), fmt.seconds(outside.high)
        yield (
            f"start and end of the processes: {fmt.seconds(outside.value)} more ({low} to {high}), "
            "as in the runs"
        )
    speedup = found.speedup(prediction)
    if speedup is not None:
        first = min(prediction.model.measured[PROCESSES])
        beyond = "" if first == 1 else f", which no run had: the least is p = {first:g}"
        yield f"speedup over one process: {speedup:.3g}{beyond}"
    else:
        yield "speedup over one process: not known, since not every law holds for p = 1"
    yield from _roll_off(prediction, found)
    names = [fmt.label(prediction.model.nodes[node]) for node in prediction.critical_path]
    yield f"critical path: {' > '.join(names)}"


def _band(prediction: NodePrediction) -> str:
    if not math.isfinite(prediction.high_s):
        return ""
    doubt = "" if prediction.is_calibrated else "; the runs are too few to try this band"
    return f" ({fmt.seconds(prediction.low_s)} to {fmt.seconds(prediction.high_s)}{doubt})"


def _roll_off(prediction: NodePrediction, found: Scaling) -> Iterator[str]:
    if found.roll_off is None:
        most = int(found.predictions[-1].point[PROCESSES])
        yield f"roll-off: none; more processes help up to p = {most}, the most that was tried"
        return
    because = ""
    if found.cause is not None:
        because = f", because of {fmt.label(prediction.model.nodes[found.cause])}"
    known = ", of what is known" if prediction.refused else ""
    yield f"roll-off{known}: more than {found.roll_off} processes no longer help{because}"


def _nodes(prediction: NodePrediction) -> Table:
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


def _processes(prediction: NodePrediction, found: Scaling) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("p", justify="right")
    for title in ("time", "speedup"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("most of it", overflow="fold")
    for each in _chosen(prediction, found):
        speedup = found.speedup(each)
        leaves = each.model.leaves()
        worst = max(leaves, key=lambda leaf: each.nodes[leaf].total_s)
        name = fmt.label(each.model.nodes[worst])
        time = ("" if not each.refused else "at least ") + fmt.seconds(each.total.total_s)
        table.add_row(
            number(each.point[PROCESSES]), time, "" if speedup is None else f"{speedup:.3g}", name
        )
    return table


def _chosen(prediction: NodePrediction, found: Scaling) -> list[NodePrediction]:
    """Return powers of two, the number that was asked for, and the roll-off."""
    kept = {prediction.point[PROCESSES], found.roll_off}
    powers = [each for each in found.predictions if _is_power(each.point[PROCESSES])]
    step = max(math.ceil(len(powers) / _MOST_ROWS), 1)
    kept |= {each.point[PROCESSES] for each in powers[::step]}
    return [each for each in found.predictions if each.point[PROCESSES] in kept]


def _is_power(count: float) -> bool:
    return math.log2(count).is_integer()


def _assumptions(prediction: NodePrediction) -> list[str]:
    """Return the figures of the Machine that were given and not measured, a text each."""
    machine = prediction.prices.machine
    units = {"speed": "flop/s", "g": "s/byte", "l": "s"}
    return [
        f"{figure} = {getattr(machine, figure):g} {units[figure]}"
        for figure, source in machine.sources.items()
        if source == _GIVEN and figure in units
    ]
