"""A learnt program, and what it predicts, on the terminal."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator
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
    from bsplib.profiler.predict.planning import Planner
    from bsplib.profiler.predict.prediction import RunPrediction, Scaling
    from bsplib.profiler.predict.program import ChainModel, Learned, Point, ProgramModel

_SHOWN = ("supersteps", "h", "comp")
_GIVEN = "given after its name"
"""What a Machine has as the source of a figure that the command line gave."""


def show_model(model: ProgramModel, console: Console) -> None:
    """Print the laws of all cost centres, and of which variables little is known."""
    console.print(Text(_head(model), style="bold"), soft_wrap=True)
    console.print(_laws(model))
    for line in _notes(model):
        console.print(Text(visible(line)), soft_wrap=True)


def _head(model: ProgramModel) -> str:
    ranges = []
    for name, values in model.measured.items():
        known = sorted(set(values))
        shown = ", ".join(map(number, known[:8])) + (" ..." if len(known) > 8 else "")
        ranges.append(f"{name} = {shown}")
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


# -- predictions --------------------------------------------------------------------------------


def show_prediction(
    prediction: RunPrediction, found: Scaling, console: Console, planner: Planner | None = None
) -> None:
    """Print a predicted run: a sentence, a table of its nodes, and what was assumed.

    Args:
        prediction: the run.
        found: it on other numbers of processes.
        console: where to print.
        planner: knows the command that makes a run.
    """
    console.print(Text(visible(sentence_of(prediction, planner)), style="bold"))
    console.print(_nodes(prediction))
    for line, _ in remarks(prediction, found):
        console.print(Text(visible(line)))


def sentence_of(prediction: RunPrediction, planner: Planner | None = None) -> str:
    """Return how long the run takes, which cost centre takes most, and which run to make next."""
    model, point = prediction.model, dict(prediction.point)
    processes = fmt.counted(int(point.pop(PROCESSES)), "process", "processes")
    at = f"at {words([point])} on" if point else "on"
    parts = [
        f"{prediction.opening} {at} {processes} of {prediction.prices.machine.label}: "
        f"{fmt.seconds(prediction.total.total_s)}{band(prediction)}",
        f"most of it {fmt.label(model.nodes[prediction.worst])}",
    ]
    if (short := prediction.too_short_s) is not None:
        longer = {**model.largest}
        for name in model.variables:
            longer[name] *= 2.0 ** math.ceil(math.log2(max(model.least_s / short, 1)))
        parts.append(
            f"too short to tell: these runs take at most {fmt.seconds(short)}, make ones of "
            f"{fmt.seconds(model.least_s)}: {_how(longer, planner)}"
        )
    elif (run := run_to_make(prediction)) is not None:
        parts.append(f"this run would narrow the band most: {_how(run, planner)}")
    return "; ".join(parts)


def _how(point: Point, planner: Planner | None) -> str:
    """Return the command that makes a run, or its values."""
    if planner is None:
        return words([point])
    return shlex.join(planner.line(point, planner.trace_of(point)))


def remarks(prediction: RunPrediction, found: Scaling) -> Iterator[tuple[str, str | None]]:
    """Yield what is said below the sentence, each with the id of its node, if it has one."""
    nodes = prediction.model.nodes
    if (speedup := found.speedup(prediction)) is not None:
        yield f"speedup over one process: {speedup:.3g}", None
    if found.roll_off is not None and found.cause is not None:
        fastest = fmt.counted(found.roll_off, "process", "processes")
        cause = fmt.label(nodes[found.cause])
        yield f"roll-off: fastest on {fastest}; with more, {cause} takes longer", found.cause
    for assumed in _assumed(prediction):
        yield assumed, None


def band(prediction: RunPrediction) -> str:
    """Return the limits of a predicted time as text."""
    return f", {fmt.seconds(prediction.low_s)} to {fmt.seconds(prediction.high_s)}"


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
    for title in ("super-\nsteps", "h in\nbytes", "total", "compu-\ntation", "g h", "l"):
        table.add_column(title, justify="right", no_wrap=True)
    model = prediction.model
    leaves = {each.model.chain: each for each in prediction.chains}
    for path, seconds in prediction.paths.items():
        counts = ["", ""]
        if (chain := leaves.get(path)) is not None:
            counts = [f"{chain.values[name].value:,.0f}" for name in ("supersteps", "h")]
        parts = (seconds.total_s, seconds.comp_s, seconds.comm_s, seconds.sync_s)
        name = "  " * (len(path) - 1) + fmt.label(model.nodes[path[-1]])
        table.add_row(Text(name), *counts, *map(fmt.seconds, parts))
    return table
