"""The records that belong to a node of a call graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bsplib.profiler.callgraph import CallGraph


def records_through(callgraph: CallGraph, node: str) -> NDArray[np.bool_]:
    """Mark the records whose stack passes through a node; none if there is no such node."""
    through = np.array([node in origin.nodes for origin in callgraph.origins], bool)
    chunks = callgraph.run.table("records").chunks(("stack", "kind"))
    marked = [through[callgraph.origin_of(rows)] for _, rows in chunks]
    return np.concatenate([np.zeros(0, bool), *marked])
