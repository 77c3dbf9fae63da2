"""The call graph as GraphML, for networkx, Gephi, yEd and igraph."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

import networkx

from bsplib.profiler.export.plain import plain_graph

if TYPE_CHECKING:
    from bsplib.profiler.export.request import Request


def write(request: Request, file: BinaryIO) -> None:
    """Write the call graph of a request with its numbers as GraphML."""
    networkx.write_graphml_xml(
        plain_graph(request.callgraph, request.ledger), file, prettyprint=True
    )
