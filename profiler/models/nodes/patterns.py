"""The communication pattern of each call chain, by which a probed Machine has its prices."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

from bsplib.profiler.models.prices import recognise
from bsplib.profiler.models.timeline import lay_out

if TYPE_CHECKING:
    from bsplib.profiler.callgraph import CallGraph

_FEWEST = 3
"""With fewer processes the patterns are not told apart."""


def patterns_of(graphs: Iterable[CallGraph]) -> dict[tuple[str, ...], str]:
    """Return the pattern of each chain that communicates, as the run with most processes has it.

    Where the supersteps of a chain have several patterns, the one of most supersteps counts.

    Args:
        graphs: call graphs of runs of one program.
    """
    large = [graph for graph in graphs if graph.run.nprocs >= _FEWEST]
    if not large:
        return {}
    graph = max(large, key=lambda each: (each.run.nprocs, int(each.run.traffic["bytes"].sum())))
    timeline = lay_out(graph.run)
    origin = graph.origin_of_records()[timeline.position]
    found: defaultdict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for step in timeline.steps:
        pattern = recognise(timeline, step)
        if pattern is not None:
            found[graph.origins[int(origin[step.start])].chain][pattern] += 1
    return {chain: counted.most_common(1)[0][0] for chain, counted in found.items()}
