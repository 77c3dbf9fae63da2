"""Limits for call graphs: a small file can declare a graph that needs too much memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from bsplib.errors import BspError

if TYPE_CHECKING:
    from bsplib.recording.records import Run

MAX_SHARES = 2**23
"""Nodes and edges of a call graph times processes, since each edge and node has a pie."""
MAX_VISITS = 2**33
"""Nodes and edges times cells or groups, since the cost of each takes one pass over them. A
cell is what one superstep has of one origin: a stack with the kind of sync at its end."""
MAX_SUMMED = 2**29
"""Cells that are summed up for nodes and edges; each takes about 50 ns."""
MAX_LEVELS = 2**19
"""Nodes and edges times levels of nested groups, since levels are processed one by one."""


class TooLargeError(BspError):
    """A run is too large to be shown."""


class GraphWork(NamedTuple):
    """What the costs of the nodes and edges of a call graph take."""

    cells: int
    """Number of cells of the run."""
    summed: int
    """Number of cells of all nodes and edges; those of equal ones count once."""
    levels: int
    """Greatest number of sub-groups that are nested in one another."""


def check_graph(parts: int, run: Run, work: GraphWork) -> None:
    """Refuse a call graph that would need gigabytes of memory or minutes.

    Args:
        parts: number of nodes and edges of the call graph.
        run: the run of the call graph.
        work: what their costs take.

    Raises:
        TooLargeError: the call graph is too large.
    """
    what = "nodes and edges"
    check_product(what, parts, "processes", run.nprocs, MAX_SHARES)
    check_product(what, parts, "places of supersteps", work.cells, MAX_VISITS)
    check_product(what, parts, "groups", len(run.groups), MAX_VISITS)
    check_product(what, parts, "levels of groups", work.levels, MAX_LEVELS)
    if work.summed > MAX_SUMMED:
        raise TooLargeError(
            f"the call graph is too large to show: its {what} have {work.summed} places of "
            f"supersteps, more than {MAX_SUMMED}"
        )


def check_product(what: str, count: int, factor: str, times: int, most: int) -> None:
    """Refuse a product of two counts that is greater than ``most``.

    Args:
        what: name of what is counted first.
        count: its number.
        factor: name of what is counted second.
        times: its number.
        most: greatest product that is allowed.

    Raises:
        TooLargeError: the product is greater.
    """
    if count * times > most:
        raise TooLargeError(
            f"the call graph is too large to show: {count} {what} times {times} {factor} are more "
            f"than {most}"
        )
