"""Predictions as tables on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from bsplib.console import Console
from bsplib.profiler import format as fmt
from bsplib.profiler.models.prediction import MEASURED, Prediction, TimeParts, predict
from bsplib.profiler.models.replay import MODELS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bsplib.profiler.prices import ReplayPrices
    from bsplib.recording.records import Run

_PARTS = ("computation", "communication", "synchronisation")
_PARTS_WITH_ERRORS = (
    *("computation", "communication and\nsynchronisation", "synchronisation\nalone"),
    "error",
)


def predict_all(
    chosen: Sequence[tuple[Run, ReplayPrices]], models: Sequence[str] = MODELS
) -> list[Prediction]:
    """Replay runs under models, with a progress bar on standard error.

    Raises:
        ValueError: there is no such model.
        UsageError: a Machine lacks a figure.
    """
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("replaying", total=len(chosen) * (1 + len(models)))
        return [
            predict(run, prices, models, progress=lambda: progress.advance(bar))
            for run, prices in chosen
        ]


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
            part = "total only" if prediction.is_elsewhere else "computation"
            console.print(Text(f"{waiting} (part of the measured {part})"), soft_wrap=True)
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

    Errors are of computation and of communication with synchronisation, so these are shown then:
    the measured computation has the time that it waited for a core.
    """
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("model")
    for title in ("total", *(_PARTS if prediction.is_elsewhere else _PARTS_WITH_ERRORS)):
        table.add_column(title, justify="right")
    for name, parts in prediction.totals.items():
        cells = _texts(name, parts)
        if not prediction.is_elsewhere:
            cells[1:3] = fmt.seconds(parts.busy_s), fmt.seconds(parts.exchange_s)
        if name != MEASURED and not prediction.is_elsewhere:
            comp, comm = prediction.part_errors(name)
            cells[1:3] = _with_error(cells[1], comp), _with_error(cells[2], comm)
            cells.append(_error(prediction.error_percent(name)))
        table.add_row(name, *cells)
    return table


def _error(error: float | None) -> str:
    return "" if error is None else f"{error:.1f}%"


def _with_error(text: str, error: float | None) -> str:
    return text if error is None else f"{text} ({error:.1f}%)"


def _texts(name: str, parts: TimeParts) -> list[str]:
    """Return a total and its parts; the measured time has no separate synchronisation."""
    texts = [fmt.seconds(value) for value in (parts.total_s, parts.comp_s, parts.comm_s)]
    return [*texts, "" if name == MEASURED else fmt.seconds(parts.sync_s)]


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
