"""Output of the command line."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from bsplib.apps.sql.program import ProcessAnswer
from bsplib.apps.sql.queries import INPUTS, SQL
from bsplib.profiler import format as fmt

RELATIONS = {
    "ITEM": {
        "item": "integer, the key",
        "name": "string",
        "class": "string",
        "price": "float, or NULL",
        "since": "date",
    },
    "QNT": {
        "class": "string, the key",
        "stock": "integer, in units",
        "floor": "float, a price that few items exceed",
    },
    "TRAN": {
        "tran": "integer, the key",
        "item": "integer",
        "day": "date",
        "units": "integer, or NULL",
    },
}
"""What the generator makes; the queries need no more than ``INPUTS``."""


def queries(answers: Sequence[ProcessAnswer]) -> None:
    """Show the number of rows, the balance and the time of each query."""
    table = Table(box=SIMPLE_HEAD)
    table.add_column("query")
    for title in ("rows", "most on one process", "time"):
        table.add_column(title, justify="right")
    for name in SQL:
        rows = [answer.rows[name] for answer in answers]
        most = f"{max(rows) * len(rows) / sum(rows):.2f} n/p" if sum(rows) else "-"
        took = max(answer.seconds[name] for answer in answers)
        table.add_row(name, f"{sum(rows):,}", most, fmt.seconds(took))
    Console().print(table)


def idle(answers: Sequence[ProcessAnswer]) -> None:
    """Name the relations of which some processes have no rows."""
    for name in INPUTS:
        without = sum(answer.rows[name] == 0 for answer in answers)
        if without:
            total = sum(answer.rows[name] for answer in answers)
            Console().print(
                f"{name} has {total:,} rows: none on {without} of {len(answers)} processes"
            )


def schema() -> None:
    """Show the relations and the queries."""
    console = Console()
    table = Table("relation", "column", "is", "read by the queries", box=SIMPLE_HEAD)
    for name, columns in RELATIONS.items():
        for place, (column, kind) in enumerate(columns.items()):
            used = "yes" if column in INPUTS[name] else ""
            table.add_row("" if place else name, column, kind, used)
    console.print(table)
    table = Table("makes", "query", box=SIMPLE_HEAD)
    for name, text in SQL.items():
        table.add_row(name, text)
    console.print(table)
