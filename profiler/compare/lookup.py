"""The figures of one node of a run, by the name that a user writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bsplib.profiler.callgraph import build
from bsplib.profiler.compare.comparison import Compared, Ledgered
from bsplib.profiler.compare.words import is_named, label
from bsplib.profiler.losses import book

if TYPE_CHECKING:
    from bsplib.profiler.compare.quantities import NodeCosts
    from bsplib.recording.records import Run


def figures_of(run: Run, name: str | None = None) -> NodeCosts:
    """Return the figures of a run, or of one node of it.

    Args:
        run: a run.
        name: a function, such as ``Solver.step`` or ``step``, or a cost centre, such as
            ``cg.py:12``; the whole run if None.

    Raises:
        LookupError: no node has this name, or several have it.
    """
    callgraph = build(run)
    booked = Ledgered(callgraph, book(callgraph))
    if name is None:
        return booked.measured(callgraph.root).figures
    nodes = [Compared(None, booked.measured(node)) for node in callgraph.graph]
    found = [node for node in nodes if is_named(node, name)]
    if len(found) != 1:
        known = ", ".join(label(node) for node in (found or nodes))
        number = "no node is" if not found else f"{len(found)} nodes are"
        raise LookupError(f"{number} called {name!r}; there are {known}")
    return found[0].known.figures
