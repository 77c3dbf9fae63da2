"""The shaded call graph as a file: SVG, PNG, PDF, and the DOT from which Graphviz draws it."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from bsplib.profiler.drawing.picture import draw, drawn_as_svg, to_dot, uncut
from bsplib.profiler.tables import plain_graph

if TYPE_CHECKING:
    from bsplib.profiler.export.request import Request


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
    callgraph = request.callgraph
    picture = request.drawing if request.top is not None else uncut(callgraph, request.view)
    file.write(to_dot(picture, numbers=plain_graph(request.book)).encode())
