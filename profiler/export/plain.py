"""The call graph as a networkx graph of plain attributes, which every graph format can hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import networkx
import numpy as np

from bsplib.profiler import format as fmt
from bsplib.profiler import tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bsplib.profiler.callgraph import CallGraph
    from bsplib.profiler.losses import Ledger


def plain_graph(callgraph: CallGraph, ledger: Ledger | None = None) -> networkx.DiGraph:
    """Return a call graph whose attributes are texts and numbers only.

    Nodes are the ids. Their attributes are the other columns of ``bsplib.profiler.tables.nodes``,
    those of an edge the columns of ``bsplib.profiler.tables.edges``: seconds, bytes and counts with
    the unit in the name; with a ledger also losses and costs. Attributes of the graph:
    root, program, nprocs, backend.
    """
    run = callgraph.run
    facts = {key: str(run.meta.get(key, "unknown")) for key in ("program", "backend")}
    visible = {key: fmt.visible(value) for key, value in facts.items()}
    graph = networkx.DiGraph()
    graph.graph |= {"root": callgraph.root, "nprocs": run.nprocs, **visible}
    for row in rows(tables.nodes(callgraph, ledger)):
        graph.add_node(row.pop("id"), **row)
    for row in rows(tables.edges(callgraph, ledger)):
        graph.add_edge(row.pop("caller"), row.pop("callee"), **row)
    return graph


def rows(columns: tables.Columns) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table, as dicts of texts and numbers of Python."""
    values = [np.asarray(column, object).tolist() for column in columns.values()]
    for row in zip(*values, strict=True):
        yield dict(zip(columns, row, strict=True))
