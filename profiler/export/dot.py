"""The shaded call graph in DOT, for Graphviz and the tools that read its files."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from bsplib.profiler.export.picture import to_dot, uncut
from bsplib.profiler.export.plain import plain_graph

if TYPE_CHECKING:
    from bsplib.profiler.export.request import Request


def write(request: Request, file: BinaryIO) -> None:
    """Write the picture of a request in DOT, with all nodes unless fewer are asked for.

    Nodes and edges also have the numbers of :func:`bsplib.profiler.export.plain.plain_graph` as
    attributes.
    """
    callgraph = request.callgraph
    picture = request.drawing if request.top is not None else uncut(callgraph, request.view)
    file.write(to_dot(picture, numbers=plain_graph(callgraph, request.ledger)).encode())
