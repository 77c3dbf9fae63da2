"""Predictions as tables on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from bsplib.console import Console
from bsplib.profiler import format as fmt
from bsplib.profiler.models.prediction import MEASURED, Prediction

if TYPE_CHECKING:
    from collections.abc import Iterable


def print_predictions(
    predictions: Iterable[Prediction], *, number: int | None = None, console: Console | None = None
) -> None:
    """Print for each run its totals under the models, and the shares of the nodes in them.

    Args:
        predictions: predictions for the runs of a trace, in order.
        number: position in the trace of the run, if only one run is printed.
        console: where to print; default: standard output.
    """
    console = console or Console()
    for position, prediction in enumerate(predictions):
        console.print(_title(position if number is None else number, prediction), soft_wrap=True)
        if waiting := fmt.waiting(prediction.callgraph.run):
            console.print(Text(f"{waiting} (part of the measured computation)"), soft_wrap=True)
        console.print(_totals(prediction))
        console.print(_nodes(prediction))


def _title(position: int, prediction: Prediction) -> Text:
    """Return a title that describes the run and the Machine of the tables."""
    run, prices = prediction.callgraph.run, prediction.prices
    machine = prices.machine
    processes = "1 process" if run.nprocs == 1 else f"{run.nprocs} processes"
    program = fmt.visible(str(run.meta.get("program", "unknown")))
    parts = [f"run {position + 1}: {program}", processes, f"on {machine.label}"]
    if prices.pattern is None:
        latency = fmt.seconds(machine.need("l"))
        parts.append(f"g {fmt.seconds(machine.g * machine.word_bytes)} per word, l {latency}")
    elif machine.measured:
        parts.append("supersteps cost what a probe measured, by pattern and size")
    else:
        parts.append(f"g and L by pattern: {prices.pattern}")
    if prices.ratio != 1:
        parts.append(f"computation takes {prices.ratio:.3g} times as long as recorded")
    if prices.assumption:
        parts.append(f"assumed: {prices.assumption}")
    counts = [entry.p for entry in machine.measured]
    if machine.p is not None and run.nprocs not in (counts or [machine.p]):
        text = ", ".join(map(str, counts or [machine.p]))
        parts.append(f"figures measured with {text} processes")
    if not run.complete:
        parts.append("the run did not end normally")
    return Text(", ".join(parts), style="bold")


def _totals(prediction: Prediction) -> Table:
    """Return a table with one row for each model: its total, the parts, and its error if any.

    The measured computation has the time that it waited for a core, and the measured
    communication the synchronisation.
    """
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("model")
    titles = ("total", "computation", "communication", "synchronisation")
    for title in (*titles, *([] if prediction.is_elsewhere else ["error"])):
        table.add_column(title, justify="right")
    for name, parts in prediction.totals.items():
        cells = [parts.total_s, parts.comp_s + parts.waiting_s, parts.comm_s, parts.sync_s]
        texts = [*map(fmt.seconds, cells)]
        if name == MEASURED:
            texts[-1] = ""
        elif (error := prediction.error_percent(name)) is not None:
            texts.append(f"{error:.1f}%")
        table.add_row(name, *texts)
    return table


def _nodes(prediction: Prediction) -> Table:
    """Return a table with one row for each node, in call-tree order: its share in each total."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("function or\ncost centre", overflow="fold")
    for name in prediction.nodes:
        table.add_column(name, justify="right", no_wrap=True)
    nodes = prediction.callgraph.graph.nodes(data="node")
    for name, depth in prediction.callgraph.depths().items():
        costs = [fmt.seconds(parts[name].total_s) for parts in prediction.nodes.values()]
        table.add_row(Text("  " * depth + fmt.label(nodes[name])), *costs)
    return table
