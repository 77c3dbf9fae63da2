"""Tables of a profile as CSV, for spreadsheets, pandas and R."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, BinaryIO

from bsplib.profiler import tables
from bsplib.profiler.export.plain import rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from bsplib.profiler.export.request import Request

TABLES: dict[str, Callable[[Request], tables.Columns]] = {
    "nodes": lambda request: tables.nodes(request.callgraph, request.ledger),
    "edges": lambda request: tables.edges(request.callgraph, request.ledger),
    "supersteps": lambda request: tables.supersteps(request.callgraph, request.ledger.rates),
    "processes": lambda request: tables.processes(request.callgraph),
}
"""The tables that can be written, by name."""

_FORMULA = ("=", "+", "-", "@")
"""A spreadsheet takes a text that begins so for a formula, and computes it."""


def write(request: Request, file: BinaryIO) -> None:
    """Write a table of a request as CSV in UTF-8, with the names of its columns first.

    Before a text that a spreadsheet would take for a formula stands an apostrophe.
    """
    columns = TABLES[request.table](request)
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(text)
    writer.writerow(columns)
    for row in rows(columns):
        writer.writerow(map(_harmless, row.values()))
    text.detach()


def _harmless(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
