"""The call graph as a file: a shaded picture, DOT, tables in CSV, GraphML and JSON."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, BinaryIO

import networkx

from bsplib.profiler import tables
from bsplib.profiler.drawing.picture import Drawing, draw, drawn_as_svg, to_dot
from bsplib.profiler.report.document import document
from bsplib.profiler.tables import plain_graph, rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from bsplib.profiler.export.table import Request


def write_svg(request: Request, file: BinaryIO) -> None:
    """Write the picture of a request as an SVG document."""
    file.write(b'<?xml version="1.0" encoding="UTF-8"?>\n')
    file.write(drawn_as_svg(request.drawing).encode())


def write_png(request: Request, file: BinaryIO) -> None:
    """Write the picture of a request as PNG, with 144 pixels to the inch."""
    file.write(draw(request.drawing, "png"))


def write_pdf(request: Request, file: BinaryIO) -> None:
    """Write the picture of a request as PDF, one page as large as the picture."""
    file.write(draw(request.drawing, "pdf"))


def write_dot(request: Request, file: BinaryIO) -> None:
    """Write the picture of a request in DOT, with all nodes unless fewer are asked for.

    Nodes and edges also have the numbers of :func:`bsplib.profiler.tables.plain_graph` as
    attributes.
    """
    callgraph = request.profile.callgraph
    every = Drawing(callgraph, request.view, list(callgraph.graph), list(callgraph.graph.edges))
    picture = every if request.top is None else request.drawing
    file.write(to_dot(picture, numbers=plain_graph(request.profile.book())).encode())


# -- plain data: tables in CSV, a graph in GraphML, a document in JSON -----------------------------


TABLES: dict[str, Callable[[Request], tables.Columns]] = {
    "nodes": lambda request: tables.nodes(request.profile.book()),
    "edges": lambda request: tables.edges(request.profile.book()),
    "supersteps": lambda request: tables.supersteps(request.profile.book()),
    "processes": lambda request: tables.processes(request.profile.callgraph),
}
"""The tables that can be written, by name."""

_FORMULA = ("=", "+", "-", "@")
"""A spreadsheet takes a text that begins so for a formula, and computes it."""


def write_csv(request: Request, file: BinaryIO) -> None:
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


def write_graphml(request: Request, file: BinaryIO) -> None:
    """Write the call graph of a request with its numbers as GraphML."""
    networkx.write_graphml_xml(plain_graph(request.profile.book()), file, prettyprint=True)


def write_json(request: Request, file: BinaryIO) -> None:
    """Write losses, verdict, nodes, edges and a critical path of a request as JSON.

    Where the run was repeated, the intervals over its repeats are there, too. Times are in
    seconds, sizes in bytes; ``docs/reference/traces.md`` describes the format.

    Raises:
        TooLargeError: there are too many nodes and processes for a file of JSON.
    """
    content = document([request.profile], path=request.metric, among=request.repeats)
    file.write(json.dumps(content, ensure_ascii=False, indent=1).encode())
